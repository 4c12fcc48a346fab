"""A caller's documents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, File, Path, Query, Response, UploadFile

from marg_ray.api import library
from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.problems import responses
from marg_ray.api.schemas import Out
from marg_ray.api.service import Service
from marg_ray.errors import UsageError
from marg_ray.kinds import Zone
from marg_ray.records import Answerability, Hit
from marg_ray.seams import in_thread

router = APIRouter(prefix="/v1/knowledge", tags=["knowledge"])

Reads = Annotated[Caller, Depends(needs(Scope.READ))]
Changes = Annotated[Caller, Depends(needs(Scope.LIBRARY))]
Parts = Annotated[Service, Depends(service_of)]
DocumentId = Annotated[str, Path(description="the document's id", examples=["9f86d081884c7d65"])]


class DocumentOut(Out):
    """A document, and where it stands on its way into the index."""

    id: str
    name: str
    state: Literal["waiting", "indexed", "failed"]
    why: str = ""
    title: str = ""
    media_type: str = ""
    language: str = ""
    pages: int = 0
    chars: int = 0
    size: int
    added_at: datetime
    same_as: str = ""
    tainted: bool = False

    @classmethod
    def of(cls, kept: library.Kept) -> DocumentOut:
        fields = kept.model_dump(exclude={"added_at"})
        return cls(**fields, added_at=datetime.fromtimestamp(kept.added_at, UTC))


class DocumentsOut(Out):
    documents: tuple[DocumentOut, ...]


class PassageOut(Out):
    """A passage as it stands in a document's text: offsets in characters."""

    id: str  # the document's
    name: str
    title: str
    text: str
    heading: str = ""
    page: int | None = None
    start: int
    end: int
    score: float
    source: str  # id of the document's frozen text


class SearchOut(Out):
    """What the documents say of a query, and how far they answer it."""

    passages: tuple[PassageOut, ...]
    zone: Zone
    missing_terms: tuple[str, ...] = ()
    nearest: tuple[str, ...] = ()
    waiting: int = 0  # documents that are not in the index yet


@router.get("", summary="List your documents", responses=responses())
async def listed(service: Parts, who: Reads) -> DocumentsOut:
    """Each with its state: `waiting` to be indexed, `indexed`, or `failed` with the reason."""
    found = await library.documents(service, who.owner)
    return DocumentsOut(documents=tuple(DocumentOut.of(one) for one in found))


@router.post(
    "",
    status_code=201,
    summary="Upload a document",
    response_description="It is kept, and is being indexed.",
    responses={
        200: {"model": DocumentOut, "description": "You have this document already, byte for byte."},
        **responses(413),
    },
)
async def upload(
    service: Parts,
    who: Changes,
    response: Response,
    file: Annotated[UploadFile, File(description="PDF, Word, Excel, PowerPoint, EPUB, HTML, Markdown, CSV or text")],
) -> DocumentOut:
    """What it is follows from its content, whatever its name says; what cannot be read is refused (422)."""
    kept, new = await library.add(service, who.owner, file.file, file.filename or "", file.content_type or "")
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/v1/knowledge/{kept.id}"
    return DocumentOut.of(kept)


@router.get("/search", summary="Search your documents", responses=responses(502))
async def search(
    service: Parts,
    who: Reads,
    q: Annotated[
        str, Query(min_length=1, max_length=1000, description="a question, or words", examples=["tidal power"])
    ],
    limit: Annotated[int, Query(ge=1, le=50, description="documents whose passages are given")] = 10,
) -> SearchOut:
    """The best passages of the best documents; `zone` says whether they answer."""
    if not q.strip():
        raise UsageError("there is no query: it is blank")
    found, ids, waiting = await library.search(service, who.owner, q, limit)
    passages = [
        p for hit in found.hits if hit.location in ids for p in await _passages(service, hit, ids[hit.location])
    ]
    verdict: Answerability = found.answerability
    return SearchOut(
        passages=tuple(passages),
        zone=verdict.zone,
        missing_terms=verdict.missing_terms,
        nearest=verdict.nearest,
        waiting=waiting,
    )


async def _passages(service: Service, hit: Hit, doc_id: str) -> list[PassageOut]:
    document = await in_thread(service.places.snapshots.document, hit.source_id)
    return [
        PassageOut(
            id=doc_id,
            name=hit.location.rpartition("/")[2],
            title=hit.title,
            text=document.text[span.start : span.end],
            heading=span.heading,
            page=document.page_at(span.start),
            start=span.start,
            end=span.end,
            score=span.score,
            source=hit.source_id,
        )
        for span in hit.spans
    ]


@router.get("/{doc_id}", summary="See where a document stands", responses=responses(404))
async def one(service: Parts, who: Reads, doc_id: DocumentId) -> DocumentOut:
    return DocumentOut.of(await library.document(service, who.owner, doc_id))


@router.delete("/{doc_id}", summary="Delete a document", responses=responses(404, 502))
async def delete(service: Parts, who: Changes, doc_id: DocumentId) -> DocumentOut:
    """It is found no more. Reports that have quoted it keep the passages and the text that they rest on."""
    return DocumentOut.of(await library.remove(service, who.owner, doc_id))
