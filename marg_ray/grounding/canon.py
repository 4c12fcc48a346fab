"""Which citations a report keeps: one source for a claim where one suffices, and no source that repeats another.

Figures after ALCE (Gao et al. 2023): *coverage* is its citation recall, the share of the factual sentences that what
they cite supports; *precision* is the share of the cited passages that take part in supporting their sentence: a
passage takes part that supports the sentence by itself, or without which the others no longer do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from marg_ray.grounding.quantities import figures
from marg_ray.grounding.terms import words
from marg_ray.grounding.verify import Check, check_sentence
from marg_ray.records import Block, Draft, DroppedCitation, Evidence, Sentence, Source, Verdict

_RUN = 4  # words of a shingle
_CONTAINED = 0.8  # of a passage's shingles that another has: it says nothing of its own
_SHORT = 8  # words; a shorter passage repeats only what it equals
_LOSS = 0.02  # of a sentence's words: what a citation adds that is not missed
_MOST = 6  # citations of one sentence that are compared; more are left as they are

_PRIMARY = (".gov", ".edu", ".int", ".mil", "doi.org", "arxiv.org")  # who publishes what is his own
_PRIMARY_PARTS = frozenset(("gov", "gob", "gouv", "ac", "edu"))  # ministry.gov.uk, university.ac.jp
_COPYING = frozenset(
    """
    msn.com news.yahoo.com finance.yahoo.com news.google.com flipboard.com newsbreak.com medium.com reddit.com
    scribd.com slideshare.net wikiwand.com alchetron.com dailymotion.com pinterest.com quora.com answers.com
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class CitationCounts:
    """What a section or report cites. Its sentences are the factual ones; one that was not checked is not supported."""

    factual: int = 0
    supported: int = 0  # by what they cite
    cited: int = 0  # passages, sentence by sentence
    contributing: int = 0  # passages that take part in supporting their sentence

    @property
    def coverage(self) -> float | None:
        """None where there is no factual sentence."""
        return self.supported / self.factual if self.factual else None

    @property
    def precision(self) -> float | None:
        """None where nothing is cited."""
        return self.contributing / self.cited if self.cited else None

    def __add__(self, other: CitationCounts) -> CitationCounts:
        return CitationCounts(
            self.factual + other.factual,
            self.supported + other.supported,
            self.cited + other.cited,
            self.contributing + other.contributing,
        )


# ---- repeats


def repeats(evidence: Sequence[Evidence], sources: Mapping[str, Source]) -> dict[str, str]:
    """Passages that merely repeat a passage of another source: evidence id to the id of the original.

    The original is the one published first, else the one on a primary domain, else the one that comes first.
    """
    found: dict[str, str] = {}
    place = {e.id: n for n, e in enumerate(evidence)}
    for one, other in _alike(evidence):
        copy, original = other, one
        if not (_repeats(copy, original) and _repeats(original, copy)):
            if not _repeats(copy, original):
                copy, original = original, copy
            if _precedes(copy, original, sources):  # a longer passage took it over
                continue
        elif _precedes(copy, original, sources) or (
            place[copy.id] < place[original.id] and not _precedes(original, copy, sources)
        ):
            copy, original = original, copy
        found.setdefault(copy.id, original.id)
    return {copy: _root(copy, found) for copy in found}


def originals(evidence: Sequence[Evidence], sources: Mapping[str, Source]) -> tuple[Evidence, ...]:
    """The evidence in its order, without what merely repeats another source."""
    copies = repeats(evidence, sources)
    return tuple(e for e in evidence if e.id not in copies)


def _root(copy: str, found: Mapping[str, str]) -> str:
    at, seen = found[copy], {copy}
    while at in found and at not in seen:
        seen.add(at)
        at = found[at]
    return at


