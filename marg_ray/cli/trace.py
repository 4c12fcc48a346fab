"""`marg show SESSION --trace`: what ran when, what it waited for, and the chain that decided when the session ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from marg_ray.cli.timeline import ROLE_STYLES
from marg_ray.cli.words import clean, count, dollars, fit

if TYPE_CHECKING:
    from marg_ray.telemetry.spans import Span, Trace

WIDE = 110  # cells; from here on there is room for what a task waited for
LEAST_BAR = 12
NAMED = 34  # cells of a row's name, at most


class Waterfall:
    """A trace, drawn as wide as the terminal is: a row per task, with `calls` one per call of it too."""

    def __init__(self, trace: Trace, *, calls: bool = False) -> None:
        self._trace, self._with_calls = trace, calls
        self._by_id = {span.id: span for span in trace.spans}
        self._inner: dict[str, list[Span]] = defaultdict(list)
        for span in trace.spans[1:]:
            self._inner[span.parent].append(span)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = list(self._rows())
        name = max((len(label) for _, label in rows), default=0)
        wide = options.max_width >= WIDE
        fixed = 2 + 8 + min(name, NAMED) + 8 + 8 + 9 + 8 + (24 if wide else 0) + 8
        bar = max(LEAST_BAR, options.max_width - fixed)
        marks = ("#", ".", "*") if options.ascii_only else ("█", "·", "●")
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", pad_edge=False)
        for head in ("", "at", "what", "", "took", "waited", "tokens", "cost", *(["after"] if wide else [])):
            right = head in ("at", "took", "waited", "tokens", "cost")
            table.add_column(head, justify="right" if right else "left", no_wrap=True)
        for span, label in rows:
            table.add_row(*self._cells(span, label, bar, marks, wide=wide))
        yield Group(Text(self._headline()), Text(""), table, Text(""), Text("\n".join(self._path())))

    def _rows(self) -> Iterator[tuple[Span, str]]:
        for span in self._inner[self._trace.root.id]:
            yield span, fit(label_of(span), NAMED)
            if self._with_calls:
                for call in self._inner[span.id]:
                    yield call, fit(f"  {label_of(call)}", NAMED)

    def _cells(self, span: Span, label: str, bar: int, marks: tuple[str, str, str], *, wide: bool) -> list[Text]:
        style = _style(span)
        tokens = sum(_number(span, f"gen_ai.usage.{way}_tokens") for way in ("input", "output"))
        cells = [
            Text(marks[2] if span.critical and span.kind == "task" else "", style="bold"),
            Text(_seconds(self._at(span.start))),
            Text(label, style=style),
            self._bar(span, bar, marks, style),
            Text(_seconds(span.seconds)),
            Text(_seconds(span.waited) if span.waited >= 0.05 else "", style="dim"),
            Text(f"{tokens:,.0f}" if tokens else ""),
            Text(dollars(cost) if (cost := _number(span, "marg.cost_usd")) else ""),
        ]
        if wide:
            cause = self._by_id.get(span.after)
            cells.append(Text(fit(label_of(cause), 24) if cause is not None else "", style="dim"))
        return cells

    def _bar(self, span: Span, width: int, marks: tuple[str, str, str], style: str) -> Text:
        """Dots from when it was due, blocks while it ran; at least one."""
        whole = max(self._trace.root.seconds, 1e-9)
        begin = min(width - 1, round(self._at(span.start) / whole * width))
        due = min(begin, max(0, round((self._at(span.start) - span.waited) / whole * width)))
        end = max(begin + 1, min(width, round(self._at(span.end) / whole * width)))
        text = Text(" " * due, no_wrap=True)
        text.append(marks[1] * (begin - due), style="dim")
        text.append(marks[0] * (end - begin), style=f"bold {style}" if span.critical else style)
        return text

    def _at(self, moment: datetime) -> float:
        return max(0.0, (moment - self._trace.root.start).total_seconds())

    def _headline(self) -> str:
        root, tasks = self._trace.root, [s for s in self._trace.spans if s.kind == "task"]
        calls = sum(s.kind in ("model", "search", "fetch") for s in self._trace.spans)
        tokens = sum(_number(root, f"gen_ai.usage.{way}_tokens") for way in ("input", "output"))
        parts = [f"{_seconds(root.seconds)} s", count(len(tasks), "task"), count(calls, "call")]
        if tokens:
            parts.append(f"{tokens:,.0f} tokens")
        if cost := _number(root, "marg.cost_usd"):
            parts.append(dollars(cost))
        return f"{clean(self._trace.session)}: {self._trace.status} · {' · '.join(parts)}"

    def _path(self) -> list[str]:
        """The critical path in words: how long each of its tasks was waited for, in order, and where the time went."""
        chain = [s for s in self._trace.spans if s.kind == "task" and s.critical]
        waits = sum(span.waited for span in chain)
        total = sum(span.seconds for span in chain)
        lines = [
            f"critical path: {count(len(chain), 'task')}, {_seconds(total)} s of work, {_seconds(waits)} s of waiting"
        ]
        by_kind: dict[str, float] = defaultdict(float)
        for span in chain:
            by_kind[str(span.attributes.get("marg.task.kind", ""))] += span.seconds
        spent = sorted(by_kind.items(), key=lambda item: -item[1])
        lines.append("  " + ", ".join(f"{kind} {_seconds(seconds)} s" for kind, seconds in spent))
        lines += [
            f"  {_seconds(self._at(s.start)):>7}  {_seconds(s.seconds):>6} s  {fit(label_of(s), 60)}" for s in chain
        ]
        return lines


def print_trace(trace: Trace, *, calls: bool = False, console: Console | None = None) -> None:
    (console or Console()).print(Waterfall(trace, calls=calls))


def label_of(span: Span) -> str:
    """`s1 read https://...`, `plan`, `chat gpt-5`, `waits for a decision on the plan`."""
    if span.kind == "session":
        return "its owner"
    if span.kind == "wait":
        return f"waits: {span.name.partition(' ')[2]}"
    if span.kind != "task":
        return clean(span.name.partition(" ")[2] or span.name)
    section = str(span.attributes.get("marg.section", ""))
    about = clean(span.about)
    parts = (section, str(span.attributes.get("marg.task.kind", "")), about)
    return " ".join(part for part in parts if part) + (" (unfinished)" if "marg.unfinished" in span.attributes else "")


def _style(span: Span) -> str:
    if span.status == "error":
        return "red"
    return "dim" if span.kind != "task" else ROLE_STYLES.get(str(span.attributes.get("gen_ai.agent.name", "")), "")


def _number(span: Span, name: str) -> float:
    value = span.attributes.get(name, 0)
    return value if isinstance(value, int | float) else 0.0


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}" if seconds < 1000 else f"{seconds:,.0f}"
