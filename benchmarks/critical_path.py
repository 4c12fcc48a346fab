"""The least time a session could have taken: the longest chain of its model calls that truly depend on each other.

Each task of the session's log weighs what the model itself needed for its calls (the intervals that the server
logged); a task follows only those whose results it was made from. Everything else of the wall time is ours: dispatch,
searching, parsing, checking, waiting for something that was not needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marg_ray.messages import SCOUT, SUMMARY, Message, SessionStarted


@dataclass(frozen=True)
class _Place:
    section: str
    kind: str
    number: str = ""


def _place(task_id: str, session_id: str) -> _Place:
    parts = task_id.removeprefix(session_id + "/").split("/")
    return _Place(*parts) if len(parts) == 3 else _Place("", *parts)


def critical_path(messages: Sequence[Message], weights: Mapping[str, float]) -> tuple[float, list[str]]:
    """Seconds, and the tasks of the chain, first to last. `weights`: task id to seconds of model time."""
    first = messages[0]
    assert isinstance(first, SessionStarted)
    return longest_chain(first.session_id, [m.task_id for m in messages], weights)


def longest_chain(session_id: str, tasks: Sequence[str], weights: Mapping[str, float]) -> tuple[float, list[str]]:
    """The same of task ids alone, in the order in which they were done: `SESSION/s1/search/1.0`, `SESSION/plan/0`."""
    best: dict[str, tuple[float, list[str]]] = {}
    seen: list[tuple[str, _Place]] = []
    for task_id in tasks:
        place = _place(task_id, session_id)
        before = [t for t, p in seen if _feeds(p, place)]
        time, chain = max((best[t] for t in before), default=(0.0, []))
        best[task_id] = (time + weights.get(task_id, 0.0), [*chain, task_id])
        seen.append((task_id, place))
    return max(best.values())


def _feeds(earlier: _Place, later: _Place) -> bool:
    """Whether a task at `later` was made from the result of one at `earlier` that came before it."""
    if later.section in ("", SUMMARY):
        if later.kind == "plan":
            return earlier.section == SCOUT
        if later.kind == "analyse":
            return earlier.kind in ("plan", "search", "read")
        if later.section == SUMMARY and earlier.kind == "review":
            return earlier.number == "1"  # it is written beside a later one
        return True  # the review, the summary and the report see everything
    if later.section == SCOUT:
        return False
    if earlier.kind in ("plan", "review"):
        return True
    if earlier.section != later.section:
        return False
    return {
        "search": (),
        "read": ("search",),
        "draft": ("search", "read", "draft", "ground"),
        "ground": ("draft",),
    }.get(later.kind, ()).count(earlier.kind) > 0
