"""The canonical state of a session, and the fold that makes it from the log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import assert_never

from pydantic import Field

from marg_ray.messages import (
    SCOUT,
    SUMMARY,
    AnalysisReady,
    DraftGrounded,
    DraftReady,
    Message,
    PlanDecided,
    PlanReady,
    ReportReady,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionResumed,
    SessionStarted,
    SourceRead,
    TaskFailed,
)
from marg_ray.records import (
    Analysis,
    Answerability,
    Block,
    Depth,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Note,
    Plan,
    Record,
    ReportStatus,
    Request,
    RequestClass,
    Review,
    ReviewVerdict,
    Role,
    Section,
    Sentence,
    SentenceVerdict,
    Source,
    Usage,
    Verdict,
    Zone,
)

MIN_COVERAGE = 0.90  # of a section's factual sentences
MAX_FEEDBACK = 30  # remarks that a writer is given
MAX_FAILED_REVISIONS = 2  # after these the honest verdict ships
READS_PER_QUERY = {Depth.OVERVIEW: 3, Depth.STANDARD: 5, Depth.DEEP: 10}
READS_PER_SECTION = {Depth.OVERVIEW: 4, Depth.STANDARD: 8, Depth.DEEP: 12}


class SearchSlot(Record):
    query: str
    iteration: int
    done: bool = False
    zone: Zone = Zone.NOTHING


class ReadSlot(Record):
    hit: Hit
    done: bool = False


class SectionState(Record):
    """A section's own path: researched, drafted and grounded without waiting for the others."""

    section: Section
    searches: tuple[SearchSlot, ...]
    reads: tuple[ReadSlot, ...] = ()
    evidence: tuple[str, ...] = ()
    wanted: int = 1  # the revision that is to be written
    draft: Draft | None = None
    drafted_from: int = 0  # how much evidence the draft had
    grounding: Grounding | None = None
    failed_revisions: int = 0
    feedback: tuple[str, ...] = ()
    failure: str = ""  # why the section could not be researched or written, if so

    @property
    def researched(self) -> bool:
        return all(s.done for s in self.searches) and all(r.done for r in self.reads)

    @property
    def grounded(self) -> bool:
        return (
            self.draft is not None
            and self.grounding is not None
            and self.draft.revision == self.grounding.revision == self.wanted
        )

    @property
    def settled(self) -> bool:
        """Nothing more is due here: the draft is grounded, or there is nothing to draft from."""
        return self.researched and (self.grounded or not self.evidence)

    @property
    def gap(self) -> str:
        if self.evidence or not self.researched:
            return ""
        return self.failure or "no source says anything on this"


class Halt(Record):
    """The session stopped and can be resumed."""

    error: str
    detail: str
    stage: str
    exit_code: int


class ResearchState(Record):
    session_id: str = ""
    request: Request | None = None
    started_at: str = ""
    answered: frozenset[str] = frozenset()
    scouted: bool = False
    scout_hits: tuple[Hit, ...] = ()
    answerability: Answerability = Answerability()
    plan: Plan | None = None
    plan_approved: bool = False
    plan_rejections: tuple[str, ...] = ()
    sections: dict[str, SectionState] = Field(default_factory=dict)
    evidence: dict[str, Evidence] = Field(default_factory=dict)
    sources: dict[str, Source] = Field(default_factory=dict)
    unavailable: dict[str, str] = Field(default_factory=dict)  # location to reason
    analysis: Analysis | None = None
    analysed_from: int = 0  # how much evidence the analysis had
    iteration: int = 1
    extra_iterations: int = 0  # granted at the gate
    reviews: tuple[Review, ...] = ()
    reviewed: dict[str, int] = Field(default_factory=dict)  # section to the revision that the last review saw
    review_failed: bool = False
    decided: bool = False  # at the gate
    summary: Draft | None = None
    summary_grounding: Grounding | None = None
    summary_failed: bool = False
    format_failures: int = 0
    report: ReportReady | None = None
    halt: Halt | None = None
    halts: int = 0
    cancelled: bool = False
    budget_stopped: bool = False
    notes: tuple[Note, ...] = ()
    usage: dict[Role, Usage] = Field(default_factory=dict)

    @property
    def cap(self) -> int:
        """Critic rounds allowed."""
        assert self.request is not None
        if self.request_class is RequestClass.QUICK_RESEARCH:
            return 1 + self.extra_iterations
        return self.request.max_iterations + self.extra_iterations

    @property
    def request_class(self) -> RequestClass:
        if self.request is not None and self.request.request_class is not None:
            return self.request.request_class
        return self.plan.request_class if self.plan else RequestClass.FULL_RESEARCH

    @property
    def drafts_changed(self) -> bool:
        """Whether any section differs from what the last review saw."""
        return self.reviewed != {s.section.id: s.draft.revision for s in self.sections.values() if s.draft}

    @property
    def over(self) -> bool:
        return self.report is not None or self.halt is not None or self.cancelled


