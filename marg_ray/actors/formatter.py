"""The formatter: puts the report together and stores it. Decides nothing about its content."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from marg_ray.folding import replay
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.memory.recorded import taped
from marg_ray.messages import SUMMARY, Message, ReportReady
from marg_ray.models.tape import Tape
from marg_ray.narration import describe
from marg_ray.records import Analysis, Draft, DroppedCitation, ReportStatus, Role, Usage, Zone
from marg_ray.report.assemble import ReportInputs, build_report
from marg_ray.report.charts import charts_of
from marg_ray.report.model import Report, ReportNote, TraceEntry, to_json
from marg_ray.seams import Offload
from marg_ray.state import ResearchState, status_of, teller_of
from marg_ray.store.artefacts import Artefacts
from marg_ray.store.protocol import CallRow, LogEntry, Store
from marg_ray.tasks import FormatTask, Task

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Formatter:
    artefacts: Artefacts
    open_store: Callable[[], Awaitable[Store]]
    model_name: str
    light: Offload
    snapshots: Snapshots | None = None  # where the tables are that charts are drawn from
    tape: Tape | None = None  # it keeps the run, or knows when and how long its recording took
    role: ClassVar[Role] = Role.FORMATTER

    async def handle(self, task: Task) -> Message:
        assert isinstance(task, FormatTask)
        store = await self.open_store()
        await store.fence(task.session_id, task.epoch)  # a coordinator that was replaced leaves nothing behind
        entries = await store.read(task.session_id)
        state = await self.light(replay, [e.message for e in entries])
        usage = usage_of(await store.calls(task.session_id)) or state.usage
        inputs = report_inputs(state, tuple(entries), self.model_name, datetime.now(UTC), usage)
        report = await self.light(build_report, inputs)
        if self.snapshots is not None:
            report = await self.light(with_charts, report, self.snapshots)
        if self.tape is not None and state.request is not None:
            report = await self.light(taped, self.tape, state.request, [e.message for e in entries], report)
        artefact = await self.light(self.artefacts.put, to_json(report))
        words = sum(len(s.text.split()) for section in report.sections for s in section.sentences)
        nothing = report.status is ReportStatus.BUDGET_STOPPED and not state.evidence
        refused = nothing or report.status is ReportStatus.INSUFFICIENT_EVIDENCE
        return ReportReady(
            task_id=task.id,
            artefact=artefact,
            status=report.status,
            words=words,
            reason=inputs.verdict if refused else "",
        )


def with_charts(report: Report, snapshots: Snapshots) -> Report:
    """The report with its charts; without them, and a note, where they could not be made."""
    try:
        return report.model_copy(update={"charts": charts_of(report, snapshots.document)})
    except Exception as exc:
        log.warning("the charts of session %s could not be made", report.session_id, exc_info=exc)
        note = ReportNote(kind="charts", text=f"the charts could not be made ({type(exc).__name__})")
        return report.model_copy(update={"notes": (*report.notes, note)})


def usage_of(calls: Sequence[CallRow]) -> dict[Role, Usage]:
    """What the ledger says was spent, by role, with what was lost in calls whose process died."""
    spent: dict[Role, Usage] = {}
    for row in calls:
        spent[row.call.role] = spent.get(row.call.role, Usage()) + row.usage + row.lost
    return spent


def report_inputs(
    state: ResearchState, entries: tuple[LogEntry, ...], model: str, now: datetime, usage: Mapping[Role, Usage]
) -> ReportInputs:
    """What the state says, in the form the report is assembled from. A refusal carries no sections' text."""
    assert state.request is not None
    assert state.plan is not None
    status = status_of(state)
    refused = status is ReportStatus.INSUFFICIENT_EVIDENCE
    started = datetime.fromisoformat(state.started_at)
    sections = {} if refused else state.sections
    drafts = {key: s.draft for key, s in sections.items() if s.draft is not None}
    return ReportInputs(
        session_id=state.session_id,
        request=state.request,
        plan=state.plan.model_copy(update={"request_class": state.request_class}),
        model=model,
        status=status,
        drafts=drafts,
        summary=None if refused else _checked(state.summary),
        gaps={key: s.gap for key, s in state.sections.items() if s.gap},
        evidence=state.evidence,
        section_evidence={key: s.evidence for key, s in sections.items()},
        sources=state.sources,
        analysis=state.analysis or Analysis(),
        dropped={} if refused else _dropped(state),
        reviews=state.reviews,
        verdict=verdict_text(state, status),
        answerability=state.answerability,
        usage_by_role=dict(usage),
        wall_seconds=(now - started).total_seconds(),
        iterations=len(state.reviews),
        notes=state.notes,
        created_at=started,
        finished_at=now,
        trace=trace_of(entries),
    )


def _checked(summary: Draft | None) -> Draft | None:
    return summary if summary is not None and summary.sentences else None


def _dropped(state: ResearchState) -> dict[str, tuple[DroppedCitation, ...]]:
    checked = {key: s.grounding for key, s in state.sections.items()} | {SUMMARY: state.summary_grounding}
    return {key: g.dropped for key, g in checked.items() if g is not None and g.dropped}


def verdict_text(state: ResearchState, status: ReportStatus) -> str:
    """The outcome, in words."""
    last = state.reviews[-1].verdict if state.reviews else ""
    match status:
        case ReportStatus.PASSED:
            return "every sentence was checked against the passages it cites"
        case ReportStatus.BUDGET_STOPPED:
            why = [n.text for n in state.notes if n.kind == "budget"]
            return why[-1].partition(": ")[2] if why else "a limit is spent"
        case ReportStatus.CANCELLED:
            return "cancelled"
        case ReportStatus.INSUFFICIENT_EVIDENCE:
            assert state.request is not None
            if any(s.evidence for s in state.sections.values()) and state.answerability.zone is not Zone.NOTHING:
                return "INSUFFICIENT_EVIDENCE: the draft did not pass its checks, and a strict report was asked for"
            return "the sources do not answer the question"
        case ReportStatus.QUALITY_WARNING:
            if state.answerability.zone is Zone.NEAREST:
                return "the sources do not state this directly; this is the nearest material"
            return f"delivered with a warning{f': {last}' if last else ''}"


def trace_of(entries: tuple[LogEntry, ...]) -> tuple[TraceEntry, ...]:
    return tuple(
        TraceEntry(
            seq=e.seq,
            at=e.at,
            role=teller_of(e.message),
            task=e.message.task_id,
            text=describe(e.message),
        )
        for e in entries
    )
