from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from marg_ray.errors import FetchFailed, SearchUnavailable
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.memory.pages import CachedPages, Page
from marg_ray.memory.searches import CachedSearch, KeptSearches, usage_of
from marg_ray.memory.spaces import Space
from marg_ray.records import Hit, Note, SourceKind, Usage
from marg_ray.seams import in_thread
from marg_ray.sources.protocol import Found
from marg_ray.store.memory import MemoryStore

HIT = Hit(location="https://example.org/", title="Tides", kind=SourceKind.WEB, snippet="twice a day", relevance=0.25)
FOUND = Found(hits=(HIT,), searches=2, notes=(Note(kind="results_dropped", text="one was dropped"),))


class Engine:
    """A searcher that gives `found`, or raises it, and counts."""

    def __init__(self, found: Found | Exception = FOUND) -> None:
        self.found, self.queries = found, list[tuple[str, int]]()

    async def search(self, query: str, limit: int) -> Found:
        self.queries.append((query, limit))
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def space() -> Space:
    return Space(MemoryStore(), "search", 3600.0)


# ---- searches


async def test_the_second_search_costs_nothing_and_finds_the_same(space: Space) -> None:
    engine = Engine()
    search = CachedSearch(engine, space, "u1")
    first, second = await search.search("tidal power", 10), await search.search(" tidal\npower ", 10)
    assert len(engine.queries) == 1
    assert (second.hits, second.notes, second.answerability) == (first.hits, first.notes, first.answerability)
    assert (usage_of(first), usage_of(second)) == (Usage(searches=2), Usage(reused=1))
    assert (space.counts.hits, space.counts.misses) == (1, 1)


@pytest.mark.parametrize(
    "other",
    [
        lambda engine, space: partial(CachedSearch(engine, space, "u2").search, "tidal power", 10),
        lambda engine, space: partial(KeptSearches(space, "ddgs").before(engine, "u1").search, "tidal power", 10),
        lambda engine, space: partial(CachedSearch(engine, space, "u1").search, "tidal power", 5),
        lambda engine, space: partial(CachedSearch(engine, space, "u1").search, "wind power", 10),
    ],
    ids=["owner", "engines", "limit", "query"],
)
async def test_another_search_is_made(space: Space, other: object) -> None:
    engine = Engine()
    await CachedSearch(engine, space, "u1").search("tidal power", 10)
    await other(engine, space)()  # type: ignore[operator]
    assert len(engine.queries) == 2


@pytest.mark.parametrize(
    "found",
    [
        Found(searches=1),
        Found(hits=(HIT,), searches=1, notes=(Note(kind="search_degraded", text="only in part"),)),
    ],
    ids=["empty", "degraded"],
)
async def test_what_was_not_found_is_looked_for_again(space: Space, found: Found) -> None:
    engine = Engine(found)
    search = CachedSearch(engine, space, "u1")
    assert await search.search("q", 10) == found
    await search.search("q", 10)
    assert len(engine.queries) == 2


async def test_a_failure_is_not_kept(space: Space) -> None:
    engine = Engine(SearchUnavailable("down"))
    search = CachedSearch(engine, space, "u1")
    with pytest.raises(SearchUnavailable):
        await search.search("q", 10)
    engine.found = FOUND
    assert await search.search("q", 10) == FOUND


async def test_how_an_engine_fared_is_not_told_of_a_later_search(space: Space) -> None:
    failed = Note(kind="search_failed", text="searxng failed: no answer; ddgs answered instead")
    search = CachedSearch(Engine(Found(hits=(HIT,), searches=1, notes=(failed, *FOUND.notes))), space, "u1")
    assert failed in (await search.search("q", 10)).notes
    assert (await search.search("q", 10)).notes == FOUND.notes


