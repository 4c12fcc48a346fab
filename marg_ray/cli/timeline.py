"""What `marg research` shows on standard error while a run goes on, and the account it closes with.

On a terminal a small board is redrawn in place: who works on what, the counters, the last events. Elsewhere (a pipe,
a log file) every event is one line. Texts come from pages and models, so control characters never reach the terminal.
"""

from __future__ import annotations

import time
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from marg_ray.records import Depth, Scores, Usage

NARROW = 60
"""Cells; below this width columns are dropped."""
KEPT_EVENTS = 50
ROLE_STYLES = {
    "planner": "cyan",
    "researcher": "green",
    "analyst": "blue",
    "synthesizer": "magenta",
    "critic": "yellow",
    "formatter": "white",
}


@dataclass(frozen=True)
class LogLine:
    """One event of a run. `seq` is its number in the session's log, `at` seconds since the run began."""

    seq: int
    at: float
    role: str
    kind: str
    text: str
    section: str = ""


@dataclass(frozen=True)
class Board:
    """Where a run stands. `running` holds (role, what it does); `counts` is shown in its own order; `cost` is in US
    dollars, `elapsed` in seconds."""

    running: tuple[tuple[str, str], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0
    cost: float = 0.0
    elapsed: float = 0.0


@dataclass(frozen=True)
class Closing:
    """The account of a finished run. `files` are the reports written."""

    session_id: str
    status: str
    model: str
    elapsed: float
    iterations: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    by_role: Mapping[str, Usage] = field(default_factory=dict)
    scores: Scores | None = None
    files: tuple[str, ...] = ()


class Timeline:
    """The display of one run; a context manager, so that the terminal is given back whatever happens.

    `update` may be called as often as events come: drawing happens a few times a second. An event whose number was
    shown already is not shown again.
    """

    def __init__(
        self, console: Console, question: str, depth: Depth | str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._question, self._depth, self._clock = console, clean(question), str(depth), clock
        self._board, self._board_at = Board(), clock()
        self._events: deque[LogLine] = deque(maxlen=KEPT_EVENTS)
        self._seen = -1
        self._spinner = Spinner("line" if console.options.ascii_only else "dots", style="cyan")
        self._live: Live | None = None
        self._opened = False

    def __enter__(self) -> Timeline:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def update(self, entry: LogLine | None, board: Board) -> None:
        """Show an event, or with None only the board as it stands now."""
        self._open()
        self._board, self._board_at = board, self._clock()
        if entry is None or entry.seq <= self._seen:
            return
        self._seen = entry.seq
        self._events.append(entry)
        if self._live is None:
            self._console.print(plain_line(entry), soft_wrap=True, highlight=False, markup=False)

    def finish(self, stats: Closing | None = None) -> None:
        """Take the board away and leave the closing account in its place."""
        self._close()
        if stats is not None:
            self._console.print(closing_stats(stats, self._console.width))

    def render(self) -> RenderableType:
        """The board as it stands, never wider or higher than the terminal."""
        width, height = self._console.width, max(self._console.height, 6)
        counters = counter_line(self._board, width, most=max(1, height // 4))
        room = height - 3 - _lines(counters)
        running = running_rows(self._board.running, most=max(1, room // 2))
        events = list(self._events)[-max(1, room - len(running)) :]
        return Group(self._head(), _running_table(running, width), counters, _event_table(events, width))

    def _head(self) -> RenderableType:
        elapsed = self._board.elapsed + max(0.0, self._clock() - self._board_at)
        head = Table.grid(padding=(0, 1), expand=True)
        head.add_column(width=1)
        head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        head.add_column(justify="right", no_wrap=True)
        right = Text(duration(elapsed) if self._console.width < NARROW else f"{self._depth}  {duration(elapsed)}")
        head.add_row(self._spinner, Text(self._question, style="bold"), right)
        return head

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            self._console.print(Text(f"{self._question} ({self._depth})"), soft_wrap=True)
            return
        self._live = Live(
            console=self._console,
            get_renderable=self.render,
            refresh_per_second=6,
            transient=True,
            redirect_stdout=False,
        )
        self._live.start()

    def _close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def clean(text: str) -> str:
    """One line without control or direction characters: what came from a page cannot move the cursor."""
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)
    return " ".join(kept.split())


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def dollars(cost: float) -> str:
    """US dollars; amounts too small to matter are said to be small rather than zero."""
    if cost <= 0:
        return "$0"
    return "<$0.01" if cost < 0.01 else f"${cost:,.2f}"


def plain_line(entry: LogLine) -> Text:
    """An event as one line of a log."""
    where = f"[{clean(entry.section)}] " if entry.section else ""
    return Text(f"{duration(entry.at):>7}  {clean(entry.role):<11}  {where}{clean(entry.text) or clean(entry.kind)}")


def running_rows(running: tuple[tuple[str, str], ...], most: int) -> list[tuple[str, str]]:
    """At most `most` rows; every role keeps one while there is room, the rest is counted on its role's last row."""
    by_role: dict[str, list[str]] = {}
    for role, text in running:
        by_role.setdefault(clean(role), []).append(clean(text))
    shown = dict.fromkeys(list(by_role)[:most], 1)
    while sum(shown.values()) < most and (more := [r for r in shown if shown[r] < min(3, len(by_role[r]))]):
        shown[min(more, key=lambda r: shown[r])] += 1
    rows = []
    for role, count in shown.items():
        texts = by_role[role][:count]
        if hidden := len(by_role[role]) - count:
            texts[-1] = f"(+{hidden}) {texts[-1]}"
        rows += [(role if n == 0 else "", text) for n, text in enumerate(texts)]
    return rows


def counter_line(board: Board, width: int, most: int = 9) -> Text:
    """The counters, separated by dots, on at most `most` lines; wraps between counters only."""
    pieces = [f"{value:,} {clean(name)}" for name, value in board.counts.items()]
    if board.tokens:
        pieces.append(f"{board.tokens:,} tokens")
    if board.cost > 0:
        pieces.append(dollars(board.cost))
    lines: list[str] = []
    for piece in pieces:
        longer = f"{lines[-1]} · {piece}" if lines else piece
        if lines and cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return Text("\n".join(fit(line, width) for line in lines[:most]), style="dim", no_wrap=True)


def fit(text: str, width: int) -> str:
    """Cut to `width` cells, wide characters counted as two."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def _lines(text: Text) -> int:
    return max(1, len(text.plain.splitlines()))


def _running_table(rows: list[tuple[str, str]], width: int) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=11 if width >= NARROW else 4, no_wrap=True, overflow="crop")
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for role, text in rows or [("", "waiting")]:
        table.add_row(Text(role, style=ROLE_STYLES.get(role, "")), Text(text))
    return table


def _event_table(events: list[LogLine], width: int) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(justify="right", no_wrap=True, width=7 if width >= NARROW else 5)
    if width >= NARROW:
        table.add_column(width=11, no_wrap=True, overflow="crop")
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for entry in events:
        where = f"[{clean(entry.section)}] " if entry.section else ""
        cells = [Text(duration(entry.at)), Text(where + (clean(entry.text) or clean(entry.kind)))]
        if width >= NARROW:
            role = clean(entry.role)
            cells.insert(1, Text(role, style=ROLE_STYLES.get(role, "")))
        table.add_row(*cells, style="dim")
    return table


def closing_stats(stats: Closing, width: int = 80) -> RenderableType:
    """The account of a run: outcome and totals, then what each role spent."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("status", Text(stats.status, style="green" if stats.status == "passed" else "yellow"))
    facts.add_row("session", Text(clean(stats.session_id)))
    facts.add_row("model", Text(clean(stats.model)))
    facts.add_row("time", f"{duration(stats.elapsed)}, {_count(stats.iterations, 'iteration')}")
    if stats.counts:
        facts.add_row("work", Text(" · ".join(f"{v:,} {clean(k)}" for k, v in stats.counts.items())))
    if stats.usage.reused:
        facts.add_row("reused", f"{_count(stats.usage.reused, 'call')} answered from the ledger")
    if stats.scores is not None:
        scores = [f"{name} {value:.2f}" for name, value in stats.scores.model_dump().items()]
        facts.add_row("scores", " · ".join(scores))
    for n, path in enumerate(stats.files):
        facts.add_row("report" if n == 0 else "", Text(clean(path)))
    return Group(facts, _spent(stats, width)) if stats.by_role else facts


def _spent(stats: Closing, width: int) -> Table:
    wide = width >= NARROW
    table = Table(
        box=None, padding=(0, 2 if wide else 1, 0, 0), header_style="dim", footer_style="bold", show_footer=True
    )
    table.add_column("role", footer="all", no_wrap=True)
    columns: list[tuple[str, Callable[[Usage], str]]] = [("calls", lambda u: f"{u.calls:,}")]
    if wide:
        columns += [("searches", lambda u: f"{u.searches:,}"), ("pages", lambda u: f"{u.fetches:,}")]
        columns += [("tokens in", lambda u: f"{u.tokens_in:,}"), ("tokens out", lambda u: f"{u.tokens_out:,}")]
    else:
        columns += [("tokens", lambda u: f"{u.tokens_in + u.tokens_out:,}")]
    columns += [("cost", lambda u: dollars(u.cost))]
    if wide:
        columns += [("seconds", lambda u: f"{u.seconds:,.1f}")]
    for name, value in columns:
        table.add_column(name, footer=value(stats.usage), justify="right", no_wrap=True)
    for role, usage in stats.by_role.items():
        table.add_row(Text(clean(str(role))), *(value(usage) for _, value in columns))
    return table


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
