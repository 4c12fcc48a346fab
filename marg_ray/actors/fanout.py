"""The units that fan out: one search, one read, one draft. Each runs on any worker; none holds run state."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from pydantic import TypeAdapter

from marg_ray.actors.cleaning import as_data, cleaned
from marg_ray.actors.merging import Results, as_read, better, filled, has_some, merge
from marg_ray.actors.turnstile import Turnstile
from marg_ray.errors import AddressBlocked, ParseError, SearchUnavailable, SourceError
from marg_ray.grounding.canon import repeats
from marg_ray.grounding.drafts import parse_draft, render_draft
from marg_ray.grounding.injection import clean_line, cut_injections, named, veil
from marg_ray.grounding.quotes import locate
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.memory.pages import CachedPages, Get, Page
from marg_ray.memory.searches import KeptSearches, usage_of
from marg_ray.messages import SCOUT, DraftReady, SearchDone, SourceRead
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import ClaimIdea, DraftSection, EvidenceCard, ExtractClaims, Passage, RewriteQuery
from marg_ray.records import (
    Evidence,
    Hit,
    Note,
    Record,
    RequestClass,
    Role,
    Source,
    SourceKind,
    Span,
    Usage,
    Zone,
    evidence_id,
)
from marg_ray.seams import CallKey, Embedder, Ledger, Offload, in_thread, paid
from marg_ray.sources.answerability import assess_snippets
from marg_ray.sources.parse import parse
from marg_ray.sources.protocol import Fetched, Fetcher, Found, Searcher
from marg_ray.sources.queries import search_query
from marg_ray.sources.ranking import LEAST, best_windows, rank_hits
from marg_ray.tasks import DraftTask, ReadTask, SearchTask
from marg_ray.telemetry import events

HITS = 10  # asked of each source; the depth decides how many are read
WINDOW_WORDS = 1400  # of a document that a reader is shown
MIN_QUOTE = 12  # characters; less is no evidence
PROVIDED_ONLY = frozenset({RequestClass.ANALYZE_PROVIDED, RequestClass.WRITE_ONLY})

FOUND: TypeAdapter[Found] = TypeAdapter(Found)


class Shelves(Protocol):
    """The local sources of a request: its library folders and the text that was handed in."""

    async def searchers(self, task: SearchTask) -> Sequence[Searcher]: ...


class _Fetch(Record):
    """What the ledger keeps of a fetch; the text is in the snapshots."""

    source: Source


@dataclass(frozen=True, kw_only=True)
class Units:
    """Everything a worker needs to search, read and draft."""

    model: ModelClient
    embedder: Embedder
    ledger: Ledger
    snapshots: Snapshots
    shelves: Shelves
    web: Searcher | None
    fetcher: Fetcher
    offload: Offload  # for whole documents: parsing
    light: Offload = in_thread  # for work of milliseconds
    searches: KeptSearches | None = None
    pages: CachedPages | None = None
    others: Mapping[str, Searcher] = field(default_factory=dict)  # by name, asked beside the web
    words: int = field(default=WINDOW_WORDS)
    turnstile: Turnstile = field(default_factory=Turnstile)

    # ---- search

    async def search(self, task: SearchTask) -> SearchDone:
        """Put one query to every chosen source; where nothing is found, once more in other words."""
        first = await self._search(task, task.query)
        rewritten, usage = "", first.usage
        best = first
        if task.section != SCOUT and (not first.hits or first.answerability.zone is Zone.NOTHING):
            rewritten, spent = await self._rewrite(task)
            usage = usage + spent
            if rewritten and rewritten != task.query:
                second = await self._search(task, rewritten)
                usage = usage + second.usage
                best = better(first, second)
        return SearchDone(
            task_id=task.id,
            section=task.section,
            query=task.query,
            hits=best.hits[:HITS] if task.section == SCOUT else tuple(map(as_read, best.hits[:HITS])),
            answerability=best.answerability,
            rewritten=rewritten if best is not first else "",
            usage=usage,
            notes=tuple(dict.fromkeys((*first.notes, *best.notes))),
        )

    async def _rewrite(self, task: SearchTask) -> tuple[str, Usage]:
        ask = RewriteQuery(question=task.request.question, section_title=task.title, query=task.query)
        try:
            reply = await self.model.run(ask, _call(task))
        except ParseError:
            return "", Usage()
        return search_query(reply.output.query), reply.usage

    async def _search(self, task: SearchTask, query: str) -> Results:
        shelves = await self.shelves.searchers(task)
        ask_web = self.web is not None and _web_allowed(task)
        others = self.others if _others_allowed(task) else {}
        if not shelves and not ask_web and not others:
            raise SearchUnavailable("no source is chosen: give --docs, or allow the web")
        async with self.turnstile.place(task.session_id):
            away = [self._search_web(task, query)] if ask_web else []
            away += [self._paid_search(task, search_query(query), s, name) for name, s in others.items()]
            asked = asyncio.gather(*away, return_exceptions=True)
            try:
                near = await asyncio.gather(*(s.search(query, HITS) for s in shelves), return_exceptions=True)
            except BaseException:
                asked.cancel()  # nobody waits for it any more, and it is paid for
                raise
        far = await asked
        async with self.turnstile.place(task.session_id):
            local = [r for r in near if isinstance(r, Found)]
            results = [
                *near,
                *[await self._ranked(search_query(query), r, local) if isinstance(r, Found) else r for r in far],
            ]
        failed = [r for r in results if isinstance(r, BaseException)]
        found = [r for r in results if isinstance(r, Found)]
        for failure in failed:
            if not isinstance(failure, SourceError):
                raise failure
        if not found:
            raise failed[0]
        notes = tuple(Note(kind="source_failed", text=str(f)) for f in failed)
        return merge(found, notes)

    async def _search_web(self, task: SearchTask, query: str) -> Found:
        assert self.web is not None
        web, query = self.web, search_query(query)
        if self.searches is not None:
            web = self.searches.before(web, task.request.owner, fresh=task.request.fresh)
        return await self._paid_search(task, query, web)

    async def _paid_search(self, task: SearchTask, query: str, searcher: Searcher, *name: str) -> Found:
        """Ask through the ledger; `name` tells searchers apart that are asked the same."""

        async def make() -> tuple[str, Usage]:
            found = await searcher.search(query, HITS)
            return FOUND.dump_json(found).decode(), usage_of(found)

        asked = (query, HITS, *name)
        key = CallKey.of(task.session_id, "search", Role.RESEARCHER, *asked, task_id=task.id, epoch=task.epoch)
        tool = f"mcp_{name[0]}" if name else "web_search"
        with events.tool(tool, task.session_id, task.id, Role.RESEARCHER, task.section) as asking:
            result = await paid(self.ledger, key, make, Usage(searches=1))
            found = FOUND.validate_json(result.result)
            asking.fields = {"found": len(found.hits), "searches": result.usage.searches}
        return replace(found, searches=result.usage.searches, cached=bool(result.usage.reused))

    async def _ranked(self, query: str, found: Found, local: Sequence[Found]) -> Found:
        """The web's hits, best first: by meaning too, where they may be read beside what the library has."""
        found = cleaned(found)
        embedder = None if filled(local) else self.embedder
        hits = await rank_hits(query, found.hits, embedder, strangers=0 if has_some(local) else LEAST)
        return replace(found, hits=hits, answerability=assess_snippets(query, hits))

    # ---- read

    async def read(self, task: ReadTask) -> SourceRead:
        """Freeze one source and take from it the passages that answer the section."""
        try:
            source, document, usage = await self._open(task)
        except SourceError as exc:
            return SourceRead(
                task_id=task.id, section=task.section, location=task.hit.location, status="unavailable", reason=str(exc)
            )
        async with self.turnstile.place(task.session_id):
            asked = (task.title, *task.queries)
            spans = task.hit.spans or await best_windows(asked, document, self.embedder, self.words, offload=self.light)
            ask = ExtractClaims(
                question=task.question,
                section_title=task.title,
                queries=task.queries,
                source_title=source.title,
                passages=_passages(spans, document, self.words),
                document=document,
            )
        notes: tuple[Note, ...] = ()
        claims: list[ClaimIdea] = []
        if ask.passages:
            reply = await self.model.run(ask, _call(task))
            claims, usage, notes = reply.output.claims, usage + reply.usage, reply.notes
        evidence = await self.light(_ground_claims, claims, document, source, task.hit.relevance, ask.max_claims)
        return SourceRead(
            task_id=task.id,
            section=task.section,
            location=task.hit.location,
            status="read",
            source=source,
            evidence=evidence,
            usage=usage,
            notes=notes,
        )

    async def _open(self, task: ReadTask) -> tuple[Source, Document, Usage]:
        hit = task.hit
        if hit.source_id:  # its text is frozen already
            document = await self.light(self.snapshots.document, hit.source_id)
            return _source(document, hit, datetime.now(UTC)), document, Usage()
        if task.offline:
            raise AddressBlocked(hit.location, "this session is offline")

        async def fetch() -> Page:
            with events.fetching():
                return await load()

        async def load() -> Page:
            page = await self.fetcher.fetch(hit.location)
            document = await self.offload(_document, page)
            await self.light(self.snapshots.put, document)
            return Page(document, page.fetched_at)

        async def make() -> tuple[str, Usage]:
            page, kept = await self._page(task, fetch)
            source = _source(page.document, hit, page.fetched_at)
            return _Fetch(source=source).model_dump_json(), Usage(reused=1) if kept else Usage(fetches=1)

        key = CallKey.of(task.session_id, "fetch", Role.RESEARCHER, hit.location, task_id=task.id, epoch=task.epoch)
        with events.tool("fetch", task.session_id, task.id, Role.RESEARCHER, task.section) as asking:
            result = await paid(self.ledger, key, make)
            source = _Fetch.model_validate_json(result.result).source
            asking.fields = {"chars": source.chars, "reused": result.usage.reused or None}
        return source, await self.light(self.snapshots.document, source.id), result.usage

    async def _page(self, task: ReadTask, fetch: Get) -> tuple[Page, bool]:
        """The page a task is to read, and whether it was read before."""
        if self.pages is None:
            return await fetch(), False
        return await self.pages.get(task.hit.location, task.owner, fetch, fresh=task.fresh)

    # ---- draft

    async def draft(self, task: DraftTask) -> DraftReady:
        """Write one section from its evidence, citing by number."""
        copies = await self.light(repeats, task.evidence, task.sources)
        evidence = tuple(e for e in task.evidence if e.id not in copies)
        cards = evidence_cards(evidence, task.sources)
        numbers = {card.number: e.id for card, e in zip(cards, evidence, strict=True)}
        shown = {e: (n,) for n, e in numbers.items()}
        shown |= {copy: shown[original] for copy, original in copies.items()}
        ask = DraftSection(
            question=task.question,
            report_title=task.report_title,
            section_title=task.title,
            queries=task.queries,
            other_sections=task.other_sections,
            evidence=cards,
            language=task.language,
            words=task.words,
            feedback=task.feedback,
            previous=render_draft(task.previous, shown) if task.previous and task.feedback else "",
        )
        reply = await self.model.run(ask, _call(task))
        markdown, notes = await self.light(as_data, reply.output.markdown, task.section)
        draft = await self.light(
            parse_draft,
            markdown,
            {n: e for n, e in numbers.items() if n not in reply.left_out},
            section=task.section,
            section_title=task.title,
            revision=task.revision,
            prompted=tuple(e for n, e in numbers.items() if n not in reply.left_out),
            incomplete=reply.output.incomplete,
        )
        return DraftReady(task_id=task.id, draft=draft, usage=reply.usage, notes=(*reply.notes, *notes))


