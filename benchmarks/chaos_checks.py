"""What must hold of a run that was disturbed: its report, its log, and what was paid for it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marg_ray.messages import TaskFailed
from marg_ray.report.model import Report
from marg_ray.store.protocol import LogEntry

UNLIKE = frozenset({"created_at", "finished_at", "fetched_at", "usage", "trace", "session_id", "artefact"})
LISTED = ("sources", "evidence", "notes", "gaps")


def content(report: Report) -> Any:
    """What a report says, without times, costs and ids; what it only lists, in one order; figures to three places."""
    body = _without(json.loads(report.model_dump_json()))
    for name in LISTED:
        body[name].sort(key=json.dumps)
    return body


def _without(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without(value) for key, value in part.items() if key not in UNLIKE}
    if isinstance(part, list):
        return [_without(p) for p in part]
    return round(part, 3) if isinstance(part, float) else part


def holes_and_doubles(entries: Sequence[LogEntry]) -> int:
    """How many entries of a log are missing, or tell again what stands there already.

    A task that failed because something was away is due again after the halt: its answer is no double.
    """
    holes = sum(entry.seq != n for n, entry in enumerate(entries, 1))
    said = [e.message.task_id for e in entries if not isinstance(e.message, TaskFailed)]
    return holes + len(said) - len(set(said))


def told(entries: Sequence[LogEntry]) -> set[str]:
    """What a log tells of, without the session's id."""
    return {e.message.task_id.partition("/")[2] for e in entries}


# ---- calls

_WATCH = """
create table if not exists settlements (session_id text, task_id text, key text, at real);
create trigger if not exists settled_later after update of status on calls
    when new.status = 'settled' and old.status <> 'settled' begin
        insert into settlements values (new.session_id, new.task_id, new.key, (julianday('now') - 2440587.5) * 86400.0);
    end;
create trigger if not exists settled_at_once after insert on calls when new.status = 'settled' begin
        insert into settlements values (new.session_id, new.task_id, new.key, (julianday('now') - 2440587.5) * 86400.0);
    end;
"""


def watch_settlements(database: Path) -> None:
    """Have the database note when each call is settled."""
    with sqlite3.connect(database, timeout=30) as db:
        db.executescript(_WATCH)


@dataclass(frozen=True)
class Paid:
    """What the model was asked, against what the ledger had."""

    requests: int
    twice: list[str]  # tasks whose model was asked after the call had been settled
    again: int  # requests for a call that had been asked, and not settled: its process had died in it


def paid(database: Path, requests: Iterable[dict[str, Any]]) -> Paid:
    """Compare the model server's log (`caller`, `start` of each request) with the ledger in the database."""
    with sqlite3.connect(database, timeout=30) as db:
        settled = dict(
            db.execute(
                "select s.task_id, max(s.at) from settlements s join calls c on c.session_id = s.session_id and "
                "c.key = s.key where c.kind = 'model' and c.result <> '' group by s.task_id"
            )
        )
    asked = list(requests)
    twice = [r["caller"] for r in asked if r["caller"] in settled and r["start"] > settled[r["caller"]]]
    again = len(asked) - len({r["caller"] for r in asked}) - len(twice)
    return Paid(len(asked), twice, again)
