from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from marg_ray.memory.cache import (
    CHANGES_NO_ANSWER,
    Asked,
    KeptReport,
    QueryCache,
    answer_settings,
    normalised,
    query_key,
    source_fingerprint,
    worth_keeping,
)
from marg_ray.messages import (
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    ReportReady,
    ReviewDecided,
    SessionStarted,
    Steered,
    TaskFailed,
)
from marg_ray.records import (
    Depth,
    GateMode,
    Limits,
    OnTimeout,
    OutlineEntry,
    Priority,
    ReportStatus,
    Request,
    RequestClass,
    Role,
    SourceChoice,
)
from marg_ray.settings import AdmissionSettings, CacheSettings, LibrarySettings, ModelSettings, SearchSettings, Settings
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import CacheRow, Store
from marg_ray.store.sql import SqlStore

REPORT = KeptReport(session_id="S1", artefact="a" * 64)
OPTIONS: dict[str, Any] = {"model": "extractive", "sources": "f"}


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "memory":
        opened = MemoryStore()
    else:
        opened = await SqlStore.open(f"sqlite+aiosqlite:///{tmp_path / 'marg.db'}")
    yield opened
    await opened.close()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "deep").mkdir(parents=True)
    (folder / "tides.txt").write_text("Tides make power.")
    (folder / "deep" / "wind.md").write_text("# Wind")
    return folder


def request_over(docs: Path, question: str = "How do tides make power?", **fields: Any) -> Request:
    return Request(question=question, sources=SourceChoice(folders=(str(docs),), web=False), **fields)


def a_cache(store: Any, tmp_path: Path, report_s: float = 3600.0) -> QueryCache:
    settings = Settings(home=tmp_path / "home", cache=CacheSettings(report_s=report_s))
    return QueryCache(store, settings, model="extractive")


def finished(status: ReportStatus = ReportStatus.PASSED, *before: Message) -> list[Message]:
    started = SessionStarted(task_id="S1", session_id="S1", request=Request(question="q"), started_at="")
    return [started, *before, ReportReady(task_id="S1/format", artefact="a" * 64, status=status)]


# ---- the key


@pytest.mark.parametrize(
    "same",
    [
        "how do tides make power",
        "  How do\ttides\nmake  power ?? ",
        "HOW DO TIDES MAKE POWER.",
        "Ｈｏｗ do tides make power？",
        "How do tides make power…",
    ],
)
def test_spelling_that_makes_no_difference_is_one_question(same: str) -> None:
    assert query_key(Request(question=same), **OPTIONS) == query_key(
        Request(question="How do tides make power?"), **OPTIONS
    )


@pytest.mark.parametrize(
    "other", ["How do tides make powder?", "How do tides make power today?", "C++ or C?", "é or e"]
)
def test_other_words_are_another_question(other: str) -> None:
    assert normalised(other) != normalised("How do tides make power?")
    assert normalised("What is C++?") != normalised("What is C?")


def test_normalising_twice_changes_nothing() -> None:
    for text in ("ﬁnal Straße?", "ΌΣΟΣ", "İstanbul?", "①"):
        assert normalised(normalised(text)) == normalised(text)


CHANGES: dict[str, Any] = {
    "depth": Depth.DEEP,
    "request_class": RequestClass.QUICK_RESEARCH,
    "focus_areas": ("cost",),
    "outline": (OutlineEntry(title="Cost"),),
    "language": "de",
    "sources": SourceChoice(web=False),
    "provided": ("1" * 64,),
    "strict": True,
    "gate": GateMode.AUTO,
    "approve_plan": True,
    "max_iterations": 1,
    "owner": "somebody else",  # never sees another's entries
}
SAME: dict[str, Any] = {
    "priority": Priority.BATCH,
    "limits": Limits(usd=1.0),
    "on_timeout": OnTimeout.CANCEL,
    "gate_timeout_s": 5.0,
    "fresh": True,
}


def test_every_field_of_a_request_is_accounted_for() -> None:
    assert {*CHANGES, *SAME, "question"} == set(Request.model_fields)
    assert {*SAME, "owner"} == CHANGES_NO_ANSWER


@pytest.mark.parametrize("field", CHANGES)
def test_a_field_that_changes_the_answer_changes_the_key(field: str) -> None:
    plain, changed = Request(question="q"), Request(question="q", **{field: CHANGES[field]})
    assert query_key(plain, **OPTIONS) != query_key(changed, **OPTIONS)


