"""A session in a coordinator's process: its state, what is in hand, and when the clock has something to say."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from marg_ray.decisions import TIME_OUT
from marg_ray.folding import apply
from marg_ray.memory.cache import Asked
from marg_ray.messages import LimitReached, Message, PlanDecided, ReviewDecided, SessionCancelled
from marg_ray.records import OnTimeout, Record, Sent
from marg_ray.routing import waiting_for
from marg_ray.state import ResearchState, Stop
from marg_ray.store.protocol import LogEntry
from marg_ray.tasks import Task


class Running(Record):
    """A task that an agent has in hand."""

    id: str
    role: str
    kind: str
    section: str
    target: str
    since: float  # seconds


class Progress(Sent):
    """What a watcher gets: new log entries, and who works on what."""

    entries: tuple[LogEntry, ...]
    running: tuple[Running, ...]
    status: str
    waiting_for: str = ""
    halt: str = ""
    position: int = 0  # in the queue; 0: it is not queued


class Ending(Sent):
    """How a session ended, without its log."""

    artefact: str = ""  # of the report; empty: there is none
    status: str
    reason: str = ""  # of a refusal
    found: bool = False  # whether there was any evidence
    halted_at: str = ""  # the stage
    detail: str = ""

    @classmethod
    def of(cls, state: ResearchState) -> Ending:
        return cls(
            artefact=state.report.artefact if state.report else "",
            status=status_word(state),
            reason=state.report.reason if state.report else "",
            found=bool(state.evidence),
            halted_at=state.halt.stage if state.halt else "",
            detail=state.halt.detail if state.halt else "",
        )


@dataclass
class Live:
    """A session in this process."""

    state: ResearchState
    seq: int
    epoch: int
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # an async actor interleaves calls at every await
    entries: list[LogEntry] = field(default_factory=list)
    in_flight: dict[str, tuple[Task, asyncio.Task[None], float]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    place: asyncio.Task[None] | None = None  # waits for admission; done: the session may run
    asked: Asked | None = None  # as the query cache knows it; None: begun elsewhere, or before a restart
    alarm: asyncio.TimerHandle | None = None
    worked: float = 0.0  # seconds of work up to `since`
    since: datetime | None = None  # the session works since then, here
    touched: float = field(default_factory=time.monotonic)  # when somebody last wanted something of it

    @property
    def owner(self) -> str:
        return self.state.request.owner if self.state.request else ""

    def announce(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def mark(self, now: datetime) -> None:
        """Count the time of work up to now; call it at each change of the state."""
        if self.since is not None:
            self.worked += max(0.0, (now - self.since).total_seconds())
        queued = self.place is not None and not self.place.done()
        self.since = now if at_work(self.state) and not queued else None


def at_work(state: ResearchState) -> bool:
    """Whether time counts: not while the session waits for its owner, or is paused or over."""
    return state.request is not None and not state.over and not state.paused and not waiting_for(state)


def status_word(state: ResearchState) -> str:
    """The status on a session's row."""
    if state.report is not None:
        return str(state.report.status)
    if state.cancelled:
        return "cancelled"
    if state.halt is not None:
        return "halted"
    if state.paused:
        return "paused"
    return "waiting" if waiting_for(state) else "running"


def worked_before(entries: list[LogEntry]) -> tuple[ResearchState, float]:
    """The state that a log gives, and the seconds of work it tells of.

    Time between two entries of different epochs does not count: the session was in nobody's hands for part of it.
    """
    state, worked = ResearchState(), 0.0
    for last, entry in zip([None, *entries], entries, strict=False):
        if last is not None and last.epoch == entry.epoch and at_work(state):
            worked += max(0.0, (entry.at - last.at).total_seconds())
        state = apply(state, entry.message)
    return state, worked


def next_alarm(live: Live, now: datetime | None = None) -> tuple[float, Message] | None:
    """The next thing the clock will say of a session, and in how many seconds."""
    now = now or datetime.now(UTC)
    state = live.state
    if state.request is None or state.over or state.paused:
        return None
    waits = waiting_for(state)
    if waits:
        return _gate_alarm(live, waits, now)
    dues = list(_time_limits(live, now))
    return min(dues, key=lambda due: due[0]) if dues else None


def _gate_alarm(live: Live, waits: str, now: datetime) -> tuple[float, Message] | None:
    state = live.state
    assert state.request is not None
    if state.request.on_timeout is OnTimeout.WAIT or not live.entries:
        return None
    left = (live.entries[-1].at + timedelta(seconds=state.request.gate_timeout_s) - now).total_seconds()
    sid = state.session_id
    if state.request.on_timeout is OnTimeout.CANCEL:
        return left, SessionCancelled(task_id=f"{sid}/cancel", by=TIME_OUT)
    if waits == "plan":
        return left, PlanDecided(
            task_id=plan_decision_id(state), approved=True, revision=state.plan_revision, by=TIME_OUT
        )
    return left, ReviewDecided(
        task_id=review_decision_id(state), decision="approve", round=state.iteration, by=TIME_OUT
    )


def _time_limits(live: Live, now: datetime) -> list[tuple[float, Message]]:
    state, limits = live.state, live.state.limits
    if state.stop is Stop.ALL:
        return []
    running = (now - live.since).total_seconds() if live.since else 0.0
    spent = live.worked + max(0.0, running)
    dues: list[tuple[float, Message]] = []
    share = 1 - limits.writer_share
    if limits.seconds is not None:
        if not state.stop:
            detail = f"{limits.seconds * share:g} of {limits.seconds:g} s are spent; the rest is for writing"
            dues.append((limits.seconds * share - spent, _limit(state, "seconds", detail, hard=False)))
        detail = f"the limit of {limits.seconds:g} s is spent"
        dues.append((limits.seconds - spent, _limit(state, "seconds", detail, hard=True)))
    if limits.deadline is not None:
        left = (limits.deadline - now).total_seconds()
        if not state.stop:
            whole = (limits.deadline - datetime.fromisoformat(state.started_at)).total_seconds()
            when = f"{limits.deadline:%Y-%m-%d %H:%M:%S} UTC"
            detail = f"the report is due at {when}; the time that is left is for writing"
            dues.append((left - whole * limits.writer_share, _limit(state, "deadline", detail, hard=False)))
        detail = f"the report was due at {limits.deadline:%Y-%m-%d %H:%M:%S} UTC"
        dues.append((left, _limit(state, "deadline", detail, hard=True)))
    return dues


def _limit(state: ResearchState, limit: str, detail: str, *, hard: bool) -> LimitReached:
    number = len(state.answered)  # a limit that was raised can be reached again
    task_id = f"{state.session_id}/{limit}/{'hard' if hard else 'soft'}/{number}"
    return LimitReached.model_validate({"task_id": task_id, "limit": limit, "detail": detail, "hard": hard})


def plan_decision_id(state: ResearchState) -> str:
    return f"{state.session_id}/decision/plan/{state.plan_revision}"


def review_decision_id(state: ResearchState) -> str:
    return f"{state.session_id}/decision/review/{state.iteration}"
