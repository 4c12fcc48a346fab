"""Rows and a wish become a chart's data, or the reason why there is nothing to draw. Nothing in a wish is executed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from marg_ray.report.model import ChartSeries
from marg_ray.text import clean_text, one_line

MOST_LABELS = 24
MOST_SERIES = 6
Kind = Literal["bar", "line", "scatter"]
_NUMBER = re.compile(r"[-+−]?\s*(?:\d{1,3}(?:[,. \u00a0\u202f'’]\d{3})+|\d+)(?:[.,]\d+)?")
_AROUND = re.compile(r"(?:[~≈<>≤≥]|ca?\.|about)?\s*(?:US)?[$€£¥]?|\s*(?:\[\w{1,3}\]|[*†‡%])*", re.IGNORECASE)
_NOTHING = frozenset({"", "-", "–", "—", "n/a", "na", "none", "null", "nil", "unknown", "?", "..", "…"})
_DAY = re.compile(
    r"(?P<y>1[5-9]\d\d|20\d\d|21\d\d)(?:-(?P<m>0[1-9]|1[0-2])(?:-(?P<d>0[1-9]|[12]\d|3[01]))?|-?Q(?P<q>[1-4]))?"
)

Cell = str | float | int | bool | None
Row = Mapping[str, Cell]


class ChartSpec(BaseModel):
    """A wish for a chart. Fields that are not known are dropped."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str = "bar"
    x: str
    y: str | tuple[str, ...]
    title: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.y,) if isinstance(self.y, str) else self.y


@dataclass(frozen=True)
class Plot:
    """What a chart shows. `rows` are the positions of the rows that its labels stand for."""

    kind: Kind
    title: str
    x: str
    y: str
    labels: tuple[str, ...]
    series: tuple[ChartSeries, ...]
    rows: tuple[int, ...]
    notes: tuple[str, ...] = ()


def parse_spec(wish: object) -> ChartSpec | str:
    """A model's wish, checked; a text that says what is wrong with it otherwise."""
    try:
        return ChartSpec.model_validate_json(wish) if isinstance(wish, str | bytes) else ChartSpec.model_validate(wish)
    except ValidationError:
        return "the wish for a chart is no chart specification"


def chart_of(rows: Sequence[Row], spec: ChartSpec) -> Plot | str:
    """The data of the chart that `spec` asks for, or a sentence that says why there is none.

    Numbers written as text are read, dates are put in order, and what cannot be drawn is left out and named.
    """
    columns = dict.fromkeys(key for row in rows for key in row)
    if not rows:
        return "there are no rows to draw"
    for name in (spec.x, *spec.columns):
        if name not in columns:
            return f"there is no column {name!r}; the columns are {', '.join(map(repr, columns))}"
    if spec.type not in ("bar", "line", "scatter", "pie"):
        return f"{spec.type!r} is no kind of chart; bar, line and scatter are"
    if spec.x in spec.columns:
        return f"{spec.x!r} cannot be drawn against itself"
    notes: list[str] = []
    kind: Kind = "bar"
    if spec.type == "pie":
        notes.append("bars instead of a pie: lengths can be compared")
    elif spec.type == "line":
        kind = "line"
    elif spec.type == "scatter":
        kind = "scatter"
    picked = spec.columns[:MOST_SERIES]
    if len(spec.columns) > MOST_SERIES:
        notes.append(f"only the first {MOST_SERIES} of {len(spec.columns)} columns are drawn")
    values = {name: numbers([row.get(name) for row in rows]) for name in picked}
    kept = [i for i in range(len(rows)) if any(values[name][i] is not None for name in picked)]
    notes += _left_out(rows, spec, kept)
    if len(kept) < 2:
        return "there are fewer than two values to draw"
    labels = [label(row.get(spec.x)) for row in rows]
    if kind == "scatter" and None in numbers([rows[i].get(spec.x) for i in kept]):
        kind = "bar"
        notes.append("bars instead of points: the labels are no numbers")
    kept, dated = _ordered(kept, labels)
    if not dated and kind == "bar" and len(kept) > MOST_LABELS:
        kept, more = _largest(kept, values[picked[0]]), len(kept) - MOST_LABELS
        notes.append(f"the {MOST_LABELS} largest are drawn, {more} more are not")
    elif len(kept) > 20 * MOST_LABELS:
        return f"{len(kept)} points are too many for a chart"
    return Plot(
        kind=kind,
        title=title_of(spec.title) or f"{title_of(', '.join(picked))} by {title_of(spec.x)}",
        x=title_of(spec.x),
        y=title_of(picked[0]) if len(picked) == 1 else "",
        labels=tuple(labels[i] for i in kept),
        series=tuple(ChartSeries(name=title_of(n), values=tuple(values[n][i] for i in kept)) for n in picked),
        rows=tuple(kept),
        notes=tuple(notes),
    )


