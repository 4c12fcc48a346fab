"""Asking from Python: start a runtime, ask, watch, get the report."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from marg_ray.errors import (
    BudgetStopped,
    InsufficientEvidence,
    MargError,
    SessionCancelled,
    SessionHalted,
    UsageError,
)
from marg_ray.folding import apply
from marg_ray.messages import Message, Steered
from marg_ray.records import (
    Depth,
    Limits,
    OutlineEntry,
    Priority,
    ReportStatus,
    Request,
    RequestClass,
    SourceChoice,
)
from marg_ray.settings import Settings, load
from marg_ray.state import ResearchState

if TYPE_CHECKING:
    from marg_ray.actors.deploy import Runtime
    from marg_ray.actors.live import Ending, Progress
    from marg_ray.actors.owner import Decision
    from marg_ray.actors.shelves import LocalShelves
    from marg_ray.models.select import Choice
    from marg_ray.report.model import Report
    from marg_ray.sources.library.refresh import Progress as IndexProgress

ENDED = frozenset(str(s) for s in ReportStatus) | {"halted", "cancelled", "waiting", "paused"}


@dataclass(frozen=True)
class Step:
    """What happened since the last step, and where the run stands."""

    progress: Progress
    state: ResearchState


def make_request(
    question: str,
    *,
    docs: Sequence[Path | str] = (),
    depth: Depth | str = Depth.STANDARD,
    web: bool | None = None,
    offline: bool = False,
    mcp: bool = True,
    others: bool = False,
    **fields: Any,
) -> Request:
    """A checked request. The web is searched by default only where no documents are given.

    `mcp`: ask the MCP servers of the settings too; `others` says that there are some.

    Raises:
        UsageError: the question says nothing, a folder is missing, or nothing is left to search.
    """
    from marg_ray.sources.library.scan import check_folders
    from marg_ray.sources.queries import clean_question

    folders = tuple(Path(d).expanduser().resolve() for d in docs)
    check_folders(folders)
    wanted = not folders and not fields.get("provided") if web is None else web
    sources = SourceChoice(folders=tuple(map(str, folders)), web=wanted and not offline, offline=offline, mcp=mcp)
    asks_others = others and mcp and not offline
    if not folders and not sources.web and not fields.get("provided") and not asks_others:
        raise UsageError("there is nothing to search: no documents, and no web", "give --docs FOLDER, or allow the web")
    try:
        return Request(question=clean_question(question), depth=Depth(depth), sources=sources, **fields)
    except ValueError as exc:
        raise UsageError(f"the request is not valid: {exc}") from None


def default_limits(settings: Settings) -> Limits:
    """What a session may spend that names no limits of its own."""
    budget = settings.budget
    return Limits(**{name: value for name, value in budget if value is not None})


class Marg:
    """A runtime to ask questions of.

    >>> async with Marg() as marg:  # doctest: +SKIP
    ...     report = await marg.research("How do tides make power?", docs=["papers/"])
    """

    def __init__(self, settings: Settings | None = None, *, offline: bool = False, **overrides: Any) -> None:
        self.settings, self.offline = settings or load(**overrides), offline
        self._runtime: Runtime | None = None
        self._shelves: LocalShelves | None = None

    async def __aenter__(self) -> Marg:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def start(self) -> None:
        """Start Ray here, or attach to the one that runs, and create the actors that are missing.

        Raises:
            UsageError: the configured model is not known, or not on this machine although `offline` is asked for.
        """
        from marg_ray.models.select import choose
        from marg_ray.models.tape import Tape, begin

        if self._runtime is None:
            choice: Choice = await choose(self.settings, offline=self.offline)
            if (tape := Tape.of(self.settings.tape)) is not None and not tape.replays:
                await asyncio.to_thread(begin, tape, choice)
            from marg_ray.actors.deploy import Runtime

            self._runtime = await asyncio.to_thread(Runtime.start, self.settings, choice)

    def close(self) -> None:
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = self._shelves = None

    @property
    def runtime(self) -> Runtime:
        if self._runtime is None:
            raise UsageError("Marg is not started", "use `async with Marg() as marg:`")
        return self._runtime

    async def research(
        self,
        question: str,
        *,
        docs: Sequence[Path | str] = (),
        depth: Depth | str = Depth.STANDARD,
        web: bool | None = None,
        offline: bool | None = None,
        mcp: bool = True,
        request_class: RequestClass | str | None = None,
        focus_areas: Sequence[str] = (),
        outline: Sequence[OutlineEntry | str] = (),
        language: str | None = None,
        strict: bool = False,
        fresh: bool = False,
        limits: Limits | None = None,
        priority: Priority | str = Priority.INTERACTIVE,
        owner: str = "local",
        on_step: Callable[[Step], None] | None = None,
    ) -> Report:
        """Research `question` and return the report; at once, if the same was asked before and nothing has changed.

        `fresh` asks anew. `limits` bound what it may spend (default: the settings' budget). `on_step` is told of
        every step.

        Raises:
            UsageError: the request cannot be carried out.
            InsufficientEvidence: the sources do not answer; there is no report.
            SessionHalted: the model or the search was away; the session can be resumed.
        """
        from marg_ray.actors.coordinator import new_session_id

        request = make_request(
            question,
            docs=docs,
            depth=depth,
            web=web,
            offline=self.offline if offline is None else offline,
            mcp=mcp,
            others=bool(self.settings.mcp.servers),
            request_class=request_class,
            focus_areas=tuple(focus_areas),
            outline=tuple(OutlineEntry(title=o) if isinstance(o, str) else o for o in outline),
            language=language,
            strict=strict,
            fresh=fresh,
            limits=limits or default_limits(self.settings),
            priority=Priority(priority),
            owner=owner,
        )
        kept = await self.known(request)
        if kept is not None:
            return kept
        session_id = new_session_id()
        if on_step is None:
            return await self._report_of(await self._quietly(session_id, request), session_id)
        last: Step | None = None
        async for step in self.run(session_id, request):
            last = step
            on_step(step)
        assert last is not None
        return self.report(last.state, session_id)

    async def _quietly(self, session_id: str, request: Request) -> Ending:
        """Run a session without watching it."""
        await self.runtime.submit(session_id, request)
        ending = asyncio.ensure_future(self.runtime.ended(session_id))
        indexing = asyncio.ensure_future(self.index(request.sources.folders))
        try:
            await asyncio.wait({ending, indexing}, return_when=asyncio.FIRST_EXCEPTION)
            if indexing.done() and (error := indexing.exception()) is not None:
                await self.runtime.cancel(session_id)
                raise error
            await ending
        finally:
            for work in (ending, indexing):
                work.cancel()
            await asyncio.gather(ending, indexing, return_exceptions=True)
        return await self.runtime.ending(session_id)

    async def _report_of(self, ending: Ending, session_id: str) -> Report:
        from marg_ray.report.model import from_json

        error = error_at(ending, session_id)
        if error is not None:
            raise error
        return from_json(await asyncio.to_thread(self.runtime.places.artefacts.get, ending.artefact))

    async def known(self, request: Request) -> Report | None:
        """The report that the same question, settings and sources have had already."""
        from marg_ray.report.model import from_json

        kept = None if request.fresh else await self.runtime.known(request)
        if kept is not None:
            with contextlib.suppress(MargError, ValueError):  # it is gone, or damaged: research again
                return from_json(await asyncio.to_thread(self.runtime.places.artefacts.get, kept.artefact))
        return None

    async def run(
        self,
        session_id: str,
        request: Request,
        on_index: Callable[[IndexProgress], None] | None = None,
    ) -> AsyncIterator[Step]:
        """Start a session and follow it to its end. Folders are indexed alongside, with `on_index` told how far."""
        await self.runtime.submit(session_id, request)
        indexing = asyncio.ensure_future(self.index(request.sources.folders, on_index))
        try:
            async for step in self.follow(session_id, indexing):
                yield step
            await indexing
        finally:
            indexing.cancel()
            with contextlib.suppress(asyncio.CancelledError, MargError):
                await indexing

    async def follow(self, session_id: str, beside: asyncio.Future[None] | None = None) -> AsyncIterator[Step]:
        """Every step of a session, from its first log entry to its end (a report, a halt, a decision to be made).

        If `beside` fails, the session is cancelled and its error raised.
        """
        state, after = ResearchState(), 0
        while True:
            progress = await self.runtime.progress(session_id, after, wait_s=1.0)
            after += len(progress.entries)
            for entry in progress.entries:
                state = apply(state, entry.message)
            yield Step(progress=progress, state=state)
            if beside is not None and beside.done() and not beside.cancelled() and beside.exception():
                await self.runtime.cancel(session_id)
                raise beside.exception() or AssertionError
            if progress.status in ENDED:
                return

    async def index(self, folders: Sequence[str], on_progress: Callable[[IndexProgress], None] | None = None) -> None:
        """Bring the library over `folders` up to date."""
        if not folders or self.settings.tape.replay:
            return
        if self._shelves is None:
            from marg_ray.actors.shelves import LocalShelves

            s, runtime = self.settings, self.runtime
            snapshots = runtime.places.snapshots
            self._shelves = LocalShelves(s.home, s.library, runtime.embedder, snapshots, runtime.offload)
        library = await self._shelves.library(tuple(folders))
        await self._shelves.refresh(library, *([on_progress] if on_progress else []))

    async def submit(self, request: Request, *, key: str = "") -> str:
        """Start a session and return its id at once. A request that comes again with its `key` starts nothing.

        Raises:
            KeyReused: the key came with another request before.
            TooBusy: too many sessions wait already.
        """
        from marg_ray.actors.coordinator import new_session_id

        return await self.runtime.submit(new_session_id(), request, key)

    async def resume(self, session_id: str) -> str:
        """Go on after a halt, a pause or a crash. Returns the status, as the others here do."""
        return await self.runtime.resume(session_id)

    async def pause(self, session_id: str) -> str:
        return await self.runtime.pause(session_id)

    async def cancel(self, session_id: str) -> str:
        return await self.runtime.cancel(session_id)

    async def decide(self, session_id: str, decision: Decision) -> str:
        """Decide at the gate that the session waits at.

        Raises:
            DecisionConflict: it was decided already, or something else waits by now.
        """
        return await self.runtime.decide(session_id, decision)

    async def steer(self, session_id: str, steered: Steered) -> str:
        """Change the course of a session under way."""
        return await self.runtime.steer(session_id, steered)

    async def say(self, session_id: str, message: Message) -> None:
        await self.runtime.deliver(session_id, message)

    def report(self, state: ResearchState, session_id: str) -> Report:
        """The report of a session that ended.

        Raises:
            MargError: what it ended with instead.
        """
        from marg_ray.report.model import from_json

        error = error_of(state, session_id)
        if error is not None:
            raise error
        assert state.report is not None
        return from_json(self.runtime.places.artefacts.get(state.report.artefact))


def error_of(state: ResearchState, session_id: str) -> MargError | None:
    """The error that a session without a report ended with."""
    from marg_ray.actors.live import Ending

    return error_at(Ending.of(state), session_id)


def error_at(ending: Ending, session_id: str) -> MargError | None:
    """The same, from how it ended."""
    if ending.halted_at:
        return SessionHalted(session_id, ending.halted_at, ending.detail)
    if ending.status == "cancelled":
        return SessionCancelled(session_id)
    if ending.status == ReportStatus.INSUFFICIENT_EVIDENCE:
        return InsufficientEvidence(session_id, ending.reason)
    if ending.status == ReportStatus.BUDGET_STOPPED and not ending.found:
        return BudgetStopped(session_id, ending.reason or "stopped by its budget")
    return None


def research(question: str, **options: Any) -> Report:
    """Research `question` in a runtime of its own and return the report; see `Marg.research` for the options."""

    async def ask() -> Report:
        async with Marg(offline=bool(options.get("offline"))) as marg:
            return await marg.research(question, **options)

    return asyncio.run(ask())
