"""A session as spans, made from its log and its calls alone: of a run that goes on, that crashed, or that is old.

The log says when each answer came and how long its agent had it; folding it again says which entry made each task due.
So every span knows what it waited for, and the chain back from the last entry is the path that decided when the
session ended. What a call cost, and when it was made, is in the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from marg_ray.actors.calls import Interval, call_spans
from marg_ray.actors.live import status_word
from marg_ray.folding import apply
from marg_ray.messages import (
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    SessionStarted,
    SourceRead,
    Steered,
    TaskFailed,
)
from marg_ray.narration import describe
from marg_ray.records import Usage
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.state import ResearchState, role_of
from marg_ray.store.protocol import CallRow, LogEntry
from marg_ray.tasks import Task
from marg_ray.telemetry import spans as names
from marg_ray.telemetry.events import stage_of
from marg_ray.telemetry.spans import Span, SpanEvent, Trace, Value, span_id, trace_id

SAID_BY_OTHERS = (
    SessionStarted,
    PlanEdited,
    PlanDecided,
    ReviewDecided,
    Steered,
    LimitReached,
    SessionPaused,
    SessionCancelled,
    SessionResumed,
)


def trace_of(session: str, entries: Sequence[LogEntry], calls: Sequence[CallRow] = ()) -> Trace:
    """The spans of a session: itself, its tasks, their calls, and the times in which nobody worked on it.

    Raises:
        ValueError: there are no entries.
    """
    if not entries:
        raise ValueError("a session without entries has no trace")
    folded = _fold(session, entries)
    by_task: dict[str, list[CallRow]] = defaultdict(list)
    for row in calls:
        by_task[row.call.task_id].append(row)
    tasks, chain = folded.tasks(by_task), folded.chain()
    root = folded.root(calls)
    placed = [task.model_copy(update={"critical": task.id in chain}) for task in tasks]
    made = [
        call
        for task in placed
        for call in call_spans(task, by_task.pop(_task_id(session, task), []), Interval(task.start, task.end))
    ]
    left = folded.unfinished(by_task)
    made += [call for task, rows in left for call in call_spans(task, rows, Interval(task.start, task.end))]
    rest = sorted((*placed, *(task for task, _ in left), *folded.waits(), *made), key=lambda s: (s.start, s.end))
    return Trace(id=trace_id(session), session=session, status=status_word(folded.state), spans=(root, *rest))


@dataclass(frozen=True)
class _Due:
    """A task that the state calls for since an entry. None: not known which."""

    task: Task | None
    since: LogEntry


@dataclass
class _Folded:
    """What folding a log tells: the last state, and for each entry the task it answers and what made that due."""

    session: str
    entries: Sequence[LogEntry]
    state: ResearchState
    due: dict[int, _Due]  # by the number of the entry that answers
    pending: dict[str, _Due]  # due at the end, and not answered
    waited: list[tuple[str, LogEntry, LogEntry | None]]  # for what, from, until

    def tasks(self, calls: Mapping[str, Sequence[CallRow]]) -> list[Span]:
        return [self._task(e, calls) for e in self.entries if role_of(e.message) is not None]

    def root(self, calls: Sequence[CallRow]) -> Span:
        first, last, state = self.entries[0], self.entries[-1], self.state
        spent = sum((row.usage + row.lost for row in calls), Usage())
        attributes: dict[str, Value] = {
            names.OPERATION: "invoke_workflow",
            names.WORKFLOW: names.WORKFLOW_NAME,
            names.CONVERSATION: self.session,
            "marg.status": status_word(state),
            "marg.iterations": state.iteration,
            "marg.sections": len(state.sections),
            "marg.sources": len(state.sources),
            "marg.evidence": len(state.evidence),
            "marg.takeovers": len({e.epoch for e in self.entries}) - 1,
            **spent_attributes(spent),
        }
        if state.reviews:
            attributes |= {f"marg.score.{name}": score for name, score in state.reviews[-1].scores}
        error = state.halt.error if state.halt is not None else ""
        return Span(
            id=span_id(self.session),
            name=f"invoke_workflow {names.WORKFLOW_NAME}",
            kind="session",
            start=first.at,
            end=last.at,
            status="error" if error else "ok" if state.over else "unset",
            error=error,
            attributes=attributes | ({names.ERROR: error} if error else {}),
            events=tuple(map(_event, (e for e in self.entries if isinstance(e.message, SAID_BY_OTHERS)))),
            about=state.request.question if state.request is not None else "",
        )

    def _task(self, entry: LogEntry, calls: Mapping[str, Sequence[CallRow]]) -> Span:
        message, due = entry.message, self.due.get(entry.seq)
        role, stage = str(role_of(message)), stage_of(message)
        start = entry.at - timedelta(seconds=max(0.0, message.seconds))
        if due is not None:
            start = max(start, due.since.at)
        rows = calls.get(message.task_id, ())
        spent = sum((row.usage + row.lost for row in rows), Usage())
        task = due.task if due is not None else None
        failed = isinstance(message, TaskFailed)
        attributes = {
            **_agent(self.session, role),
            **_place(self.session, message.task_id, stage, getattr(task, "section", "") or _section(message)),
            "marg.seq": entry.seq,
            "marg.epoch": entry.epoch,
            **spent_attributes(spent),
            **_found(message),
        }
        if message.notes:
            attributes["marg.notes"] = tuple(sorted({note.kind for note in message.notes}))
        return Span(
            id=span_id(self.session, message.task_id, entry.seq),
            parent=span_id(self.session),
            name=f"invoke_agent {role}",
            kind="task",
            start=start,
            end=entry.at,
            status="error" if failed else "ok",
            error=message.error if isinstance(message, TaskFailed) else "",
            attributes=attributes | ({names.ERROR: message.error} if isinstance(message, TaskFailed) else {}),
            about=(task.target if task is not None else "") or _target(message),
            said=describe(message),
            after=self._cause(due),
            waited=round((start - due.since.at).total_seconds(), 4) if due is not None else 0.0,
        )

    def _cause(self, due: _Due | None) -> str:
        """The span that made a task due: a task's, or the session's own where its owner or the clock did."""
        if due is None:
            return ""
        since = due.since
        if role_of(since.message) is None:
            return span_id(self.session)
        return span_id(self.session, since.message.task_id, since.seq)

    def chain(self) -> frozenset[str]:
        """The tasks that decided when the last entry came: it, what made it due, and so on to the question."""
        found = set()
        ends = [e for e in self.entries if role_of(e.message) is not None]
        at: LogEntry | None = ends[-1] if ends else None
        while at is not None and at.seq not in found:
            found.add(at.seq)
            due = self.due.get(at.seq)
            at = due.since if due is not None else None
            while at is not None and role_of(at.message) is None:  # said by the owner or the clock: what was before
                at = self._before(at)
        return frozenset(
            span_id(self.session, e.message.task_id, e.seq)
            for e in self.entries
            if e.seq in found and role_of(e.message) is not None
        )

    def _before(self, entry: LogEntry) -> LogEntry | None:
        place = self.entries.index(entry)
        return self.entries[place - 1] if place else None

    def waits(self) -> list[Span]:
        """Times in which the session waited: for its owner, paused, halted, or in nobody's hands."""
        made = []
        for what, since, until in self.waited:
            end = until or self.entries[-1]
            if end.at > since.at:
                made.append(
                    Span(
                        id=span_id(self.session, "wait", since.seq),
                        parent=span_id(self.session),
                        name=f"wait {what}",
                        kind="wait",
                        start=since.at,
                        end=end.at,
                        status="ok" if until is not None else "unset",
                        attributes={names.CONVERSATION: self.session, "marg.wait": what},
                        said=describe(until.message) if until is not None else "",
                    )
                )
        return made

    def unfinished(self, calls: Mapping[str, Sequence[CallRow]]) -> list[tuple[Span, Sequence[CallRow]]]:
        """Tasks that never answered (aborted, or under way), as far as the ledger knows of calls of theirs."""
        made = []
        for task_id, rows in calls.items():
            begun = [row.begun_at for row in rows if row.begun_at is not None]
            if not begun:
                continue
            start, parts = min(begun), task_id.removeprefix(f"{self.session}/").split("/")
            ends = [row.begun_at + timedelta(seconds=row.usage.seconds) for row in rows if row.begun_at is not None]
            section, stage = (parts[0], parts[1]) if len(parts) > 2 else ("", parts[0])
            due = self.pending.get(task_id)
            role = str(rows[0].call.role)
            spent = spent_attributes(sum((row.usage + row.lost for row in rows), Usage()))
            span = Span(
                id=span_id(self.session, task_id, "unfinished"),
                parent=span_id(self.session),
                name=f"invoke_agent {role}",
                kind="task",
                start=start,
                end=max(ends),
                status="unset",
                attributes={
                    **_agent(self.session, role),
                    **_place(self.session, task_id, stage, section),
                    "marg.unfinished": True,
                    **spent,
                },
                about=due.task.target if due is not None and due.task is not None else "",
                after=self._cause(due),
            )
            made.append((span, rows))
        return made


