"""What `marg batch` shows while it runs: a table redrawn in place, or a line for each row that ends."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from marg_ray.cli.words import NARROW, clean, count, dollars, duration, fit, ordinal

if TYPE_CHECKING:
    from marg_ray.batch.plan import Todo
    from marg_ray.batch.results import RowResult
    from marg_ray.batch.thresholds import Summary
    from marg_ray.client import Step
    from marg_ray.sources.library.refresh import Progress as IndexProgress

STAGES = {
    "plan": "planning",
    "search": "searching",
    "read": "reading",
    "draft": "writing",
    "ground": "checking",
    "analyse": "comparing",
    "review": "reviewing",
    "summarise": "summarising",
    "format": "finishing",
}
"""By the kind of a task, in the order of a run."""
STYLES = {"passed": "green", "quality_warning": "yellow", "insufficient_evidence": "yellow", "budget_stopped": "yellow"}
KEPT = 30  # rows that ended, for the table


@dataclass
class _Row:
    """A row under way."""

    key: str
    question: str
    began: float
    stage: str = "starting"
    tokens: int = 0
    usd: float = 0.0


@dataclass
class _Totals:
    counts: Counter[str] = field(default_factory=Counter)  # delivered, refused, failed
    tokens: int = 0
    usd: float = 0.0
    ended: int = 0  # in this command


class BatchBoard:
    """A context manager, so that the terminal is given back whatever happens. `rows` are all of the batch, of which
    `done` were done before."""

    def __init__(
        self,
        console: Console,
        rows: int,
        done: int = 0,
        *,
        as_json: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._rows, self._done, self._json, self._clock = console, rows, done, as_json, clock
        self._began = clock()
        self._running: dict[str, _Row] = {}
        self._totals, self._last = _Totals(), deque[str](maxlen=KEPT)
        self._index = ""
        self._live = None if as_json else _live(console, self.render)

    def __enter__(self) -> BatchBoard:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def elapsed(self) -> float:
        return self._clock() - self._began

    # ---- what happens

    def began(self, todo: Todo, session: str) -> None:
        self._running[todo.row.key] = _Row(todo.row.key, todo.row.question, self._clock())
        self._event("begun", key=todo.row.key, line=todo.row.line, session=session)

    def step(self, todo: Todo, step: Step) -> None:
        row = self._running.get(todo.row.key)
        if row is None:
            return
        spent = list(step.state.usage.values())
        row.tokens = sum(u.tokens_in + u.tokens_out for u in spent)
        row.usd = sum(u.cost for u in spent)
        row.stage = stage_of(step) or row.stage

    def ended(self, todo: Todo, result: RowResult) -> None:
        self._running.pop(todo.row.key, None)
        totals = self._totals
        totals.counts[kind_of(result)] += 1
        totals.tokens += result.tokens
        totals.usd += result.usd
        totals.ended += 1
        line = line_of(result, self.elapsed, self._done + totals.ended, self._rows)
        self._last.append(line)
        self._event("ended", **result.model_dump(mode="json"))
        if self._live is None:
            self._console.print(Text(line), soft_wrap=True, highlight=False)

    def indexed(self, progress: IndexProgress) -> None:
        what = "reading files" if progress.stage == "read" else "embedding passages"
        self._index = f"indexing: {what} {progress.done}/{progress.total}" if progress.done < progress.total else ""

    def _event(self, kind: str, **fields: object) -> None:
        if self._json:
            typer.echo(json.dumps({"kind": kind, **fields}, ensure_ascii=False))

    # ---- what is shown

    def render(self) -> RenderableType:
        """The table as it stands, never wider or higher than the terminal."""
        width, height = self._console.width, max(self._console.height, 8)
        notice = [Text(fit(self._index, width), style="cyan", no_wrap=True)] * bool(self._index)
        room = height - 4 - len(notice)
        running = list(self._running.values())
        shown = running[: max(1, room * 2 // 3)]
        last = list(self._last)[-max(1, room - len(shown)) :]
        rest = [Text(f"... and {len(running) - len(shown)} more", style="dim")] * (len(running) > len(shown))
        ended = [Text(fit(line, width), style="dim", no_wrap=True) for line in last]
        return Group(self._head(width), *notice, self._table(shown, width), *rest, *ended[: room - len(shown)])

    def _head(self, width: int) -> RenderableType:
        totals = self._totals
        queued = self._rows - self._done - totals.ended - len(self._running)
        parts = [f"{self._done:,} done before"] * bool(self._done)
        parts += [f"{totals.counts[k]:,} {k}" for k in ("delivered", "refused", "failed") if totals.counts[k]]
        parts += [f"{len(self._running):,} running", f"{queued:,} queued"]
        cost = totals.usd + sum(r.usd for r in self._running.values())
        spent = [f"{totals.tokens + sum(r.tokens for r in self._running.values()):,} tokens"]
        spent += [dollars(cost)] * (cost > 0)
        if totals.ended:
            left = self.elapsed / totals.ended * (queued + len(self._running))
            spent.append(f"about {duration(left)} left")
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        head.add_column(justify="right", no_wrap=True)
        head.add_row(Text(" · ".join(parts), style="bold"), Text(duration(self.elapsed)))
        return Group(head, Text(fit(" · ".join(spent), width), style="dim", no_wrap=True))

    def _table(self, rows: list[_Row], width: int) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
        table.add_column("row", ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column("stage", no_wrap=True)
        table.add_column("time", justify="right", no_wrap=True)
        if width >= NARROW:
            table.add_column("tokens", justify="right", no_wrap=True)
            table.add_column("cost", justify="right", no_wrap=True)
        for row in rows:
            cells = [clean(row.question), row.stage, duration(self._clock() - row.began)]
            cells += [f"{row.tokens:,}", dollars(row.usd)] * (width >= NARROW)
            table.add_row(*(Text(cell) for cell in cells))
        return table


def _live(console: Console, render: Callable[[], RenderableType]) -> Live | None:
    if not console.is_terminal or console.is_dumb_terminal or console.quiet:
        return None
    return Live(console=console, get_renderable=render, refresh_per_second=4, transient=True, redirect_stdout=False)


def stage_of(step: Step) -> str:
    """What a session does, in a word or two: the furthest of its stages that is under way."""
    if step.progress.position:
        return f"{ordinal(step.progress.position)} in the queue"
    kinds = Counter(task.kind for task in step.progress.running)
    furthest = [kind for kind in STAGES if kinds[kind]]
    if not furthest:
        return ""
    many = kinds[furthest[-1]]
    return STAGES[furthest[-1]] + (f" {many}" if many > 1 else "")


def kind_of(result: RowResult) -> str:
    return "delivered" if result.delivered else "refused" if result.refused else "failed"


def line_of(result: RowResult, elapsed: float, number: int, rows: int) -> str:
    """A row that ended, on one line."""
    facts = []
    if result.delivered:
        facts.append(count(result.words, "word"))
        if result.supported is not None:
            facts.append(f"{percent(result.supported)} supported")
        facts.append(count(result.sources, "source"))
        if result.tokens:
            facts.append(f"{result.tokens:,} tokens")
        if result.usd:
            facts.append(dollars(result.usd))
        facts.append("asked before" if result.kept else duration(result.seconds))
    elif result.error is not None:
        facts.append(result.error.detail)
    told = clean(", ".join(facts))
    return f"{duration(elapsed):>7}  {number}/{rows}  {result.status}  {clean(result.key)}: {told}"


def percent(share: float) -> str:
    """Rounded down, so that 100 % means all."""
    return f"{int(share * 100 + 1e-9)} %"


def closing(summary: Summary) -> RenderableType:
    """The account of a batch."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    rows = [f"{summary.rows:,} in all"]
    rows += [f"{n:,} {status}" for status, n in sorted(summary.statuses.items(), key=lambda kv: -kv[1])]
    rows += [f"{summary.not_begun:,} not begun"] * bool(summary.not_begun)
    facts.add_row("rows", Text(" · ".join(rows)))
    if summary.delivered:
        reports = [count(summary.delivered, "report"), count(summary.words, "word")]
        if summary.supported is not None:
            reports.append(f"{percent(summary.supported)} of the sentences supported")
        if summary.quality is not None:
            reports.append(f"quality {summary.quality:.2f}")
        facts.add_row("reports", Text(" · ".join(reports)))
    facts.add_row("spent", Text(f"{summary.tokens:,} tokens · {dollars(summary.usd)} · {duration(summary.seconds)}"))
    for n, missed in enumerate(summary.missed):
        facts.add_row("missed" if n == 0 else "", Text(missed, style="red"))
    return facts
