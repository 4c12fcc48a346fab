"""What a report may claim: each sentence against the passages it cites. Deterministic, explainable, no model.

A sentence is supported when a passage says most of its words and no check complains: numbers with their units, dates,
names, negation, direction. Embeddings only move sentences in the middle, never past a complaint.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from marg_ray.grounding.alignment import Alignment, Passage, align, passage
from marg_ray.grounding.checks import Complaint, complaints, settled_terms
from marg_ray.grounding.claims import split_claims
from marg_ray.grounding.dates import MONTHS
from marg_ray.grounding.features import features
from marg_ray.grounding.judging import RULED, Asked, Judge, Ruling, asked
from marg_ray.grounding.languages import language_checked
from marg_ray.grounding.remarks import is_not_factual
from marg_ray.grounding.scorer import scorer
from marg_ray.grounding.terms import content_terms, words
from marg_ray.records import CheckedBy, ClaimVerdict, Draft, Evidence, Grounding, Sentence, SentenceVerdict, Verdict
from marg_ray.seams import Embedder, Offload

SUPPORTED_FROM = 0.62  # recall; see benchmarks/grounding.py
PARTIAL_FROM = 0.38
_MIDDLE = (0.3, 0.8)  # recall between which embeddings are asked
_ALIKE = 0.6  # cosine that neither helps nor harms
_WEIGHT = 0.4  # of the cosine's distance from it
_WORD = re.compile(r"[^\W_]+")
# A list in running text: the number of an item stands before its first sentence, or after the last of the one before.
_ITEM = re.compile(r"\d{1,2}[.)]\s+(?P<rest>[\"“*_(]*(?P<word>[A-Z]\w*))")
_NEXT_ITEM = re.compile(r"(?<=[:.!?])\s+\d{1,2}[.)]\Z")
_TURNED = frozenset(
    ("negation", "denial", "direction", "roles")
)  # of a statement; the rest is found in the whole sentence


@dataclass(frozen=True, slots=True)
class Check:
    """All that was found out about a sentence.

    `score` is comparable between sentences: 0 to 1. `probability` is that of the sentence being supported, where a
    calibrated scorer was asked. `span` is the deciding stretch of the quote of `evidence`: characters, end exclusive.
    """

    verdict: Verdict
    reason: str
    evidence: str
    recall: float
    score: float
    complaints: tuple[Complaint, ...] = ()
    probability: float | None = None
    span: tuple[int, int] | None = None
    claims: tuple[ClaimVerdict, ...] = ()
    checked_by: CheckedBy = "words"

    @property
    def is_middle(self) -> bool:
        """Whether an embedding or a judge could change the verdict."""
        undecided = self.verdict in (Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED)
        return undecided and not self.complaints and _MIDDLE[0] <= self.recall < _MIDDLE[1]

    @property
    def doubt(self) -> float:
        """How far from decided: 1 in the middle of the middle, 0 at its ends and outside."""
        at = (
            self.probability if self.probability is not None else (self.recall - _MIDDLE[0]) / (_MIDDLE[1] - _MIDDLE[0])
        )
        return max(0.0, 1 - abs(2 * at - 1))


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """One of the statements of a sentence, and what speaks against it."""

    verdict: ClaimVerdict
    complaints: tuple[Complaint, ...]


def check_sentence(
    text: str,
    evidence: Sequence[Evidence],
    *,
    titles: Sequence[str] = (),
    similarity: float | None = None,
    apart: bool = True,
) -> Check:
    """Check one sentence (Markdown, without marks) against what it cites.

    Args:
        titles: titles of the cited sources: they may name the subject that a passage leaves out.
        similarity: cosine of sentence and nearest passage, where it was computed.
        apart: check each of several statements in the sentence by itself as well. One that is denied or turned round
            counts against the sentence; words that are missing in one do not (they were measured to cost more true
            sentences than they catch false ones).
    """
    return _check(text, tuple(_Cited(e.id, e.quote, e.heading) for e in evidence), tuple(titles), similarity, apart)


class _Cited(NamedTuple):
    """What a check reads of a passage."""

    id: str
    quote: str
    heading: str


@lru_cache(maxsize=4096)  # asked again when a draft is revised, and of each citation whether it is needed
def _check(
    text: str, evidence: tuple[_Cited, ...], titles: tuple[str, ...], similarity: float | None, apart: bool
) -> Check:
    plain = plain_text(text)
    if is_not_factual(plain):
        return Check(Verdict.NOT_FACTUAL, "", "", 1.0, 1.0)
    if not evidence:
        return Check(Verdict.UNSUPPORTED, "cites nothing", "", 0.0, 0.0)
    passages, context = _read(evidence, titles)
    for number, one in enumerate(passages):
        if _is_quoted(plain, one.text):
            where = _stretch(plain, one.text)
            said = "stands in the cited passage"
            return Check(
                Verdict.SUPPORTED,
                said,
                evidence[number].id,
                1.0,
                1.0,
                probability=1.0,
                span=where,
                checked_by="quotation",
            )
    alignment, found = _compared(plain, passages, context)
    claims: list[CheckedClaim] = []
    if apart:
        statements = split_claims(text if text.lstrip().startswith("|") else plain)
        kinds = _TURNED | {c.kind for c in found}
        claims = [_claim(plain_text(s.text), passages, context, evidence, kinds) for s in statements[1:] and statements]
        found += _flags(claims, {c.kind for c in found})
    recall, by = alignment.recall, _by_words(plain)
    if similarity is not None and _MIDDLE[0] <= recall < _MIDDLE[1]:
        recall, by = min(_MIDDLE[1], recall + _WEIGHT * (similarity - _ALIKE)), "similarity"
    nearest = evidence[alignment.source]
    check = _judged(recall, alignment, found, nearest.id)
    where = _deciding(plain, alignment, nearest.quote)
    likely = scorer()(check.score, features(plain, passages, alignment, found, context))
    return replace(check, probability=likely, span=where, claims=tuple(c.verdict for c in claims), checked_by=by)


def features_of(plain: str, evidence: Sequence[Evidence]) -> tuple[float, list[float]] | None:
    """What the scorer is given for a sentence: the checks' score and the features. None where nothing is to check."""
    if is_not_factual(plain):
        return None
    passages, context = _read(evidence, ())
    alignment, found = _compared(plain, passages, context)
    check = _judged(alignment.recall, alignment, found, "")
    return check.score, features(plain, passages, alignment, found, context)


