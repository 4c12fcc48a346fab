"""A recorded run: what it was asked, in which order its facts came, and what differs between two runs by nature."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from marg_ray.errors import UsageError
from marg_ray.memory.cache import CHANGES_NO_ANSWER, normalised
from marg_ray.messages import Message
from marg_ray.models.tape import Tape, read_json
from marg_ray.records import Record, Request
from marg_ray.report.model import Report, Spent
from marg_ray.state import role_of


class Recorded(Record):
    """One run on the tape. Task ids are without the session's."""

    session_id: str
    request: Request
    order: tuple[str, ...]  # the tasks that agents answered, as their answers came into the log
    times: dict[str, datetime]  # of the log's entries, by task
    created_at: datetime | None
    finished_at: datetime | None
    wall_seconds: float
    cost: dict[str, float]  # US dollars, by role; "" = in all
    seconds: dict[str, float]  # inside calls, by role; "" = in all
    fetched_at: dict[str, datetime]  # by source


def keep_run(tape: Tape, request: Request, messages: Iterable[Message], report: Report) -> None:
    """Write a run that has ended to the tape."""
    sid = report.session_id
    spent = {"": report.usage, **report.usage.by_role}
    run = Recorded(
        session_id=sid,
        request=request,
        order=tuple(dict.fromkeys(_bare(m.task_id, sid) for m in messages if role_of(m) is not None)),
        times={_bare(t.task, sid): t.at for t in report.trace if t.at is not None},
        created_at=report.created_at,
        finished_at=report.finished_at,
        wall_seconds=report.usage.wall_seconds,
        cost={role: used.cost for role, used in spent.items()},
        seconds={role: used.seconds for role, used in spent.items()},
        fetched_at={s.id: s.fetched_at for s in report.sources},
    )
    tape.write(_path(tape, request), run.model_dump_json(indent=1).encode())


def taped(tape: Tape, request: Request, messages: Iterable[Message], report: Report) -> Report:
    """Keep the run that ends with `report`; of a replay, the report as it was when it was recorded."""
    if not tape.replays:
        keep_run(tape, request, messages, report)
        return report
    run = run_of(tape, request)
    return report if run is None else as_recorded(report, run)


def run_of(tape: Tape, request: Request) -> Recorded | None:
    """The recorded run that was asked the same, if there is one."""
    path = _path(tape, request)
    return _read(path) if path.exists() else None


def runs_on(tape: Tape) -> list[Recorded]:
    """Every run that ended while it was recorded, the first one first."""
    runs = [_read(path) for path in sorted((tape.folder / "run").glob("*.json"))]
    return sorted(runs, key=lambda r: r.session_id)


def to_replay(tape: Tape) -> Request:
    """The request of the only run on the tape, as it is asked again: without limits of time.

    Raises:
        UsageError: there is none, or there are several.
    """
    runs = runs_on(tape)
    if not runs:
        raise UsageError(
            f"no run on the recording in {tape.folder} came to its end", "say what to ask, or record again"
        )
    if len(runs) > 1:
        questions = "; ".join(repr(r.request.question) for r in runs)
        raise UsageError(f"the recording in {tape.folder} holds {len(runs)} runs: {questions}", "say which to ask")
    return timeless(runs[0].request)


def timeless(request: Request) -> Request:
    """A replay takes no time, and yesterday's deadline does not concern it."""
    return request.model_copy(
        update={"limits": request.limits.model_copy(update={"seconds": None, "deadline": None}), "fresh": True}
    )


def as_recorded(report: Report, run: Recorded) -> Report:
    """The report of a replay, with the ids, moments and durations of the run that was recorded."""
    sid = report.session_id
    trace = tuple(
        t.model_copy(
            update={
                "task": run.session_id + _bare(t.task, sid) if t.task.startswith(sid) else t.task,
                "at": run.times.get(_bare(t.task, sid), t.at),
            }
        )
        for t in report.trace
    )
    sources = tuple(s.model_copy(update={"fetched_at": run.fetched_at.get(s.id, s.fetched_at)}) for s in report.sources)
    usage = report.usage.model_copy(
        update={
            "wall_seconds": run.wall_seconds,
            "by_role": {role: _timed(used, run, role) for role, used in report.usage.by_role.items()},
        }
    )
    return report.model_copy(
        update={
            "session_id": run.session_id,
            "created_at": run.created_at,
            "finished_at": run.finished_at,
            "sources": sources,
            "usage": _timed(usage, run, ""),
            "trace": trace,
        }
    )


def _timed(used: Spent, run: Recorded, role: str) -> Spent:
    """Durations as recorded; of sums of money the digit that depends on the order of adding."""
    cost = run.cost.get(role, used.cost)
    same = math.isclose(cost, used.cost, rel_tol=1e-9, abs_tol=1e-12)
    return used.model_copy(update={"seconds": run.seconds.get(role, used.seconds), "cost": cost if same else used.cost})


def in_order(order: Sequence[str], answered: frozenset[str], session_id: str, task_id: str) -> bool:
    """Whether all that came before a task's answer, when the run was recorded, is in the log."""
    place = _places(tuple(order)).get(_bare(task_id, session_id), len(order))
    return all(session_id + earlier in answered for earlier in order[:place])


def place_of(order: Sequence[str], session_id: str, task_id: str) -> int:
    """Where in the order a task's answer stands; after all others where it was not recorded."""
    return _places(tuple(order)).get(_bare(task_id, session_id), len(order))


@lru_cache(maxsize=16)
def _places(order: tuple[str, ...]) -> dict[str, int]:
    return {task: n for n, task in enumerate(order)}


def _bare(task_id: str, session_id: str) -> str:
    return task_id.removeprefix(session_id)


def _path(tape: Tape, request: Request) -> Path:
    fields = request.model_dump(mode="json", exclude=set(CHANGES_NO_ANSWER))
    fields["question"] = normalised(request.question)
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    return tape.folder / "run" / f"{digest}.json"


def _read(path: Path) -> Recorded:
    try:
        return Recorded.model_validate(read_json(path))
    except ValidationError:
        raise UsageError(f"the recording is damaged: {path}", "record the run again") from None
