"""What came of a session: the report in each format, its evidence in context, its sources, charts and figures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import PlainTextResponse

from marg_ray.actors.live import worked_before
from marg_ray.actors.metrics import RunMetrics, metrics_of
from marg_ray.api import problems
from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.finished import evidence_in, report_of
from marg_ray.api.schemas import EvidenceOut
from marg_ray.api.service import Service
from marg_ray.api.sessions import session_of
from marg_ray.errors import SessionNotFound, UsageError
from marg_ray.report.filenames import content_disposition, safe_name
from marg_ray.report.model import Report
from marg_ray.report.writers import FORMATS, MEDIA_TYPES
from marg_ray.seams import in_thread

router = APIRouter(tags=["reports"])

Reads = Annotated[Caller, Depends(needs(Scope.READ))]
Parts = Annotated[Service, Depends(service_of)]
SessionId = Annotated[str, Path(description="the session's id", examples=["20261130-120000-ab12cd"])]
Format = Literal["md", "html", "json", "pdf", "docx", "bib", "ris"]
Download = Annotated[bool, Query(description="offer it as a file, named after its title")]

HEAVY = frozenset({"pdf", "docx"})  # seconds of work: more than a hop to another process costs

# It is a page of its own: what a source or a model wrote there reaches nothing of the service.
REPORT_POLICY = "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads"


def _media(media_type: str) -> dict[str, Any]:
    return {media_type.partition(";")[0]: {"schema": {"type": "string"}}}


_REPORTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report.",
        "content": {kind: body for media in MEDIA_TYPES.values() for kind, body in _media(media).items()},
    },
    **problems.responses(404, 409),
}
_REPORTS[200]["content"]["application/json"] = {"schema": {"$ref": "#/components/schemas/Report"}}


@router.get(
    "/v1/research/{session_id}/report",
    summary="Read the report",
    response_model=Report,
    responses=problems.responses(404, 409),
)
async def report(service: Parts, who: Reads, session_id: SessionId, download: Download = False) -> Response:
    """The report as data, with everything needed to check it: see docs/report.schema.json. 409 until it is ready, and
    where the session ended without one; `session_status` says how it stands."""
    return await _written(service, who, session_id, "json", download)


@router.get(
    "/v1/research/{session_id}/report.{format}",
    summary="Read the report as a document",
    response_class=Response,
    responses=_REPORTS,
)
async def report_as(
    service: Parts,
    who: Reads,
    session_id: SessionId,
    format: Annotated[Format, Path(description="bib, ris: only the references, for a reference manager")],
    download: Download = False,
) -> Response:
    return await _written(service, who, session_id, format, download)


@router.get(
    "/v1/research/{session_id}/evidence/{evidence_id}",
    summary="See a passage where it stands",
    responses=problems.responses(404, 409),
)
async def evidence(
    service: Parts,
    who: Reads,
    session_id: SessionId,
    evidence_id: Annotated[str, Path(description="as sentences cite it", examples=["e1f0c2ab34"])],
) -> EvidenceOut:
    """The passage that a citation opens: what stands before and after it in its source, and every sentence of the
    report that rests on it, with the verdict of its check."""
    row = await session_of(service, who, session_id)
    finished = await report_of(service, row)
    cited = next((e for e in finished.evidence if e.id == evidence_id), None)
    if cited is None:
        raise SessionNotFound(evidence_id)
    text = await in_thread(service.places.snapshots.text, cited.source)
    return evidence_in(finished, cited, text)


@router.get(
    "/v1/research/{session_id}/sources/{source_id}",
    summary="Read a source as it was read",
    response_class=PlainTextResponse,
    responses=problems.responses(404),
)
async def source(
    service: Parts,
    who: Reads,
    session_id: SessionId,
    source_id: Annotated[str, Path(description="SHA-256 of the text", examples=["9f86d081884c7d65…"])],
) -> PlainTextResponse:
    """The frozen text that evidence points into: `text[start:end] == quote`, in characters."""
    row = await session_of(service, who, session_id)
    if all(source_id != read.source_id for read in await service.store.snapshots(row.id)):
        raise SessionNotFound(source_id)  # of another session, perhaps another owner's
    return PlainTextResponse(await in_thread(service.places.snapshots.text, source_id))


@router.get(
    "/v1/research/{session_id}/charts/{chart_id}.svg",
    summary="Draw a chart of the report",
    response_class=Response,
    responses={200: {"description": "The chart.", "content": _media("image/svg+xml")}, **problems.responses(404, 409)},
)
async def chart(
    service: Parts,
    who: Reads,
    session_id: SessionId,
    chart_id: Annotated[str, Path(description="its id, or its number in the report, from 1")],
) -> Response:
    from marg_ray.report.charts import svg

    row = await session_of(service, who, session_id)
    charts = (await report_of(service, row)).charts
    found = next((c for n, c in enumerate(charts, 1) if chart_id in (c.id, str(n))), None)
    if found is None:
        raise SessionNotFound(chart_id)
    return Response(await service.offload(svg, found), media_type="image/svg+xml")


@router.get(
    "/v1/research/{session_id}/metrics",
    summary="See what the run did, how long each stage worked and what it cost",
    response_model=RunMetrics,
    responses=problems.responses(404),
)
async def metrics(service: Parts, who: Reads, session_id: SessionId) -> Response:
    row = await session_of(service, who, session_id)
    text = await service.store.metrics(row.id)
    if not text:  # it is not over
        entries, calls = await service.store.read(row.id), await service.store.calls(row.id)
        state, worked = await in_thread(worked_before, entries)
        text = (await in_thread(metrics_of, state, entries, row.status, worked, calls)).model_dump_json()
    return Response(text, media_type="application/json")


async def _written(service: Service, who: Caller, session_id: str, format: str, download: bool) -> Response:
    row = await session_of(service, who, session_id)
    finished = await report_of(service, row)
    if format not in FORMATS:
        raise UsageError(f"this server writes no .{format}", f"choose one of {', '.join(FORMATS)}")
    run = service.offload if format in HEAVY else in_thread
    body = await run(FORMATS[format], finished)
    headers = {"Cache-Control": "private, no-cache", "ETag": f'"{row.artefact}"'}
    if format == "html":
        headers["Content-Security-Policy"] = REPORT_POLICY
    if download:
        title = finished.title or finished.question
        headers["Content-Disposition"] = content_disposition(safe_name(title, f".{format}"))
    return Response(body, media_type=MEDIA_TYPES[format], headers=headers)
