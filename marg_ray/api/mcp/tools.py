"""What the tools do, for one caller: nothing here reaches another owner's sessions, documents or answers."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path, PurePath
from typing import Literal, TypeVar

from pydantic import BaseModel

from marg_ray.actors.neighbours import SETTLED
from marg_ray.api.asking import ask
from marg_ray.api.callers import Caller
from marg_ray.api.following import STOPPED, Happening, follow, outcome_of
from marg_ray.api.library import folder_of, refresh
from marg_ray.api.mcp.shapes import Health, Passage, Passages, Quoted, Research, Summary, WebResult, WebResults
from marg_ray.api.schemas import ResearchIn
from marg_ray.api.service import Service
from marg_ray.api.sessions import session_of
from marg_ray.api.streams import Hub
from marg_ray.errors import UsageError
from marg_ray.grounding.injection import cut_injections
from marg_ray.grounding.snapshots import Document
from marg_ray.memory.cache import source_fingerprint
from marg_ray.memory.spaces import Space, key_of, version
from marg_ray.records import Hit
from marg_ray.seams import in_thread
from marg_ray.sources.library.catalog import Entry
from marg_ray.sources.library.gist import gist
from marg_ray.sources.library.library import Library
from marg_ray.sources.protocol import Searcher
from marg_ray.text import one_line

OutT = TypeVar("OutT", bound=BaseModel)
Told = Callable[[Happening], Awaitable[None]]

SPACE = "mcp"
ID_LENGTH = 16  # of a document's id as it is shown; its beginning is enough to name it
LEAST_ID = 8
MOST_HEADINGS = 60
LONGEST_QUERY = 2000

Where = Literal["all", "mine", "shared"]


class Tools:
    """One server's tools. `web` is asked for web searches; None: the engines that the settings name."""

    def __init__(self, service: Service, hub: Hub, web: Searcher | None = None) -> None:
        self.service, self._hub, self._web = service, hub, web
        self._space = Space(service.store, SPACE, service.settings.mcp.cache_s)

    # ---- research

    async def research(self, who: Caller, body: ResearchIn, wait_s: float, told: Told) -> Research:
        """Begin a session, and wait up to `wait_s` seconds for its report; `told` hears of every step.

        Raises:
            MargError: it cannot be taken on, or has stopped.
        """
        taken = await ask(self.service, who, body)
        if taken.cached:
            return (await self._standing(taken.id)).model_copy(update={"cached": True})
        return await self._awaited(taken.id, wait_s, told)

    async def research_status(self, who: Caller, session_id: str, wait_s: float, told: Told) -> Research:
        """Where a session stands, or its report; waits up to `wait_s` seconds for it.

        Raises:
            SessionNotFound: the caller has no such session.
        """
        row = await session_of(self.service, who, session_id.strip())
        return await self._awaited(row.id, wait_s, told)

    async def _awaited(self, session_id: str, wait_s: float, told: Told) -> Research:
        """Wait; who gives up waiting stops nothing."""
        try:
            async with asyncio.timeout(wait_s), aclosing(follow(self._hub, self.service, session_id)) as happenings:
                async for happening in happenings:
                    await told(happening)
        except TimeoutError:
            pass
        return await self._standing(session_id)

    async def _standing(self, session_id: str) -> Research:
        row = await self.service.store.session(session_id)
        if row.status not in SETTLED | STOPPED:
            todo = f"call research_status with session_id {row.id!r} until it is finished"
            return Research(session_id=row.id, status=row.status, finished=False, next=todo)
        outcome = await outcome_of(self.service, row.id)
        return Research(session_id=row.id, status=outcome.row.status, finished=True, report=outcome.markdown)

    # ---- documents

    async def rag_search(self, who: Caller, query: str, limit: int, where: Where) -> Passages:
        """The best passages of the caller's documents.

        Raises:
            UsageError: there is no query, or nothing to search.
        """
        query, folders = _asked(query), await self._folders(who, where)

        async def make() -> Passages:
            library = await self._fresh(folders)
            found = await library.search(query, limit)
            passages = [p for hit in found.hits for p in await self._passages(hit, folders)]
            answers = found.answerability
            return Passages(
                query=query,
                passages=tuple(sorted(passages, key=lambda p: -p.score)[:limit]),
                answers=answers.zone.value,
                found_nowhere=answers.missing_terms,
                notes=tuple(n.text for n in found.notes),
            )

        return await self._kept(who, Passages, make, "rag_search", query, limit, await self._state_of(folders))

    async def doc_summary(self, who: Caller, document: str, sentences: int) -> Summary:
        """A document by its most telling sentences.

        Raises:
            UsageError: there is no such document among the caller's, or several are meant.
        """
        folders = await self._folders(who, "all")
        library = await self._fresh(folders)
        entry = _named(await library.list(), document, folders)
        text = await in_thread(self.service.places.snapshots.document, entry.source_id)

        async def make() -> Summary:
            spans = await gist(text, self.service.embedder, sentences)
            return Summary(
                document=entry.source_id[:ID_LENGTH],
                title=entry.title or PurePath(entry.path).name,
                location=place_in(entry.path, folders),
                language=entry.language,
                published=entry.published,
                characters=entry.chars,
                headings=entry.headings[:MOST_HEADINGS],
                sentences=tuple(
                    Quoted(text=text.text[s.start : s.end], start=s.start, end=s.end, heading=s.heading) for s in spans
                ),
            )

        return await self._kept(who, Summary, make, "doc_summary", entry.path, entry.source_id, sentences)

    async def prepare(self, who: Caller) -> None:
        """Index the documents that can be searched, so that the first search does not wait for it."""
        await self._fresh(await self._folders(who, "all"))

    async def _passages(self, hit: Hit, folders: Sequence[Path]) -> list[Passage]:
        text = (await in_thread(self.service.places.snapshots.document, hit.source_id)).text
        return [
            Passage(
                text=text[s.start : s.end],
                title=hit.title,
                location=place_in(hit.location, folders),
                document=hit.source_id[:ID_LENGTH],
                heading=s.heading,
                start=s.start,
                end=s.end,
                score=round(min(1.0, max(0.0, s.score or hit.relevance)), 4),
            )
            for s in hit.spans
        ]

    async def _folders(self, who: Caller, where: Where) -> tuple[Path, ...]:
        own = folder_of(self.service, who.owner)
        mine = [own] if where != "shared" and await in_thread(_holds_something, own) else []
        shared = self.service.shared if where != "mine" else ()
        folders = tuple(dict.fromkeys((*mine, *shared)))
        if not folders:
            raise UsageError("there are no documents to search", "upload some, or start the server with --docs FOLDER")
        return folders

    async def _fresh(self, folders: tuple[Path, ...]) -> Library:
        """The library over the folders, brought up to date."""
        await refresh(self.service, folders)
        return await self.service.shelves.library(tuple(map(str, folders)))

    async def _state_of(self, folders: Sequence[Path]) -> str:
        s = self.service.settings
        names, most = [str(f) for f in folders], int(s.library.max_file_mb * 2**20)
        return await self.service.offload(source_fingerprint, names, (), max_bytes=most, home=s.home)

    # ---- web

    async def web_search(self, who: Caller, query: str, limit: int) -> WebResults:
        """Results of the first engine that answers, within the engines' limits, without what speaks to a model.

        Raises:
            UsageError: there is no query, or this server searches no web.
            SearchUnavailable: no engine answers.
        """
        query = _asked(query)
        if self.service.offline:
            raise UsageError("this server is offline: it searches no web", "ask rag_search for documents")

        async def make() -> WebResults:
            found = await self._engines().search(query, limit)
            results = await in_thread(lambda: tuple(map(_result, found.hits[:limit])))
            return WebResults(query=query, results=results, notes=tuple(n.text for n in found.notes))

        s = self.service.settings.search
        return await self._kept(who, WebResults, make, "web_search", query, limit, s.engines, s.searxng_url)

    def _engines(self) -> Searcher:
        if self._web is None:
            from marg_ray.sources.web.search import build_web_search

            self._web = build_web_search(self.service.settings.search)
        return self._web

    # ---- health

    async def health(self, who: Caller) -> Health:
        """What this server has. Documents are counted as they were indexed last."""
        try:
            library = await self.service.shelves.library(tuple(map(str, await self._folders(who, "all"))))
            documents = sum(not entry.failed for entry in await library.list())
        except UsageError:
            documents = 0
        name = self.service.model_name
        return Health(version=version(), model=name, web=not self.service.offline, documents=documents)

    # ---- answers that are kept

    async def _kept(
        self, who: Caller, kind: type[OutT], make: Callable[[], Awaitable[OutT]], tool: str, *asked: object
    ) -> OutT:
        """An answer of `make`, or the one that the caller had before. One that holds nothing is not kept."""
        key = key_of(who.owner, tool, version(), *asked)
        kept = await self._space.read(key, kind.model_validate_json)
        if kept is not None:
            return kept
        made = await make()
        if any(
            isinstance(value, tuple) and value for name, value in made if name in ("passages", "results", "sentences")
        ):
            await self._space.write(key, made.model_dump_json())
        return made


