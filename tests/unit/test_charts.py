from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.records import ReportStatus, SourceKind, Verdict
from marg_ray.report.charts import ChartSpec, Plot, chart_of, charts_of, parse_spec, png, svg, unprintable
from marg_ray.report.charts.choosing import tables_of
from marg_ray.report.charts.data import numbers
from marg_ray.report.html import to_html
from marg_ray.report.markdown import to_markdown
from marg_ray.report.model import (
    Reference,
    Report,
    ReportBlock,
    ReportChart,
    ReportEvidence,
    ReportSection,
    ReportSentence,
    ReportSource,
)
from marg_ray.sources.parse import parse
from tests.flow import World
from tests.shared import CASES, needs_shared

LIBRARY = Path(__file__).resolve().parents[2] / "examples" / "library"
STATIONS = LIBRARY / "tidal-stations.csv"


def drawn(plot: Plot) -> ReportChart:
    return ReportChart(
        id="c1",
        section="s1",
        kind=plot.kind,
        title=plot.title,
        x=plot.x,
        y=plot.y,
        labels=plot.labels,
        series=plot.series,
        notes=plot.notes,
    )


def plotted(rows: list[dict[str, Any]], **spec: Any) -> Plot:
    plot = chart_of(rows, ChartSpec(**spec))
    assert isinstance(plot, Plot), plot
    return plot


# ---- data


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1,240.50", "320", "n/a"], [1240.5, 320.0, None]),
        (["1.240,50", "320"], [1240.5, 320.0]),
        (["1,5", "2,25"], [1.5, 2.25]),
        (["1 234", "12 345 678"], [1234.0, 12345678.0]),
        (["12 %", "€ 5", "~7", "3 [a]"], [12.0, 5.0, 7.0, 3.0]),
        (["2 of 3", "see note 4", "-", ""], [None, None, None, None]),
        ([1, 2.5, None, True, float("nan")], [1.0, 2.5, None, None, None]),
        (["−4", "+4", "-4.5"], [-4.0, 4.0, -4.5]),
    ],
)
def test_a_column_of_text_is_read_as_numbers(cells: list[Any], expected: list[float | None]) -> None:
    assert numbers(cells) == expected


def test_dates_go_from_left_to_right_and_other_labels_stay_as_they_come() -> None:
    rows = [{"d": "2024-Q1", "v": 3}, {"d": "2023-Q4", "v": 2}, {"d": "2024-Q2", "v": 5}]
    assert plotted(rows, type="line", x="d", y="v").labels == ("2023-Q4", "2024-Q1", "2024-Q2")
    rows = [{"d": "b", "v": 3}, {"d": "a", "v": 2}]
    assert plotted(rows, type="bar", x="d", y="v").labels == ("b", "a")


def test_what_cannot_be_drawn_is_said() -> None:
    rows = [{"a": "x", "b": 1}, {"a": "y", "b": 2}]
    assert "no column 'c'" in str(chart_of(rows, ChartSpec(x="a", y="c")))
    assert "no kind of chart" in str(chart_of(rows, ChartSpec(type="sunburst3d", x="a", y="b")))
    assert "fewer than two" in str(chart_of([{"a": "x", "b": None}, {"a": "y", "b": "n/a"}], ChartSpec(x="a", y="b")))
    assert "no rows" in str(chart_of([], ChartSpec(x="a", y="b")))
    assert isinstance(parse_spec("import os"), str)
    assert isinstance(parse_spec({"y": 3}), str)


CASE = CASES / "SQL-06" / "charts.json"


@needs_shared
@pytest.mark.parametrize("case", json.loads(CASE.read_text()) if CASE.exists() else [], ids=lambda c: c["name"])
def test_rows_and_wishes_that_users_met(case: dict[str, Any], tmp_path: Path) -> None:
    trap = tmp_path / "pwned.txt"
    wish = case["spec"]
    spec = parse_spec(wish.replace("{TMP}", str(tmp_path)) if isinstance(wish, str) else wish)
    plot = spec if isinstance(spec, str) else chart_of(case["rows"], spec)
    name = case["name"]
    if name in ("one-number", "no-rows", "all-null", "unknown-column", "unknown-type", "code-as-spec", "code-in-field"):
        assert isinstance(plot, str)
        assert not trap.exists()
        return
    assert isinstance(plot, Plot)
    picture = svg(drawn(plot))
    assert png(drawn(plot)).startswith(b"\x89PNG")
    match name:
        case "numbers-as-text":
            assert plot.series[0].values == (1240.5, 320.0)
            assert "Gamma" in plot.notes[0]
        case "quarters":
            assert plot.labels == ("2023-Q4", "2024-Q1", "2024-Q2")
        case "month-text-not-dates":
            assert plot.labels == ("1396-01", "1396-02")
        case "dates-unsorted":
            assert plot.series[0].values == (1.0, 2.0, 3.0)
        case "negative-in-pie":
            assert plot.kind == "bar"
            assert "pie" in plot.notes[0]
        case "many-slices":
            assert len(plot.labels) <= 24
            assert "more are not" in plot.notes[-1]
        case "cjk-and-emoji-labels":
            assert "潮汐" in picture, "letters stay letters, for the reader's fonts"
            known = unprintable(drawn(plot))
            assert not known or all(script.isupper() for script in known)


