"""Which tables a report shows as charts: those its sentences quote figures from, with the rows they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from marg_ray.grounding.snapshots import Document, Part
from marg_ray.report.charts.data import ChartSpec, Row, chart_of, numbers, when
from marg_ray.report.model import ChartRow, Report, ReportChart, ReportEvidence, ReportSection

MOST = 4  # charts in a report
MOST_ROWS = 60  # a longer table is a data set: not shown because one of its rows is cited
FEWEST_ROWS = 3
_CELL = re.compile(r"(?P<name>[^:;]{1,60}): (?P<value>[^;]*)")
_WORD = re.compile(r"[^\W\d_]{3,}")


@dataclass(frozen=True)
class Table:
    """A table of a document: its rows as name to value, and where they stand."""

    source: str
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for row in self.rows for name in row))


def charts_of(report: Report, document: Callable[[str], Document]) -> tuple[ReportChart, ...]:
    """At most one chart a section: a table of a source it cites, by the column that its sentences speak of most.

    `document` gives a source's frozen text; it is asked only for sources of which a cited passage looks like a row.
    """
    tables: dict[str, tuple[Table, ...]] = {}
    evidence = {e.id: e for e in report.evidence}
    numbered = {r.source: r.number for r in report.references}
    charts: list[ReportChart] = []
    drawn: set[tuple[str, int, str]] = set()
    for section in report.sections:
        cited = [evidence[c] for s in section.sentences for c in s.citations if c in evidence]
        rows = [e for e in dict.fromkeys(cited) if _CELL.search(e.quote) and e.source in numbered]
        for source in dict.fromkeys(e.source for e in rows):
            if source not in tables:
                tables[source] = tuple(tables_of(source, document(source)))
        best = max(
            (
                found
                for source in dict.fromkeys(e.source for e in rows)
                for t in tables[source]
                if (found := _fit(t, section, rows))
            ),
            key=lambda found: found[0],
            default=None,
        )
        if best is None or len(charts) == MOST:
            continue
        _, table, column, x = best
        name = (table.source, table.parts[0].start, column)
        chart = _chart(f"c{len(charts) + 1}", section, table, x, column, rows, numbered)
        if chart is not None and name not in drawn:
            drawn.add(name)
            charts.append(chart)
    return tuple(charts)


def tables_of(source: str, document: Document) -> Iterator[Table]:
    """The tables of a document whose rows name their columns."""
    run: list[Part] = []
    for part in (*document.parts, None):
        follows = part is not None and part.kind == "table_row" and (not run or part.start - run[-1].end <= 2)
        if part is not None and follows:
            run.append(part)
            continue
        if len(run) >= FEWEST_ROWS:
            rows = tuple(_row(document.text[p.start : p.end]) for p in run)
            if all(rows):
                yield Table(source, rows, tuple(run))
        run = [part] if part is not None and part.kind == "table_row" else []


def _row(text: str) -> Row:
    return {m["name"].strip(): m["value"].strip() for m in _CELL.finditer(text)}


def _fit(table: Table, section: ReportSection, cited: Sequence[ReportEvidence]) -> tuple[float, Table, str, str] | None:
    """How much a section says of a column of the table: the figures of cited rows that stand in its sentences."""
    here = [i for i, part in enumerate(table.parts) if any(_holds(e, table.source, part) for e in cited)]
    if not here or len(table.rows) > MOST_ROWS:
        return None
    x = _label_column(table)
    if not x:
        return None
    said = " ".join(s.text for s in section.sentences)
    words = {w.casefold() for w in _WORD.findall(f"{section.title} {said}")}
    best: tuple[float, str] | None = None
    for column in table.columns:
        cells = [row.get(column) for row in table.rows]
        values = numbers(cells)
        if column == x or sum(v is not None for v in values) < FEWEST_ROWS or _are_years(cells):
            continue
        spoken = sum(
            1
            for i in here
            if (cell := str(cells[i] or "")) and re.search(rf"(?<![\w.,]){re.escape(cell)}(?![\w]|[.,]\d)", said)
        )
        named = sum(1 for w in _WORD.findall(column) if w.casefold() in words)
        score = spoken + 0.5 * min(named, 2) + 0.1 * len([v for v in values if v is not None]) / len(values)
        if spoken and named and (best is None or score > best[0]):
            best = (score, column)
    return None if best is None else (best[0], table, best[1], x)


def _holds(evidence: ReportEvidence, source: str, part: Part) -> bool:
    return evidence.source == source and evidence.start < part.end and part.start < evidence.end


def _label_column(table: Table) -> str:
    """The column that tells the rows apart: the first whose cells differ and are dates, or no numbers."""
    for column in table.columns:
        cells = [str(row.get(column, "")) for row in table.rows]
        tells_apart = all(cells) and len(set(cells)) == len(cells)
        if tells_apart and (all(when(c) for c in cells) or not any(v is not None for v in numbers(list(cells)))):
            return column
    return ""


def _are_years(cells: Sequence[object]) -> bool:
    written = [str(c) for c in cells if c]
    return bool(written) and all(when(c) for c in written)


def _chart(
    id: str,
    section: ReportSection,
    table: Table,
    x: str,
    column: str,
    cited: Sequence[ReportEvidence],
    numbered: dict[str, int],
) -> ReportChart | None:
    dated = all(when(str(row.get(x, ""))) for row in table.rows)
    plot = chart_of(table.rows, ChartSpec(type="line" if dated else "bar", x=x, y=column))
    if isinstance(plot, str):
        return None
    parts = [table.parts[i] for i in plot.rows]
    return ReportChart(
        id=id,
        section=section.id,
        kind=plot.kind,
        title=plot.title,
        x=plot.x,
        y=plot.y,
        labels=plot.labels,
        series=plot.series,
        rows=tuple(
            ChartRow(
                source=table.source, start=p.start, end=p.end, cited=any(_holds(e, table.source, p) for e in cited)
            )
            for p in parts
        ),
        numbers=(numbered[table.source],),
        notes=plot.notes,
    )