def apply(state: ResearchState, message: Message) -> ResearchState:
    """Fold one message into the state. No clock, no I/O, no Ray: replaying the log gives the state."""
    if message.task_id in state.answered:  # redelivered, or the task ran twice
        return state
    if state.halt is not None and isinstance(message, TaskFailed):  # due again after the resume
        return state
    state = _book(state, message)
    match message:
        case SessionStarted():
            return _with(state, session_id=message.session_id, request=message.request, started_at=message.started_at)
        case PlanReady():
            return _planned(state, message.plan)
        case PlanDecided():
            return _plan_decided(state, message)
        case SearchDone():
            return _searched(state, message)
        case SourceRead():
            return _read(state, message)
        case DraftReady():
            return _drafted(state, message.draft)
        case DraftGrounded():
            return _grounded(state, message.grounding)
        case AnalysisReady():
            return _with(state, analysis=message.analysis, analysed_from=len(state.evidence))
        case ReviewDone():
            return _reviewed(state, message.review)
        case ReviewDecided():
            return _review_decided(state, message)
        case ReportReady():
            return _with(state, report=message)
        case TaskFailed():
            return _failed(state, message)
        case SessionCancelled():
            return _with(state, cancelled=True) if state.report is None else state
        case SessionResumed():
            return _with(state, halt=None)
    assert_never(message)


def replay(messages: Iterable[Message]) -> ResearchState:
    """The state after a log."""
    state = ResearchState()
    for message in messages:
        state = apply(state, message)
    return state


def status_of(state: ResearchState) -> ReportStatus:
    """The status a report made from this state would carry."""
    sections = state.sections.values()
    if state.cancelled:
        return ReportStatus.CANCELLED
    if not any(s.evidence for s in sections):
        return ReportStatus.BUDGET_STOPPED if state.budget_stopped else ReportStatus.INSUFFICIENT_EVIDENCE
    if state.budget_stopped:
        return ReportStatus.BUDGET_STOPPED
    if passes(state):
        return ReportStatus.PASSED
    assert state.request is not None
    return ReportStatus.INSUFFICIENT_EVIDENCE if state.request.strict else ReportStatus.QUALITY_WARNING


def passes(state: ResearchState) -> bool:
    """Every sentence that is published was checked and holds, and the last review passed or was not asked for."""
    drafts = [s.grounding for s in state.sections.values() if s.draft]
    if state.summary is not None:
        drafts.append(state.summary_grounding)
    fine = all(g is not None and grounding_passes(g) for g in drafts)
    if not fine or state.answerability.zone is not Zone.ANSWER or state.review_failed:
        return False
    if any(s.failure or (s.draft and s.draft.incomplete) for s in state.sections.values()):
        return False
    return not state.reviews or state.reviews[-1].verdict is ReviewVerdict.PASS


def grounding_passes(grounding: Grounding) -> bool:
    bad = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_CHECKED)
    return grounding.coverage >= MIN_COVERAGE and not any(v.verdict in bad for v in grounding.verdicts)


def slot_of(location: str) -> str:
    """A short name for a location inside task ids."""
    return hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:12]


# ---- folding, one fact each


def _with(state: ResearchState, **changes: object) -> ResearchState:
    return state.model_copy(update=changes)


def _book(state: ResearchState, message: Message) -> ResearchState:
    """Every message: remember its task, add its notes and what it cost."""
    changes: dict[str, object] = {"answered": state.answered | {message.task_id}}
    fresh = tuple(n for n in message.notes if n not in state.notes)
    if fresh:
        changes["notes"] = state.notes + fresh
    if message.usage != Usage():
        role = role_of(message)
        changes["usage"] = {**state.usage, role: state.usage.get(role, Usage()) + message.usage}
    return _with(state, **changes)


