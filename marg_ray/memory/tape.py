"""Searches, pages and vectors on the tape: each seam with the tape before it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue, TypeAdapter

from marg_ray.grounding.snapshots import Snapshots
from marg_ray.messages import SCOUT
from marg_ray.models.tape import Tape, read_json
from marg_ray.seams import Embedder, Vectors
from marg_ray.sources.protocol import Fetched, Fetcher, Found, Searcher
from marg_ray.tasks import SearchTask

FOUND: TypeAdapter[Found] = TypeAdapter(Found)
FETCHED: TypeAdapter[Fetched] = TypeAdapter(Fetched)


class Shelves(Protocol):
    """The local sources of a request."""

    async def searchers(self, task: SearchTask) -> Sequence[Searcher]: ...


@dataclass(frozen=True)
class Texts:
    """The frozen texts of the documents that a search found: to the tape, or from it."""

    tape: Tape
    home: Snapshots
    done: set[str] = field(default_factory=set)  # in this process

    async def follow(self, found: Found) -> None:
        """See that each text that `found` names is where it will be looked for."""
        for source_id in {h.source_id for h in found.hits if h.source_id} - self.done:
            await asyncio.to_thread(self._copy, source_id)
            self.done.add(source_id)

    def _copy(self, source_id: str) -> None:
        kept, home = self.tape.snapshots, self.home
        there, here = (kept, home) if self.tape.replays else (home, kept)
        here.put(there.document(source_id))


@dataclass(frozen=True)
class TapedSearch:
    """A `Searcher` whose results are kept, or come from the tape; `where` says what is searched."""

    tape: Tape
    searcher: Searcher | None
    where: dict[str, JsonValue]
    texts: Texts | None = None

    async def search(self, query: str, limit: int) -> Found:
        async def make() -> JsonValue:
            assert self.searcher is not None
            found: JsonValue = FOUND.dump_python(await self.searcher.search(query, limit), mode="json")
            return found

        asked: JsonValue = {**self.where, "query": query, "limit": limit}
        kept = await self.tape.answer("search", asked, make, f"{query!r} ({self.where['source']})")
        found = FOUND.validate_python(kept)
        if self.texts is not None:
            await self.texts.follow(found)
        return found


@dataclass(frozen=True)
class TapedShelves:
    """The local sources with the tape before them. A replay needs no folder and no index."""

    tape: Tape
    shelves: Shelves
    texts: Texts

    async def searchers(self, task: SearchTask) -> Sequence[Searcher]:
        scout = task.section == SCOUT  # the first look tells of files that could not be read
        wheres: list[dict[str, JsonValue]] = []
        if folders := task.request.sources.folders:
            wheres.append({"source": "library", "folders": list(folders), "scout": scout})
        if provided := task.request.provided:
            wheres.append({"source": "provided", "texts": list(provided)})
        searchers: Sequence[Searcher | None] = [None] * len(wheres)
        if not self.tape.replays:
            searchers = await self.shelves.searchers(task)
        return [TapedSearch(self.tape, s, w, self.texts) for s, w in zip(searchers, wheres, strict=True)]


def taped_others(tape: Tape, others: Mapping[str, Searcher], texts: Texts) -> dict[str, Searcher]:
    """Further sources by name with the tape before them; in a replay those that were asked when it was recorded."""
    path = tape.folder / "others.json"
    if tape.replays:
        names = [str(name) for name in (read_json(path) or {}).get("names", ())]
        return {name: TapedSearch(tape, None, {"source": "mcp", "server": name}, texts) for name in names}
    if others:
        tape.write(path, json.dumps({"names": sorted(others)}).encode())
    return {
        name: TapedSearch(tape, other, {"source": "mcp", "server": name}, texts)
        for name, other in sorted(others.items())
    }


@dataclass(frozen=True)
class TapedFetcher:
    """A `Fetcher` whose pages are kept as they came, or come from the tape."""

    tape: Tape
    fetcher: Fetcher

    async def fetch(self, url: str) -> Fetched:
        async def make() -> JsonValue:
            page = await self.fetcher.fetch(url)
            fields: dict[str, JsonValue] = {
                "url": page.url,
                "final_url": page.final_url,
                "status": page.status,
                "media_type": page.media_type,
                "charset": page.charset,
                "body": base64.b64encode(page.body).decode("ascii"),
                "fetched_at": page.fetched_at.isoformat(),
                "truncated": page.truncated,
            }
            return fields

        kept = await self.tape.answer("fetch", {"url": url}, make, url)
        assert isinstance(kept, dict)
        return FETCHED.validate_python({**kept, "body": base64.b64decode(str(kept["body"]))})


@dataclass(frozen=True)
class TapedEmbedder:
    """An `Embedder` whose vectors are kept: their last digits depend on the machine, and on what else was in the batch.

    It costs nothing and asks nobody, so what the tape does not hold is computed.
    """

    tape: Tape
    embedder: Embedder

    async def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        if not texts:
            return await self.embedder.embed(texts)
        asked = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
        if self.tape.replays and (kept := await self.tape.get("embed", asked)) is not None:
            data = np.frombuffer(base64.b64decode(kept["answer"]), dtype="<f4")
            return data.reshape(len(texts), -1).astype(np.float32)
        vectors = await self.embedder.embed(texts)
        if not self.tape.replays:
            data = np.ascontiguousarray(vectors, dtype="<f4")
            await self.tape.put("embed", asked, {"answer": base64.b64encode(data.tobytes()).decode("ascii")})
        return vectors