def _compared(plain: str, passages: Sequence[Passage], context: Passage) -> tuple[Alignment, list[Complaint]]:
    alignment = align(plain, passages, context.terms, settled_terms(plain, passages))
    return alignment, complaints(plain, passages, alignment, context)


def _claim(
    text: str, passages: Sequence[Passage], context: Passage, evidence: Sequence[_Cited], kinds: Set[str]
) -> CheckedClaim:
    """One statement of a sentence against all that the sentence cites; only complaints of these kinds count."""
    alignment, found = _compared(text, passages, context)
    nearest = evidence[alignment.source]
    check = _judged(alignment.recall, alignment, [c for c in found if c.kind in kinds], nearest.id)
    where = _deciding(text, alignment, nearest.quote)
    verdict = ClaimVerdict(text=text, verdict=check.verdict, reason=check.reason, evidence=check.evidence, span=where)
    return CheckedClaim(verdict, check.complaints)


def _flags(claims: Sequence[CheckedClaim], known: set[str]) -> list[Complaint]:
    """What speaks against single statements, of kinds that nothing in the whole sentence was found to be."""
    hard = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    return [c for claim in claims for c in claim.complaints if c.ceiling in hard and c.kind not in known]


def _by_words(plain: str) -> CheckedBy:
    return "words" if language_checked(plain) else "figures"


def _read(evidence: Sequence[Evidence | _Cited], titles: Sequence[str]) -> tuple[list[Passage], Passage]:
    """What a sentence is compared with: the passages in the order of `evidence`; titles and headings as one text."""
    context = dict.fromkeys([*titles, *(e.heading for e in evidence if e.heading)])
    return [passage(e.quote) for e in evidence], passage(" . ".join(context))


def verify_sentence(
    text: str, evidence: Sequence[Evidence], *, titles: Sequence[str] = (), similarity: float | None = None
) -> SentenceVerdict:
    """The verdict on one sentence; see `check_sentence`."""
    return verdict_of(check_sentence(text, evidence, titles=titles, similarity=similarity))


def verdict_of(check: Check) -> SentenceVerdict:
    """What a report keeps of a check."""
    return SentenceVerdict(
        verdict=check.verdict,
        reason=check.reason,
        evidence=check.evidence,
        probability=check.probability,
        span=check.span,
        claims=check.claims,
        checked_by=check.checked_by,
    )


