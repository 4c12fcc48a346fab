"""Figures: what is counted is what the log and the ledger say, and every name and label is one of the table."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from marg_ray.messages import DraftGrounded, TaskFailed
from marg_ray.models.tasks import ExtractClaims
from marg_ray.models.testing import CannedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.state import role_of
from marg_ray.telemetry import exposition as exposing
from marg_ray.telemetry.events import stage_of
from marg_ray.telemetry.exposition import exposition
from marg_ray.telemetry.figures import FIGURES, METRICS, Figures, Taken
from tests.flow import TIDES, World
from tests.unit.test_metrics import invented

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "marg-ray.json"


def grown(before: Taken) -> Counter[tuple[str, tuple[str, ...]]]:
    """How much every counter, and every histogram's number of values, has grown."""
    now = FIGURES.taken()
    found = Counter({place: value - before.values.get(place, 0.0) for place, value in now.values.items()})
    for place, spread in now.spreads.items():
        found[place] = sum(spread.counts) - sum(before.spreads[place].counts if place in before.spreads else ())
    return +found


async def test_tasks_sentences_and_sessions_are_those_of_the_log(tmp_path: Path) -> None:
    before = FIGURES.taken()
    world = World(tmp_path)
    state = await world.ask()
    found = grown(before)
    messages = [e.message for e in await world.store.read("S")]
    answers = Counter((str(role_of(m)), stage_of(m), "done") for m in messages if role_of(m) is not None)
    assert {k: v for (name, k), v in found.items() if name == "marg_tasks_total"} == answers
    assert sum(v for (name, _), v in found.items() if name == "marg_task_seconds") == answers.total()
    verdicts = Counter(v.verdict for m in messages if isinstance(m, DraftGrounded) for v in m.grounding.verdicts)
    assert {k[0]: v for (name, k), v in found.items() if name == "marg_sentences_total"} == verdicts
    assert state.report is not None
    assert found["marg_sessions_started_total", ("interactive",)] == 1
    assert found["marg_sessions_ended_total", (state.report.status,)] == 1
    assert found["marg_session_seconds", (state.report.status,)] == 1


async def test_calls_tokens_and_pages_are_those_of_the_ledger(tmp_path: Path) -> None:
    before = FIGURES.taken()
    world = World(tmp_path)
    await world.ask()
    found = grown(before)
    rows = await world.store.calls("S")
    model = [row for row in rows if row.call.kind == "model"]
    name = world.model.name
    assert found["marg_model_calls_total", ("only", name, "ok")] == sum(row.usage.calls for row in model)
    for direction in ("in", "out"):
        tokens = sum(getattr(row.usage, f"tokens_{direction}") for row in model)
        assert found["marg_model_tokens_total", ("only", name, direction)] == tokens > 0
    searches = sum(row.call.kind == "search" for row in rows)
    assert sum(v for (n, k), v in found.items() if n == "marg_searches_total" and k[1] == "answered") == searches
    assert found["marg_fetches_total", ("came",)] == len(TIDES) == found["marg_fetch_seconds", ()]
    granted = Counter(row.call.kind for row in rows)
    assert {
        k[0]: found["marg_ledger_calls_total", (k[0], "granted")] for (n, k) in found if n == "marg_ledger_calls_total"
    } == granted


async def test_what_was_raised_to_the_strong_tier_is_counted(tmp_path: Path) -> None:
    before = FIGURES.taken()
    fast, strong = CannedModel({ExtractClaims: invented}, name="f"), CannedModel(name="s")
    await World(tmp_path, model=TieredModel(fast, strong)).ask()
    found, raised = grown(before), strong.count()["ExtractClaims"]
    assert found["marg_escalations_total", ("ok",)] == raised > 0
    assert found["marg_model_calls_total", ("fast", "f", "useless")] == raised
    assert found["marg_model_calls_total", ("strong", "s", "ok")] == len(strong.calls)


async def test_failures_and_refusals_are_counted(tmp_path: Path) -> None:
    before = FIGURES.taken()
    world = World(tmp_path, broken=frozenset({"analyse"}))
    await world.ask(limits={"searches": 1})
    found = grown(before)
    failed = Counter(m.stage for e in await world.store.read("S") if isinstance(m := e.message, TaskFailed))
    counted = Counter({k[1]: v for (name, k), v in found.items() if name == "marg_tasks_total" and k[2] == "failed"})
    assert counted == failed
    assert found["marg_ledger_refusals_total", ("searches",)] > 0