def role_of(message: Message) -> Role:
    """The agent that says this kind of thing."""
    match message:
        case PlanReady() | PlanDecided() | SessionStarted() | SessionCancelled() | SessionResumed():
            return Role.PLANNER
        case SearchDone() | SourceRead():
            return Role.RESEARCHER
        case AnalysisReady():
            return Role.ANALYST
        case DraftReady():
            return Role.SYNTHESIZER
        case DraftGrounded() | ReviewDone() | ReviewDecided():
            return Role.CRITIC
        case ReportReady():
            return Role.FORMATTER
        case TaskFailed():
            return message.role
    assert_never(message)


def _section(state: ResearchState, section: SectionState) -> ResearchState:
    return _with(state, sections={**state.sections, section.section.id: section})


def _planned(state: ResearchState, plan: Plan) -> ResearchState:
    assert state.request is not None
    sections = {
        s.id: SectionState(section=s, searches=tuple(SearchSlot(query=q, iteration=1) for q in s.queries))
        for s in plan.sections
    }
    return _with(state, plan=plan, sections=sections, plan_approved=not state.request.approve_plan)


def _plan_decided(state: ResearchState, decided: PlanDecided) -> ResearchState:
    if state.plan is None or state.plan_approved:
        return state
    if not decided.approved:  # the planner is asked again, with the note
        return _with(state, plan=None, sections={}, plan_rejections=(*state.plan_rejections, decided.note))
    plan = state.plan
    if decided.sections:
        plan = plan.model_copy(update={"sections": decided.sections})
    return _with(_planned(state, plan), plan_approved=True)


def _searched(state: ResearchState, found: SearchDone) -> ResearchState:
    if found.section == SCOUT:
        return _with(state, scouted=True, scout_hits=found.hits, answerability=found.answerability)
    section = state.sections.get(found.section)
    if section is None or state.request is None:
        return state
    searches = tuple(
        s.model_copy(update={"done": True, "zone": found.answerability.zone}) if s.query == found.query else s
        for s in section.searches
    )
    zone = found.answerability.zone
    run_zone = state.answerability.zone
    useful = zone is Zone.ANSWER or (zone is Zone.NEAREST and run_zone is not Zone.NOTHING)
    reads = section.reads + (_chosen(state, section, found) if useful else ())
    if run_zone is Zone.NOTHING and zone is Zone.ANSWER:  # a sub-question found what the question did not
        lifted = state.answerability.model_copy(update={"zone": Zone.NEAREST})
        state = _with(state, answerability=lifted)
    return _settle(state, section.model_copy(update={"searches": searches, "reads": reads}))


def _chosen(state: ResearchState, section: SectionState, found: SearchDone) -> tuple[ReadSlot, ...]:
    """Which hits of one search are read: the best, not read for this section yet, within the depth's counts."""
    assert state.request is not None
    depth = state.request.depth
    known = {r.hit.location for r in section.reads}
    rounds = max((s.iteration for s in section.searches), default=1)
    room = READS_PER_SECTION[depth] * rounds - len(section.reads)
    fresh = {h.location: h for h in reversed(found.hits) if h.location not in known | state.unavailable.keys()}
    best = list(reversed(fresh.values()))
    return tuple(ReadSlot(hit=h) for h in best[: max(0, min(READS_PER_QUERY[depth], room))])


def _read(state: ResearchState, read: SourceRead) -> ResearchState:
    section = state.sections.get(read.section)
    if section is None:
        return state
    reads = tuple(r.model_copy(update={"done": True}) if r.hit.location == read.location else r for r in section.reads)
    if read.source is not None:
        state = _with(state, sources={**state.sources, read.source.id: read.source})
    if read.status == "unavailable":
        state = _with(state, unavailable={**state.unavailable, read.location: read.reason})
    fresh = tuple(e.id for e in read.evidence if e.id not in section.evidence)
    if read.evidence:
        state = _with(state, evidence={**state.evidence, **{e.id: e for e in read.evidence}})
    return _settle(state, section.model_copy(update={"reads": reads, "evidence": section.evidence + fresh}))


def _settle(state: ResearchState, section: SectionState) -> ResearchState:
    """When research on a section ends: want a new draft if it brought evidence that the present one did not have."""
    if section.researched and section.draft is not None and len(section.evidence) > section.drafted_from:
        section = section.model_copy(
            update={"wanted": section.draft.revision + 1, "drafted_from": len(section.evidence)}
        )
    if section.researched and section.draft is None and state.request_class is RequestClass.RESEARCH_ONLY:
        section = _quoted(section, state.evidence)
    return _section(state, section)