def _alike(evidence: Sequence[Evidence]) -> list[tuple[Evidence, Evidence]]:
    """Pairs of different sources of which one passage contains the other, in order."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, one in enumerate(evidence):
        for run in _shingles(one.quote):
            holders[run].append(number)
    shared: Counter[tuple[int, int]] = Counter()
    for numbers in holders.values():
        if 1 < len(numbers) <= 50:  # what more say is a formula of the trade
            shared.update((a, b) for n, a in enumerate(numbers) for b in numbers[n + 1 :])
    pairs = sorted(p for p, count in shared.items() if count >= _CONTAINED * _fewer(evidence, p))
    return [
        (evidence[a], evidence[b])
        for a, b in pairs
        if evidence[a].source != evidence[b].source
        and (_repeats(evidence[a], evidence[b]) or _repeats(evidence[b], evidence[a]))
    ]


def _fewer(evidence: Sequence[Evidence], pair: tuple[int, int]) -> int:
    return min(len(_shingles(evidence[n].quote)) for n in pair)


def _repeats(copy: Evidence, original: Evidence) -> bool:
    """Whether `copy` says nothing that `original` does not say, in the same words and with the same figures."""
    mine, theirs = _shingles(copy.quote), _shingles(original.quote)
    if len(mine & theirs) < _CONTAINED * len(mine):
        return False
    return Counter(figures(copy.quote)) <= Counter(figures(original.quote))


@lru_cache(maxsize=4096)
def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    tokens = words(text)
    if len(tokens) < _SHORT:
        return frozenset((tuple(tokens),))
    return frozenset(tuple(tokens[n : n + _RUN]) for n in range(len(tokens) - _RUN + 1))


def _precedes(one: Evidence, other: Evidence, sources: Mapping[str, Source]) -> bool:
    """Whether dates or domains show `one` to be the original."""
    mine, theirs = sources.get(one.source), sources.get(other.source)
    if mine is None or theirs is None:
        return False
    digits = min(len(mine.published), len(theirs.published))
    if mine.published[:digits] != theirs.published[:digits]:
        return mine.published < theirs.published
    return _rank(mine.location) < _rank(theirs.location)


def _rank(location: str) -> int:
    """0: who publishes his own; 1: anybody; 2: a place that shows what others wrote."""
    host = (urlsplit(location).hostname or "").removeprefix("www.") if "://" in location else ""
    if host.endswith(_PRIMARY) or _PRIMARY_PARTS & set(host.split(".")[1:-1]):
        return 0
    return 2 if host in _COPYING else 1


# ---- citations of a sentence


def dropped(
    sentences: Sequence[Sentence],
    verdicts: Sequence[Verdict],
    evidence: Mapping[str, Evidence],
    *,
    titles: Mapping[str, str],
    sources: Mapping[str, Source],
) -> tuple[DroppedCitation, ...]:
    """The citations that a draft does not need, each with the one that says the same.

    Of a supported sentence the smallest set stays that says as much of it as all did; no check of what stays gives
    another verdict. Of any other sentence only repeats of another cited source go.
    """
    found: list[DroppedCitation] = []
    for number, (sentence, verdict) in enumerate(zip(sentences, verdicts, strict=False)):
        cited = [evidence[c] for c in dict.fromkeys(sentence.citations) if c in evidence]
        if not 1 < len(cited) <= _MOST or verdict in (Verdict.NOT_FACTUAL, Verdict.NOT_CHECKED):
            continue
        copies = repeats(cited, sources)
        kept = [e for e in cited if e.id not in copies]
        if (
            copies
            and _checked(sentence.text, kept, titles).verdict is not _checked(sentence.text, cited, titles).verdict
        ):
            copies, kept = {}, cited
        found += [
            DroppedCitation(sentence=number, evidence=c, kept=original, reason="repeats")
            for c, original in copies.items()
        ]
        if verdict is Verdict.SUPPORTED and len(kept) > 1:
            needed = _needed(sentence.text, kept, titles)
            found += [
                DroppedCitation(sentence=number, evidence=e.id, kept=needed[0].id, reason="adds_nothing")
                for e in kept
                if e not in needed
            ]
    return tuple(found)


def without(draft: Draft, gone: Iterable[DroppedCitation]) -> Draft:
    """The draft without these citations."""
    by_sentence: dict[int, set[str]] = defaultdict(set)
    for one in gone:
        by_sentence[one.sentence].add(one.evidence)
    if not by_sentence:
        return draft
    blocks: list[Block] = []
    at = 0
    for block in draft.blocks:
        sentences = tuple(
            s.model_copy(update={"citations": tuple(c for c in s.citations if c not in by_sentence[n])})
            if n in by_sentence
            else s
            for n, s in enumerate(block.sentences, at)
        )
        at += len(block.sentences)
        blocks.append(block.model_copy(update={"sentences": sentences}))
    return draft.model_copy(update={"blocks": tuple(blocks)})


def _needed(text: str, cited: Sequence[Evidence], titles: Mapping[str, str]) -> list[Evidence]:
    """The smallest set that says as much of the sentence as all of them, best first; all where none is superfluous."""
    whole = _checked(text, cited, titles)
    if whole.verdict is not Verdict.SUPPORTED:
        return list(cited)  # what holds it is not in the words alone
    alone = {e.id: _checked(text, [e], titles) for e in cited}
    best = sorted(cited, key=lambda e: -alone[e.id].score)  # of equals the first
    if _as_good(alone[best[0].id], whole):
        return best[:1]
    kept = list(best)
    for one in reversed(best):
        rest = [e for e in kept if e.id != one.id]
        if rest and _as_good(_checked(text, rest, titles), whole):
            kept = rest
    return kept


def _as_good(check: Check, whole: Check) -> bool:
    return check.verdict is Verdict.SUPPORTED and check.score >= whole.score - _LOSS


def _checked(text: str, cited: Sequence[Evidence], titles: Mapping[str, str]) -> Check:
    return check_sentence(text, cited, titles=[titles[e.source] for e in cited if e.source in titles])


# ---- figures


def counts(
    sentences: Iterable[tuple[str, Sequence[str], Verdict]],
    evidence: Mapping[str, Evidence],
    titles: Mapping[str, str],
) -> CitationCounts:
    """The figures of some sentences, each (text, evidence ids, verdict)."""
    total = CitationCounts()
    for text, citations, verdict in sentences:
        if verdict is Verdict.NOT_FACTUAL:
            continue
        cited = [evidence[c] for c in citations if c in evidence]
        holds = verdict is Verdict.SUPPORTED and bool(cited)
        takes_part = _contributing(text, cited, titles) if holds else 0
        total += CitationCounts(1, int(holds), len(cited), takes_part)
    return total


def _contributing(text: str, cited: Sequence[Evidence], titles: Mapping[str, str]) -> int:
    if not 1 < len(cited) <= _MOST or _checked(text, cited, titles).verdict is not Verdict.SUPPORTED:
        return len(cited)
    count = 0
    for one in cited:
        rest = [e for e in cited if e.id != one.id]
        alone = _checked(text, [one], titles).verdict is Verdict.SUPPORTED
        count += alone or _checked(text, rest, titles).verdict is not Verdict.SUPPORTED
    return count
