"""Models around models, each with the face of one: paid through the ledger, or with a second choice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from marg_ray.errors import ModelError, ModelUnavailable
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply, Try
from marg_ray.models.estimates import (
    Allowance,
    Calibration,
    Estimate,
    asked,
    carrying,
    estimate,
    free,
    quote,
)
from marg_ray.models.tasks import FreeText
from marg_ray.records import Note, Usage
from marg_ray.seams import CallKey, Ledger, paid
from marg_ray.telemetry import events
from marg_ray.telemetry.figures import FIGURES

ONLY = "only"  # the tier of a model that is alone

__all__ = [
    "ONLY",
    "FallbackModel",
    "MeteredModel",
    "aclose",
    "asked",
    "dump",
    "estimate",
    "free",
    "load",
    "spent_by",
    "tries_of",
]


async def aclose(*models: ModelClient) -> None:
    """Close the connections of every model that holds any, once each."""
    for model in dict.fromkeys(models):
        if (close := getattr(model, "aclose", None)) is not None:
            await close()


class MeteredModel:
    """Pays every call through the ledger: the same task in the same session is carried out once.

    `estimate` is for a model that does not say itself what a task costs.
    """

    def __init__(self, model: ModelClient, ledger: Ledger, *, estimate: Estimate = estimate) -> None:
        self._model, self._ledger, self._estimate = model, ledger, estimate
        self._calibration = Calibration()

    @property
    def name(self) -> str:
        return self._model.name

    async def aclose(self) -> None:
        await aclose(self._model)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`; a reused reply costs nothing and is passed to `on_delta` in one piece.

        Raises:
            BudgetExceeded: the session's limits leave no room for the call, or for a further try that it needs.
        """
        kind, text = type(task).__name__, asked(task)
        key = CallKey.of(
            call.session_id, "model", task.role, kind, text, self.name, task_id=call.task_id, epoch=call.epoch
        ).anew()
        made: list[Reply[OutT]] = []
        asking = events.tool("model", call.session_id, call.task_id, task.role, call.section)

        async def allow(more: Usage) -> None:
            await self._ledger.extend(key, more)

        async def make() -> tuple[str, Usage]:
            made.append(await self._ask(task, replace(call, allow=allow)))
            return dump(made[0]), made[0].usage

        most = await quote(self._model, task, call, self._estimate, text)
        with asking:
            asking.fields = {"prompt": kind}
            settled = await paid(self._ledger, key, make, self._calibration.expected(self.name, kind, most))
            asking.usage = settled.usage
        if made:
            self._calibration.saw(self.name, kind, most, settled.usage)
            return made[0]
        reply = replace(load(task, settled.result), usage=settled.usage)
        if call.on_delta is not None and isinstance(reply.output, FreeText):
            await call.on_delta(reply.output.markdown)
        return reply

    async def _ask(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        began = time.perf_counter()
        try:
            reply = await self._model.run(task, call)
        except Exception as exc:
            for made in tries_of(getattr(exc, "told", "")):
                events.model_tried(made.tier, made.model, made.usage, useless=bool(made.fault), raised=made.raised)
            if not getattr(exc, "told", ""):
                events.model_tried(ONLY, self.name, getattr(exc, "spent", None) or Usage(), useless=True)
            raise
        FIGURES.observe("marg_model_seconds", time.perf_counter() - began, reply.model)
        for made in reply.tries:
            events.model_tried(made.tier, made.model, made.usage, useless=bool(made.fault), raised=made.raised)
        if not reply.tries:
            events.model_tried(ONLY, reply.model, reply.usage)
        return reply


def tries_of(told: str) -> Iterator[Try]:
    """Which tier tried, where an answer or an error in the ledger says so."""
    if '"tries"' in told:
        found = json.loads(told)
        yield from (Try.model_validate(made) for made in found.get("tries", ()))


def dump(reply: Reply[Any]) -> str:
    """A reply as JSON text, for the ledger and the tape."""
    return json.dumps(
        {
            "output": reply.output.model_dump(mode="json"),
            "usage": reply.usage.model_dump(),
            "model": reply.model,
            "notes": [note.model_dump() for note in reply.notes],
            "left_out": list(reply.left_out),
            "tries": [made.model_dump() for made in reply.tries],
        },
        ensure_ascii=False,
    )


def load(task: ModelTask[OutT], text: str) -> Reply[OutT]:
    """The reply to `task` that `dump` wrote."""
    stored = json.loads(text)
    return Reply(
        output=cast(OutT, task.output.model_validate(stored["output"])),
        usage=Usage.model_validate(stored["usage"]),
        model=stored["model"],
        notes=tuple(Note.model_validate(note) for note in stored["notes"]),
        left_out=tuple(stored.get("left_out", ())),
        tries=tuple(Try.model_validate(made) for made in stored.get("tries", ())),
    )


class FallbackModel:
    """Asks one model after the other until one is available."""

    def __init__(self, *models: ModelClient) -> None:
        assert models, "a fallback needs at least one model"
        self._models = models

    @property
    def name(self) -> str:
        return self._models[0].name

    async def aclose(self) -> None:
        await aclose(*self._models)

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        return await quote(self._models[0], task, call)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`.

        Raises:
            ModelUnavailable: none is available; it names them all.
            BudgetExceeded: there is no room for the next one.
        """
        first, *others = self._models
        try:
            return await first.run(task, call)
        except ModelUnavailable as exc:
            if not others:
                raise
            failed = [exc]
        allowance = Allowance(await quote(first, task, call), call.allow)
        for model in others:
            spent = spent_by(*failed)
            with carrying(spent):
                await allowance.need(spent + await quote(model, task, call))
                try:
                    reply = await model.run(task, call)
                except ModelUnavailable as exc:
                    failed.append(exc)
                    continue
            text = f"{model.name} answered for {self.name}, which was unavailable: {failed[0].reason}"
            note = Note(kind="model_fallback", text=text, section=call.section)
            return replace(reply, notes=(*reply.notes, note), usage=reply.usage + spent)
        none = ModelUnavailable(" and ".join(e.endpoint for e in failed), "; ".join(e.reason for e in failed))
        none.spent = spent_by(*failed)
        raise none


def spent_by(*errors: ModelError) -> Usage:
    """What calls that failed had used before they failed."""
    return sum((e.spent for e in errors if e.spent), Usage())
