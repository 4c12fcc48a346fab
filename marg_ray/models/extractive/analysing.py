"""Findings across all evidence, and what no source says."""

from __future__ import annotations

from dataclasses import dataclass

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.terms import stem, words
from marg_ray.models.extractive import rules
from marg_ray.models.extractive.clauses import TOLD_BY_WORDS, Kind, clauses, kind_of, strip_lead
from marg_ray.models.extractive.enumerations import items, of_items
from marg_ray.models.extractive.facets import (
    Facet,
    akin,
    answer_fit,
    facet,
    heading_fit,
    names_item,
    speaks_of,
    subject_fit,
    word_fit,
)
from marg_ray.models.extractive.words import (
    asked_terms,
    is_english,
    same_statement,
    squeeze,
    term_set,
    terms,
    word_count,
)
from marg_ray.models.tasks import AnalyseEvidence, AnalysisIdea, EvidenceCard, FindingIdea
from marg_ray.seams import Vectors

EMBEDDED = 40  # sentences
CLAUSES = 6
FINDINGS = 6
ANSWERED = 0.42  # cosine from which a sentence counts as speaking of a clause
NEAR = 0.30  # cosine to a clause that a finding needs
MENTIONED = 0.25  # ... where its words do so too


@dataclass(frozen=True)
class Point:
    """A sentence that could be a finding."""

    text: str
    number: int  # of its evidence
    rank: float  # by words
    answers: tuple[bool, ...]  # for each clause, whether its words answer it


@dataclass(frozen=True)
class Analysing:
    """What the analysis prepared for the embedder: the clauses, then the sentences."""

    clauses: tuple[str, ...]
    points: tuple[Point, ...]
    headed: tuple[bool, ...]  # for each clause, whether evidence stands under a heading that fits it
    missing: tuple[str, ...]  # asked words that occur in no evidence
    silent: tuple[str, ...]  # what is asked of one of several things, and no evidence on it answers
    texts: tuple[str, ...]


def prepare(task: AnalyseEvidence) -> Analysing:
    """The sentences that could be findings, and the words nobody uses. Pure CPU."""
    english = task.language in {"", "en"} and is_english(task.question)
    wanted = _wanted(task)
    points: list[Point] = []
    for card in _on_subject(task.evidence, wanted):
        for start, end in sentence_spans(card.quote):
            text = squeeze(card.quote[start:end])
            if _usable(text, english):
                points.append(_point(text, card, wanted))
    points.sort(key=lambda p: (-p.rank, p.number))
    kept = points[:EMBEDDED]
    whole = " ".join(f"{e.source_title} {e.heading} {e.quote}" for e in task.evidence)
    headings = {h for e in task.evidence for h in e.heading.split(" > ") if h}
    return Analysing(
        clauses=tuple(f.title for f in wanted),
        points=tuple(kept),
        headed=tuple(any(heading_fit(f, h) >= 0.7 for h in headings) for f in wanted),
        missing=missing_words(strip_lead(task.question), whole) if english else (),
        silent=_silent(task) if english else (),
        texts=(*(f.query for f in wanted), *(p.text for p in kept)),
    )


def _wanted(task: AnalyseEvidence) -> list[Facet]:
    """The question's clauses and the hypotheses; what is asked of each listed thing is not a clause of its own."""
    titles = tuple({e.source_title: 0 for e in task.evidence})
    found = items(task.question, titles)
    asked = {c.text: c.query for c in clauses(task.question, titles) if not (found and of_items(c, found))}
    asked |= {h: h for h in task.hypotheses if not (found and of_items(clauses(h)[0], found))}
    return [facet(task.question, text, (query,), titles) for text, query in list(asked.items())[:CLAUSES]]


def _silent(task: AnalyseEvidence) -> tuple[str, ...]:
    """What is asked of each of several things, where no evidence that names the thing has words of an answer."""
    titles = tuple({e.source_title: 0 for e in task.evidence})
    found = items(task.question, titles)
    if found is None:
        return ()
    said = [(f"{e.source_title} {e.heading} {e.quote}", f"{e.heading} {e.quote}") for e in task.evidence]
    out: list[str] = []
    for name in found.names:
        mine = [own for whole, own in said if names_item(whole, name)]
        for clause in clauses(task.question, titles):
            wanted = facet(task.question, clause.text, (clause.text,), titles)
            asks = wanted.kind in TOLD_BY_WORDS
            if not mine or (asks and not any(set(terms(text)) & wanted.cues for text in mine)):
                out.append(f"{name}: {clause.text}")
    return tuple(out)