def test_a_histogram_counts_each_value_once() -> None:
    figures = Figures()
    for value in (0.001, 0.01, 0.0100001, 99.0, 5000.0):
        figures.observe("marg_model_seconds", value, "m")
    (family,) = text_string_to_metric_families(exposition({"a": figures.taken()}).decode())
    buckets = {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
    assert (buckets["0.01"], buckets["0.03"], buckets["100.0"], buckets["+Inf"]) == (2, 3, 4, 5)
    assert {s.name: s.value for s in family.samples if "le" not in s.labels}["marg_model_seconds_sum"] == pytest.approx(
        5099.0210001
    )


def test_figures_of_several_processes_stay_apart() -> None:
    one, two = Figures(), Figures()
    one.count("marg_fetches_total", "came", by=3)
    two.count("marg_fetches_total", 'odd "name"\n', by=2)
    (family,) = text_string_to_metric_families(exposition({"worker:0": one.taken(), "worker:1": two.taken()}).decode())
    assert {(s.labels[exposing.OWNER], s.labels["outcome"]): s.value for s in family.samples} == {
        ("worker:0", "came"): 3,
        ("worker:1", 'odd "name"\n'): 2,
    }


def test_figures_cross_processes() -> None:
    import pickle

    figures = Figures()
    figures.count("marg_fetches_total", "came")
    figures.observe("marg_fetch_seconds", 1.0)
    taken = figures.taken()
    figures.count("marg_fetches_total", "came")
    assert pickle.loads(pickle.dumps(taken)) == taken
    assert taken.values == {("marg_fetches_total", ("came",)): 1.0}


# ---- names


def counted_in_the_code() -> list[tuple[str, str, int, bool]]:
    """Each place that counts: file, metric, number of labels, and whether that number is known."""
    found = []
    for path in (ROOT / "marg_ray").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            named = node.args and isinstance(node.args[0], ast.Constant) and str(node.args[0].value).startswith("marg_")
            if node.func.attr in ("count", "observe", "set", "get") and named:
                taken = 2 if node.func.attr in ("observe", "set") else 1
                starred = any(isinstance(a, ast.Starred) for a in node.args)
                found.append((path.name, str(node.args[0].value), len(node.args) - taken, not starred))  # type: ignore[attr-defined]
    return found


def test_every_figure_is_in_the_table_with_its_labels() -> None:
    places = counted_in_the_code()
    assert len(places) > 25
    assert [(file, name) for file, name, _, _ in places if name not in METRICS] == []
    assert [(f, n, labels) for f, n, labels, sure in places if sure and labels != len(METRICS[n].labels)] == []
    assert set(METRICS) - {name for _, name, _, _ in places} <= {"marg_actor_up"}, "nobody counts it"


def test_names_are_as_prometheus_wants_them() -> None:
    for metric in METRICS.values():
        assert re.fullmatch(r"marg_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert exposing.OWNER not in metric.labels


# ---- the dashboard


def queries() -> list[str]:
    board = json.loads(DASHBOARD.read_text("utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def series() -> dict[str, set[str]]:
    """What Prometheus stores of each metric, and its labels."""
    found: dict[str, set[str]] = {}
    for m in METRICS.values():
        labels = {*m.labels, exposing.OWNER}
        names = {f"{m.name}{end}" for end in ("_bucket", "_sum", "_count")} if m.kind == "histogram" else {m.name}
        found |= {name: labels | ({"le"} if name.endswith("_bucket") else set()) for name in names}
    return found


def test_the_dashboard_asks_for_what_there_is() -> None:
    known = series()
    assert len(queries()) > 25
    for query in queries():
        names = re.findall(r"\bmarg_\w+", query)
        assert names, query
        assert set(names) <= set(known), query
        labels = set().union(*(known[name] for name in names))
        grouped = {x.strip() for group in re.findall(r"\bby \(([^)]*)\)", query) for x in group.split(",")}
        chosen = {x for block in re.findall(r"\{([^}]*)\}", query) for x in re.findall(r"(\w+)\s*[=!]~?", block)}
        assert grouped | chosen <= labels, query


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for query in queries() for name in re.findall(r"\bmarg_\w+", query)}
    hidden = [m.name for m in METRICS.values() if not any(name.startswith(m.name) for name in shown)]
    assert hidden == []


def test_the_dashboard_is_whole() -> None:
    board: dict[str, Any] = json.loads(DASHBOARD.read_text("utf-8"))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    cells = [
        (x, y)
        for p in board["panels"]
        for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
        for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells), "panels lie over each other"
    assert all(x < 24 for x, _ in cells)
    for panel in board["panels"]:
        legends = [t["legendFormat"] for t in panel.get("targets", ())]
        assert all(re.fullmatch(r"[^{}]*(\{\{\w+\}\}[^{}]*)*", legend) for legend in legends)