def evidence_cards(evidence: Sequence[Evidence], sources: dict[str, Source]) -> tuple[EvidenceCard, ...]:
    """Evidence as a writer sees it, numbered from 1 in the order given."""
    return tuple(
        EvidenceCard(
            number=n,
            quote=e.quote,
            source_title=sources[e.source].title if e.source in sources else "",
            source_id=e.source,
            start=e.start,
            end=e.end,
            heading=e.heading,
            claim=e.claim,
            relevance=e.relevance,
            published=sources[e.source].published if e.source in sources else "",
        )
        for n, e in enumerate(evidence, 1)
    )


def _web_allowed(task: SearchTask) -> bool:
    sources = task.request.sources
    return sources.web and not sources.offline and task.request_class not in PROVIDED_ONLY


def _others_allowed(task: SearchTask) -> bool:
    """A program that is started here may ask the network as well as an address may: offline leaves out both."""
    sources = task.request.sources
    return sources.mcp and not sources.offline and task.request_class not in PROVIDED_ONLY


# ---- reading (pure, run off the loop)


def _document(page: Fetched) -> Document:
    name = page.final_url or page.url
    return cut_injections(parse(page.body, name=name, media_type=page.media_type, charset=page.charset))


def _source(document: Document, hit: Hit, fetched_at: datetime) -> Source:
    titles = (hit.title, document.title) if hit.kind is not SourceKind.WEB else (document.title, hit.title)
    return Source(
        id=document.source_id,
        title=named(*titles, location=hit.location),
        location=hit.location,
        kind=hit.kind,
        fetched_at=fetched_at,
        published=document.published or hit.published,
        language=document.language,
        chars=len(document.text),
        injections=document.injections,
    )