def _fold(session: str, entries: Sequence[LogEntry]) -> _Folded:
    state, known, waits = ResearchState(), dict[str, Task](), ""
    due: dict[str, _Due] = {}
    answered: dict[int, _Due] = {}
    waited: list[tuple[str, LogEntry, LogEntry | None]] = []
    for number, entry in enumerate(entries):
        state = apply(state, entry.message)
        answers = due.get(entry.message.task_id)
        if answers is None and role_of(entry.message) is not None:
            answers = _likely(entry, entries[:number])
        if answers is not None:
            answered[entry.seq] = answers
        called_for = {task.id: task for task in next_tasks(state, known)}
        for task_id, task in called_for.items():
            if task_id not in known:
                due[task_id] = _Due(task, entry)
        known = called_for
        if (now := _waits(state)) != waits:
            if waits:
                what, since, _ = waited.pop()
                waited.append((what, since, entry))
            if now:
                waited.append((now, entry, None))
            waits = now
    return _Folded(session, entries, state, answered, {task_id: due[task_id] for task_id in known}, waited)


def _likely(entry: LogEntry, before: Sequence[LogEntry]) -> _Due | None:
    """Of a task that this version would not have handed out: what was in the log when its agent began."""
    began = entry.at - timedelta(seconds=entry.message.seconds)
    since = next((e for e in reversed(before) if e.at <= began), None)
    return _Due(None, since) if since is not None else None


