"""Puts a report together from what a run has established: numbering, layout, bookkeeping. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from marg_ray.grounding.canon import CitationCounts, repeats
from marg_ray.grounding.citations import number_sources
from marg_ray.records import (
    Analysis,
    Answerability,
    Block,
    Draft,
    DroppedCitation,
    Evidence,
    Note,
    Plan,
    ReportStatus,
    Request,
    Review,
    Role,
    Section,
    Sentence,
    SentenceVerdict,
    Source,
    Usage,
    Verdict,
)
from marg_ray.report import citing
from marg_ray.report.cautions import with_cautions
from marg_ray.report.model import (
    CutPassage,
    Disagreement,
    Gap,
    Reference,
    Report,
    ReportAnswerability,
    ReportBlock,
    ReportClaim,
    ReportEvidence,
    ReportFinding,
    ReportIssue,
    ReportNote,
    ReportScores,
    ReportSection,
    ReportSentence,
    ReportSignal,
    ReportSource,
    ReportUsage,
    Side,
    Spent,
    TraceEntry,
)
from marg_ray.text import clean_text as clean
from marg_ray.text import one_line

QUOTED = "quoted word for word"
_PROSE = ("paragraph", "bullet", "ordered", "quote")


@dataclass(frozen=True, kw_only=True)
class ReportInputs:
    """What a run hands over. Sentences of `drafts` and `summary` carry their verdicts already.

    `section_evidence` lists each section's evidence ids, best first: a section without a draft shows them as
    quotations. `answerability` says how far the sources answer the question as a whole.
    """

    session_id: str
    request: Request
    plan: Plan
    model: str
    status: ReportStatus
    drafts: Mapping[str, Draft] = field(default_factory=dict)
    summary: Draft | None = None
    gaps: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    section_evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    analysis: Analysis = field(default_factory=Analysis)
    dropped: Mapping[str, tuple[DroppedCitation, ...]] = field(default_factory=dict)  # by section, or "summary"
    reviews: tuple[Review, ...] = ()
    verdict: str = ""
    answerability: Answerability | None = None
    usage_by_role: Mapping[Role, Usage] = field(default_factory=dict)
    wall_seconds: float = 0.0
    iterations: int = 0
    notes: tuple[Note, ...] = ()
    created_at: datetime | None = None
    finished_at: datetime | None = None
    trace: tuple[TraceEntry, ...] = ()


def build_report(inputs: ReportInputs) -> Report:
    """The report of a run. The same inputs give the same report, byte for byte."""
    known = _known_evidence(inputs)
    inputs = _with_originals(inputs, known)
    written = [_section(section, inputs, known) for section in inputs.plan.sections]
    summary, summary_blocks = _summary(inputs, known, written)
    summary = with_cautions(summary, known, inputs.sources)
    written = [w.model_copy(update={"sentences": with_cautions(w.sentences, known, inputs.sources)}) for w in written]
    ordered = (*summary, *(s for w in written for s in w.sentences))
    numbers = number_sources((Sentence(text=s.text, citations=s.citations) for s in ordered), known)
    cited = [citing.figures(w.sentences, known, inputs.sources) for w in written]
    sections = tuple(
        w.model_copy(update={"sentences": _numbered(w.sentences, numbers, known), "citations": citing.shown(c)})
        for w, c in zip(written, cited, strict=True)
    )
    disagreements = tuple(_disagreements(inputs.analysis, known))
    findings = tuple(_findings(inputs.analysis, known))
    used = _used_evidence(ordered, disagreements, findings)
    last = inputs.reviews[-1] if inputs.reviews else None
    status = _status(inputs.status, ordered)
    return Report(
        session_id=inputs.session_id,
        question=clean(inputs.request.question),
        title=one_line(inputs.plan.title) or one_line(inputs.request.question),
        language=inputs.plan.language,
        model=inputs.model,
        status=status,
        verdict=clean(inputs.verdict),
        depth=inputs.request.depth,
        request_class=inputs.plan.request_class,
        created_at=inputs.created_at,
        finished_at=inputs.finished_at,
        summary=_numbered(summary, numbers, known),
        summary_blocks=summary_blocks,
        sections=sections,
        references=tuple(Reference(number=n, source=s) for s, n in numbers.items()),
        evidence=tuple(_evidence(known[i]) for i in used),
        sources=tuple(_sources(inputs.sources, numbers)),
        contradictions=disagreements,
        findings=findings,
        unknowns=tuple(clean(u) for u in inputs.analysis.unknowns),
        gaps=tuple(Gap(section=s.id, reason=s.gap) for s in sections if s.gap),
        hypotheses=tuple(clean(h) for h in inputs.plan.hypotheses),
        answerability=_answerability(inputs.answerability),
        scores=ReportScores(**_finite(last.scores.model_dump())) if last else None,
        issues=tuple(ReportIssue(**issue.model_dump()) for issue in last.issues) if last else (),
        signals=tuple(ReportSignal(**signal.model_dump()) for signal in last.signals) if last else (),
        citations=citing.shown(sum(cited, CitationCounts())),
        dropped_citations=tuple(
            citing.left_out(_drafts(inputs), inputs.dropped, inputs.section_evidence, known, inputs.sources)
        ),
        iterations=inputs.iterations,
        usage=_usage(inputs.usage_by_role, inputs.wall_seconds),
        notes=tuple(_notes(inputs, known, status)),
        trace=inputs.trace,
    )


# ---- sentences and layout


def _known_evidence(inputs: ReportInputs) -> dict[str, Evidence]:
    """Evidence that can be shown: its source is at hand."""
    return {i: e for i, e in inputs.evidence.items() if e.source in inputs.sources}


def _drafts(inputs: ReportInputs) -> list[Draft]:
    """Everything that was written, the summary first."""
    return [d for d in (inputs.summary, *inputs.drafts.values()) if d is not None]


def _with_originals(inputs: ReportInputs, known: Mapping[str, Evidence]) -> ReportInputs:
    """What was handed over, with no citation of a passage that merely repeats another source's."""
    copies = repeats(tuple(known.values()), inputs.sources)
    if not copies:
        return inputs
    found = {d.section: citing.with_originals(d, copies, known, inputs.sources) for d in _drafts(inputs)}
    return replace(
        inputs,
        drafts={key: found[d.section][0] for key, d in inputs.drafts.items()},
        summary=found[inputs.summary.section][0] if inputs.summary else None,
        dropped={key: (*inputs.dropped.get(key, ()), *found[key][1]) for key in found},
    )


