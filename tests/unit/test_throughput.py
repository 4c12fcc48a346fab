"""The benchmark's parts: servers that ask for one revision, a baseline that walks the whole chain, honest sums."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.critical_path import longest_chain
from benchmarks.rounds import Child, Ran
from benchmarks.simulated_critic import StrictCritic, sent_back
from benchmarks.simulated_search import SimulatedSearch, prose
from benchmarks.throughput import Measured, weights_of
from benchmarks.throughput_case import CASES, READS, SECTIONS
from marg_ray.sources.queries import search_query
from marg_ray.sources.web.searxng import SearxngEngine

REVIEW = json.dumps({"scores": {"accuracy": 0.9, "coverage": 0.9, "clarity": 0.9, "objectivity": 0.9}, "issues": []})


def test_a_review_that_sends_sections_back_fails_on_clarity_alone() -> None:
    idea = json.loads(sent_back(REVIEW, ["s1", "s2"]))
    assert [i["section"] for i in idea["issues"]] == ["s1", "s2"]
    assert all(i["instruction"] and not i["fix_query"] for i in idea["issues"])  # rewriting, not research
    assert [k for k, v in idea["scores"].items() if v < 0.7] == ["clarity"]


def test_prose_is_whole_sentences_and_the_same_again() -> None:
    assert prose(7, 100) == prose(7, 100) != prose(8, 100)
    assert prose(7, 100).endswith(".")
    assert len(prose(7, 100).split()) >= 100


async def test_the_simulated_search_is_read_by_our_engine(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with SimulatedSearch(results=7, log=log) as server:
        engine = SearxngEngine(server.base_url)
        first, second = await engine.search("tidal power", 10), await engine.search("tidal power", 10)
        await engine.close()
    entries: list[Any] = [*first.entries, *second.entries]
    urls = [e["url"] for e in entries]
    assert len(urls) == len(set(urls)) == 14  # nothing twice: every result has to be ranked
    assert [json.loads(line)["query"] for line in log.read_text("utf-8").splitlines()] == ["tidal power"] * 2


def test_questions_and_sub_queries_are_distinct() -> None:
    assert len({c.question for c in CASES}) == len(CASES) >= 62
    asked = [search_query(q) for c in CASES for s in SECTIONS for q in c.queries(s)]
    assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("reading", [False, True])
async def test_the_baseline_walks_the_whole_chain(mode: str, reading: bool) -> None:
    pytest.importorskip("langgraph")
    import aiohttp

    from benchmarks import baseline_langgraph as baseline

    async with StrictCritic(revise=2) as model, SimulatedSearch() as search, aiohttp.ClientSession() as http:
        tools = baseline.Tools(http, model.base_url, search.base_url, None)
        app = getattr(baseline, mode)(tools, reading=reading)
        start = baseline.State(session="x", case=0, found=[], read=[])
        state = await app.ainvoke(start, {"configurable": {"thread_id": "x"}, "recursion_limit": 50})
    asked = Counter(r.task for r in model.requests)
    expected = {"make_plan": 1, "draft_section": 7, "review_report": 2, "summarise_report": 1}
    assert asked == expected | ({"extract_claims": 5 * READS} if reading else {})
    tasks = [task for task, _ in tools.tasks["x"]]
    assert sum("/search/" in t for t in tasks) == 15
    assert tasks.count("x/s1/draft/2") == tasks.count("x/s2/draft/2") == 1
    assert all(f"## {title}" in state["report"] for title in SECTIONS)


async def test_the_baseline_keeps_the_results_that_the_scorer_prefers() -> None:
    import aiohttp

    from benchmarks.baseline_langgraph import KEPT, Tools

    def by_length(_: str, snippets: list[str]) -> list[float]:
        return [float(len(s)) for s in snippets]

    async with SimulatedSearch(results=9) as search, aiohttp.ClientSession() as http:
        found = await Tools(http, "", search.base_url, by_length).search("x", "t", "s1", "q")
    assert len(found) == KEPT
    lengths = [f["relevance"] for f in found]
    assert lengths == sorted(lengths, reverse=True)


def test_a_chain_passes_only_through_what_feeds_what() -> None:
    tasks = ["x/plan/0", "x/s1/search/1.0", "x/s2/search/1.0", "x/s1/draft/1", "x/s2/draft/1", "x/review/1"]
    slow = {"x/plan/0": 1.0, "x/s1/search/1.0": 5.0, "x/s2/draft/1": 4.0, "x/s1/draft/1": 1.0, "x/review/1": 2.0}
    seconds, chain = longest_chain("x", tasks, slow)
    assert seconds == 9.0  # plan, the slow search and its own draft, review: not the other section's draft
    assert chain == ["x/plan/0", "x/s1/search/1.0", "x/s1/draft/1", "x/review/1"]


def line(caller: str, query: str, seconds: float) -> dict[str, Any]:
    return {"caller": caller, "query": query, "start": 10.0, "end": 10.0 + seconds}


def test_waiting_is_counted_by_task_and_searches_without_a_caller_by_query() -> None:
    ran = Ran(session_id="x", tasks=[("x/plan/0", ""), ("x/s1/search/1.0", "tides"), ("x/s1/search/1.1", "waves")])
    model = [line("x/plan/0", "", 1.0), line("x/plan/0", "", 2.0), line("y/plan/0", "", 9.0)]
    searches = [line("", "tides", 0.5), line("x/s1/search/1.1", "waves", 0.25), line("y/s1/search/1.0", "waves", 9.0)]
    assert weights_of(ran, model, searches) == {"x/plan/0": 3.0, "x/s1/search/1.0": 0.5, "x/s1/search/1.1": 0.25}


def test_sessions_that_failed_did_not_end() -> None:
    figures: dict[str, Any] = {"calls": {}, "chain": [], "words": 0, "cpu": {}, "memory": {"all": 0.0}}
    m = Measured(
        system="x", sessions=4, wall_s=60.0, walls=[4.0, 1.0, 3.0, 2.0], chains=[1.0], failed=["boom"], **figures
    )
    assert m.ended == 3
    assert (m.quantile(0.0), m.quantile(0.5), m.quantile(1.0)) == (1.0, 3.0, 4.0)


def test_a_child_that_dies_is_told_as_such(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text("print('not json'); raise SystemExit(3)")
    with pytest.raises(RuntimeError, match="ended with 3"):
        Child(str(script))
