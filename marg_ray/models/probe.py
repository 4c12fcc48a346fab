"""What an endpoint can do, found out by asking it, and remembered in `MARG_HOME`."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from marg_ray.errors import ModelUnavailable
from marg_ray.files import write_whole
from marg_ray.models import replies
from marg_ray.models.endpoints import Endpoint, Structure
from marg_ray.models.exchange import Ask, Exchange
from marg_ray.models.wire import Answer, TooLong
from marg_ray.records import Record
from marg_ray.settings import ModelSettings

GOOD_FOR = timedelta(days=7)  # servers are updated
ROOM = 1024  # tokens of an answer: a model that thinks first needs some
_ASK = "Name the capital of France and its number of letters, as JSON with the keys city and letters."


class Capabilities(Record):
    """What was seen of one endpoint."""

    structure: Structure  # how it is asked for JSON; `json_schema`: it was held to
    streams: bool
    usage: bool  # tokens are counted in a whole answer
    usage_in_stream: bool
    at: datetime

    def in_words(self) -> str:
        form = {
            Structure.SCHEMA: "JSON schema",
            Structure.OBJECT: "JSON without a schema",
            Structure.PROMPT: "JSON only by asking for it",
        }[self.structure]
        counted = {(True, True): "tokens counted", (True, False): "tokens counted, but not in streams"}
        usage = counted.get((self.usage, self.usage_in_stream), "tokens not counted: they are estimated")
        return f"{form}, {'streams' if self.streams else 'no streams'}, {usage}"


class _Capital(BaseModel):
    model_config = ConfigDict(extra="forbid")

    city: str
    letters: int


async def probe(endpoint: Endpoint, settings: ModelSettings) -> Capabilities:
    """Ask an endpoint twice, for a few tokens: once for JSON, once for a stream.

    Raises:
        ModelUnavailable: it does not answer, or does not know the model or the key.
    """
    exchange = Exchange(endpoint, settings.model_copy(update={"retries": min(1, settings.retries)}))
    pieces: list[str] = []

    async def heard(piece: str) -> None:
        pieces.append(piece)

    def ask(output: type[BaseModel] | None, text: str) -> Ask:
        return Ask(
            messages=[{"role": "user", "content": text}],
            max_tokens=ROOM,
            temperature=0.0,
            name="probe",
            output=output,
            window=settings.context_tokens,
        )

    try:
        structured = await exchange.ask(ask(_Capital, _ASK))
        while not _holds(structured, exchange.abilities.structure):
            if not exchange.abilities.give_up("response_format"):
                break
            structured = await exchange.ask(ask(_Capital, _ASK))
        streamed = await exchange.ask(ask(None, "Count from one to ten."), heard)
    except TooLong as exc:
        raise ModelUnavailable(f"{endpoint.name} ({endpoint.host})", str(exc)) from None
    finally:
        await exchange.wire.aclose()
    return Capabilities(
        structure=exchange.abilities.structure,
        streams=len(pieces) > 1,
        usage=structured.tokens_in is not None,
        usage_in_stream=streamed.tokens_in is not None,
        at=datetime.now(UTC),
    )


def _holds(answer: Answer, structure: Structure) -> bool:
    """Whether the answer is what was asked for, with nothing around it. One that was cut tells nothing."""
    text = replies.answer_text(answer.text)
    try:
        _Capital.model_validate_json(text) if structure is Structure.SCHEMA else json.loads(text)
    except ValueError:
        return answer.finish == "length"
    return True


def remember(home: Path, endpoint: Endpoint, found: Capabilities) -> None:
    write_whole(_path(home, endpoint), found.model_dump_json().encode())


def remembered(home: Path, endpoint: Endpoint, now: datetime | None = None) -> Capabilities | None:
    """What was seen of an endpoint, where that is not too long ago."""
    try:
        found = Capabilities.model_validate_json(_path(home, endpoint).read_bytes())
    except (OSError, ValidationError):
        return None
    return found if (now or datetime.now(UTC)) - found.at < GOOD_FOR else None


def as_remembered(home: Path, endpoint: Endpoint) -> Endpoint:
    """The endpoint, asked for JSON in the way that it was seen to hold to."""
    found = remembered(home, endpoint)
    return endpoint if found is None else replace(endpoint, structure=found.structure)


def _path(home: Path, endpoint: Endpoint) -> Path:
    named = f"{endpoint.provider} {endpoint.model} {endpoint.base_url}"
    return home / "endpoints" / f"{hashlib.sha256(named.encode()).hexdigest()[:16]}.json"