def numbers(cells: Sequence[Cell]) -> list[float | None]:
    """A column's numbers, None where a cell is none. One reading of commas and points holds for the whole column."""
    written = [_written(c) for c in cells]
    decimal_comma = any(w and re.search(r"\d,(?:\d{1,2}|\d{4,})$", w) for w in written) and not any(
        w and re.search(r",\d{3}(?:\D|$)", w) and "." in w and w.rindex(".") > w.rindex(",") for w in written
    )
    return [_number(c, w, decimal_comma=decimal_comma) for c, w in zip(cells, written, strict=True)]


def label(cell: Cell) -> str:
    return title_of(f"{cell:g}" if isinstance(cell, float) else "" if cell is None else str(cell)) or "(none)"


def title_of(text: str) -> str:
    return one_line(clean_text(text))[:120]


def when(text: str) -> tuple[int, int, int] | None:
    """A date that a label writes as ISO 8601 does, or as a year's quarter, as (year, month, day)."""
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return None
    month = int(found["q"]) * 3 - 2 if found["q"] else int(found["m"] or 1)
    return int(found["y"]), month, int(found["d"] or 1)


def _written(cell: Cell) -> str:
    """The figure in a cell's text, where there is nothing else in it but a unit sign."""
    if not isinstance(cell, str) or cell.strip().casefold() in _NOTHING:
        return ""
    found = _NUMBER.search(cell)
    if found is None or len(cell) > 40:
        return ""
    before, after = cell[: found.start()], cell[found.end() :]
    return found[0] if _AROUND.fullmatch(before) and _AROUND.fullmatch(after) else ""


def _number(cell: Cell, written: str, *, decimal_comma: bool) -> float | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, int | float):
        return float(cell) if math.isfinite(cell) else None
    if not written:
        return None
    plain = re.sub(r"[ \u00a0\u202f'’]", "", written).replace("−", "-")
    plain = plain.replace(".", "").replace(",", ".") if decimal_comma else plain.replace(",", "")
    try:
        return float(plain)
    except ValueError:  # "1.234.567"
        return float(plain.replace(".", "")) if plain.replace(".", "").lstrip("+-").isdigit() else None


def _left_out(rows: Sequence[Row], spec: ChartSpec, kept: Sequence[int]) -> list[str]:
    gone = [i for i in range(len(rows)) if i not in set(kept)]
    if not gone:
        return []
    names = [f"{label(rows[i].get(spec.x))} ({label(rows[i].get(spec.columns[0]))})" for i in gone[:5]]
    more = f" and {len(gone) - 5} more" if len(gone) > 5 else ""
    return [f"left out, for want of a number: {', '.join(names)}{more}"]


def _ordered(kept: list[int], labels: Sequence[str]) -> tuple[list[int], bool]:
    """Rows in the order of their dates, where every label is one; else as they come."""
    dates = [when(labels[i]) for i in kept]
    if None in dates:
        return kept, False
    return [i for _, i in sorted(zip(dates, kept, strict=True), key=lambda pair: (pair[0] or (0, 0, 0), pair[1]))], True


def _largest(kept: list[int], values: Sequence[float | None]) -> list[int]:
    return sorted(kept, key=lambda i: -(values[i] if values[i] is not None else -math.inf))[:MOST_LABELS]  # type: ignore[operator]