def _drafted(state: ResearchState, draft: Draft) -> ResearchState:
    if draft.section == SUMMARY:
        return _with(state, summary=draft)
    section = state.sections.get(draft.section)
    if section is None or draft.revision != section.wanted:
        return state
    return _section(
        state,
        section.model_copy(update={"draft": draft, "drafted_from": len(section.evidence)}),
    )


def _grounded(state: ResearchState, grounding: Grounding) -> ResearchState:
    if grounding.section == SUMMARY:
        if state.summary is None or not grounding_passes(grounding):
            return _with(state, summary=None, summary_failed=True)  # the formatter takes supported sentences
        return _with(state, summary=_judged(state.summary, grounding), summary_grounding=grounding)
    section = state.sections.get(grounding.section)
    if section is None or section.draft is None or grounding.revision != section.draft.revision:
        return state
    section = section.model_copy(update={"draft": _judged(section.draft, grounding), "grounding": grounding})
    if grounding_passes(grounding) or not grounding.checked or section.failed_revisions >= MAX_FAILED_REVISIONS:
        return _section(state, section)
    return _section(
        state,
        section.model_copy(
            update={
                "wanted": section.wanted + 1,
                "failed_revisions": section.failed_revisions + 1,
                "feedback": _told(section, _feedback(section.draft, grounding)),
            }
        ),
    )


def _judged(draft: Draft, grounding: Grounding) -> Draft:
    """The draft with each sentence's verdict on it."""
    verdicts = iter(grounding.verdicts)
    blocks = []
    for block in draft.blocks:
        sentences = []
        for sentence in block.sentences:
            judged = next(verdicts, SentenceVerdict(verdict=Verdict.NOT_CHECKED))
            sentences.append(sentence.model_copy(update={"verdict": judged.verdict, "reason": judged.reason}))
        blocks.append(block.model_copy(update={"sentences": tuple(sentences)}))
    return draft.model_copy(update={"blocks": tuple(blocks)})


def _told(section: SectionState, fresh: Iterable[str]) -> tuple[str, ...]:
    """Feedback adds up over the revisions: what was mended once shall not come back."""
    return tuple(dict.fromkeys((*section.feedback, *fresh)))[-MAX_FEEDBACK:]


def _feedback(draft: Draft | None, grounding: Grounding) -> Iterable[str]:
    fine = (Verdict.SUPPORTED, Verdict.NOT_FACTUAL)
    for sentence, judged in zip(draft.sentences if draft else (), grounding.verdicts, strict=False):
        if judged.verdict not in fine:
            yield f'{judged.verdict}: "{sentence.text}" ({judged.reason})'


def _reviewed(state: ResearchState, review: Review) -> ResearchState:
    seen = {s.section.id: s.draft.revision for s in state.sections.values() if s.draft}
    state = _with(state, reviews=(*state.reviews, review), reviewed=seen)
    if review.verdict in (ReviewVerdict.PASS, ReviewVerdict.INSUFFICIENT_EVIDENCE) or state.iteration >= state.cap:
        return state
    return _next_round(state, review)


def _next_round(state: ResearchState, review: Review) -> ResearchState:
    """Send the named sections back: to research where evidence is missing, to the writer where the text is at fault."""
    iteration = state.iteration + 1
    sections = dict(state.sections)
    for section_id in review.sections:
        section = sections.get(section_id)
        if section is None:
            continue
        issues = [i for i in review.issues if i.section in (section_id, "")]
        if review.verdict is ReviewVerdict.RETRIEVAL_GAP:
            known = {s.query for s in section.searches}
            queries = dict.fromkeys(i.fix_query for i in issues if i.fix_query and i.fix_query not in known)
            fresh = tuple(SearchSlot(query=q, iteration=iteration) for q in list(queries)[:3])
            sections[section_id] = section.model_copy(update={"searches": section.searches + fresh})
        elif section.draft is not None:
            feedback = _told(section, (i.instruction or i.detail for i in issues))
            sections[section_id] = section.model_copy(
                update={
                    "wanted": section.draft.revision + 1,
                    "feedback": feedback,
                    "failed_revisions": MAX_FAILED_REVISIONS - 1,
                }
            )
    return _with(state, iteration=iteration, sections=sections)