def _asked(query: str) -> str:
    line = one_line(query)
    if not line:
        raise UsageError("there is no query", "say in words what to look for")
    if len(line) > LONGEST_QUERY:
        raise UsageError(f"the query has more than {LONGEST_QUERY:,} characters", "make it shorter")
    return line


def _named(entries: Sequence[Entry], document: str, folders: Sequence[Path]) -> Entry:
    """The document that an id, its beginning, or a path within its folder names. No path is opened to find out."""
    wanted = one_line(document)
    readable = [e for e in entries if not e.failed]
    is_id = len(wanted) >= LEAST_ID and all(c in "0123456789abcdef" for c in wanted)
    if is_id and (same := [e for e in readable if e.source_id.startswith(wanted) or _uploaded_as(e) == wanted]):
        return same[0]
    places = {e.path: place_in(e.path, folders) for e in readable}
    for names in (places, {p: PurePath(p).name for p in places}):
        found = [e for e in readable if names[e.path] == wanted]
        if len(found) == 1:
            return found[0]
        if found:
            paths = ", ".join(sorted(places[e.path] for e in found)[:10])
            raise UsageError(f"several documents are called {wanted!r}: {paths}", "name one by its path or id")
    raise UsageError(f"there is no document {wanted[:200]!r}", "rag_search names documents by id and location")


def _uploaded_as(entry: Entry) -> str:
    """The id that a document has under /v1/knowledge."""
    return hashlib.sha256(os.fsencode(entry.path)).hexdigest()[:ID_LENGTH]


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir())


def place_in(path: str, folders: Sequence[Path]) -> str:
    """A document's path within its folder: where the folder is, concerns nobody outside."""
    inside = [PurePath(path).relative_to(f) for f in folders if PurePath(path).is_relative_to(f)]
    shortest = min(inside, key=lambda p: len(p.parts), default=PurePath(PurePath(path).name))
    return str(shortest) if shortest.parts else PurePath(path).name


def _result(hit: Hit) -> WebResult:
    return WebResult(
        title=_harmless(hit.title), url=hit.location, snippet=_harmless(hit.snippet), published=hit.published
    )


def _harmless(text: str) -> str:
    """Without sentences that speak to a model."""
    return cut_injections(Document(title="", text=text, parts=())).text
