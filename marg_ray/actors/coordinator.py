"""The one writer of a session's log. Record, change, act: nothing leaves before its cause is on disk.

Hard state is the log. Soft state is what is under way now; it is lost with the process and follows again from the
log: recovery is the ordinary start (read, fold, dispatch what is due).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from marg_ray.actors.entrance import Entrance
from marg_ray.actors.handing import answer_of
from marg_ray.actors.live import Ending, Live, Progress, Running, next_alarm, status_word, worked_before
from marg_ray.actors.metrics import metrics_of
from marg_ray.actors.neighbours import SETTLED, Neighbours
from marg_ray.actors.owner import Decision, decided, steering
from marg_ray.actors.protocol import Admission, Dispatch
from marg_ray.actors.recorded_order import RecordedOrder
from marg_ray.actors.traces import Traces
from marg_ray.errors import (
    KeyReused,
    MargError,
    SessionMoved,
    SessionNotFound,
    StaleEpoch,
)
from marg_ray.folding import apply
from marg_ray.memory.cache import KeptReport, QueryCache
from marg_ray.messages import (
    Message,
    ReportReady,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    SessionStarted,
    Steered,
)
from marg_ray.records import Request
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.state import ResearchState
from marg_ray.store.protocol import SessionRow, Store
from marg_ray.tasks import Task
from marg_ray.telemetry import events
from marg_ray.telemetry.figures import FIGURES, Taken

log = logging.getLogger(__name__)

KEPT_WITHIN_S = 2.0  # a finished report, for the next who asks; its folders may be slow to look through
STORE_AWAY_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # between tries to take a session up whose store did not answer
TOGETHER_S = 0.1  # entries that come so close are told to a watcher together
CACHE_EVERY_S = 3600.0  # what is too old is dropped from the caches
AT_REST = SETTLED | {"halted", "paused"}  # nothing happens to it by itself: it can be read without being taken over
KEPT_S = 60.0  # a session that is over stays in memory for those who follow it


class Coordinator:
    """Holds the canonical state of its sessions. Every method may be called again with the same arguments.

    Several coordinators share a store: each writes its signs of life there, and takes over the sessions of one that
    gives none. Who follows a session at the wrong one is told the right one (`SessionMoved`).
    """

    def __init__(
        self,
        store: Store,
        dispatch: Dispatch,
        *,
        holder: str = "",
        shard: int = 0,
        admission: Admission | None = None,
        cache: QueryCache | None = None,
        order: RecordedOrder | None = None,
        traces: Traces | None = None,
        lease_s: float = 600.0,
        beat_s: float = 2.0,
        dead_after_s: float = 15.0,
    ) -> None:
        self._store, self._dispatch, self._cache, self._order = store, dispatch, cache, order
        self._traces = traces
        self._lease_s, self._beat_s = lease_s, beat_s
        self._neighbours = Neighbours(store, holder, shard, dead_after_s)
        self._entrance = Entrance(admission, self._admitted)
        self._live: dict[str, Live] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._aside: set[asyncio.Task[object]] = set()  # work that nobody waits for

    # ---- the runtime

    async def recover(self) -> list[str]:
        """Take up every session that this coordinator had under way. Called when the process was restarted."""
        return await self._take_up(self._neighbours.shard)

    async def watch(self) -> None:
        """Give signs of life, keep the places of the sessions that run, and look after the other coordinators."""
        swept = time.monotonic()
        while True:
            with contextlib.suppress(Exception):  # a store or desk that is away for a moment
                if time.monotonic() - swept > CACHE_EVERY_S:
                    swept = time.monotonic()
                    await self._store.cache_drop()
                self._forget()
                await self._neighbours.beat()
                await self._entrance.keep(self._live)
                for shard in await self._neighbours.orphans():
                    taken = await self._take_up(shard)
                    log.warning("coordinator %d gives no sign of life: took over %d sessions", shard, len(taken))
            await asyncio.sleep(self._beat_s)

    def _forget(self) -> None:
        """Let go of sessions that are over and that nobody follows any more."""
        long_ago = time.monotonic() - KEPT_S
        for session_id in [s for s, live in self._live.items() if live.state.over and live.touched < long_ago]:
            self._drop(session_id)
            self._opening.pop(session_id, None)

    async def _take_up(self, shard: int) -> list[str]:
        taken = []
        for row in await self._neighbours.left_by(shard):
            with contextlib.suppress(StaleEpoch, SessionMoved):  # another was quicker
                live = await self._open(row.id, take=True, expected_epoch=row.epoch)
                await self._entrance.had(row)
                await self._go_on(live)
                taken.append(row.id)
        return taken

    async def close(self) -> None:
        """Stop work here; the sessions stay as their logs say."""
        for session_id in list(self._live):
            self._drop(session_id)
        for work in self._aside:
            work.cancel()
        if self._traces is not None:
            await self._traces.close()
        await self._store.close()

    # ---- sessions

    async def submit(self, session_id: str, request: Request, key: str = "", body: str = "") -> str:
        """Start a session; one that exists goes on. Returns its id: with an idempotency `key`, the first one's.

        `key` and `body` are digests of the key and of the request.

        Raises:
            KeyReused: the key came with another body before.
            TooBusy: too many sessions wait already.
            SessionNotFound: the id is that of another owner's session.
        """
        if key:
            session_id, first = await self._store.claim_key(request.owner, key, body, session_id)
            if first != body:
                raise KeyReused(session_id)
        place = await self._entrance.queue(session_id, request) if session_id not in self._live else None
        await self._store.create(session_id, owner=request.owner, question=request.question)
        live = await self._open(session_id, take=True)
        if live.state.request is not None and live.state.request.owner != request.owner:
            raise SessionNotFound(session_id)  # an id is no way into another owner's session
        if live.state.request is None:
            live.place = live.place or place
            if self._cache is not None:
                live.asked = await self._cache.ask(request)
            now = datetime.now(UTC).isoformat()
            start = SessionStarted(
                task_id=f"{session_id}/start", session_id=session_id, request=request, started_at=now
            )
            await self.deliver(session_id, start)
        else:
            await self._go_on(live)
        return session_id

    async def known(self, request: Request) -> KeptReport | None:
        """The report that the same request has had already."""
        return (await self._cache.ask(request)).kept if self._cache is not None else None

    async def resume(self, session_id: str, by: str = "owner") -> str:
        """Go on with a session from its log, after a halt, a pause or a crash; returns its status.

        Raises:
            SessionMoved: another coordinator works on it.
            StaleEpoch: another one took it up at the same moment.
        """
        live = await self._open(session_id, take=True)
        if live.state.halt is not None or live.state.paused:
            number = len(live.state.answered)
            await self.deliver(session_id, SessionResumed(task_id=f"{session_id}/resume/{number}", by=by))
        await self._go_on(live)
        return status_word(live.state)

    async def pause(self, session_id: str, by: str = "owner") -> str:
        """Stop work for now; what is under way is aborted. Returns the session's status."""
        live = await self._open(session_id, take=True)
        if not live.state.over and not live.state.paused:
            number = len(live.state.answered)
            await self.deliver(session_id, SessionPaused(task_id=f"{session_id}/pause/{number}", by=by))
        return status_word(live.state)

    async def cancel(self, session_id: str, by: str = "owner") -> str:
        """Stop a session; what it has found stays. Returns its status."""
        live = await self._open(session_id, take=True)
        if not live.state.over or live.state.halt is not None:
            await self.deliver(session_id, SessionCancelled(task_id=f"{session_id}/cancel", by=by))
        return status_word(live.state)

    async def decide(self, session_id: str, decision: Decision) -> str:
        """Decide at the gate that the session waits at; of several deciders the first wins. Returns the status.

        Raises:
            DecisionConflict: nothing waits for this decision (any more); it says what was decided, by whom.
        """
        live = await self._open(session_id, take=True)
        async with live.turn:
            message = decided(live.state, decision, [e.message for e in live.entries])
            if message is not None:  # None: the same was decided already
                await self._record(live, message)
        return status_word(live.state)

    async def steer(self, session_id: str, steered: Steered) -> str:
        """Change the course of a session under way. Returns its status.

        Raises:
            UsageError: there is nothing like it in the session.
            DecisionConflict: the session is over.
        """
        live = await self._open(session_id, take=True)
        async with live.turn:
            if steered.task_id not in live.state.answered:
                await self._record(live, steering(live.state, steered))
        return status_word(live.state)

    async def deliver(self, session_id: str, message: Message) -> None:
        """Record a fact, change the state by it, and hand out what is due then."""
        live = await self._open(session_id, take=True)
        async with live.turn:
            await self._record(live, message)

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        """Entries above `after`; waits up to `wait_s` for one while the session is not over.

        Raises:
            SessionMoved: another coordinator works on it.
        """
        live = await self._follow(session_id)
        changed = live.changed
        if live.seq <= after and not live.state.over:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), wait_s)
                if not live.state.over:  # what comes close together is told together
                    await asyncio.sleep(min(TOGETHER_S, wait_s))
        now = time.monotonic()
        return Progress(
            entries=tuple(live.entries[after:]),
            running=tuple(
                Running(id=t.id, role=t.role, kind=t.kind, section=t.section, target=t.target, since=now - began)
                for t, _, began in live.in_flight.values()
            ),
            status=status_word(live.state),
            waiting_for=waiting_for(live.state),
            halt=f"{live.state.halt.error}: {live.state.halt.detail}" if live.state.halt else "",
            position=await self._entrance.position(live),
        )

    async def ended(self, session_id: str, wait_s: float = 10.0) -> str:
        """The session's status, as soon as it is not "running" any more or `wait_s` seconds have passed."""
        live = await self._follow(session_id)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while status_word(live.state) == "running" and self._live.get(session_id) is live:
                    await live.changed.wait()
        return status_word(live.state)

    async def ending(self, session_id: str) -> Ending:
        """How the session stands, in short."""
        return Ending.of((await self._open(session_id)).state)

    async def state(self, session_id: str) -> ResearchState:
        """The canonical state, for tests and tools."""
        return (await self._open(session_id)).state

    async def sessions(self, limit: int = 100) -> list[SessionRow]:
        return await self._store.sessions(limit=limit)

    async def figures(self) -> Taken:
        """What this process has counted, and what its agents have in hand."""
        FIGURES.clear("marg_tasks_running")
        in_hand = Counter((str(t.role), t.kind) for live in self._live.values() for t, _, _ in live.in_flight.values())
        for (role, kind), tasks in in_hand.items():
            FIGURES.set("marg_tasks_running", tasks, role, kind)
        return FIGURES.taken()

    async def send_traces(self, within_s: float) -> None:
        """Return when the traces of what has ended are sent, or after `within_s` seconds: this process is to end."""
        if self._traces is not None:
            if self._aside:
                await asyncio.wait(set(self._aside), timeout=within_s / 2)
            await self._traces.flush(within_s / 2)

    # ---- inside: a session in this process

    async def _follow(self, session_id: str) -> Live:
        """Open a session to watch it. One that had to be taken over goes on: nobody else sees to it."""
        here = session_id in self._live
        live = await self._open(session_id)
        if not here and self._live.get(session_id) is live:
            self._later(self._go_on(live))
        return live

    async def _open(self, session_id: str, *, take: bool = False, expected_epoch: int | None = None) -> Live:
        """A session in this process. It is taken over from its log where nobody works on it.

        Without `take` a session at rest is only read.
        """
        if session_id in self._live:
            self._live[session_id].touched = time.monotonic()
            return self._live[session_id]
        async with self._opening.setdefault(session_id, asyncio.Lock()):  # two first calls open it once
            if session_id not in self._live:
                row = await self._store.session(session_id)
                if not take and row.status in AT_REST:
                    self._opening.pop(session_id, None)
                    entries = await self._store.read(session_id)
                    state, worked = worked_before(entries)
                    return Live(state=state, seq=len(entries), epoch=row.epoch, entries=entries, worked=worked)
                await self._neighbours.see_that_it_is_free(row)
                epoch = await self._store.take_over(
                    session_id,
                    holder=self._neighbours.holder,
                    shard=self._neighbours.shard,
                    expected_epoch=row.epoch if expected_epoch is None else expected_epoch,
                )
                entries = await self._store.read(session_id)
                state, worked = worked_before(entries)
                live = Live(state=state, seq=len(entries), epoch=epoch, entries=entries, worked=worked)
                live.mark(datetime.now(UTC))
                self._live[session_id] = live
                FIGURES.count("marg_takeovers_total", by=bool(entries))
            return self._live[session_id]

    def _drop(self, session_id: str) -> None:
        live = self._live.pop(session_id, None)
        if live is None:
            return
        for _, work, _ in live.in_flight.values():
            if work is not asyncio.current_task():
                work.cancel()
        if live.alarm is not None:
            live.alarm.cancel()
        if live.place is not None:
            live.place.cancel()
        live.announce()

    async def _record(self, live: Live, message: Message) -> None:
        """Under the session's lock: to the log, then to the state, then out.

        Raises:
            StaleEpoch: another coordinator has the session; nothing was written, and work on it stops here.
        """
        state = apply(live.state, message)
        if state is live.state:  # a repeat
            self._hand_out(live)
            return
        session_id = state.session_id
        try:
            entry = await self._store.append(
                session_id, message, expected_seq=live.seq, epoch=live.epoch, status=status_word(state)
            )
        except StaleEpoch:
            self._drop(session_id)
            raise
        except Exception:  # the store is away, or the log is not as it was left: from the log again, when it is back
            self._drop(session_id)
            self._later(self._take_up_again(session_id))
            raise
        if isinstance(message, ReportReady):
            await self._keep(live, state, message)  # before anybody sees it: who asks again at once is answered from it
        ends = state.over and not live.state.over
        live.state, live.seq = state, entry.seq
        live.entries.append(entry)
        live.mark(entry.at)
        if ends:
            events.ended(status_word(state), live.worked)
        if state.over:
            self._later(self._put_figures(live))
        live.announce()
        events.recorded(state, message, self._hand_out(live))

    async def _put_figures(self, live: Live) -> None:
        state, entries, worked = live.state, tuple(live.entries), live.worked
        calls = await self._store.calls(state.session_id)
        figures = metrics_of(state, entries, status_word(state), worked, calls)
        await self._store.put_metrics(state.session_id, figures.model_dump_json())
        if self._traces is not None:
            self._traces.ended(state.session_id, entries, calls)

    async def _keep(self, live: Live, state: ResearchState, ready: ReportReady) -> None:
        """Answer the same request from this report, where that is right."""
        if self._cache is not None and live.asked is not None and state.request is not None:
            report = KeptReport(session_id=state.session_id, artefact=ready.artefact)
            log = [*(e.message for e in live.entries), ready]
            keeping = self._later(self._cache.keep(state.request, live.asked, log, report))
            await asyncio.wait({keeping}, timeout=KEPT_WITHIN_S)

    async def _take_up_again(self, session_id: str) -> None:
        for pause in STORE_AWAY_S:
            await asyncio.sleep(pause)
            try:
                await self._go_on(await self._open(session_id, take=True))
                return
            except (StaleEpoch, SessionMoved, SessionNotFound):
                return
            except Exception:
                log.warning("session %s cannot be taken up again yet", session_id, exc_info=True)

    async def _go_on(self, live: Live) -> None:
        async with live.turn:
            self._hand_out(live)

    def _admitted(self, session_id: str) -> None:
        """A session that waited for its place may run."""
        live = self._live.get(session_id)
        if live is not None and live.state.request is not None:
            live.mark(datetime.now(UTC))
            live.announce()
            self._later(self._go_on(live))

    def _later(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        task = asyncio.create_task(work)
        self._aside.add(task)
        task.add_done_callback(self._done_aside)
        return task

    def _done_aside(self, task: asyncio.Task[object]) -> None:
        self._aside.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("work on the side failed", exc_info=task.exception())

    # ---- inside: the clock

    def _wind(self, session_id: str, live: Live) -> None:
        """Set the clock for what it has to say next."""
        if live.alarm is not None:
            live.alarm.cancel()
            live.alarm = None
        due = next_alarm(live)
        if due is not None:
            left, message = due
            loop = asyncio.get_running_loop()
            live.alarm = loop.call_later(max(0.0, left), lambda: self._later(self._ring(session_id, live, message)))

    async def _ring(self, session_id: str, live: Live, message: Message) -> None:
        with contextlib.suppress(MargError):
            async with live.turn:
                due = next_alarm(live)
                if self._live.get(session_id) is live and due is not None and due[0] <= 0.01:
                    await self._record(live, due[1])
                elif self._live.get(session_id) is live:
                    self._wind(session_id, live)

    # ---- inside: handing out

    def _hand_out(self, live: Live) -> list[str]:
        """Give what is due and not in hand to the agents, and take back what is no longer due: ids of what went out."""
        known = {task_id: task for task_id, (task, _, _) in live.in_flight.items()}
        due = {task.id: task for task in next_tasks(live.state, known)}
        for task_id in [t for t in live.in_flight if t not in due]:
            _, work, _ = live.in_flight.pop(task_id)
            if work is not asyncio.current_task():
                work.cancel()
        if live.state.session_id:
            self._wind(live.state.session_id, live)
        if not due:
            if live.place is not None:
                self._later(self._entrance.leave(live))
            return []
        if not self._entrance.may_run(live):
            return []
        handed_out = []
        for task_id, task in due.items():
            if task_id not in live.in_flight:
                fenced = task.model_copy(update={"epoch": live.epoch})
                work = asyncio.create_task(self._carry_out(live, fenced))
                live.in_flight[task_id] = (fenced, work, time.monotonic())
                events.handed_out(task, live.state.iteration)
                handed_out.append(task_id)
        return handed_out

    async def _carry_out(self, live: Live, task: Task) -> None:
        began = time.monotonic()
        try:
            message = await answer_of(self._dispatch, task, self._lease_s)
        except StaleEpoch:  # told by the ledger, perhaps of an earlier life of the session here
            if self._live.get(task.session_id) is live:
                self._drop(task.session_id)
            return
        took = round(time.monotonic() - began, 4)
        if self._order is not None:
            await self._order.turn(live, task)
        with contextlib.suppress(MargError):
            async with live.turn:
                # what was taken back meanwhile, or belongs to an earlier life of the session, is dropped
                if self._live.get(task.session_id) is live and task.id in live.in_flight:
                    await self._record(live, message.model_copy(update={"seconds": took}))


def new_session_id() -> str:
    """Sortable by time of creation, and unlikely to meet another."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:10]}"
