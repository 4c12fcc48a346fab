"""A batch without Ray: the coordinator is in this process, and a model that can be kept waiting or away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.ledger import LedgerBook
from marg_ray.batch.plan import Todo
from marg_ray.batch.results import RowResult, asked_of
from marg_ray.batch.rows import Row
from marg_ray.client import ENDED, Step
from marg_ray.errors import MargError
from marg_ray.folding import apply
from marg_ray.records import Priority, Request
from marg_ray.report.model import Report, from_json
from marg_ray.state import ResearchState
from tests.flow import TIDES, World, engine_over

QUESTION = "How much power do tidal stations produce?"


def a_row(key: str, question: str = QUESTION, **fields: Any) -> Row:
    return Row(question=f"{question} ({key})", key=key, **fields)


def a_todo(row: Row, **fields: Any) -> Todo:
    request = Request.model_validate(
        {"question": row.question, "depth": "overview", "priority": Priority.BATCH, **fields}
    )
    return Todo(row, request, asked_of(request))


def reborn(world: World) -> World:
    """The same store and files with a new process around them, for another event loop."""
    again = World(world.folder, world.model, world.pages, [engine_over(TIDES)] if world.engines else ())
    again.store = world.store
    again.ledger = LedgerBook(again.store)
    again.agents = again._agents()
    again.coordinator = Coordinator(again.store, again._dispatch)
    return again


@dataclass
class Nearby:
    """The runtime of a batch, in this process."""

    world: World
    submitted: list[tuple[str, str, str]] = field(default_factory=list)  # session, question, key
    refusals: list[MargError] = field(default_factory=list)  # the next submissions get these
    reports: dict[str, Report] = field(default_factory=dict)  # that are known already, by question
    indexed: list[tuple[str, ...]] = field(default_factory=list)
    unreadable: MargError | None = None
    gate: Callable[[str], Any] | None = None  # awaited with the session before each is followed
    priorities: list[Priority] = field(default_factory=list)
    started: int = 0
    under_way: int = 0
    most: int = 0

    async def known(self, request: Request) -> Report | None:
        return self.reports.get(request.question)

    async def submit(self, session_id: str, request: Request, key: str) -> str:
        if self.refusals:
            raise self.refusals.pop(0)
        self.priorities.append(request.priority)
        self.submitted.append((session_id, request.question, key))
        body = request.model_dump_json()
        return await self.world.coordinator.submit(session_id, request, key, body)

    async def resume(self, session_id: str) -> str:
        return await self.world.coordinator.resume(session_id)

    async def follow(self, session_id: str, beside: asyncio.Future[None] | None = None) -> AsyncIterator[Step]:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.gate is not None:
                await self.gate(session_id)
            state, after = ResearchState(), 0
            while True:
                progress = await self.world.coordinator.progress(session_id, after, 1.0)
                after += len(progress.entries)
                for entry in progress.entries:
                    state = apply(state, entry.message)
                yield Step(progress=progress, state=state)
                if beside is not None and beside.done() and (error := beside.exception()):
                    await self.world.coordinator.cancel(session_id)
                    raise error
                if progress.status in ENDED:
                    return
        finally:
            self.under_way -= 1

    async def index(self, folders: Sequence[str], on_progress: object = None) -> None:
        self.indexed.append(tuple(folders))
        if self.unreadable is not None:
            raise self.unreadable

    async def report(self, artefact: str) -> Report:
        return from_json(self.world.artefacts.get(artefact))


@dataclass
class Seen:
    """Who watches, and remembers."""

    begun: list[str] = field(default_factory=list)
    over: list[RowResult] = field(default_factory=list)
    steps: int = 0
    one_ended: asyncio.Event = field(default_factory=asyncio.Event)

    def began(self, todo: Todo, session: str) -> None:
        self.begun.append(todo.row.key)

    def step(self, todo: Todo, step: Step) -> None:
        self.steps += 1

    def ended(self, todo: Todo, result: RowResult) -> None:
        self.over.append(result)
        self.one_ended.set()

    def indexed(self, progress: object) -> None:
        pass


def lines_of(folder: Path) -> list[RowResult]:
    text = (folder / "results.jsonl").read_text("utf-8")
    return [RowResult.model_validate_json(line) for line in text.splitlines()]