def _review_decided(state: ResearchState, decided: ReviewDecided) -> ResearchState:
    note = Note(
        kind="gate",
        text=f"{decided.decision} by {decided.by}" + (f": {decided.note}" if decided.note else ""),
    )
    state = _with(state, notes=(*state.notes, note))
    if decided.decision == "approve":
        return _with(state, decided=True)
    if decided.decision == "extend":
        state = _with(state, extra_iterations=state.extra_iterations + 1)
        return _next_round(state, state.reviews[-1]) if state.reviews else state
    sections = {
        key: s.model_copy(update={"wanted": s.draft.revision + 1, "feedback": (decided.note,)}) if s.draft else s
        for key, s in state.sections.items()
    }
    extra = state.extra_iterations + 1
    return _with(state, sections=sections, iteration=state.iteration + 1, extra_iterations=extra)


# ---- failures


HALTING = frozenset({"ModelUnavailable", "SearchUnavailable"})


def _failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """What a failed task means: a halt that can be resumed, or a run that goes on without it and says so."""
    if failed.error == "BudgetExceeded":
        state = _with(state, budget_stopped=True)
    late = failed.stage in ("ground", "analyse", "review", "summarise", "format")
    if failed.error in HALTING and not late and not (failed.stage == "search" and failed.section != SCOUT):
        return _halted(state, failed)
    match failed.stage:
        case "search" if failed.section != SCOUT:
            state = _noted(state, failed, "a search failed")
            return _searched(state, SearchDone(task_id=failed.task_id, section=failed.section, query=failed.target))
        case "read":
            state = _noted(state, failed, "a source could not be read")
            return _read(
                state,
                SourceRead(
                    task_id=failed.task_id,
                    section=failed.section,
                    location=failed.target,
                    status="unavailable",
                    reason=failed.detail,
                ),
            )
        case "draft" if failed.section in state.sections:
            return _draft_failed(_noted(state, failed, "quoted instead of written"), failed)
        case "ground":
            return _ground_failed(_noted(state, failed, "not checked"), failed)
        case "analyse":
            state = _noted(state, failed, "findings across the sources are missing")
            return _with(state, analysis=state.analysis or Analysis(), analysed_from=len(state.evidence))
        case "review":
            return _with(_noted(state, failed, "the draft was not reviewed"), review_failed=True)
        case "summarise":
            return _with(_noted(state, failed, "the summary is made of the sections' sentences"), summary_failed=True)
        case "format" if state.format_failures == 0:
            return _with(state, format_failures=1)
    return _halted(state, failed)


def _halted(state: ResearchState, failed: TaskFailed) -> ResearchState:
    """Stop here. The task counts as not answered, so that it is due again after a resume."""
    halt = Halt(error=failed.error, detail=failed.detail, stage=failed.stage, exit_code=failed.exit_code)
    return _with(state, halt=halt, halts=state.halts + 1, answered=state.answered - {failed.task_id})


def _noted(state: ResearchState, failed: TaskFailed, what: str) -> ResearchState:
    note = Note(kind=f"{failed.stage}_failed", text=f"{what}: {failed.detail}", section=failed.section)
    return _with(state, notes=(*state.notes, note))


def _draft_failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    section = state.sections[failed.section]
    if section.draft is not None:  # the earlier text stands, as the revision that failed: numbers only rise
        stands = {"revision": section.wanted}
        changes: dict[str, object] = {"draft": section.draft.model_copy(update=stands), "failure": failed.detail}
        if section.grounding is not None:
            changes["grounding"] = section.grounding.model_copy(update=stands)
        return _section(state, section.model_copy(update=changes))
    quoted = _quoted(section.model_copy(update={"failure": failed.detail}), state.evidence)
    return _section(state, quoted)


def _ground_failed(state: ResearchState, failed: TaskFailed) -> ResearchState:
    if failed.section == SUMMARY:
        return _with(state, summary=None, summary_failed=True)
    section = state.sections.get(failed.section)
    if section is None or section.draft is None:
        return state
    count = len(section.draft.sentences)
    unchecked = Grounding(
        section=failed.section,
        revision=section.draft.revision,
        verdicts=(SentenceVerdict(verdict=Verdict.NOT_CHECKED, reason=failed.detail),) * count,
        coverage=0.0,
        checked=False,
    )
    return _grounded(state, unchecked)


def _quoted(section: SectionState, evidence: dict[str, Evidence]) -> SectionState:
    """A draft without a writer: the section's evidence, each passage quoted and cited."""
    blocks = tuple(
        Block(kind="bullet", sentences=(Sentence(text=" ".join(evidence[e].quote.split()), citations=(e,)),))
        for e in section.evidence
    )
    draft = Draft(section=section.section.id, revision=section.wanted, blocks=blocks, prompted=section.evidence)
    return section.model_copy(update={"draft": draft, "drafted_from": len(section.evidence)})
