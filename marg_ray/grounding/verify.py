"""What a report may claim: each sentence against the passages it cites. Deterministic, explainable, no model.

A sentence is supported when a passage says most of its words and no check complains: numbers with their units, dates,
names, negation, direction. Embeddings only move sentences in the middle, never past a complaint.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from marg_ray.grounding.alignment import Alignment, align, passage
from marg_ray.grounding.checks import Complaint, complaints, settled_terms
from marg_ray.grounding.remarks import is_not_factual
from marg_ray.grounding.terms import words
from marg_ray.records import Draft, Evidence, Grounding, Sentence, SentenceVerdict, Verdict
from marg_ray.seams import Embedder, Offload

SUPPORTED_FROM = 0.62  # recall; see benchmarks/grounding.py
PARTIAL_FROM = 0.38
_MIDDLE = (0.3, 0.8)  # recall between which embeddings are asked
_ALIKE = 0.6  # cosine that neither helps nor harms
_WEIGHT = 0.4  # of the cosine's distance from it


@dataclass(frozen=True, slots=True)
class Check:
    """All that was found out about a sentence. `score` is comparable between sentences: 0 to 1."""

    verdict: Verdict
    reason: str
    evidence: str
    recall: float
    score: float
    complaints: tuple[Complaint, ...] = ()

    @property
    def is_middle(self) -> bool:
        """Whether an embedding could change the verdict."""
        undecided = self.verdict in (Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED)
        return undecided and not self.complaints and _MIDDLE[0] <= self.recall < _MIDDLE[1]


def check_sentence(
    text: str, evidence: Sequence[Evidence], *, titles: Sequence[str] = (), similarity: float | None = None
) -> Check:
    """Check one sentence (Markdown, without marks) against what it cites.

    Args:
        titles: titles of the cited sources: they may name the subject that a passage leaves out.
        similarity: cosine of sentence and nearest passage, where it was computed.
    """
    plain = plain_text(text)
    if is_not_factual(plain):
        return Check(Verdict.NOT_FACTUAL, "", "", 1.0, 1.0)
    if not evidence:
        return Check(Verdict.UNSUPPORTED, "cites nothing", "", 0.0, 0.0)
    passages = [passage(e.quote) for e in evidence]
    context = passage(" . ".join(dict.fromkeys([*titles, *(e.heading for e in evidence if e.heading)])))
    for number, one in enumerate(passages):
        if _is_quoted(plain, one.text):
            return Check(Verdict.SUPPORTED, "stands in the cited passage", evidence[number].id, 1.0, 1.0)
    alignment = align(plain, passages, context.terms, settled_terms(plain, passages))
    found = complaints(plain, passages, alignment, context)
    recall = alignment.recall
    if similarity is not None and _MIDDLE[0] <= recall < _MIDDLE[1]:
        recall = min(_MIDDLE[1], recall + _WEIGHT * (similarity - _ALIKE))
    return _judged(recall, alignment, found, evidence[alignment.source].id)


def verify_sentence(
    text: str, evidence: Sequence[Evidence], *, titles: Sequence[str] = (), similarity: float | None = None
) -> SentenceVerdict:
    """The verdict on one sentence; see `check_sentence`."""
    check = check_sentence(text, evidence, titles=titles, similarity=similarity)
    return SentenceVerdict(verdict=check.verdict, reason=check.reason, evidence=check.evidence)


async def verify_draft(
    draft: Draft,
    evidence: Mapping[str, Evidence],
    *,
    titles: Mapping[str, str],
    embedder: Embedder | None,
    offload: Offload,
) -> Grounding:
    """Check every sentence of a draft.

    Args:
        evidence: what the draft's citations name. A citation that is not in it counts as none.
        titles: source id to title.
        embedder: asked about the sentences that words alone do not settle; None leaves them to the words.
    """
    sentences = draft.sentences
    cited = [[evidence[i] for i in s.citations if i in evidence] for s in sentences]
    checks = await offload(_check_all, sentences, cited, titles, {})
    middle = [n for n, check in enumerate(checks) if check.is_middle]
    if embedder is not None and middle:
        similar = await _similarities(embedder, sentences, cited, middle)
        again = [sentences[n] for n in middle]
        some = await offload(_check_all, again, [cited[n] for n in middle], titles, dict(enumerate(similar)))
        for n, check in zip(middle, some, strict=True):
            checks[n] = check
    verdicts = tuple(SentenceVerdict(verdict=c.verdict, reason=c.reason, evidence=c.evidence) for c in checks)
    return Grounding(section=draft.section, revision=draft.revision, verdicts=verdicts, coverage=coverage(verdicts))


def coverage(verdicts: Sequence[SentenceVerdict]) -> float:
    """The supported share of the factual sentences, partial counting half; 1 where there are none."""
    worth = {Verdict.SUPPORTED: 1.0, Verdict.PARTIAL: 0.5}
    factual = [v.verdict for v in verdicts if v.verdict not in (Verdict.NOT_FACTUAL, Verdict.NOT_CHECKED)]
    return sum(worth.get(v, 0.0) for v in factual) / len(factual) if factual else 1.0


def _check_all(
    sentences: Sequence[Sentence],
    cited: Sequence[Sequence[Evidence]],
    titles: Mapping[str, str],
    similar: Mapping[int, float],
) -> list[Check]:
    return [
        check_sentence(
            sentence.text,
            evidence,
            titles=[titles[e.source] for e in evidence if e.source in titles],
            similarity=similar.get(number),
        )
        for number, (sentence, evidence) in enumerate(zip(sentences, cited, strict=True))
    ]


async def _similarities(
    embedder: Embedder, sentences: Sequence[Sentence], cited: Sequence[Sequence[Evidence]], which: Sequence[int]
) -> list[float]:
    """For each sentence the cosine with the nearest passage it cites."""
    quotes = list(dict.fromkeys(e.quote for n in which for e in cited[n]))
    place = {quote: number for number, quote in enumerate(quotes)}
    vectors = await embedder.embed([*(plain_text(sentences[n].text) for n in which), *quotes])
    own, theirs = vectors[: len(which)], vectors[len(which) :]
    return [float(max(own[row] @ theirs[place[e.quote]] for e in cited[n])) for row, n in enumerate(which)]


def _judged(recall: float, alignment: Alignment, found: Sequence[Complaint], evidence: str) -> Check:
    verdict, reason = Verdict.UNSUPPORTED, _words_missing("the cited passages say too little of this", alignment)
    if recall >= SUPPORTED_FROM:
        verdict, reason = Verdict.SUPPORTED, ""
    elif recall >= PARTIAL_FROM:
        verdict, reason = Verdict.PARTIAL, _words_missing("the cited passages say only part of this", alignment)
    rank = [Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED, Verdict.CONTRADICTED]
    for complaint in found:
        if rank.index(complaint.ceiling) > rank.index(verdict):
            verdict = complaint.ceiling
    reasons = [*(c.reason for c in found), *([reason] if reason else [])]
    penalty = sum({Verdict.PARTIAL: 0.12, Verdict.UNSUPPORTED: 0.3}.get(c.ceiling, 0.5) for c in found)
    score = max(0.0, recall - penalty)
    return Check(verdict, "; ".join(dict.fromkeys(reasons)), evidence, alignment.recall, score, tuple(found))


def _words_missing(what: str, alignment: Alignment) -> str:
    return f"{what}: missing {', '.join(alignment.missing[:6])}" if alignment.missing else what


# ---- verbatim


def plain_text(markdown: str) -> str:
    """The words of a sentence without emphasis, code marks, link targets and table bars."""
    text = re.sub(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)", r"\1", markdown)
    text = re.sub(r"(?<!\\)(?:\*\*|__|`+|~~)|(?<![\w\\])[*_](?=\S)|(?<=\S)[*_](?!\w)", "", text)
    text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    if text.lstrip().startswith("|"):
        text = re.sub(r"\s*\|\s*", "; ", text.strip().strip("|")).strip("; ")
    return re.sub(r"^[-+*•]\s+", "", text.strip())


def _is_quoted(text: str, quote: str) -> bool:
    """Whether the sentence stands in the passage, and not inside a statement that it is not so."""
    needle, hay = _key(text), _key(quote)
    if len(needle) < 12:
        return False
    at = f" {hay} ".find(f" {needle} ") if " " in needle else hay.find(needle)
    if at < 0:
        return False
    before = words(hay[max(0, at - 60) : at].rpartition(" . ")[2])[-6:]
    after = hay[at + len(needle) : at + len(needle) + 30]
    turned = {
        "not",
        "no",
        "never",
        "false",
        "untrue",
        "deny",
        "denied",
        "denies",
        "if",
        "unless",
        "whether",
        "myth",
        "claim",
    }
    return not turned & set(before) and not after.strip().startswith(("is false", "is not true", "is a myth"))


def _key(text: str) -> str:
    """Words and sentence ends, with case, spaces and kinds of quotes made equal. Signs inside figures stay."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[‐-―−]", "-", text)
    text = re.sub(r"(?<=\d)[.,](?=\d)|[%$€£°]", lambda m: m.group(), text)
    text = re.sub(r"[.!?。！？]+(?=\s|\Z|[\"'”’)])", " . ", text)
    text = re.sub(r"(?<!\d)[,;:]|[,;:](?!\d)|[\"'“”‘’„«»()\[\]{}*_`|…]", " ", text)
    return " ".join(text.split()).removesuffix(" .").strip()
