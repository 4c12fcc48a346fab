"""What `marg research` shows on standard error while a run goes on.

On a terminal a small board is redrawn in place: who works on what, the counters, the last events. Elsewhere (a pipe,
a log file) every event is one line. Texts come from pages and models, so control characters never reach the terminal.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from marg_ray.cli.words import NARROW, clean, dollars, duration, fit, of_limits
from marg_ray.records import Depth, Limits

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
    dollars, `elapsed` and `worked` in seconds. `notice` is what its owner should know: a place in the queue, a spent
    limit."""

    running: tuple[tuple[str, str], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0
    cost: float = 0.0
    elapsed: float = 0.0
    limits: Limits = field(default_factory=Limits)
    searches: int = 0  # on the web
    tasks: int = 0
    worked: float = 0.0  # `elapsed` without the time in which the owner was waited for
    notice: str = ""


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
        self._opened = self._headed = False
        self._noticed = ""

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
        if board.notice != self._noticed:
            self._noticed = board.notice
            if board.notice and self._live is None:
                self._console.print(Text(f"{duration(board.elapsed):>7}  {clean(board.notice)}"), soft_wrap=True)
        if entry is None or entry.seq <= self._seen:
            return
        self._seen = entry.seq
        self._events.append(entry)
        if self._live is None:
            self._console.print(plain_line(entry), soft_wrap=True, highlight=False, markup=False)

    def aside(self) -> None:
        """Give the terminal back for a while; the next `update` takes it again."""
        self._close()
        self._opened = False

    def finish(self, account: RenderableType | None = None) -> None:
        """Take the board away and leave the closing account in its place."""
        self._close()
        if account is not None:
            self._console.print(account)

    def render(self) -> RenderableType:
        """The board as it stands, never wider or higher than the terminal."""
        width, height = self._console.width, max(self._console.height, 6)
        counters = counter_line(self._board, width, most=max(1, height // 4))
        notice = [Text(fit(clean(self._board.notice), width), style="yellow", no_wrap=True)] * bool(self._board.notice)
        room = height - 3 - _lines(counters) - len(notice)
        running = running_rows(self._board.running, most=max(1, room // 2))
        events = list(self._events)[-max(1, room - len(running)) :]
        return Group(self._head(), *notice, _running_table(running, width), counters, _event_table(events, width))

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
            if not self._headed:
                self._console.print(Text(f"{self._question} ({self._depth})"), soft_wrap=True)
            self._headed = True
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
    if board.tokens and board.limits.tokens is None:
        pieces.append(f"{board.tokens:,} tokens")
    if board.cost > 0 and board.limits.usd is None:
        pieces.append(dollars(board.cost))
    pieces += of_limits(
        board.limits,
        tokens=board.tokens,
        usd=board.cost,
        searches=board.searches,
        tasks=board.tasks,
        seconds=board.worked,
    )
    lines: list[str] = []
    for piece in pieces:
        longer = f"{lines[-1]} · {piece}" if lines else piece
        if lines and cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(piece)
    return Text("\n".join(fit(line, width) for line in lines[:most]), style="dim", no_wrap=True)


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