async def verify_draft(
    draft: Draft,
    evidence: Mapping[str, Evidence],
    *,
    titles: Mapping[str, str],
    embedder: Embedder | None,
    offload: Offload,
    judge: Judge | None = None,
) -> Grounding:
    """Check every sentence of a draft.

    Args:
        evidence: what the draft's citations name. A citation that is not in it counts as none.
        titles: source id to title.
        embedder: asked about the sentences that words alone do not settle; None leaves them to the words.
        judge: asked about those that are open even then; None leaves them as they are.
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
    if judge is not None and middle:
        ask = await offload(_questions, sentences, cited, checks, middle)
        for n, ruling in (await judge(ask)).items():
            checks[n] = settled(checks[n], ruling)
    verdicts = tuple(map(verdict_of, checks))
    return Grounding(section=draft.section, revision=draft.revision, verdicts=verdicts, coverage=coverage(verdicts))


def settled(check: Check, ruling: Ruling) -> Check:
    """A check after the judge was heard. What words have settled, or complained of, stays as it is."""
    if not check.is_middle:
        return check
    verdict, reason = RULED[ruling.opinion]
    evidence, span = (ruling.evidence, ruling.span) if ruling.evidence else (check.evidence, check.span)
    claims = check.claims
    if verdict is Verdict.SUPPORTED:
        claims = tuple(c.model_copy(update={"verdict": verdict, "reason": ""}) for c in claims)
    return replace(
        check, verdict=verdict, reason=reason, evidence=evidence, span=span, claims=claims, checked_by="judge"
    )


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


def _questions(
    sentences: Sequence[Sentence], cited: Sequence[Sequence[Evidence]], checks: Sequence[Check], which: Sequence[int]
) -> list[Asked]:
    """What the judge is asked, the most doubtful first."""
    ask = [asked(n, plain_text(sentences[n].text), cited[n], checks[n].doubt) for n in which]
    return sorted(ask, key=lambda one: -one.doubt)


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


def _deciding(text: str, alignment: Alignment, quote: str) -> tuple[int, int] | None:
    """Where the sentence of `quote` stands that says most of `text`; with the next ones while they say more of it."""
    if not alignment.units:
        return None
    best, *others = alignment.units
    start = quote.find(best.text)
    if start < 0:
        return None
    end, asked_for = start + len(best.text), set(content_terms(text)) - best.terms
    for unit in others:
        at = quote.find(unit.text)
        if at >= end and not quote[end:at].strip() and unit.terms & asked_for:
            end, asked_for = at + len(unit.text), asked_for - unit.terms
    return start, end


def _words_missing(what: str, alignment: Alignment) -> str:
    return f"{what}: missing {', '.join(alignment.missing[:6])}" if alignment.missing else what


# ---- verbatim


@lru_cache(maxsize=4096)
def plain_text(markdown: str) -> str:
    """The words of a sentence without emphasis, code marks, link targets and table bars."""
    text = re.sub(r"!?\[([^\[\]]*)\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)", r"\1", markdown)
    text = re.sub(r"(?<!\\)(?:\*\*|__|`+|~~)|(?<![\w\\])[*_](?=\S)|(?<=\S)[*_](?!\w)", "", text)
    text = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
    if text.lstrip().startswith("|"):
        text = re.sub(r"\s*\|\s*", "; ", text.strip().strip("|")).strip("; ")
    text = re.sub(r"^[-+*•]\s+", "", text.strip())
    item = _ITEM.match(text)
    if item and item["word"].casefold() not in MONTHS:
        text = text[item.start("rest") :]
    return _NEXT_ITEM.sub("", text)


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


def _stretch(text: str, quote: str) -> tuple[int, int] | None:
    """Where a sentence stands in `quote`, whatever the case, spaces and signs between its words."""
    at = quote.find(text)
    if at >= 0:
        return at, at + len(text)
    mine = [m.group().casefold() for m in _WORD.finditer(text)]
    theirs = list(_WORD.finditer(quote))
    joined = f" {' '.join(m.group().casefold() for m in theirs)} "
    found = joined.find(f" {' '.join(mine)} ")
    if found < 0 or not mine:
        return None
    first = joined.count(" ", 0, found)
    return theirs[first].start(), theirs[first + len(mine) - 1].end()


@lru_cache(maxsize=4096)
def _key(text: str) -> str:
    """Words and sentence ends, with case, spaces and kinds of quotes made equal. Signs inside figures stay."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"[‐-―−]", "-", text)
    text = re.sub(r"(?<=\d)[.,](?=\d)|[%$€£°]", lambda m: m.group(), text)
    text = re.sub(r"[.!?。！？]+(?=\s|\Z|[\"'”’)])", " . ", text)
    text = re.sub(r"(?<!\d)[,;:]|[,;:](?!\d)|[\"'“”‘’„«»()\[\]{}*_`|…]", " ", text)
    return " ".join(text.split()).removesuffix(" .").strip()
