"""A run whose process dies and starts again: the disk and the world outside stay, everything else is new."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.chaos_checks import content
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.fanout import Units
from marg_ray.actors.faults import Faults, FaultyDispatch, FaultyFetcher, FaultyModel, FaultySearcher, faulty_store
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.owner import Decision
from marg_ray.actors.researcher import Researcher
from marg_ray.actors.synthesizer import Synthesizer
from marg_ray.folding import replay
from marg_ray.messages import ReviewDecided, Steered, TaskFailed
from marg_ray.models.canned import sentences
from marg_ray.models.client import Call, ModelTask
from marg_ray.models.tasks import DraftSection, FreeText, IssueIdea, ReviewIdea, ReviewReport
from marg_ray.models.testing import CannedModel, Hook
from marg_ray.models.wrappers import asked
from marg_ray.records import GateMode, IssueKind, Limits, Request, Role
from marg_ray.seams import CallKey
from marg_ray.state import ResearchState
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import LogEntry, Store
from tests.flow import LIMIT_S, World

SESSION = "S"
QUESTION = "How much power do tidal stations produce?"


# ---- the world outside: a model server that does not forget, and an owner


class Server(CannedModel):
    """A model that sends the first section back in the first review it sees, and counts what it is paid for."""

    def __init__(self, hooks: dict[type[ModelTask[Any]], Hook] | None = None) -> None:
        super().__init__({ReviewReport: self._strict, DraftSection: self._rewritten, **(hooks or {})})
        self._reviews: dict[str, int] = {}
        self.paid: list[str] = []  # the ledger's key of each call that was answered

    async def run(self, task: ModelTask[Any], call: Call) -> Any:  # type: ignore[override]
        reply = await super().run(task, call)
        self.paid.append(
            CallKey.of(call.session_id, "model", task.role, type(task).__name__, asked(task), self.name).key
        )
        return reply

    def _strict(self, task: ReviewReport, good: ReviewIdea) -> ReviewIdea:
        number = self._reviews.setdefault(task.model_dump_json(), len(self._reviews))
        if number:
            return good
        fault = IssueIdea(
            kind=IssueKind.LOGIC_ERROR,
            severity="high",
            section=task.sections[0].id,
            detail="The second sentence does not follow.",
            instruction="Say how it follows.",
        )
        scores = good.scores.model_copy(update={"clarity": 0.5})
        return good.model_copy(update={"scores": scores, "issues": [*good.issues, fault]})

    def _rewritten(self, task: DraftSection, good: FreeText) -> FreeText:
        return FreeText(markdown="\n\n".join(reversed(sentences(good.markdown)))) if task.feedback else good


REQUEST = Request.model_validate(
    {
        "question": QUESTION,
        "depth": "overview",
        "approve_plan": True,
        "gate": GateMode.ALWAYS,
        "on_timeout": "wait",
        "limits": Limits(tokens=200_000, tasks=200),
    }
)


async def owner(coordinator: Coordinator, request: Request = REQUEST) -> None:
    """Starts the session and says what it waits for, until it is over; after a crash the owner does it all again."""
    await coordinator.submit(SESSION, request)
    async with asyncio.timeout(LIMIT_S):
        after = 0
        while True:
            progress = await coordinator.progress(SESSION, after)
            after += len(progress.entries)
            if progress.waiting_for == "plan":
                await _at_the_plan(coordinator)
            elif progress.waiting_for == "review":
                said = [e.message for e in await coordinator_log(coordinator)]
                extended = any(isinstance(m, ReviewDecided) for m in said)
                decision = Decision(what="approve") if extended else Decision(what="extend", note="Name the years.")
                await coordinator.decide(SESSION, decision)
            elif progress.status != "running":
                return


async def _at_the_plan(coordinator: Coordinator) -> None:
    section = list((await coordinator.state(SESSION)).sections)[-1]
    more = {"query": "silt in the estuary", "section": section}
    await coordinator.steer(SESSION, Steered(task_id=f"{SESSION}/steer/1", action="add", **more))
    raised = Limits(tokens=400_000)
    await coordinator.steer(SESSION, Steered(task_id=f"{SESSION}/steer/2", action="raise", limits=raised))
    await coordinator.decide(SESSION, Decision(what="approve"))


async def coordinator_log(coordinator: Coordinator) -> Sequence[LogEntry]:
    return (await coordinator.progress(SESSION, 0, wait_s=0)).entries


# ---- a process


@dataclass
class Life(World):
    """One process: everything in it is new, but for the disk, the model server and the schedule of faults."""

    disk: Store = field(default_factory=MemoryStore)
    faults: Faults = field(default_factory=Faults)
    lease_s: float = 600.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.store: Any = faulty_store(self.disk, self.faults)
        self.ledger = LedgerBook(self.store)
        self.server, self.model = self.model, FaultyModel(self.model, self.faults)
        self.agents = self._agents()
        units: Any = self.agents[Role.RESEARCHER].workers  # type: ignore[attr-defined]
        assert isinstance(units, Units)
        assert units.web is not None
        units = replace(
            units,
            web=FaultySearcher(units.web, self.faults),
            fetcher=FaultyFetcher(self.fetcher, self.faults),
        )
        self.agents[Role.RESEARCHER] = Researcher(workers=units)
        writer: Any = self.agents[Role.SYNTHESIZER]
        assert isinstance(writer, Synthesizer)
        self.agents[Role.SYNTHESIZER] = replace(writer, workers=units)
        self.dispatch = FaultyDispatch(self._dispatch, self.faults)
        self.coordinator = Coordinator(self.store, self.dispatch, lease_s=self.lease_s)

    def kill(self) -> None:
        """Nothing of this process reaches the disk from now on."""
        self.store.crashed.set()

    async def live(self, drive: Callable[[Coordinator], Awaitable[None]] = owner) -> bool:
        """Run `drive` to its end, or to this process's death; says which. Nothing of the process is left then."""
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # a dead process tells nobody
        before = asyncio.all_tasks()
        work = asyncio.ensure_future(drive(self.coordinator))
        death = asyncio.ensure_future(self.store.crashed.wait())
        try:
            await asyncio.wait({work, death}, return_when=asyncio.FIRST_COMPLETED)
            died = death.done()
            if not died:
                await work
            return died
        finally:
            await end(asyncio.all_tasks() - before)


async def end(tasks: set[asyncio.Task[Any]]) -> None:
    """Stop tasks, whatever they are in, and those that they start meanwhile."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# ---- what must be true


async def whole_log(disk: Store) -> list[LogEntry]:
    """The log, in which nothing is missing and nothing stands twice; after a halt a failed task may be answered."""
    entries = await disk.read(SESSION)
    assert [e.seq for e in entries] == list(range(1, len(entries) + 1)), "the log has holes"
    said = [e.message.task_id for e in entries if not isinstance(e.message, TaskFailed)]
    assert len(said) == len(set(said)), "a fact is in the log twice"
    return entries


async def state_of(disk: Store) -> ResearchState:
    return replay(e.message for e in await whole_log(disk))


async def settled(disk: Store) -> set[str]:
    return {row.call.key for row in await disk.calls(SESSION) if row.status == "settled"}


__all__ = ["SESSION", "Life", "Server", "content", "owner", "settled", "state_of", "whole_log"]
