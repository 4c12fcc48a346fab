"""Draws a chart's data as SVG or PNG with matplotlib. Text stays text: no mathematics, no markup, no missing glyphs."""

from __future__ import annotations

import io
import threading
import unicodedata
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from marg_ray.report.model import ReportChart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CITED, OTHER = "#1f5fa8", "#a9c3de"  # told apart by lightness as well, for print and for the colour-blind
COLOURS = ("#1f5fa8", "#b35806", "#1b7837", "#762a83", "#666666", "#a6611a")
WIDTH, ROW, LEAST = 6.6, 0.3, 2.4  # inches
_LOCK = threading.Lock()  # matplotlib's settings are the process's
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Noto Naskh Arabic",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Emoji",
    "Symbola",
)


def svg(chart: ReportChart) -> str:
    """The chart as an SVG element. Its letters are text, set in the reader's fonts. Blocking; the same every time."""
    settings = {"svg.fonttype": "none", "svg.hashsalt": f"marg {chart.id}"}
    text = _render(chart, "svg", settings, metadata={"Date": None, "Creator": None}).decode()
    return text[text.index("<svg") :]


def png(chart: ReportChart, dpi: int = 150) -> bytes:
    """The chart as a PNG picture. Letters that no font here has are named by `unprintable`. Blocking."""
    return _render(chart, "png", {}, dpi=dpi, metadata={"Software": None})


def unprintable(chart: ReportChart) -> tuple[str, ...]:
    """The scripts of letters that no font on this machine has, as Unicode names them ("CJK", "ARABIC", ...)."""
    known = _letters()
    text = "".join((chart.title, chart.x, chart.y, *chart.labels, *(s.name for s in chart.series)))
    missing = {
        c for c in text if ord(c) not in known and not c.isspace() and unicodedata.category(c) not in ("Mn", "Cf")
    }
    return tuple(sorted({unicodedata.name(c, "UNKNOWN").split()[0] for c in missing}))


def _render(chart: ReportChart, format: str, settings: dict[str, Any], **options: Any) -> bytes:
    import matplotlib

    fixed = {"font.family": list(_families()), "font.size": 9, "text.parse_math": False, "axes.unicode_minus": True}
    out = io.BytesIO()
    with _LOCK, matplotlib.rc_context({**fixed, **settings}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that no font has are told by `unprintable`
        _figure(chart).savefig(out, format=format, bbox_inches="tight", pad_inches=0.1, **options)
    return out.getvalue()


def _figure(chart: ReportChart) -> Figure:
    from matplotlib.figure import Figure

    bars = chart.kind == "bar"
    rows = len(chart.labels) * (len(chart.series) if bars else 0)
    figure = Figure(figsize=(WIDTH, max(LEAST, ROW * rows + 0.9) if bars else 3.2))
    axes = figure.subplots()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _bars(axes, chart) if bars else _points(axes, chart)
    if len(chart.series) > 1:
        axes.legend(frameon=False)
    return figure


def _bars(axes: Any, chart: ReportChart) -> None:
    """Horizontal bars, the first row on top; rows that the section rests on are darker."""
    count = len(chart.series)
    height = 0.8 / count
    cited = [row.cited for row in chart.rows] or [True] * len(chart.labels)
    for number, series in enumerate(chart.series):
        values = [0.0 if v is None else v for v in series.values]
        at = [i + number * height for i in range(len(values))]
        own = [CITED if c else OTHER for c in cited] if count == 1 else COLOURS[number]
        bars = axes.barh(at, values, height=height * 0.92, color=own, label=series.name)
        axes.bar_label(bars, labels=["" if v is None else f"{v:,.6g}" for v in series.values], padding=3, fontsize=8)
    axes.set_yticks([i + (count - 1) * height / 2 for i in range(len(chart.labels))], [_short(n) for n in chart.labels])
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel(chart.y)
    axes.axvline(0, color="#444444", linewidth=0.8)
    axes.tick_params(axis="y", length=0)


def _points(axes: Any, chart: ReportChart) -> None:
    from matplotlib.ticker import MaxNLocator

    from marg_ray.report.charts.data import numbers

    scatter = chart.kind == "scatter"
    across = numbers(list(chart.labels)) if scatter else list(range(len(chart.labels)))
    for number, series in enumerate(chart.series):
        values = [float("nan") if v is None else v for v in series.values]
        style = {"marker": "o", "markersize": 4, "color": COLOURS[number], "label": series.name}
        axes.plot(across, values, linestyle="-" if chart.kind == "line" else "none", **style)
    step = max(1, len(across) // 12)
    if not scatter:
        names = [_short(n) for n in chart.labels[::step]]
        axes.set_xticks(across[::step], names, rotation=30 if len(across) > 6 else 0)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)


def _short(label: str) -> str:
    return label if len(label) <= 36 else label[:35].rstrip() + "…"


@cache
def _families() -> tuple[str, ...]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return tuple(name for name in _FAMILIES if name in there) or ("sans-serif",)


@cache
def _letters() -> frozenset[int]:
    """The code points that one of the fonts in use has."""
    from matplotlib import font_manager

    known: set[int] = set()
    for name in _families():
        known |= set(font_manager.get_font(font_manager.findfont(name)).get_charmap())
    return frozenset(known)
