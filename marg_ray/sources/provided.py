"""Text the caller handed in, as a source."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from marg_ray.grounding.snapshots import Snapshots
from marg_ray.records import Hit, SourceKind, Span, Zone
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.sources.answerability import assess
from marg_ray.sources.library.catalog import Entry
from marg_ray.sources.library.found import SPANS, candidates, hits, shorten
from marg_ray.sources.library.hybrid import rank
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import rows_of
from marg_ray.sources.protocol import Found


class ProvidedText:
    """Searches frozen texts by their ids. Every text is found: who hands one in wants it read.

    A text that matches nothing of the query comes last, with its beginning; the verdict is never "nothing" as long as
    there is a text.
    """

    def __init__(
        self,
        snapshots: Snapshots,
        ids: Sequence[str],
        embedder: Embedder,
        *,
        passage_words: int = 120,
        offload: Offload = in_thread,
    ) -> None:
        self._snapshots, self._ids, self._embedder = snapshots, tuple(dict.fromkeys(ids)), embedder
        self._passage_words, self._offload = passage_words, offload
        self._loading = asyncio.Lock()  # the texts are embedded once
        self._loaded: tuple[Index, dict[str, Entry]] | None = None

    async def search(self, query: str, limit: int) -> Found:
        """Up to `limit` texts.

        Raises:
            SessionNotFound: no text is frozen under one of the ids.
        """
        index, entries = await self._load()
        if not len(index):
            return Found(searches=1)
        ranking = await rank(index, query, self._embedder)
        verdict = assess(query, candidates(index, ranking), index.df, len(index))
        if verdict.zone is Zone.NOTHING:
            verdict = verdict.model_copy(update={"zone": Zone.NEAREST})
        found = hits(index, ranking, entries, verdict, limit, SourceKind.PROVIDED)
        seen = {hit.source_id for hit in found}
        others = [self._opening(index, entry) for entry in entries.values() if entry.source_id not in seen]
        return Found(hits=(*found, *others)[:limit], answerability=verdict, searches=1)

    @staticmethod
    def _opening(index: Index, entry: Entry) -> Hit:
        first = [i for i, source_id in enumerate(index.source_ids) if source_id == entry.source_id][:SPANS]
        return Hit(
            location=entry.path,
            title=entry.title,
            kind=SourceKind.PROVIDED,
            snippet=shorten(index.texts[first[0]]) if first else "",
            source_id=entry.source_id,
            spans=tuple(
                Span(start=int(index.starts[i]), end=int(index.ends[i]), heading=index.headings[i]) for i in first
            ),
            headings=entry.headings,
        )

    async def _load(self) -> tuple[Index, dict[str, Entry]]:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await self._read()
            return self._loaded

    async def _read(self) -> tuple[Index, dict[str, Entry]]:
        documents = []
        entries: dict[str, Entry] = {}
        for number, source_id in enumerate(self._ids, 1):
            document = await in_thread(self._snapshots.document, source_id)
            rows = await self._offload(rows_of, document, self._passage_words)
            documents.append((source_id, document.title, rows))
            headings = [document.text[p.start : p.end] for p in document.parts if p.kind == "heading"]
            entries[source_id] = Entry(
                path=f"provided:{source_id[:12]}",
                size=len(document.text),
                mtime_ns=0,
                digest="",
                source_id=source_id,
                title=document.title or f"Provided text {number}",
                headings=tuple(headings),
            )
        vectors = await self._embedder.embed([row.embedded for _, _, rows in documents for row in rows])
        return Index.of(documents, vectors), entries
