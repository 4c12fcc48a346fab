"""Two models with the face of one: what a small one does well enough is not given to a large one.

Which tier tries a task is a table by kind of task: `fast` and `strong` mean that tier and no other; `checked` means the
fast one first, and the strong one where a check finds the answer of no use or none came at all. By itself a task of
the fast tier is checked, and one of the strong tier is not tried on the fast one. Under `checked`, a section that is
written again goes to the strong tier at once: its check was the one of its sentences, and it did not pass.

Every try is on the reply (`Reply.tries`), or on the error (`told`), and so in the ledger: a run's figures say what the
tiers did and what raising a task bought, whatever processes died meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from marg_ray.errors import BudgetExceeded, ContextOverflow, ModelUnavailable, OutputCut, ParseError
from marg_ray.models.checks import fault
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply, Tier, Try
from marg_ray.models.estimates import Allowance, quote
from marg_ray.models.tasks import DraftSection, FreeText
from marg_ray.models.wrappers import aclose
from marg_ray.records import Note, Role, Usage
from marg_ray.settings import TaskName, TierPolicy

__all__ = ["TieredModel", "policy_of"]

Place: TypeAlias = Literal["fast", "strong", "own"]
UNUSABLE = (ParseError, OutputCut, ContextOverflow)


def policy_of(task: ModelTask[Any], table: Mapping[TaskName, TierPolicy]) -> TierPolicy:
    """How the tiers share a kind of task: as the table says for it, for all, or as its own tier has it."""
    own: TierPolicy = "checked" if task.tier is Tier.FAST else "strong"
    for name, policy in table.items():
        if name == task.template:
            return policy
    return table.get("all", own)


class TieredModel:
    """Sends a task to its role's own model, or to the tier that `policies` name for it; see the module."""

    def __init__(
        self,
        fast: ModelClient,
        strong: ModelClient,
        roles: Mapping[Role, ModelClient] | None = None,
        policies: Mapping[TaskName, TierPolicy] | None = None,
    ) -> None:
        self._fast, self._strong, self._roles = fast, strong, dict(roles or {})
        self._policies = dict(policies or {})

    @property
    def name(self) -> str:
        names = dict.fromkeys(m.name for m in (self._strong, self._fast, *self._roles.values()))
        return " + ".join(names)

    async def aclose(self) -> None:
        await aclose(self._fast, self._strong, *self._roles.values())

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        return await quote(self._choose(task)[1], task, call)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`.

        Raises:
            BudgetExceeded: there is no room for the second try, and the first gave nothing to go on with.
        """
        place, model = self._choose(task)
        checked = self._policy(task) == "checked" and self._fast is not self._strong
        if checked and place == "fast":
            return await self._checked(task, call)
        raised = checked and place == "strong"
        try:
            reply = await model.run(task, call)
        except BaseException as exc:
            _tell(exc, _vain(place, model, exc, raised=raised))
            raise
        return replace(reply, tries=(_made(place, task, reply, raised=raised),))

    def _policy(self, task: ModelTask[Any]) -> TierPolicy:
        return policy_of(task, self._policies)

    def _choose(self, task: ModelTask[Any]) -> tuple[Place, ModelClient]:
        """Who tries first."""
        if (own := self._roles.get(task.role)) is not None:
            return "own", own
        policy = self._policy(task)
        again = isinstance(task, DraftSection) and bool(task.feedback)
        if policy == "strong" or (policy == "checked" and again):
            return "strong", self._strong
        return "fast", self._fast

    async def _checked(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """The fast tier's answer where it passes, else the strong tier's."""
        first: Reply[OutT] | None = None
        prose = task.output is FreeText  # shown once it is sure that it stays
        try:
            first = await self._fast.run(task, replace(call, on_delta=None) if prose else call)
            made = _made("fast", task, first)
        except UNUSABLE as exc:
            made = _vain("fast", self._fast, exc)
        except BaseException as exc:
            _tell(exc, _vain("fast", self._fast, exc))
            raise
        if first is None or made.fault:
            return await self._raised(task, call, made, first)
        await _show(first, call)
        return replace(first, tries=(made,))

    async def _raised(self, task: ModelTask[OutT], call: Call, made: Try, first: Reply[OutT] | None) -> Reply[OutT]:
        """The strong tier's answer; where none is to be had, the first, if there is one: it was read, at least."""
        try:
            allowance = Allowance(await quote(self._fast, task, call), call.allow)
            await allowance.need(made.usage + await quote(self._strong, task, call))
            second = await self._strong.run(task, call)
        except BaseException as exc:
            vain = _vain("strong", self._strong, exc, raised=True)
            if first is None or not isinstance(exc, (*UNUSABLE, ModelUnavailable, BudgetExceeded)):
                exc.spent = made.usage + vain.usage  # type: ignore[attr-defined]
                _tell(exc, made, vain)
                raise
            await _show(first, call)
            text = f"{task.template} stays as {made.model} answered it, though {made.fault}: {vain.fault}"
            note = Note(kind="tier_kept", text=text, section=call.section)
            return replace(first, notes=(*first.notes, note), usage=made.usage + vain.usage, tries=(made, vain))
        text = f"{task.template} was given to {self._strong.name}, because {made.model} failed: {made.fault}"
        note = Note(kind="tier_raised", text=text, section=call.section)
        tries = (made, _made("strong", task, second, raised=True))
        return replace(second, notes=(*second.notes, note), usage=made.usage + second.usage, tries=tries)


def _made(place: Place, task: ModelTask[Any], reply: Reply[Any], *, raised: bool = False) -> Try:
    return Try(tier=place, model=reply.model, usage=reply.usage, raised=raised, fault=fault(task, reply.output))


def _vain(place: Place, model: ModelClient, exc: BaseException, *, raised: bool = False) -> Try:
    spent = getattr(exc, "spent", None) or Usage()
    return Try(tier=place, model=model.name, usage=spent, raised=raised, fault=str(exc) or type(exc).__name__)


def _tell(exc: BaseException, *tries: Try) -> None:
    """Have the ledger keep what was tried beside what it cost."""
    exc.told = json.dumps({"tries": [t.model_dump() for t in tries]}, ensure_ascii=False)  # type: ignore[attr-defined]


async def _show(reply: Reply[Any], call: Call) -> None:
    if call.on_delta is not None and isinstance(reply.output, FreeText):
        await call.on_delta(reply.output.markdown)