def _passages(spans: Sequence[Span], document: Document, limit_words: int) -> tuple[Passage, ...]:
    """The best spans up to the budget, in the document's order."""
    chosen: list[Passage] = []
    words = 0
    for span in sorted(spans, key=lambda s: -s.score):
        text = document.text[span.start : span.end]
        words += len(text.split())
        if chosen and words > limit_words:
            break
        heading = span.heading or document.heading_path(span.start)
        chosen.append(Passage(text=text, start=span.start, end=span.end, heading=heading, score=span.score))
    return tuple(sorted(chosen, key=lambda p: p.start))


def _ground_claims(
    claims: Sequence[ClaimIdea], document: Document, source: Source, relevance: float, limit: int
) -> tuple[Evidence, ...]:
    """Claims whose quote stands in the frozen text; the others are thrown away."""
    found: dict[str, Evidence] = {}
    for rank, claim in enumerate(claims):
        place = locate(claim.quote, document.text)
        if place is None or place[1] - place[0] < MIN_QUOTE:
            continue
        start, end = place
        key = evidence_id(source.id, start, end)
        found.setdefault(
            key,
            Evidence(
                id=key,
                source=source.id,
                quote=document.text[start:end],
                start=start,
                end=end,
                claim=clean_line(claim.claim)[0],
                heading=document.heading_path(start),
                page=document.page_at(start),
                relevance=round(relevance * (1 - 0.02 * rank), 4),
                tainted=bool(source.injections) or veil(document.text[start:end]) != document.text[start:end],
            ),
        )
    return tuple(list(found.values())[:limit])


def _call(task: SearchTask | ReadTask | DraftTask) -> Call:
    return Call(session_id=task.session_id, task_id=task.id, epoch=task.epoch, section=task.section)