def _waits(state: ResearchState) -> str:
    if state.halt is not None:
        return "halted"
    if state.paused:
        return "paused"
    return f"decision on the {waits}" if (waits := waiting_for(state)) else ""


def spent_attributes(usage: Usage) -> dict[str, Value]:
    """What was spent, where there is something to say."""
    spent: dict[str, Value] = {}
    if usage.tokens_in or usage.tokens_out:
        spent |= {names.INPUT_TOKENS: usage.tokens_in, names.OUTPUT_TOKENS: usage.tokens_out}
    counts = {"calls": usage.calls, "searches": usage.searches, "fetches": usage.fetches, "reused": usage.reused}
    spent |= {f"marg.{name}": number for name, number in (*counts.items(), ("throttled", usage.throttled)) if number}
    return spent | ({"marg.cost_usd": round(usage.cost, 8)} if usage.cost else {})


def _agent(session: str, role: str) -> dict[str, Value]:
    return {names.OPERATION: "invoke_agent", names.AGENT: role, names.CONVERSATION: session}


def _place(session: str, task_id: str, stage: str, section: str) -> dict[str, Value]:
    place: dict[str, Value] = {"marg.task.id": task_id.removeprefix(f"{session}/"), "marg.task.kind": stage}
    return place | ({"marg.section": section} if section else {})


def _task_id(session: str, span: Span) -> str:
    return f"{session}/{span.attributes['marg.task.id']}"


def _section(message: Message) -> str:
    inner: Any = getattr(message, "draft", None) or getattr(message, "grounding", None) or message
    return str(getattr(inner, "section", ""))


def _target(message: Message) -> str:
    match message:
        case SearchDone():
            return message.query
        case SourceRead():
            return message.location
        case TaskFailed():
            return message.target
        case _:
            return ""


def _found(message: Message) -> dict[str, Value]:
    """What a task came to, in numbers and words of closed sets."""
    match message:
        case SearchDone():
            return {"marg.hits": len(message.hits), "marg.zone": message.answerability.zone.value}
        case SourceRead():
            return {"marg.outcome": message.status, "marg.evidence": len(message.evidence)}
        case ReviewDone():
            scores: dict[str, Value] = {f"marg.score.{name}": score for name, score in message.review.scores}
            return scores | {"marg.verdict": message.review.verdict.value}
        case _:
            return {}


def _event(entry: LogEntry) -> SpanEvent:
    """What the owner or the clock said, without the words."""
    message: Any = entry.message
    told: dict[str, Value] = {"marg.seq": entry.seq}
    for name in ("by", "action", "decision", "approved", "limit", "hard", "section"):
        if (value := getattr(message, name, None)) not in (None, ""):
            told[f"marg.{name}"] = value
    return SpanEvent(name=message.kind, at=entry.at, attributes=told)
