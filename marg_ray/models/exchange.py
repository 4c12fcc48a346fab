"""Getting one answer out of an endpoint: retries, back-off, breaker, and what the endpoint turned out not to know."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from marg_ray.errors import ModelUnavailable
from marg_ray.models.breaker import Breaker
from marg_ray.models.endpoints import Endpoint, Structure
from marg_ray.models.wire import Answer, Deltas, Refused, Transient, Unsupported, Wire
from marg_ray.settings import ModelSettings

Sleep = Callable[[float], Awaitable[object]]
MAX_PAUSE_S = 60.0  # the longest `Retry-After` that is waited for
Message = dict[str, str]
OnFault = Callable[[Transient, bool], Awaitable[None]]  # what happened, and whether it will be tried again


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request in our own terms. `output` is None for free text."""

    messages: list[Message]
    max_tokens: int
    temperature: float
    name: str
    output: type[BaseModel] | None = None
    window: int = 0  # tokens of context that the server should provide
    caller: str = ""  # the task's id: it goes along as a header, so that a server's log can be read by task


@dataclass
class Abilities:
    """What an endpoint was found to support. It only ever gets less, so that asking again comes to an end."""

    structure: Structure
    without: set[str] = field(default_factory=set)
    token_field: str = "max_tokens"

    def give_up(self, feature: str) -> bool:
        """Do without `feature` from now on; False when there is nothing left to give up."""
        if feature == "response_format":
            weaker = self.structure.weaker
            self.structure = weaker or self.structure
            return weaker is not None
        if feature == "max_tokens" and self.token_field == "max_tokens":
            self.token_field = "max_completion_tokens"
            return True
        known = feature not in self.without
        self.without.add(feature)
        return known


class Exchange:
    """All requests to one endpoint pass here, so that they share its breaker, its pauses and its limits."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.abilities = Abilities(endpoint.structure)
        self.breaker = Breaker(clock=clock)
        self.wire = Wire(
            endpoint,
            timeout_s=settings.timeout_s,
            silence_s=settings.silence_s,
            connections=settings.concurrency,
        )
        self._retries = settings.retries
        self._bounded = endpoint.provider in BOUNDED
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._sleep, self._clock = sleep, clock
        self._not_before = 0.0

    async def ask(self, ask: Ask, on_delta: Deltas | None = None, on_fault: OnFault | None = None) -> Answer:
        """One answer, after as many retries as the settings allow.

        `on_fault` hears of every try that failed, before the next one; what it raises ends the call.

        Raises:
            ModelUnavailable: nothing usable came, or the endpoint is resting after failures.
            TooLong: the prompt does not fit.
        """
        tries = 0
        while True:
            await self._turn()
            try:
                return await self._once(ask, on_delta)
            except Unsupported as exc:
                if not self.abilities.give_up(exc.feature):
                    raise self._unavailable(str(exc)) from None
            except Refused as exc:
                raise self._unavailable(str(exc)) from None
            except Transient as exc:
                again = tries < self._retries
                if on_fault is not None:
                    await on_fault(exc, again)
                if not again:
                    raise self._unavailable(str(exc)) from None
                await self._pause(exc, tries)
                tries += 1

    def schema(self, name: str, output: type[BaseModel]) -> str:
        """What is sent beside the messages for an answer of this type: it may count as tokens of the prompt."""
        structure = self.abilities.structure
        return "" if structure is Structure.PROMPT else _schema_text(structure, name, output, self._bounded)

    async def _once(self, ask: Ask, on_delta: Deltas | None) -> Answer:
        async with self._slots:
            if not self.breaker.admit():
                left = f"{self.breaker.wait_s:.0f} s" if self.breaker.wait_s else "as long as another call tries it"
                raise self._unavailable(f"it failed several times in a row and is left alone for {left}")
            try:
                answer = await self.wire.send(
                    self._body(ask, streamed=on_delta is not None), on_delta, caller=ask.caller
                )
            except Transient as exc:
                if exc.busy:  # it answers, it only has too much to do
                    self.breaker.succeeded()
                else:
                    self.breaker.failed()
                raise
            except asyncio.CancelledError:
                self.breaker.abandoned()
                raise
            except Exception:
                self.breaker.succeeded()  # it is there and has an opinion
                raise
            self.breaker.succeeded()
            return answer

    async def _turn(self) -> None:
        """Wait while the endpoint asked everybody to wait."""
        if (left := self._not_before - self._clock()) > 0:
            await self._sleep(min(left, MAX_PAUSE_S))

    async def _pause(self, exc: Transient, tries: int) -> None:
        seconds = min(exc.retry_after, MAX_PAUSE_S) if exc.retry_after is not None else 2.0**tries
        if exc.busy and exc.retry_after is not None:
            self._not_before = max(self._not_before, self._clock() + seconds)
            return
        await self._sleep(seconds)

    def _unavailable(self, reason: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self.endpoint.name} ({self.endpoint.host})", reason)

    def _body(self, ask: Ask, *, streamed: bool) -> dict[str, Any]:
        can = self.abilities
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": ask.messages}
        body[can.token_field] = ask.max_tokens
        if "temperature" not in can.without:
            body["temperature"] = ask.temperature
        if streamed and "stream_options" not in can.without:
            body["stream_options"] = {"include_usage": True}
        if ask.output is not None and can.structure is not Structure.PROMPT:
            body["response_format"] = _response_format(can.structure, ask.name, ask.output, self._bounded)
        if self.endpoint.provider == "ollama" and "options" not in can.without:
            body["options"] = {"num_ctx": ask.window}  # its own default window is small
        return body


@lru_cache(maxsize=64)
def _response_format(structure: Structure, name: str, output: type[BaseModel], bounded: bool) -> dict[str, Any]:
    if structure is Structure.OBJECT:
        return {"type": "json_object"}
    schema = strict_schema(output.model_json_schema(), bounded=bounded)
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


@lru_cache(maxsize=64)
def _schema_text(structure: Structure, name: str, output: type[BaseModel], bounded: bool) -> str:
    return json.dumps(_response_format(structure, name, output, bounded))


LONGEST = 400  # letters of a string in a bounded schema
BOUNDED = frozenset({"vllm"})  # providers that hold an answer to `maxLength`
_DROPPED = frozenset({"default", "title", "minLength", "maxLength", "description"})


def strict_schema(schema: Any, *, names: bool = False, bounded: bool = False) -> Any:
    """The schema as strict servers want it: every property required, none added, no defaults.

    `bounded`: no string is longer than `LONGEST` letters. A weak model that repeats itself would otherwise write one
    until its room is used up, and the object would never be closed. Hosted services refuse the keyword.
    `names` is set inside `properties`, whose keys are names and not keywords.
    """
    if isinstance(schema, list):
        return [strict_schema(item, bounded=bounded) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: strict_schema(value, names=key in ("properties", "$defs") and not names, bounded=bounded)
        for key, value in schema.items()
        if names or key not in _DROPPED
    }
    if bounded and not names and kept.get("type") == "string" and not {"enum", "const"} & kept.keys():
        kept["maxLength"] = min(LONGEST, schema.get("maxLength", LONGEST))
        if least := schema.get("minLength"):
            kept["minLength"] = least
    if not names and "properties" in kept:
        kept |= {"required": list(kept["properties"]), "additionalProperties": False}
    return kept
