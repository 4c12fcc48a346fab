"""Callers' documents over HTTP: taken in, indexed, found, deleted; and nobody finds another's."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from marg_ray.api import library
from marg_ray.api.app import create_app
from marg_ray.api.service import Service
from marg_ray.errors import UsageError
from tests.asked import LIMIT_S, MANY, client_of, parts_of
from tests.flow import World

EXAMPLES = Path(__file__).parents[2] / "examples" / "library"
TIDES = b"# Tides\n\nThe station at Osterby has a capacity of 240 megawatts. It opened in 1966."


@dataclass
class Shelf:
    """One owner's library, over HTTP."""

    service: Service
    client: httpx.AsyncClient
    owner: str = "local"
    before: list[str] = field(default_factory=list)

    async def put(self, name: str, body: bytes, media_type: str = "application/octet-stream") -> httpx.Response:
        return await self.client.post("/v1/knowledge", files={"file": (name, body, media_type)})

    async def added(self, name: str, body: bytes) -> dict[str, Any]:
        reply = await self.put(name, body)
        assert reply.status_code == 201, reply.text
        await self.settled()
        found: dict[str, Any] = (await self.client.get(f"/v1/knowledge/{reply.json()['id']}")).json()
        return found

    async def settled(self) -> None:
        """Wait until nothing waits for the index any more."""
        async with asyncio.timeout(LIMIT_S):
            while any(d["state"] == "waiting" for d in await self.documents()):
                await asyncio.gather(*library._background)

    async def documents(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/v1/knowledge")).json()["documents"]
        return found

    async def search(self, query: str) -> dict[str, Any]:
        reply = await self.client.get("/v1/knowledge/search", params={"q": query})
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    service = parts_of(World(tmp_path), service=MANY, library={"max_file_mb": 1})
    async with client_of(create_app(service)) as client:
        yield Shelf(service, client)
        await asyncio.gather(*library._background)


async def test_a_document_is_kept_indexed_and_found(shelf: Shelf) -> None:
    assert await shelf.documents() == []
    assert (await shelf.search("tides"))["passages"] == []
    doc = await shelf.added("tides.md", TIDES)
    assert (doc["state"], doc["name"], doc["title"], doc["language"]) == ("indexed", "tides.md", "Tides", "en")
    assert doc["chars"] > 50
    found = await shelf.search("capacity of the station at Osterby")
    assert [p["id"] for p in found["passages"]] == [doc["id"]]
    passage = found["passages"][0]
    assert "240 megawatts" in passage["text"]
    text = await asyncio.to_thread(shelf.service.places.snapshots.text, passage["source"])
    assert text[passage["start"] : passage["end"]] == passage["text"]


async def test_a_pdf_has_pages(shelf: Shelf) -> None:
    doc = await shelf.added("history.pdf", (EXAMPLES / "offshore-wind-history.pdf").read_bytes())
    assert doc["state"] == "indexed", doc
    assert doc["pages"] >= 1
    assert doc["media_type"] == "application/pdf"


NAMES = [
    ("../../etc/passwd.md", TIDES + b" One.", "passwd.md"),
    ("C:\\Users\\Ann\\tides.md", TIDES + b" Two.", "tides.md"),
    ("report.exe", TIDES + b" Three.", "report.txt"),
    ("no ending", b"<html><body><p>A page.</p><p>Of two paragraphs.</p></body></html>", "no ending.html"),
    ("潮汐.txt", "潮汐发电站的成本很高。".encode(), "潮汐.txt"),
    (".hidden.md", TIDES + b" Four.", "hidden.md"),
    ("CON.md", TIDES + b" Five.", "report CON.md"),
    ("notes.txt.gz", gzip.compress(TIDES + b" Six."), "notes.txt.gz"),
]


async def test_a_name_is_made_safe_and_says_what_the_file_is(shelf: Shelf) -> None:
    for name, body, kept in NAMES:
        reply = await shelf.put(name, body)
        assert reply.status_code == 201, reply.text
        assert reply.json()["name"] == kept
    folder = library.folder_of(shelf.service, "local")
    assert {p.name for p in folder.iterdir()} == {kept for _, _, kept in NAMES}
    await shelf.settled()
    assert {d["state"] for d in await shelf.documents()} == {"indexed"}


async def test_files_of_one_name_do_not_overwrite_each_other(shelf: Shelf) -> None:
    replies = await asyncio.gather(*(shelf.put("a.txt", b"Text number %d stands here." % n) for n in range(5)))
    assert {r.json()["name"] for r in replies} == {"a.txt", *(f"a ({n}).txt" for n in range(2, 6))}
    await shelf.settled()
    assert len(await shelf.documents()) == 5


UNREADABLE = [
    ("x.pdf", b"no PDF at all, only text", "not a PDF file"),
    ("x.docx", b"PK\x03\x04 broken", "not a Word file"),
    ("x.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "not a document"),
    ("empty.txt", b"", "empty"),
    ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "save it as .docx"),
]


async def test_what_cannot_be_read_is_refused_in_words(shelf: Shelf) -> None:
    for name, body, why in UNREADABLE:
        reply = await shelf.put(name, body)
        assert reply.status_code == 422
        assert why in reply.json()["detail"]
        assert str(shelf.service.settings.home) not in reply.text
    assert await shelf.documents() == []
    incoming = library.folder_of(shelf.service, "local").parent / library.INCOMING
    assert not any(incoming.iterdir())


async def test_what_turns_out_to_be_unreadable_says_so_in_the_list(shelf: Shelf) -> None:
    await shelf.added("good.md", TIDES)
    doc = await shelf.added("cut.pdf", (EXAMPLES / "offshore-wind-history.pdf").read_bytes()[:900])
    assert doc["state"] == "failed"
    assert doc["why"]
    assert {d["state"] for d in await shelf.documents()} == {"indexed", "failed"}


async def test_a_library_of_nothing_readable_is_no_error(shelf: Shelf) -> None:
    doc = await shelf.added("cut.pdf", (EXAMPLES / "offshore-wind-history.pdf").read_bytes()[:900])
    assert doc["state"] == "failed"
    assert (await shelf.search("wind"))["passages"] == []


async def test_a_file_beyond_the_limit_is_refused(shelf: Shelf) -> None:
    reply = await shelf.put("large.txt", b"word " * 300_000)
    assert reply.status_code == 413
    assert await shelf.documents() == []


async def test_the_same_bytes_are_kept_once(shelf: Shelf) -> None:
    first = await shelf.added("tides.md", TIDES)
    again = await shelf.put("other.md", TIDES)
    assert again.status_code == 200
    assert again.json()["id"] == first["id"]
    assert len(await shelf.documents()) == 1


async def test_a_deleted_document_is_found_no_more_and_may_come_back(shelf: Shelf) -> None:
    doc = await shelf.added("tides.md", TIDES)
    other = await shelf.added("storm.md", b"# Storms\n\nStorm Ada destroyed forty houses in Osterby.")
    assert (await shelf.client.delete(f"/v1/knowledge/{doc['id']}")).status_code == 200
    assert [d["id"] for d in await shelf.documents()] == [other["id"]]
    assert {p["id"] for p in (await shelf.search("capacity of the station at Osterby"))["passages"]} <= {other["id"]}
    assert (await shelf.client.delete(f"/v1/knowledge/{doc['id']}")).status_code == 404
    again = await shelf.added("tides.md", TIDES)
    assert again["state"] == "indexed"
    assert again["id"] in {p["id"] for p in (await shelf.search("capacity of the station at Osterby"))["passages"]}


async def test_what_one_process_left_waiting_another_indexes(shelf: Shelf) -> None:
    """The process that took a document in died before it was indexed: the next one that looks does it."""
    folder = library.folder_of(shelf.service, "local")
    folder.mkdir(parents=True)
    (folder / "left.md").write_bytes(TIDES)
    assert [d["state"] for d in await shelf.documents()] == ["waiting"]
    await shelf.settled()
    assert (await shelf.search("capacity at Osterby"))["passages"]


async def test_a_query_of_blanks_is_refused_and_signs_find_nothing(shelf: Shelf) -> None:
    await shelf.added("tides.md", TIDES)
    assert (await shelf.client.get("/v1/knowledge/search", params={"q": "   "})).status_code == 422
    assert (await shelf.client.get("/v1/knowledge/search")).status_code == 422
    for signs in ('"', "*", "()", "'; DROP TABLE files; --", "\u0000"):
        assert (await shelf.client.get("/v1/knowledge/search", params={"q": signs})).status_code == 200


# ---- two owners


async def test_two_owners_never_share_a_result(tmp_path: Path) -> None:
    """Also where they hold the same text: each finds it under the own name, and a deletion is one's own."""
    service = parts_of(World(tmp_path))
    hers, his = "ann", "bob"
    secret = b"The merger with Heron Bank is planned for March at a price of 40 million."
    for owner, name, body in (
        (hers, "merger-plan-of-ann.txt", secret),
        (his, "notes.txt", secret),
        (hers, "tides.md", TIDES),
        (his, "storm.md", b"# Storms\n\nStorm Ada destroyed forty houses in Osterby."),
    ):
        await library.add(service, owner, _file(tmp_path, body), name)
        await asyncio.gather(*library._background)
    found, ids, _ = await library.search(service, his, "merger with Heron Bank", 10)
    told = found.answerability.model_dump_json() + "".join(h.model_dump_json() for h in found.hits)
    assert {Path(h.location).name for h in found.hits} <= {"notes.txt", "storm.md"}
    assert "merger-plan-of-ann" not in told
    assert all(h.location in ids for h in found.hits)
    tides, _, _ = await library.search(service, his, "capacity of the station at Osterby", 10)
    assert all("240 megawatts" not in h.snippet for h in tides.hits)
    plan = next(d for d in await library.documents(service, hers) if d.name.startswith("merger"))
    with pytest.raises(library.DocumentNotFound):
        await library.remove(service, his, plan.id)
    await library.remove(service, hers, plan.id)
    found, _, _ = await library.search(service, his, "merger with Heron Bank", 10)
    assert [Path(h.location).name for h in found.hits][:1] == ["notes.txt"]
    found, _, _ = await library.search(service, hers, "merger with Heron Bank", 10)
    assert all("Heron" not in h.snippet for h in found.hits)


async def test_an_owner_s_folder_cannot_be_left(tmp_path: Path) -> None:
    service = parts_of(World(tmp_path))
    home = service.settings.home / "knowledge"
    for owner in ("ann", "../bob", "/", "", "a\x00b", "ann\ud800"):
        folder = library.folder_of(service, owner)
        assert folder.parent == home
        assert folder.name.isalnum()


async def test_a_document_that_is_too_large_is_refused_as_it_comes(tmp_path: Path) -> None:
    service = parts_of(World(tmp_path), library={"max_file_mb": 0.001})
    with pytest.raises(UsageError, match=r"larger than 0\.001 MB"):
        await library.add(service, "ann", _file(tmp_path, b"x" * 5000), "x.txt")
    assert not any((library.folder_of(service, "ann").parent / library.INCOMING).iterdir())


def _file(folder: Path, body: bytes) -> Any:
    import io

    return io.BytesIO(body)