async def test_fresh_searches_anew_and_keeps_what_comes(space: Space) -> None:
    engine = Engine()
    await CachedSearch(engine, space, "u1").search("q", 10)
    newer = engine.found = Found(hits=(HIT.model_copy(update={"title": "Newer"}),), searches=1)
    assert await CachedSearch(engine, space, "u1", fresh=True).search("q", 10) == newer
    assert (await CachedSearch(engine, space, "u1").search("q", 10)).hits == newer.hits
    assert len(engine.queries) == 2


class OneValue(MemoryStore):
    """Gives the same value for every key."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self.value = value

    async def cache_get(self, space: str, key: str) -> object:  # type: ignore[override]
        await self.cache_put(space, key, self.value, 100)
        return await super().cache_get(space, key)


DAMAGED = ["", "[]", '{"hits": [{"location": 1}]}', '{"hits": []}', "not json"]


@pytest.mark.parametrize("value", DAMAGED)
async def test_a_damaged_entry_is_searched_for(value: str) -> None:
    engine = Engine()
    assert await CachedSearch(engine, Space(OneValue(value), "search", 100.0), "u1").search("q", 10) == FOUND
    assert len(engine.queries) == 1


# ---- pages

URL = "https://example.org/tides"
AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Pages:
    """A page that is fetched and frozen, counted; and the cache before it."""

    def __init__(self, root: Path, store: MemoryStore | None = None) -> None:
        self.root, self.snapshots = root, Snapshots(root)
        space = Space(store or MemoryStore(), "page", 3600.0)
        self.cache = CachedPages(space, self.snapshots, in_thread)
        self.fetches, self.text = 0, "Tides make power."

    async def fetch(self) -> Page:
        self.fetches += 1
        if not self.text:
            raise FetchFailed(URL, "down")
        document = Document(title="Tides", text=self.text, parts=())
        await in_thread(self.snapshots.put, document)
        return Page(document, AT)

    async def get(self, url: str = URL, owner: str = "u1", *, fresh: bool = False) -> tuple[Page, bool]:
        return await self.cache.get(url, owner, self.fetch, fresh=fresh)


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return Pages(tmp_path)


async def test_a_page_is_fetched_once(pages: Pages) -> None:
    (first, kept), (second, kept_again) = await pages.get(), await pages.get()
    assert (kept, kept_again, pages.fetches) == (False, True, 1)
    assert second == first
    assert second.fetched_at == AT


async def test_another_page_or_owner_is_fetched(pages: Pages) -> None:
    await pages.get()
    await pages.get(URL + "?page=2")
    await pages.get(owner="u2")
    assert pages.fetches == 3


async def test_a_page_that_did_not_come_is_tried_again(pages: Pages) -> None:
    pages.text = ""
    for _ in range(2):
        with pytest.raises(FetchFailed):
            await pages.get()
    assert pages.fetches == 2


async def test_fresh_fetches_anew_and_keeps_what_comes(pages: Pages) -> None:
    await pages.get()
    pages.text = "Tides and wind."
    assert (await pages.get(fresh=True))[0].document.text == pages.text
    assert (await pages.get())[0].document.text == pages.text
    assert pages.fetches == 2


async def test_a_page_whose_text_is_gone_is_fetched(pages: Pages) -> None:
    page, _ = await pages.get()
    for file in pages.root.rglob(f"{page.document.source_id}*"):
        file.unlink()
    assert (await pages.get())[1] is False
    assert (await pages.get())[1] is True


async def test_a_page_whose_text_is_damaged_is_fetched(pages: Pages) -> None:
    page, _ = await pages.get()
    for file in pages.root.rglob(f"{page.document.source_id}.json"):
        file.write_text("{")
    assert (await pages.get())[1] is False


@pytest.mark.parametrize("value", [*DAMAGED, '{"source_id": "../../etc/passwd", "fetched_at": "2026-11-01T12:00:00Z"}'])
async def test_a_damaged_entry_is_fetched(tmp_path: Path, value: str) -> None:
    pages = Pages(tmp_path, OneValue(value))
    assert (await pages.get())[0].document.text == pages.text
    assert pages.fetches == 1