@pytest.mark.parametrize("field", SAME)
def test_a_field_that_does_not_leaves_the_key_alone(field: str) -> None:
    plain, changed = Request(question="q"), Request(question="q", **{field: SAME[field]})
    assert query_key(plain, **OPTIONS) == query_key(changed, **OPTIONS)


def test_model_sources_and_settings_are_in_the_key() -> None:
    request = Request(question="q")
    keys = {
        query_key(request, model=m, sources=f, settings=s) for m in ("a", "b") for f in ("x", "y") for s in ("1", "2")
    }
    assert len(keys) == 8


def test_the_order_of_folders_makes_no_difference() -> None:
    a, b = (Request(question="q", sources=SourceChoice(folders=f)) for f in (("/x", "/y"), ("/y", "/x", "/y")))
    assert query_key(a, **OPTIONS) == query_key(b, **OPTIONS)


def test_settings_of_the_answer_count_and_settings_of_its_making_do_not(tmp_path: Path) -> None:
    def of(**areas: Any) -> str:
        return answer_settings(Settings(home=tmp_path, **areas))

    plain = of()
    assert plain == of(models=ModelSettings(timeout_s=1, retries=0, concurrency=3))
    assert plain == of(admission=AdmissionSettings(sessions=3), cache=CacheSettings(report_s=1))
    assert plain == of(models=ModelSettings(api_key="secret"))  # type: ignore[arg-type]
    assert plain != of(models=ModelSettings(temperature=1.0))
    assert plain != of(models=ModelSettings(tiers={"all": "strong"}))
    assert plain != of(library=LibrarySettings(passage_words=60))
    assert plain != of(search=SearchSettings(engines=("ddgs",)))


# ---- the sources


def _touch(docs: Path) -> None:
    os.utime(docs / "tides.txt", ns=(1, 1))


SOURCE_CHANGES: dict[str, Callable[[Path], object]] = {
    "a file grows": lambda docs: (docs / "tides.txt").write_text("Tides make power, twice a day."),
    "a file's time": _touch,
    "a new file": lambda docs: (docs / "deep" / "new.txt").write_text("more"),
    "a file goes": lambda docs: (docs / "deep" / "wind.md").unlink(),
    "a file is renamed": lambda docs: (docs / "tides.txt").rename(docs / "seas.txt"),
    "a file is too large to be read": lambda docs: (docs / "big.txt").write_bytes(b"x" * 3_000_000),
}


def fingerprint(docs: Path, *provided: str) -> str:
    return source_fingerprint([str(docs)], provided, max_bytes=2_000_000, home=docs.parent / "home")


@pytest.mark.parametrize("change", SOURCE_CHANGES)
def test_what_changes_in_the_folders_changes_the_fingerprint(docs: Path, change: str) -> None:
    before = fingerprint(docs)
    assert fingerprint(docs) == before
    SOURCE_CHANGES[change](docs)
    assert fingerprint(docs) != before


@pytest.mark.parametrize("name", [".hidden.txt", "picture.raw", ".git/config.txt"])
def test_files_that_nobody_reads_do_not(docs: Path, name: str) -> None:
    before = fingerprint(docs)
    (docs / name).parent.mkdir(exist_ok=True)
    (docs / name).write_text("x")
    assert fingerprint(docs) == before


def test_provided_text_is_in_the_fingerprint(docs: Path) -> None:
    assert fingerprint(docs, "a") != fingerprint(docs, "b") != fingerprint(docs)


# ---- what is kept


@pytest.mark.parametrize("status", ReportStatus)
def test_only_finished_reports_are_worth_keeping(status: ReportStatus) -> None:
    assert worth_keeping(finished(status)) is (status in {ReportStatus.PASSED, ReportStatus.QUALITY_WARNING})


@pytest.mark.parametrize(
    "met",
    [
        Steered(task_id="t", action="ban", location="example.org"),
        PlanEdited(task_id="t", revision=1, sections=()),
        PlanDecided(task_id="t", approved=True),
        ReviewDecided(task_id="t", decision="approve"),
        LimitReached(task_id="t", limit="seconds", detail="", hard=False),
        TaskFailed(task_id="t", role=Role.RESEARCHER, stage="search", error="SearchUnavailable", detail=""),
    ],
    ids=lambda m: m.kind,
)
def test_a_report_that_the_request_alone_does_not_explain_is_not(met: Message) -> None:
    assert not worth_keeping(finished(ReportStatus.PASSED, met))


def test_a_session_without_a_report_is_not() -> None:
    assert not worth_keeping(finished()[:1])


# ---- asking again