def test_text_is_never_markup_nor_mathematics() -> None:
    rows = [{"a": "<script>alert(1)</script>", "b": 1}, {"a": "$\\frac{1}{0$", "b": 2}]
    picture = svg(drawn(plotted(rows, x="a", y="b")))
    assert "<script" not in picture
    assert "$\\frac{1}{0$" in picture
    assert svg(drawn(plotted(rows, x="a", y="b"))) == svg(drawn(plotted(rows, x="a", y="b")))


# ---- choosing


def stations(tmp_path: Path) -> tuple[Document, str]:
    document = parse(STATIONS.read_bytes(), name=STATIONS.name)
    return document, Snapshots(tmp_path).put(document)


def report_on(document: Document, source: str, said: str, *rows: str) -> Report:
    evidence = []
    for number, row in enumerate(rows):
        start = document.text.index(row)
        end = document.text.index("\n", start)
        quote = document.text[start:end]
        evidence.append(ReportEvidence(id=f"e{number}", source=source, quote=quote, start=start, end=end))
    cited = tuple(e.id for e in evidence)
    sentence = ReportSentence(text=said, citations=cited, numbers=(1,), verdict=Verdict.SUPPORTED)
    section = ReportSection(
        id="s1",
        title="Capacity of the stations",
        sentences=(sentence,),
        blocks=(ReportBlock(kind="paragraph", start=0, end=1),),
    )
    return Report(
        session_id="S",
        question="How large are tidal stations?",
        title="Tidal stations",
        language="en",
        model="extractive",
        status=ReportStatus.PASSED,
        sections=(section,),
        references=(Reference(number=1, source=source),),
        evidence=tuple(evidence),
        sources=(
            ReportSource(
                id=source,
                title="Stations",
                location="tidal-stations.csv",
                kind=SourceKind.LIBRARY,
                fetched_at=datetime(2026, 11, 1, tzinfo=UTC),
            ),
        ),
    )


def test_a_section_that_quotes_a_table_gets_its_column_as_a_chart_bound_to_the_rows(tmp_path: Path) -> None:
    document, source = stations(tmp_path)
    said = "La Rance has a capacity of 240 MW."
    report = report_on(document, source, said, "station: La Rance")
    (chart,) = charts_of(report, lambda _: document)
    assert chart.y == "capacity (MW)"
    assert chart.x == "station"
    assert chart.kind == "bar"
    assert "La Rance" in chart.labels
    for label, row, value in zip(chart.labels, chart.rows, chart.series[0].values, strict=True):
        text = document.text[row.start : row.end]
        assert text.startswith(f"station: {label};")
        assert f"capacity (MW): {value:g}" in text
    assert [label for label, row in zip(chart.labels, chart.rows, strict=True) if row.cited] == ["La Rance"]
    assert chart.numbers == (1,)


def test_a_table_that_the_text_does_not_speak_of_is_not_drawn(tmp_path: Path) -> None:
    document, source = stations(tmp_path)
    report = report_on(document, source, "La Rance is in France.", "station: La Rance")
    assert charts_of(report, lambda _: document) == ()


def test_tables_are_found_in_what_was_parsed() -> None:
    document = parse(STATIONS.read_bytes(), name=STATIONS.name)
    (table,) = tables_of("x", document)
    assert table.columns[:3] == ("station", "country", "type")


# ---- showing


def test_every_text_format_shows_the_figures_and_html_the_picture(tmp_path: Path) -> None:
    document, source = stations(tmp_path)
    report = report_on(document, source, "La Rance has a capacity of 240 MW.", "station: La Rance")
    report = report.model_copy(update={"charts": charts_of(report, lambda _: document)})
    html, markdown = to_html(report), to_markdown(report)
    assert 'src="data:image/svg+xml;base64,' in html
    assert "Bar chart: " in html
    assert "| La Rance | 240 |" in markdown


def test_a_picture_that_cannot_be_drawn_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("marg_ray.report.charts.showing.svg", broken)
    document, source = stations(tmp_path)
    report = report_on(document, source, "La Rance has a capacity of 240 MW.", "station: La Rance")
    html = to_html(report.model_copy(update={"charts": charts_of(report, lambda _: document)}))
    assert "data:image/svg" not in html
    assert '<td dir="auto">240</td>' in html


async def test_charts_that_cannot_be_chosen_cost_themselves_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("marg_ray.actors.formatter.charts_of", broken)
    world = World(tmp_path)
    report = world.report(await world.ask())
    assert report.sentences()
    assert report.charts == ()
    assert [n.kind for n in report.notes if n.kind == "charts"] == ["charts"]
