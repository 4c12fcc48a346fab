"""Two models with the face of one: what a small one does well enough is not given to a large one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from marg_ray.errors import ContextOverflow, OutputCut, ParseError
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply, Tier
from marg_ray.models.estimates import Allowance, carrying, quote
from marg_ray.models.wrappers import aclose, spent_by
from marg_ray.records import Note, Role, Usage

__all__ = ["TieredModel"]


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

    def _choose(self, task: ModelTask[Any]) -> ModelClient:
        return self._roles.get(task.role, self._fast if task.tier is Tier.FAST else self._strong)

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        return await quote(self._choose(task), task, call)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`.

        Raises:
            BudgetExceeded: there is no room for the second try.
        """
        model = self._choose(task)
        try:
            return await model.run(task, call)
        except (ParseError, OutputCut, ContextOverflow) as exc:
            if model is not self._fast or self._fast is self._strong:
                raise
            failed = exc
        spent = spent_by(failed)
        with carrying(spent):
            allowance = Allowance(await quote(model, task, call), call.allow)
            await allowance.need(spent + await quote(self._strong, task, call))
            reply = await self._strong.run(task, call)
        text = f"{task.template} was given to {self._strong.name}, because {model.name} failed: {failed}"
        note = Note(kind="tier_raised", text=text, section=call.section)
        return replace(reply, notes=(*reply.notes, note), usage=reply.usage + spent)
