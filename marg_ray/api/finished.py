"""A session's report, and a passage of it where it stands."""

from __future__ import annotations

from marg_ray.api.refusals import NoReport, NotReady
from marg_ray.api.schemas import CitedEvidence, CitedSource, CitingSentence, EvidenceOut
from marg_ray.api.service import Service
from marg_ray.errors import SessionNotFound
from marg_ray.records import ReportStatus
from marg_ray.report.model import Report, ReportEvidence, from_json
from marg_ray.seams import in_thread
from marg_ray.store.protocol import SessionRow

AROUND = 400  # letters before and after a passage


async def report_of(service: Service, row: SessionRow) -> Report:
    """The report of a session that ended with one.

    Raises:
        NotReady: there is none yet.
        NoReport: there will be none.
    """
    if not row.artefact:
        raise NoReport(row.id, row.status) if row.status == ReportStatus.CANCELLED else NotReady(row.id, row.status)
    text = await in_thread(service.places.artefacts.get, row.artefact)
    report = await in_thread(from_json, text)
    if refuses(report):
        raise NoReport(row.id, row.status, report.verdict)
    return report


def refuses(report: Report) -> bool:
    """Whether it says only why there is no report."""
    if report.status is ReportStatus.BUDGET_STOPPED:
        return not any(True for _ in report.sentences())
    return report.status is ReportStatus.INSUFFICIENT_EVIDENCE


def evidence_in(report: Report, cited: ReportEvidence, text: str) -> EvidenceOut:
    """A passage of `text`, its source's frozen text, with what rests on it.

    Raises:
        SessionNotFound: the report does not hold its source.
    """
    source = next((s for s in report.sources if s.id == cited.source), None)
    if source is None:
        raise SessionNotFound(cited.source)
    sentences = [("", s) for s in report.summary] + [(x.id, s) for x in report.sections for s in x.sentences]
    return EvidenceOut(
        evidence=CitedEvidence(**cited.model_dump(include=set(CitedEvidence.model_fields))),
        source=CitedSource(
            **source.model_dump(include=set(CitedSource.model_fields) - {"injections"}),
            injections=len(source.injections),
        ),
        before=text[max(0, cited.start - AROUND) : cited.start],
        quote=cited.quote,
        after=text[cited.end : cited.end + AROUND],
        sentences=tuple(
            CitingSentence(section=section, text=s.text, verdict=s.verdict, reason=s.reason)
            for section, s in sentences
            if cited.id in s.citations
        ),
    )