def _point(text: str, card: EvidenceCard, wanted: list[Facet]) -> Point:
    heading = card.heading.split(" > ")[-1]
    subject = max((subject_fit(f, f"{card.source_title} {card.heading} {text}") for f in wanted), default=1.0)
    fits = [(f, word_fit(f, text, {})) for f in wanted]
    rank = max((0.2 * own + 0.1 * all_ + 0.05 * answer_fit(f, text) for f, (own, all_, _) in fits), default=0.0)
    answers = tuple(speaks_of(f, text, heading_fit(f, heading)) for f in wanted)
    return Point(text, card.number, rank - 0.15 * (1 - subject) - 0.1 * (not any(answers)), answers)


def _on_subject(evidence: tuple[EvidenceCard, ...], wanted: list[Facet]) -> list[EvidenceCard]:
    """The evidence of sources that speak of what a clause names; all where none does."""
    named = [f for f in wanted if f.subject]
    speaking = {
        e.source_id
        for e in evidence
        if any(subject_fit(f, f"{e.source_title} {e.heading} {e.quote}") >= 0.99 for f in named)
    }
    return [e for e in evidence if e.source_id in speaking] or list(evidence)


def _usable(text: str, english: bool) -> bool:
    return (
        word_count(text) <= 45
        and not rules.is_junk(text, english=english)
        and rules.stands_alone(text, english)
        and not (english and (rules.is_pointer(text) or rules.is_personal(text) or rules.is_deictic(text)))
    )


def missing_words(question: str, text: str) -> tuple[str, ...]:
    """The question's own words that occur nowhere in `text`, as the question writes them."""
    have = term_set(text)
    wanted = asked_terms(question)
    out: list[str] = []
    for word in words(question):
        if kind_of(word) is not Kind.WHAT or (len(word) < 5 and word in question):
            continue  # "respond", "damage": what a clause asks for, in words that an answer need not use
        if stem(word) in wanted and not _has(stem(word), have) and word not in out and len(word) > 1:
            out.append(word)
    return tuple(out)


def _has(wanted: str, have: frozenset[str]) -> bool:
    """Whether a stem, another word of its family (environment, environmental) or one that says the same occurs."""
    if wanted in have or akin(frozenset({wanted})) & have:
        return True
    family = wanted[: max(5, len(wanted) - 4)]
    return len(wanted) >= 5 and any(h.startswith(family) and (wanted in h or h in wanted) for h in have)


def finish(work: Analysing, vectors: Vectors) -> AnalysisIdea:
    """The best sentences for each clause, and the clauses and words without one. Pure CPU."""
    n = len(work.clauses)
    cosines: list[list[float]] = (vectors[n:] @ vectors[:n].T).tolist() if n else [[] for _ in work.points]
    ranked = sorted(
        zip(work.points, cosines, strict=True), key=lambda p: (-(0.6 * max(p[1], default=0.0) + p[0].rank), p[0].number)
    )
    findings: list[FindingIdea] = []
    share = dict.fromkeys(range(max(1, n)), max(2, FINDINGS // max(1, n)))
    for point, row in ranked:
        clause = row.index(max(row)) if row else 0
        if len(findings) >= FINDINGS:
            break
        if max(row, default=1.0) < (NEAR / 2 if any(point.answers) else NEAR):
            continue
        if share[clause] and not any(same_statement(point.text, f.text) for f in findings):
            share[clause] -= 1
            findings.append(FindingIdea(text=point.text, evidence=[point.number]))
    unknowns = [text for c, text in enumerate(work.clauses) if not _answered(c, work, cosines)]
    unknowns += work.silent
    if work.missing:
        unknowns.append("Not found in any source: " + ", ".join(work.missing))
    return AnalysisIdea(findings=findings, unknowns=unknowns[:8])


def _answered(clause: int, work: Analysing, cosines: list[list[float]]) -> bool:
    return work.headed[clause] or any(
        row[clause] >= (MENTIONED if point.answers[clause] else ANSWERED)
        for point, row in zip(work.points, cosines, strict=True)
    )