def _section(section: Section, inputs: ReportInputs, known: Mapping[str, Evidence]) -> ReportSection:
    draft = inputs.drafts.get(section.id)
    gap = clean(inputs.gaps.get(section.id, ""))
    quotes = [known[i] for i in inputs.section_evidence.get(section.id, ()) if i in known]
    quoted = draft is None and bool(quotes)
    if quoted:
        blocks = tuple(Block(kind="bullet", sentences=(_quoted(e),)) for e in quotes)
    else:
        blocks = draft.blocks if draft else ()
        gap = gap or ("" if blocks else "no passage was found for it")
    sentences = tuple(_sentence(s, known) for block in blocks for s in block.sentences)
    return ReportSection(
        id=section.id,
        title=one_line(section.title) or section.id,
        sentences=sentences,
        blocks=tuple(_layout(blocks)),
        gap=gap,
        quoted_only=quoted,
    )


def _quoted(evidence: Evidence) -> Sentence:
    return Sentence(text=one_line(evidence.quote), citations=(evidence.id,), verdict=Verdict.SUPPORTED, reason=QUOTED)


def _layout(blocks: Iterable[Block]) -> Iterator[ReportBlock]:
    at = 0
    for block in blocks:
        end = at + len(block.sentences)
        text = clean(block.text)
        if end > at or text.strip():
            yield ReportBlock(kind=block.kind, start=at, end=end, text=text, level=block.level, language=block.language)
        at = end


def _sentence(sentence: Sentence, known: Mapping[str, Evidence]) -> ReportSentence:
    """A sentence that cites only what is there; each piece of evidence once."""
    return ReportSentence(
        text=clean(sentence.text),
        citations=tuple(dict.fromkeys(c for c in sentence.citations if c in known)),
        verdict=sentence.verdict or Verdict.NOT_CHECKED,
        reason=clean(sentence.reason),
        **(_found(sentence.check, sentence.citations, known) if sentence.check else {}),
    )


def _found(check: SentenceVerdict, cited: Iterable[str], known: Mapping[str, Evidence]) -> dict[str, Any]:
    """What the check says beside verdict and reason; of evidence only what the sentence cites and the report holds."""
    there = {c for c in cited if c in known}

    def place(evidence: str, span: tuple[int, int] | None) -> dict[str, Any]:
        holds = evidence in there
        return {"evidence": evidence if holds else "", "span": span if holds else None}

    claims = tuple(
        ReportClaim(text=clean(c.text), verdict=c.verdict, reason=clean(c.reason), **place(c.evidence, c.span))
        for c in check.claims
    )
    return {
        "probability": check.probability,
        "claims": claims,
        "checked_by": check.checked_by,
        **place(check.evidence, check.span),
    }


def _summary(
    inputs: ReportInputs, known: Mapping[str, Evidence], sections: list[ReportSection]
) -> tuple[tuple[ReportSentence, ...], tuple[ReportBlock, ...]]:
    """The written summary, else the first supported sentence of each section as a list."""
    if inputs.summary is not None and inputs.summary.sentences:
        written = tuple(_sentence(s, known) for s in inputs.summary.sentences)
        return written, tuple(_layout(inputs.summary.blocks))
    firsts = [_first_supported(section) for section in sections if not section.quoted_only]
    chosen = tuple({s.text: s for s in firsts if s is not None}.values())
    return chosen, tuple(ReportBlock(kind="bullet", start=i, end=i + 1) for i in range(len(chosen)))


