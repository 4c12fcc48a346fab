"""Models around models, each with the face of one: paid through the ledger, with a second choice, in two tiers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

from marg_ray.errors import BudgetExceeded, ContextOverflow, ModelError, ModelUnavailable, OutputCut, ParseError
from marg_ray.grounding.snapshots import Document
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply, Tier
from marg_ray.models.prompting import estimate_tokens
from marg_ray.models.tasks import FreeText
from marg_ray.records import Note, Role, Usage
from marg_ray.seams import CallKey, Ledger, paid

TEMPLATE_TOKENS = 700  # of a prompt's fixed text, for the estimate
Estimate = Callable[[ModelTask[Any]], Usage]


def estimate(task: ModelTask[Any]) -> Usage:
    """What a call for `task` may cost at most, without retries: reserved before it is made."""
    tokens_in = estimate_tokens(json.dumps(asked(task), ensure_ascii=False)) + TEMPLATE_TOKENS
    return Usage(calls=1, tokens_in=tokens_in, tokens_out=task.max_tokens)


def free(_: ModelTask[Any]) -> Usage:
    """The estimate for a model that costs nothing."""
    return Usage()


def asked(task: ModelTask[Any]) -> dict[str, Any]:
    """The task's fields as JSON values; a whole document is named by its source id."""
    documents = {name for name in type(task).model_fields if isinstance(getattr(task, name), Document)}
    fields: dict[str, Any] = task.model_dump(mode="json", exclude=documents)
    return fields | {name: getattr(task, name).source_id for name in documents}


async def aclose(*models: ModelClient) -> None:
    """Close the connections of every model that holds any, once each."""
    for model in dict.fromkeys(models):
        if (close := getattr(model, "aclose", None)) is not None:
            await close()


class MeteredModel:
    """Pays every call through the ledger: the same task in the same session is carried out once."""

    def __init__(self, model: ModelClient, ledger: Ledger, *, estimate: Estimate = estimate) -> None:
        self._model, self._ledger, self._estimate = model, ledger, estimate

    @property
    def name(self) -> str:
        return self._model.name

    async def aclose(self) -> None:
        await aclose(self._model)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`; a reused reply costs nothing and is passed to `on_delta` in one piece.

        Raises:
            BudgetExceeded: the session's limits leave no room for the call.
        """
        key = CallKey.of(
            call.session_id,
            "model",
            task.role,
            type(task).__name__,
            asked(task),
            self.name,
            task_id=call.task_id,
        )
        made: list[Reply[OutT]] = []

        async def make() -> tuple[str, Usage]:
            made.append(await self._model.run(task, call))
            return dump(made[0]), made[0].usage

        try:
            settled = await paid(self._ledger, key, make, self._estimate(task))
        except ModelError as exc:
            await self._count(key, exc.spent)
            raise
        if made:
            return made[0]
        reply = replace(load(task, settled.result), usage=settled.usage)
        if call.on_delta is not None and isinstance(reply.output, FreeText):
            await call.on_delta(reply.output.markdown)
        return reply

    async def _count(self, key: CallKey, spent: Usage | None) -> None:
        """Enter what a failed call cost under a key of its own, so that the call itself may be asked again."""
        if spent is None or not spent.calls:
            return
        once = CallKey.of(key.session_id, "model", key.role, key.key, "failed", uuid4().hex, task_id=key.task_id)
        with suppress(BudgetExceeded):  # then the session is over its limit anyway
            await self._ledger.begin(once, spent)
            await self._ledger.end(once, "", spent)


def dump(reply: Reply[Any]) -> str:
    """A reply as JSON text, for the ledger and the tape."""
    return json.dumps(
        {
            "output": reply.output.model_dump(mode="json"),
            "usage": reply.usage.model_dump(),
            "model": reply.model,
            "notes": [note.model_dump() for note in reply.notes],
            "left_out": list(reply.left_out),
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

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`.

        Raises:
            ModelUnavailable: none is available; it names them all.
        """
        failed: list[ModelUnavailable] = []
        for model in self._models:
            try:
                reply = await model.run(task, call)
            except ModelUnavailable as exc:
                failed.append(exc)
                continue
            if failed:
                text = f"{model.name} answered for {self.name}, which was unavailable: {failed[0].reason}"
                note = Note(kind="model_fallback", text=text, section=call.section)
                usage = reply.usage + _spent(*failed)
                return replace(reply, notes=(*reply.notes, note), usage=usage)
            return reply
        if len(failed) == 1:
            raise failed[0]
        none = ModelUnavailable(" and ".join(e.endpoint for e in failed), "; ".join(e.reason for e in failed))
        none.spent = _spent(*failed)
        raise none


class TieredModel:
    """Sends a task to its role's own model or its tier's. What fails its check on `fast` is tried on `strong`."""

    def __init__(self, fast: ModelClient, strong: ModelClient, roles: Mapping[Role, ModelClient] | None = None) -> None:
        self._fast, self._strong, self._roles = fast, strong, dict(roles or {})

    @property
    def name(self) -> str:
        names = dict.fromkeys(m.name for m in (self._strong, self._fast, *self._roles.values()))
        return " + ".join(names)

    async def aclose(self) -> None:
        await aclose(self._fast, self._strong, *self._roles.values())

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`."""
        tiered = self._fast if task.tier is Tier.FAST else self._strong
        model = self._roles.get(task.role, tiered)
        try:
            return await model.run(task, call)
        except (ParseError, OutputCut, ContextOverflow) as exc:
            if model is not self._fast or self._fast is self._strong:
                raise
            text = f"{task.template} was given to {self._strong.name}, because {model.name} failed: {exc}"
            try:
                reply = await self._strong.run(task, call)
            except ModelError as second:
                second.spent = _spent(exc, second)
                raise
            note = Note(kind="tier_raised", text=text, section=call.section)
            return replace(reply, notes=(*reply.notes, note), usage=reply.usage + _spent(exc))


def _spent(*errors: ModelError) -> Usage:
    return sum((e.spent for e in errors if e.spent), Usage())
