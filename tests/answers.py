"""Legal answers to every task, chosen by a source of chance: what agents might say, good, bad and failing."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from random import Random

from marg_ray.folding import apply
from marg_ray.messages import (
    AnalysisReady,
    DraftGrounded,
    DraftReady,
    Message,
    PlanReady,
    ReportReady,
    ReviewDone,
    SearchDone,
    SessionStarted,
    SourceRead,
    TaskFailed,
)
from marg_ray.records import (
    Analysis,
    Answerability,
    Block,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Issue,
    IssueKind,
    Plan,
    Request,
    RequestClass,
    Review,
    ReviewVerdict,
    Scores,
    Section,
    Sentence,
    SentenceVerdict,
    Source,
    SourceKind,
    Usage,
    Verdict,
    Zone,
    evidence_id,
)
from marg_ray.state import ResearchState
from marg_ray.tasks import (
    AnalyseTask,
    DraftTask,
    FormatTask,
    GroundTask,
    PlanTask,
    ReadTask,
    ReviewTask,
    SearchTask,
    SummariseTask,
    Task,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ERRORS = ("ParseError", "BudgetExceeded", "OutputCut", "FetchFailed", "ZeroDivisionError")


def started(question: str = "How do tides make power?", **fields: object) -> SessionStarted:
    request = Request.model_validate({"question": question, **fields})
    return SessionStarted(task_id="S/start", session_id="S", request=request, started_at=NOW.isoformat())


def begin(**fields: object) -> ResearchState:
    return apply(ResearchState(), started(**fields))


def answer(task: Task, chance: Random, *, failing: float = 0.0) -> Message:
    """One legal answer to `task`."""
    if failing and chance.random() < failing:
        error = chance.choice((*ERRORS, "ModelUnavailable"))
        return TaskFailed(
            task_id=task.id,
            role=task.role,
            stage=task.kind,
            section=task.section,
            target=task.target,
            error=error,
            detail=f"{error} happened",
            exit_code=5,
        )
    match task:
        case PlanTask():
            return PlanReady(task_id=task.id, plan=_plan(chance), usage=Usage(calls=1, tokens_in=10))
        case SearchTask():
            zone = chance.choice((Zone.ANSWER, Zone.ANSWER, Zone.NEAREST, Zone.NOTHING))
            hits = tuple(_hit(chance) for _ in range(chance.randint(0, 6)))
            return SearchDone(
                task_id=task.id,
                section=task.section,
                query=task.query,
                hits=hits,
                answerability=Answerability(zone=zone),
                usage=Usage(searches=1),
            )
        case ReadTask():
            return _read(task, chance)
        case DraftTask():
            return DraftReady(task_id=task.id, draft=_draft(task.section, task.revision, task.evidence, chance))
        case SummariseTask():
            return DraftReady(task_id=task.id, draft=_draft(task.section, task.revision, (), chance))
        case GroundTask():
            return DraftGrounded(task_id=task.id, grounding=_grounding(task.draft, chance))
        case AnalyseTask():
            return AnalysisReady(task_id=task.id, analysis=Analysis(unknowns=("cost",)))
        case ReviewTask():
            return ReviewDone(task_id=task.id, review=_review(task, chance))
        case FormatTask():
            return ReportReady(task_id=task.id, artefact="0" * 64, status=task.status)


def _plan(chance: Random) -> Plan:
    count = chance.randint(1, 5)
    sections = tuple(
        Section(
            id=f"s{n}",
            title=f"Part {n}",
            weight=1 / count,
            queries=tuple(f"query {n}.{q}" for q in range(chance.randint(1, 4))),
        )
        for n in range(1, count + 1)
    )
    request_class = chance.choice(list(RequestClass))
    return Plan(title="Tides", request_class=request_class, language="en", sections=sections)


def _hit(chance: Random) -> Hit:
    return Hit(location=f"https://site.test/{chance.randint(0, 20)}", title="A page", kind=SourceKind.WEB)


def _read(task: ReadTask, chance: Random) -> SourceRead:
    if chance.random() < 0.2:
        return SourceRead(
            task_id=task.id, section=task.section, location=task.hit.location, status="unavailable", reason="time-out"
        )
    source = hashlib.sha256(task.hit.location.encode()).hexdigest()
    evidence = tuple(
        Evidence(id=evidence_id(source, n, n + 5), source=source, quote="tides", start=n, end=n + 5)
        for n in range(chance.randint(0, 3))
    )
    return SourceRead(
        task_id=task.id,
        section=task.section,
        location=task.hit.location,
        status="read",
        source=Source(
            id=source, title="A page", location=task.hit.location, kind=SourceKind.WEB, fetched_at=NOW, chars=100
        ),
        evidence=evidence,
        usage=Usage(calls=1, fetches=1),
    )


def _draft(section: str, revision: int, evidence: tuple[Evidence, ...], chance: Random) -> Draft:
    sentences = tuple(Sentence(text=f"{e.quote} {n}.", citations=(e.id,)) for n, e in enumerate(evidence))
    sentences += tuple(Sentence(text="Nobody said this.") for _ in range(chance.randint(0, 1)))
    return Draft(section=section, revision=revision, blocks=(Block(kind="paragraph", sentences=sentences),))


def _grounding(draft: Draft, chance: Random) -> Grounding:
    weights = (8, 1, 1, 1)
    kinds = (Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    verdicts = tuple(
        SentenceVerdict(verdict=v, reason="because") for v in chance.choices(kinds, weights, k=len(draft.sentences))
    )
    good = sum(v.verdict is Verdict.SUPPORTED for v in verdicts)
    coverage = good / len(verdicts) if verdicts else 1.0
    return Grounding(section=draft.section, revision=draft.revision, verdicts=verdicts, coverage=coverage)


def _review(task: ReviewTask, chance: Random) -> Review:
    verdict = chance.choice((ReviewVerdict.PASS, ReviewVerdict.RETRIEVAL_GAP, ReviewVerdict.QUALITY_FAIL))
    named = tuple(j.section.id for j in task.sections if chance.random() < 0.6)
    issues = tuple(
        Issue(
            kind=IssueKind.INCOMPLETE,
            severity="medium",
            section=s,
            detail="thin",
            fix_query=f"more on {s} in round {task.iteration}" if chance.random() < 0.8 else "",
        )
        for s in named
    )
    score = chance.random()
    scores = Scores(accuracy=score, coverage=score, clarity=score, objectivity=score)
    return Review(iteration=task.iteration, scores=scores, issues=issues, verdict=verdict, sections=named)
