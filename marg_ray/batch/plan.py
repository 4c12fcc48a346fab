"""Which rows are to be worked on, and which are done. Pure, but for a look whether a report is still there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from marg_ray.batch.results import RowResult, asked_of
from marg_ray.batch.rows import Problem, Row
from marg_ray.errors import MargError
from marg_ray.records import Request


@dataclass(frozen=True)
class Todo:
    """A row to be worked on. `anew`: although it has ended before. `before` is its result, where its report only has
    to be written out again."""

    row: Row
    request: Request
    asked: str
    anew: bool = False
    before: RowResult | None = None


@dataclass(frozen=True)
class Plan:
    todo: tuple[Todo, ...]
    done: tuple[RowResult, ...]
    problems: tuple[Problem, ...]
    changed: tuple[Row, ...] = ()  # a key whose question is another now: it is asked anew


def plan(
    rows: Sequence[Row],
    make: Callable[[Row], Request],
    results: Callable[[str], RowResult | None],
    *,
    again: Collection[str] = (),
    files: Callable[[RowResult], Sequence[Path]] = lambda _: (),
) -> Plan:
    """Sort the rows.

    A row is done when its result is final, for the same question, its report's `files` are there, and its status is
    not one of `again`. `make` turns a row into a request, or raises.
    """
    todo: list[Todo] = []
    done: list[RowResult] = []
    problems: list[Problem] = []
    changed: list[Row] = []
    for row in rows:
        before = results(row.key)
        try:
            request = make(row)
        except MargError as exc:  # it was answered before its folder went
            if before is not None and before.final and before.status not in again and before.question == row.question:
                done.append(before)
            else:
                problems.append(Problem(row.line, str(exc), exc.hint, key=row.key))
            continue
        asked = asked_of(request)
        if before is None or not before.final:
            todo.append(Todo(row, request, asked))
        elif before.asked != asked:
            changed.append(row)
            todo.append(Todo(row, request, asked))
        elif before.status in again:
            todo.append(Todo(row, request, asked, anew=True))
        elif before.delivered and not all(path.exists() for path in files(before)):
            todo.append(Todo(row, request, asked, before=before))
        else:
            done.append(before)
    return Plan(tuple(todo), tuple(done), tuple(problems), tuple(changed))