async def test_the_second_ask_finds_the_report(store: Store, docs: Path, tmp_path: Path) -> None:
    cache, request = a_cache(store, tmp_path), request_over(docs)
    first = await cache.ask(request)
    assert first.kept is None
    assert await cache.keep(request, first, finished(), REPORT)
    again = await cache.ask(request_over(docs, "how do tides make power"))
    assert again.kept == REPORT
    assert (cache.space.counts.hits, cache.space.counts.misses) == (1, 1)
    assert [(c.space, c.entries, c.hits) for c in await store.cache_counts()] == [("report", 1, 1)]
    other_process = a_cache(store, tmp_path)
    assert (await other_process.ask(request)).kept == REPORT


async def test_another_owner_finds_nothing(store: Store, docs: Path, tmp_path: Path) -> None:
    cache, request = a_cache(store, tmp_path), request_over(docs, owner="u1")
    await cache.keep(request, await cache.ask(request), finished(), REPORT)
    assert (await cache.ask(request_over(docs, owner="u2"))).kept is None


async def test_fresh_looks_for_nothing_and_replaces_what_is_there(store: Store, docs: Path, tmp_path: Path) -> None:
    cache, request, fresh = a_cache(store, tmp_path), request_over(docs), request_over(docs, fresh=True)
    await cache.keep(request, await cache.ask(request), finished(), REPORT)
    asked = await cache.ask(fresh)
    assert asked.kept is None
    newer = KeptReport(session_id="S2", artefact="b" * 64)
    assert await cache.keep(fresh, asked, finished(), newer)
    assert (await cache.ask(request)).kept == newer


async def test_a_report_over_sources_that_changed_meanwhile_is_not_kept(
    store: Store, docs: Path, tmp_path: Path
) -> None:
    cache, request = a_cache(store, tmp_path), request_over(docs)
    asked = await cache.ask(request)
    (docs / "late.txt").write_text("more")
    assert not await cache.keep(request, asked, finished(), REPORT)
    assert (await cache.ask(request)).kept is None


@pytest.mark.parametrize("fields", [{"approve_plan": True}, {"gate": GateMode.ALWAYS}], ids=str)
async def test_who_wants_to_decide_gets_no_stored_report(
    store: Store, docs: Path, tmp_path: Path, fields: dict[str, Any]
) -> None:
    cache, request = a_cache(store, tmp_path), request_over(docs, **fields)
    asked = await cache.ask(request)
    assert asked == Asked("")
    assert not await cache.keep(request, asked, finished(), REPORT)


async def test_a_time_of_zero_keeps_nothing(store: Store, docs: Path, tmp_path: Path) -> None:
    cache, request = a_cache(store, tmp_path, report_s=0), request_over(docs)
    assert not await cache.keep(request, await cache.ask(request), finished(), REPORT)
    assert await store.cache_counts() == []


async def test_a_folder_that_is_gone_is_left_to_the_run(store: Store, tmp_path: Path) -> None:
    assert await a_cache(store, tmp_path).ask(request_over(tmp_path / "nowhere")) == Asked("")


@pytest.mark.parametrize("value", ["", "{", "null", '{"session_id": 3}', '{"artefact": "x"}', "\x00"])
async def test_a_damaged_entry_is_a_miss(docs: Path, tmp_path: Path, value: str) -> None:
    store = MemoryStore()
    cache, request = a_cache(store, tmp_path), request_over(docs)
    asked = await cache.ask(request)
    await store.cache_put("report", asked.key, value, 100)
    assert (await cache.ask(request)).kept is None
    assert await cache.keep(request, asked, finished(), REPORT)
    assert (await cache.ask(request)).kept == REPORT


class BrokenStore:
    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        raise OSError("the disk is gone")

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None:
        raise OSError("the disk is gone")


async def test_a_store_that_fails_is_a_miss(docs: Path, tmp_path: Path) -> None:
    cache, request = a_cache(BrokenStore(), tmp_path), request_over(docs)
    asked = await cache.ask(request)
    assert asked.kept is None
    await cache.keep(request, asked, finished(), REPORT)


class OldEntries(BrokenStore):
    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        return CacheRow(
            value=REPORT.model_dump_json(), stored_at=datetime.fromtimestamp(time.time() - 100, UTC), hits=1
        )


@pytest.mark.parametrize(("report_s", "found"), [(3600.0, True), (50.0, False)])
async def test_a_shorter_time_holds_for_what_is_stored_already(
    docs: Path, tmp_path: Path, report_s: float, found: bool
) -> None:
    asked = await a_cache(OldEntries(), tmp_path, report_s).ask(request_over(docs))
    assert (asked.kept is not None) is found
