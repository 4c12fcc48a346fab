"""Findings across all evidence, and what no source says."""

from __future__ import annotations

from dataclasses import dataclass

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.terms import stem, words
from marg_ray.models.extractive import rules
from marg_ray.models.extractive.clauses import Kind, clauses, kind_of
from marg_ray.models.extractive.drafting import bare_title
from marg_ray.models.extractive.facets import Facet, answer_fit, facet, heading_fit, subject_fit, word_fit
from marg_ray.models.extractive.words import (
    asked_terms,
    is_english,
    same_statement,
    squeeze,
    term_set,
    word_count,
)  # fmt: skip
from marg_ray.models.tasks import AnalyseEvidence, AnalysisIdea, EvidenceCard, FindingIdea
from marg_ray.seams import Vectors

EMBEDDED = 40
FINDINGS = 6
ANSWERED = 0.42  # cosine from which the best sentence counts as speaking of a clause


@dataclass(frozen=True)
class Analysing:
    """What the analysis prepared for the embedder: the clauses, then the sentences."""

    clauses: tuple[str, ...]
    sentences: tuple[tuple[str, int, float], ...]  # text, evidence number, rank by words
    missing: tuple[str, ...]  # asked words that occur in no evidence
    english: bool
    headed: tuple[bool, ...]  # for each clause, whether evidence stands under a heading that fits it
    texts: tuple[str, ...]


def prepare(task: AnalyseEvidence) -> Analysing:
    english = task.language in {"", "en"} and is_english(task.question)
    titles = tuple({e.source_title: 0 for e in task.evidence})
    asked = {c.text: c.query for c in clauses(task.question, titles)} | {h: h for h in task.hypotheses}
    wanted = [facet(task.question, text, (query,), titles) for text, query in list(asked.items())[:6]]
    sentences: list[tuple[str, int, float]] = []
    for card in _on_subject(task.evidence, wanted):
        for start, end in sentence_spans(card.quote):
            text = squeeze(card.quote[start:end])
            if not _usable(text, english):
                continue
            fits = [word_fit(f, text, {}) for f in wanted]
            rank = -0.15 * (
                1 - max(subject_fit(f, f"{card.source_title} {card.heading} {text}") for f in wanted)
            ) + max(0.2 * a + 0.1 * b + 0.05 * answer_fit(f, text) for f, (a, b, _) in zip(wanted, fits, strict=True))
            sentences.append((text, card.number, rank))
    sentences.sort(key=lambda s: (-s[2], s[1]))
    kept = tuple(sentences[:EMBEDDED])
    return Analysing(
        tuple(f.title for f in wanted), kept, missing_words(task.question, " ".join(f"{bare_title(e.source_title)} {e.heading} {e.quote}" for e in task.evidence)),
        english, tuple(any(heading_fit(f, h) >= 0.7 for e in task.evidence for h in e.heading.split(" > ")) for f in wanted), (*(f.query for f in wanted), *(s[0] for s in kept)),
    )  # fmt: skip


def _on_subject(evidence: tuple[EvidenceCard, ...], wanted: list[Facet]) -> list[EvidenceCard]:
    """The evidence that speaks of what a clause names; all where none does."""
    found = [
        e for e in evidence if any(subject_fit(f, f"{e.source_title} {e.heading} {e.quote}") >= 0.99 for f in wanted)
    ]
    return found or list(evidence)


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
        if stem(word) in wanted and stem(word) not in have and word not in out and len(word) > 1:
            out.append(word)
    return tuple(out)


def finish(work: Analysing, vectors: Vectors) -> AnalysisIdea:
    n = len(work.clauses)
    findings: list[FindingIdea] = []
    unknowns: list[str] = []
    cosines = vectors[n:] @ vectors[:n].T if len(vectors) > n else None
    if cosines is not None:
        order = sorted(
            range(len(work.sentences)), key=lambda i: -(0.6 * float(cosines[i].max()) + work.sentences[i][2])
        )
        per_clause = dict.fromkeys(range(n), 0)
        for i in order:
            text, number, _ = work.sentences[i]
            clause = int(cosines[i].argmax())
            if len(findings) >= FINDINGS:
                break
            if per_clause[clause] >= max(2, FINDINGS // n) or any(same_statement(text, f.text) for f in findings):
                continue
            per_clause[clause] += 1
            findings.append(FindingIdea(text=text, evidence=[number]))
    for c, clause_text in enumerate(work.clauses):
        best = float(cosines[:, c].max()) if cosines is not None else 0.0
        if best < ANSWERED and not work.headed[c]:
            unknowns.append(clause_text)
    if work.missing and work.english:
        unknowns.append("Not found in any source: " + ", ".join(work.missing))
    return AnalysisIdea(findings=findings, unknowns=unknowns[:8])
