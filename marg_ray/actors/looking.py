"""Where a conversation looks: what was said before, the user's reports, documents, and the web."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from marg_ray.actors.assistant import Reports
from marg_ray.actors.material import SHOWN, Material, ranked, window
from marg_ray.actors.researcher import Workers
from marg_ray.errors import MargError, SessionNotFound, SourceError, UsageError
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.grounding.terms import content_stems
from marg_ray.memory import chat
from marg_ray.memory.chat import Looked, Passage, Said
from marg_ray.messages import SearchDone
from marg_ray.records import Evidence, Hit, Request, RequestClass, Role, SourceChoice, Zone, evidence_id
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.settings import ChatSettings
from marg_ray.sources.queries import search_query
from marg_ray.store.protocol import SessionRow, Store
from marg_ray.store.talk import MemoryRow
from marg_ray.tasks import ReadTask, SearchTask

MEMORY = "memory"  # stands for a source: what the user said
TOLD = "What you told me"
RECENT = 100  # memories that are compared by meaning; older ones only where they share a word
REPORTS, LIKELY = 50, 3  # of the newest are looked through, so many are opened
SPANS = 8  # passages of a search in documents
ALIKE = 0.3  # cosine of a report's question from which it may help


@dataclass(frozen=True, kw_only=True)
class Finder:
    """Looks things up for a conversation; a place that fails is named, and the others are used."""

    reports: Reports
    workers: Workers | None
    open_store: Callable[[], Awaitable[Store]]
    snapshots: Snapshots
    embedder: Embedder
    light: Offload = in_thread
    settings: ChatSettings = field(default_factory=ChatSettings)

    async def in_memory(self, question: str, memories: Sequence[MemoryRow]) -> tuple[Looked, Material]:
        """What the user told before and fits. What the assistant said is no evidence of anything."""
        wanted = content_stems(question)
        told = [m for m in memories if m.by == "user" or m.kind == "core"]
        near = [m for n, m in enumerate(reversed(told)) if n < RECENT or wanted & content_stems(m.text)]
        found: list[MemoryRow] = []
        if near:
            vectors = await self.embedder.embed([question, *(m.text for m in near)])
            found = await self.light(chat.recalled, near, question, vectors[0], vectors[1:], 5)
        fit = [(m, text) for m in found if (text := chat.fit_to_keep(m.text))]
        evidence = tuple(Evidence(id=m.id, source=MEMORY, quote=text, start=0, end=len(text)) for m, text in fit)
        passages = {e.id: Passage(id=e.id, quote=e.quote, title=TOLD) for e in evidence}
        looked = Looked(where="memory", query=question, found=len(fit), text=_counted(len(fit), "memory", "memories"))
        return looked, Material(evidence, passages)

    async def search(
        self, owner: str, account: str, said: Said, question: str, query: str
    ) -> AsyncGenerator[tuple[Looked, Material], None]:
        """Put a query to every place that is allowed."""
        if said.report or said.reports:
            yield await self._in_reports(owner, said, query)
        if said.report or self.workers is None:
            return
        if said.folders:
            yield await self._in_documents(owner, account, said, question, query)
        if said.web:
            yield await self._on_the_web(owner, account, said, question, query)

    # ---- reports

    async def _in_reports(self, owner: str, said: Said, query: str) -> tuple[Looked, Material]:
        store = await self.open_store()
        if said.report:
            row = await store.session(said.report)
            if row.owner != owner:
                raise SessionNotFound(said.report)
            rows = [row]
        else:
            rows = await self._likely(await store.sessions(limit=REPORTS, owner=owner), query)
        material, failed, titles = Material(), [], list[str]()
        for row in rows:
            if not row.artefact:
                continue
            try:
                ready = await self.reports.get(row.artefact)
            except MargError as exc:
                failed.append(str(exc))
                continue
            best = await ranked(query, ready.material, self.embedder, light=self.light, limit=6, index=ready.index)
            if best.answerability.zone is not Zone.NOTHING:
                material += best
                titles.append(ready.report.title)
        text = f"{_counted(len(titles), 'report')} of {len(rows)}: {'; '.join(titles)}" if titles else "no report fits"
        if failed:
            text += f" ({len(failed)} could not be read)"
        return Looked(where="reports", query=query, found=len(material.evidence), text=text), material

    async def _likely(self, rows: Sequence[SessionRow], query: str) -> list[SessionRow]:
        """The sessions whose question is nearest to the query."""
        rows = [row for row in rows if row.artefact]
        if not rows:
            return []
        vectors = await self.embedder.embed([query, *(search_query(row.question) for row in rows)])
        wanted = content_stems(query)
        scored = [
            (float(vector @ vectors[0]) + 0.3 * bool(wanted & content_stems(row.question)), row)
            for row, vector in zip(rows, vectors[1:], strict=True)
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [row for score, row in scored if score >= ALIKE][:LIKELY]

    # ---- documents and the web

    def _task(
        self, owner: str, account: str, said: Said, question: str, query: str, sources: SourceChoice
    ) -> SearchTask:
        where = "web" if sources.web else "library"
        return SearchTask(
            id=f"{account}/{said.turn}/{where}/{query[:80]}",
            session_id=account,
            section="chat",
            request=Request(question=question, sources=sources, owner=owner),
            request_class=RequestClass.FULL_RESEARCH,
            title=question,
            query=query,
        )

    async def _in_documents(
        self, owner: str, account: str, said: Said, question: str, query: str
    ) -> tuple[Looked, Material]:
        sources = SourceChoice(folders=said.folders, web=False, mcp=False)
        task = self._task(owner, account, said, question, query, sources)
        done = await self._searched(task)
        if isinstance(done, str):
            for folder in said.folders:  # where they lie is the server's affair
                done = done.replace(f"{folder}/", "").replace(folder, "the documents")
            return Looked(where="library", query=query, text=done), Material()
        material = Material()
        for hit in done.hits:
            if hit.source_id and len(material.evidence) < SPANS:
                document = await self.light(self.snapshots.document, hit.source_id)
                material += _of_hit(hit, document)
        titles = "; ".join(dict.fromkeys(p.title for p in material.passages.values()))
        text = f"{_counted(len(material.evidence), 'passage')}: {titles}" if titles else "nothing in the documents"
        return Looked(where="library", query=query, found=len(material.evidence), text=text), material

    async def _on_the_web(
        self, owner: str, account: str, said: Said, question: str, query: str
    ) -> tuple[Looked, Material]:
        task = self._task(owner, account, said, question, query, SourceChoice(web=True))
        done = await self._searched(task)
        if isinstance(done, str):
            return Looked(where="web", query=query, text=done), Material()
        assert self.workers is not None
        material, read = Material(), list[str]()
        for hit in done.hits[: self.settings.reads]:
            page = await self.workers.read(
                ReadTask(
                    id=f"{task.id}/read/{hit.location[:200]}",
                    session_id=account,
                    role=Role.RESEARCHER,
                    section="chat",
                    question=question,
                    title=question,
                    queries=(query,),
                    hit=hit,
                    owner=owner,
                )
            )
            if page.source is None or not page.evidence:
                continue
            document = await self.light(self.snapshots.document, page.source.id)
            material += _around(page.evidence, document, page.source.title, page.source.location)
            read.append(page.source.title)
        text = f"{_counted(len(read), 'page')}: {'; '.join(read)}" if read else "no page that answers"
        return Looked(where="web", query=query, found=len(material.evidence), text=text), material

    async def _searched(self, task: SearchTask) -> SearchDone | str:
        """What was found, or in words why nothing could be looked for: that is not the same as nothing there."""
        assert self.workers is not None
        try:
            return await self.workers.search(task)
        except (SourceError, UsageError) as exc:
            return f"could not be searched: {exc}"


def _of_hit(hit: Hit, document: Document) -> Material:
    """The best passages of a document in a library."""
    evidence = tuple(
        Evidence(
            id=evidence_id(hit.source_id, span.start, span.end),
            source=hit.source_id,
            quote=document.text[span.start : span.end],
            start=span.start,
            end=span.end,
            heading=span.heading or document.heading_path(span.start),
            page=document.page_at(span.start),
            tainted=bool(document.injections),
        )
        for span in hit.spans[:3]
    )
    return Material(evidence, {e.id: _shown(e, hit.title, Path(hit.location).name) for e in evidence})


def _around(quoted: Sequence[Evidence], document: Document, title: str, location: str) -> Material:
    """A page's quotations with the sentences around them."""
    evidence = []
    for one in quoted[:SHOWN]:
        start, end = window(document.text, one.start, one.end, 0, len(document.text))
        evidence.append(one.model_copy(update={"quote": document.text[start:end], "start": start, "end": end}))
    return Material(tuple(evidence), {e.id: _shown(e, title, location) for e in evidence})


def _shown(evidence: Evidence, title: str, location: str) -> Passage:
    return Passage(
        id=evidence.id,
        quote=evidence.quote,
        title=title,
        location=location,
        source=evidence.source,
        start=evidence.start,
        end=evidence.end,
    )


def _counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
