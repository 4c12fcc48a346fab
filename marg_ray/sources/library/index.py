"""Passages in memory: BM25 and cosine over all of them, document frequencies, and who shares which names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from marg_ray.seams import Vectors
from marg_ray.sources.library.passages import UNSPACED, Row, called, hashed, name_key

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Postings:
    """Which passages hold a key, sorted by key: `where[begin:end]` for the key's range."""

    keys: Ints
    where: NDArray[np.int32]
    values: Floats

    @classmethod
    def of(cls, keys: Ints, per_passage: Ints, values: Floats) -> Postings:
        where = np.repeat(np.arange(len(per_passage), dtype=np.int32), per_passage)
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], where[order], values[order])

    @cached_property
    def range(self) -> Callable[[int], slice]:
        """Where a key's occurrences lie; what was looked up lately is remembered."""
        return lru_cache(maxsize=20_000)(self._range)

    def _range(self, key: int) -> slice:
        return slice(int(self.keys.searchsorted(key)), int(self.keys.searchsorted(key, "right")))


@dataclass(frozen=True, eq=False)
class Index:
    """`n` passages, those of one document side by side. About 3 kB each."""

    source_ids: Sequence[str]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    titles: Sequence[str]
    headings: Sequence[str]
    labels: Sequence[str]
    texts: Sequence[str]
    terms: Ints  # of all passages in order, each once per passage
    counts: NDArray[np.int32]  # how often, beside `terms`
    terms_per_passage: Ints
    names: Ints
    names_per_passage: Ints
    vectors: Vectors  # shape (n, dimension), rows of length 1
    k1: float = 1.5
    b: float = 0.75

    @classmethod
    def of(cls, documents: Iterable[tuple[str, str, Sequence[Row]]], vectors: Vectors) -> Index:
        """From documents (id, title, rows) without a table behind them."""
        flat = [(source_id, title, row) for source_id, title, rows in documents for row in rows]
        rows = [row for _, _, row in flat]
        return cls(
            source_ids=[source_id for source_id, _, _ in flat],
            starts=np.array([r.start for r in rows], np.int32),
            ends=np.array([r.end for r in rows], np.int32),
            titles=[title for _, title, _ in flat],
            headings=[r.heading for r in rows],
            labels=[r.label for r in rows],
            texts=[r.text for r in rows],
            terms=np.array([t for r in rows for t in r.terms], np.int64),
            counts=np.array([c for r in rows for c in r.counts], np.int32),
            terms_per_passage=np.array([len(r.terms) for r in rows], np.int64),
            names=np.array([t for r in rows for t in r.names], np.int64),
            names_per_passage=np.array([len(r.names) for r in rows], np.int64),
            vectors=vectors,
        )

    def __len__(self) -> int:
        return len(self.source_ids)

    @cached_property
    def _postings(self) -> Postings:
        """BM25's term weight (Robertson and Zaragoza 2009) of each occurrence, without the idf."""
        owner = np.repeat(np.arange(len(self)), self.terms_per_passage)
        length = np.bincount(owner, self.counts, minlength=len(self))
        norm = self.k1 * (1 - self.b + self.b * length / max(float(length.mean()), 1e-9))
        tf = self.counts.astype(np.float64)
        weight = tf * (self.k1 + 1) / (tf + norm[owner])
        return Postings.of(self.terms, self.terms_per_passage, weight.astype(np.float32))

    @cached_property
    def _named(self) -> Postings:
        return Postings.of(self.names, self.names_per_passage, np.ones(len(self.names), np.float32))

    @cached_property
    def _name_starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.names_per_passage)]).astype(np.int64)

    @cached_property
    def documents(self) -> NDArray[np.int32]:
        """The number of each passage's document, from 0, in order."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(s, len(numbers)) for s in self.source_ids], np.int32)

    def df(self, term: str) -> int:
        """In how many passages a stem occurs."""
        at = self._postings.range(hashed(term))
        return int(at.stop - at.start)

    def idf(self, term: str) -> float:
        return self._idf(self.df(term))

    def _idf(self, df: int) -> float:
        return math.log1p((len(self) - df + 0.5) / (df + 0.5))

    def bm25(self, terms: Iterable[str]) -> Floats:
        scores = np.zeros(len(self), np.float32)
        for term in set(terms):
            at = self._postings.range(hashed(term))
            if at.stop > at.start:
                scores[self._postings.where[at]] += self._idf(at.stop - at.start) * self._postings.values[at]
        return scores

    def cosines(self, vectors: Vectors) -> Floats:
        """Shape (len(vectors), n)."""
        return vectors @ self.vectors.T

    def sharing(self, passage: int) -> dict[int, float]:
        """Passages that share rare names with this one, and the sum of 1/df over them. Worked out once."""
        if passage not in self._sharing:
            self._sharing[passage] = self._found_sharing(passage)
        return self._sharing[passage]

    def _found_sharing(self, passage: int, low: int = 2, high: int = 8) -> dict[int, float]:
        begin, end = self._name_starts[passage : passage + 2]
        shared: dict[int, float] = {}
        for name in self.names[begin:end].tolist():
            at = self._named.range(name)
            if low <= at.stop - at.start <= high:
                for other in self._named.where[at].tolist():
                    if other != passage:
                        shared[other] = shared.get(other, 0.0) + 1 / (at.stop - at.start)
        return shared

    def called_by(self, passage: int) -> tuple[str, ...]:
        """The titles, headings and terms that a passage's text names. Worked out once."""
        if passage not in self._called_by:
            text = self.texts[passage]
            spaced = self.targets.intersection(called(text, self.longest_target))
            unspaced = (title for title in self.unspaced_titles if title in text)
            self._called_by[passage] = tuple(dict.fromkeys((*spaced, *unspaced)))
        return self._called_by[passage]

    def wording(self, passage: int) -> int:
        """Equal for passages with the same words. Worked out once."""
        if passage not in self._wordings:
            self._wordings[passage] = hash(" ".join(self.texts[passage].casefold().split()))
        return self._wordings[passage]

    @cached_property
    def _sharing(self) -> dict[int, dict[int, float]]:
        return {}

    @cached_property
    def _called_by(self) -> dict[int, tuple[str, ...]]:
        return {}

    @cached_property
    def _wordings(self) -> dict[int, int]:
        return {}

    @cached_property
    def heading_targets(self) -> dict[str, list[int]]:
        """Passages by the names a text can call them: their last heading, the terms they define. Lower case.

        Headings and terms that many passages have ("Introduction") name nothing.
        """
        targets: dict[str, list[int]] = {}
        for i, (title, heading, label) in enumerate(zip(self.titles, self.headings, self.labels, strict=True)):
            for name in {name_key(n) for n in (heading.rsplit(" > ", 1)[-1], *label.split(", ")) if n}:
                if len(name) > 3 and name != name_key(title):
                    targets.setdefault(name, []).append(i)
        return {name: found for name, found in targets.items() if len(found) <= 8}

    @cached_property
    def title_targets(self) -> dict[str, list[int]]:
        """All passages of the documents with a title, by that title."""
        targets: dict[str, list[int]] = {}
        for i, title in enumerate(self.titles):
            if len(name := name_key(title)) > 3 or (name and not name.isascii()):
                targets.setdefault(name, []).append(i)
        return targets

    @cached_property
    def targets(self) -> frozenset[str]:
        return frozenset(self.title_targets) | frozenset(self.heading_targets)

    @cached_property
    def longest_target(self) -> int:
        """In words; longer ones than eight are not looked for."""
        return min(8, max((name.count(" ") + 1 for name in self.targets), default=1))

    @cached_property
    def unspaced_titles(self) -> list[str]:
        """Titles in scripts without spaces: they are found inside a text, not among its words."""
        return [name for name in self.title_targets if UNSPACED.match(name)]


def best_first(scores: Floats, exact: int = 256) -> NDArray[np.intp]:
    """All places, the best `exact` of them first and in order; equals as they stand. The rest is in no order."""
    if len(scores) <= exact:
        return np.argsort(-scores, kind="stable")
    split = np.argpartition(-scores, exact)
    best = np.sort(split[:exact])
    return np.concatenate([best[np.argsort(-scores[best], kind="stable")], split[exact:]])


def minmax(scores: Floats) -> Floats:
    """To 0..1; all zeros where all are equal."""
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