def _first_supported(section: ReportSection) -> ReportSentence | None:
    for block in section.blocks:
        for sentence in section.sentences[block.start : block.end] if block.kind in _PROSE else ():
            if sentence.verdict is Verdict.SUPPORTED and sentence.citations:
                return sentence
    return None


# ---- numbers and what they stand for


def _numbered(
    sentences: Iterable[ReportSentence], numbers: Mapping[str, int], known: Mapping[str, Evidence]
) -> tuple[ReportSentence, ...]:
    return tuple(
        s.model_copy(update={"numbers": tuple(sorted({numbers[known[c].source] for c in s.citations}))})
        for s in sentences
    )


def _used_evidence(
    sentences: Iterable[ReportSentence], boxes: Iterable[Disagreement], findings: Iterable[ReportFinding]
) -> list[str]:
    used = dict.fromkeys(c for s in sentences for c in s.citations)
    used |= dict.fromkeys(side.evidence for box in boxes for side in box.sides)
    used |= dict.fromkeys(c for finding in findings for c in finding.evidence)
    return list(used)


def _evidence(e: Evidence) -> ReportEvidence:
    return ReportEvidence(**e.model_dump(exclude={"relevance"}))


def _sources(sources: Mapping[str, Source], numbers: Mapping[str, int]) -> Iterator[ReportSource]:
    """Everything that was read: cited sources by number, then the others by place."""
    last = len(numbers) + 1
    for source in sorted(sources.values(), key=lambda s: (numbers.get(s.id, last), s.location, s.id)):
        cut = tuple(CutPassage(text=clean(i.text), rule=i.rule, at=i.at, where=i.where) for i in source.injections)
        fields = source.model_dump(exclude={"injections", "title", "location"})
        yield ReportSource(**fields, title=one_line(source.title), location=clean(source.location), injections=cut)


def _disagreements(analysis: Analysis, known: Mapping[str, Evidence]) -> Iterator[Disagreement]:
    for found in analysis.contradictions:
        sides = tuple(
            Side(value=one_line(s.value), evidence=s.evidence, date=s.date) for s in found.sides if s.evidence in known
        )
        if len(sides) > 1:
            yield Disagreement(subject=one_line(found.subject), sides=sides, note=clean(found.note))


def _findings(analysis: Analysis, known: Mapping[str, Evidence]) -> Iterator[ReportFinding]:
    for finding in analysis.findings:
        evidence = tuple(dict.fromkeys(i for i in finding.evidence if i in known))
        if evidence:
            yield ReportFinding(text=clean(finding.text), evidence=evidence)


# ---- bookkeeping


def _answerability(found: Answerability | None) -> ReportAnswerability | None:
    return ReportAnswerability(**_finite(found.model_dump())) if found else None


def _usage(by_role: Mapping[Role, Usage], wall_seconds: float) -> ReportUsage:
    spent = {role.value: by_role[role] for role in sorted(by_role)}
    total = sum(spent.values(), Usage())
    return ReportUsage(
        **_finite(total.model_dump()),
        by_role={role: Spent(**_finite(usage.model_dump())) for role, usage in spent.items()},
        wall_seconds=wall_seconds if math.isfinite(wall_seconds) else 0.0,
    )


def _status(claimed: ReportStatus, sentences: Iterable[ReportSentence]) -> ReportStatus:
    """What was claimed, but never "passed" over a sentence that does not hold."""
    bad = any(s.verdict in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED) for s in sentences)
    return ReportStatus.QUALITY_WARNING if bad and claimed is ReportStatus.PASSED else claimed


def _notes(inputs: ReportInputs, known: Mapping[str, Evidence], status: ReportStatus) -> Iterator[ReportNote]:
    if status is not inputs.status:
        text = "the review passed this report, but a sentence in it is not supported by what it cites"
        yield ReportNote(kind="status", text=text)
    for note in inputs.notes:
        yield ReportNote(kind=note.kind, text=clean(note.text), section=note.section)
    for draft in _drafts(inputs):
        if draft.incomplete:
            text = "the writer's answer was cut off and could not be completed"
            yield ReportNote(kind="incomplete", text=text, section=draft.section)
        marks = [u.mark for u in draft.unknown_citations]
        marks += dict.fromkeys(c for s in draft.sentences for c in s.citations if c not in known)
        if marks:
            text = f"citations that name no evidence were removed: {', '.join(dict.fromkeys(marks))}"
            yield ReportNote(kind="unknown_citation", text=clean(text), section=draft.section)


def _finite(fields: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has no word for become 0."""
    return {k: 0.0 if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
