"""A chart beside its figures: what every format says of it besides the picture."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from marg_ray.report.charts.drawing import svg
from marg_ray.report.model import Report, ReportChart

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChartView:
    """`picture` is a data: address, or empty where it could not be drawn; `header` and `rows` hold all it shows."""

    id: str
    title: str
    alt: str
    picture: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    notes: tuple[str, ...]
    highlighted: bool  # some rows are darker: those that the text cites


def charts_in(report: Report, section: str) -> tuple[ReportChart, ...]:
    return tuple(c for c in report.charts if c.section == section)


def view_of(chart: ReportChart) -> ChartView:
    """Blocking: draws."""
    cited = sum(row.cited for row in chart.rows)
    return ChartView(
        id=f"chart--{chart.id}",
        title=chart.title,
        alt=description(chart),
        picture=_picture(chart),
        header=(chart.x, *(s.name for s in chart.series)),
        rows=tuple(rows_of(chart)),
        numbers=chart.numbers,
        notes=chart.notes,
        highlighted=chart.kind == "bar" and len(chart.series) == 1 and 0 < cited < len(chart.rows),
    )


def rows_of(chart: ReportChart) -> Iterator[tuple[str, ...]]:
    """The figures that a chart shows, label first."""
    for at, label in enumerate(chart.labels):
        yield (label, *("" if (v := s.values[at]) is None else f"{v:,.10g}" for s in chart.series))


def description(chart: ReportChart) -> str:
    """For those who do not see the picture: what it is, and its extremes. Its figures stand beside it."""
    first = chart.series[0]
    known = [(v, label) for v, label in zip(first.values, chart.labels, strict=True) if v is not None]
    low, high = min(known), max(known)
    kind = {"bar": "Bar chart", "line": "Line chart", "scatter": "Scatter plot"}[chart.kind]
    return (
        f"{kind}: {chart.title}. {len(chart.labels)} values, "
        f"from {low[0]:,.6g} ({low[1]}) to {high[0]:,.6g} ({high[1]})."
    )


def _picture(chart: ReportChart) -> str:
    try:
        return "data:image/svg+xml;base64," + base64.b64encode(svg(chart).encode()).decode()
    except Exception:
        log.warning("chart %s could not be drawn", chart.id, exc_info=True)
        return ""
