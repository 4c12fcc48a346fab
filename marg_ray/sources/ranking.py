"""Relevance of search results, and of the paragraphs of one document, to a query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marg_ray.grounding.snapshots import Document
from marg_ray.grounding.terms import content_stems, content_terms, words
from marg_ray.records import Hit, SourceKind, Span
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.sources.answerability import knows_script, query_terms
from marg_ray.sources.library.hybrid import latin_share
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Piece, Row, cut, row_of

DENSE = 0.75  # of meaning against words
NEAR, LEAST = 6, 3  # web hits of a search that are embedded, and how many where no hit shares a word with the query
OPENING = 160  # characters of a snippet that are embedded: the rest blurs the meaning more than it adds
EARLY = 0.3  # of the engine's order against words, in choosing what to embed
ORDER = 0.05  # relevance between the engine's first and last, all else equal
LIKELY = 0.5  # cosine of a hit that has all of the query's words
SAME = 0.85  # shared word triples above which two results are one text
_LEAST_TRIPLES = 6
_OWN = frozenset({SourceKind.LIBRARY, SourceKind.PROVIDED})  # ranked by their own index already


@dataclass(frozen=True)
class _Rated:
    """A hit before its meaning is looked at."""

    hit: Hit
    share: float  # of the query's terms, weighted by their rarity
    early: float  # 1 for the engine's first, towards 0 for its last

    @property
    def promise(self) -> float:
        return (1 - EARLY) * self.share + EARLY * self.early


async def rank_hits(
    query: str, hits: Sequence[Hit], embedder: Embedder | None, *, strangers: int = LEAST
) -> tuple[Hit, ...]:
    """The hits by relevance, best first, near-identical texts once (the one that shares more with the query stays).

    Relevance is .75 cosine + .25 share of the query's terms, weighted by their rarity among the hits, and a little
    for the engine's order. The `NEAR` hits that promise most by words and the engine's order are embedded, each by
    its beginning, `strangers` of those that share no word with the query where fewer share one; the others are taken
    to be as near in meaning as such a share makes likely, and so are all of them without an `embedder`, or in a script
    that it does not know. Hits of a library keep their relevance, which is on
    the same scale.
    """
    shares = _coverage(query, hits)
    rated = [
        _Rated(hit, share, 1 - place / len(hits)) for place, (hit, share) in enumerate(zip(hits, shares, strict=True))
    ]
    rated.sort(key=lambda r: -r.promise)
    stay = {id(hit) for hit in without_echoes([r.hit for r in rated])}
    own = [r.hit for r in rated if id(r.hit) in stay and r.hit.kind in _OWN]
    web = [r for r in rated if id(r.hit) in stay and r.hit.kind not in _OWN]
    cosines = await _cosines(query, web, embedder if knows_script(query) else None, strangers)
    weight = DENSE * latin_share(query)
    ranked = [r.hit.model_copy(update={"relevance": _blend(weight, c, r)}) for r, c in zip(web, cosines, strict=True)]
    return tuple(sorted([*own, *ranked], key=lambda hit: -hit.relevance))


async def _cosines(query: str, rated: Sequence[_Rated], embedder: Embedder | None, strangers: int) -> list[float]:
    """What each has in common with the query in meaning; a guess for those that promise little."""
    cosines = [LIKELY * r.share for r in rated]
    sharing = [i for i, r in enumerate(rated) if r.share > 0][:NEAR]
    others = [i for i, r in enumerate(rated) if r.share == 0][: max(0, strangers - len(sharing))]
    if embedder is not None and (near := sharing + others):
        openings = [f"{rated[i].hit.title}. {rated[i].hit.snippet[:OPENING]}" for i in near]
        vectors = await embedder.embed([query, *openings])
        for i, cosine in zip(near, vectors[1:] @ vectors[0], strict=True):
            cosines[i] = float(cosine)
    return cosines


def _blend(weight: float, cosine: float, r: _Rated) -> float:
    relevance = weight * max(0.0, cosine) + (1 - weight) * r.share + ORDER * (r.early - 0.5)
    return round(min(1.0, max(0.0, relevance)), 4)


def _coverage(query: str, hits: Sequence[Hit]) -> list[float]:
    terms = set(query_terms(query)) or set(content_terms(query))
    held = [(terms & content_stems(hit.title)) | (terms & content_stems(hit.snippet)) for hit in hits]
    weights = {t: math.log1p((len(hits) + 1) / (sum(t in h for h in held) + 0.5)) for t in terms}
    total = sum(weights.values())
    return [sum(weights[t] for t in h) / total if total else 0.0 for h in held]


def without_echoes(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The first of each group of near-identical texts (reprints, mirrors). A library's documents always stay."""
    kept: list[tuple[Hit, frozenset[tuple[str, ...]]]] = []
    for hit in hits:
        triples = _triples(hit.snippet)
        if hit.kind not in _OWN and any(_same(triples, other) for _, other in kept):
            continue
        kept.append((hit, triples))
    return tuple(hit for hit, _ in kept)


def _triples(text: str) -> frozenset[tuple[str, ...]]:
    tokens = words(text)
    return frozenset(zip(tokens, tokens[1:], tokens[2:], strict=False))


def _same(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> bool:
    small, large = (len(a), len(b)) if len(a) < len(b) else (len(b), len(a))
    return small >= _LEAST_TRIPLES and small >= 0.5 * large and len(a & b) >= SAME * small


async def best_windows(
    queries: Sequence[str],
    document: Document,
    embedder: Embedder,
    limit_words: int,
    *,
    window_words: int = 120,
    offload: Offload = in_thread,
) -> tuple[Span, ...]:
    """The paragraphs of `document` most relevant to any of `queries`, best first, together about `limit_words` words.

    Ranked by words first; only what is near the cut is embedded. Every query has its best window among them as long
    as there is room. A document that fits is given whole, without an embedding.
    """
    pieces = await offload(cut, document, window_words)
    if not pieces or limit_words <= 0:
        return ()
    asked = [query for query in queries if query.strip()]
    rows = await offload(_rows, document, pieces)
    by_words = await in_thread(_by_words, asked, document.title, rows)
    if sum(p.words for p in pieces) <= limit_words or not asked:
        chosen = sorted(range(len(pieces)), key=lambda i: -float(by_words[:, i].max()))
        return _spans(pieces, chosen, by_words.max(0), limit_words)
    near = _near_the_cut(by_words, pieces, limit_words)
    vectors = await embedder.embed([*asked, *(rows[i].embedded for i in near)])
    scores = np.full(by_words.shape, -1.0, np.float32)
    cosines = vectors[: len(asked)] @ vectors[len(asked) :].T
    for q, query in enumerate(asked):
        weight = DENSE * latin_share(query)
        scores[q, near] = weight * np.maximum(cosines[q], 0) + (1 - weight) * by_words[q, near]
    firsts = dict.fromkeys(int(i) for i in scores.argmax(1))
    best = scores.max(0)
    rest = sorted(near, key=lambda i: -float(best[i]))
    chosen = sorted(firsts, key=lambda i: -float(best[i])) + [i for i in rest if i not in firsts]
    spans = _spans(pieces, chosen, best, limit_words)
    return tuple(sorted(spans, key=lambda s: -s.score))


def _rows(document: Document, pieces: Sequence[Piece]) -> list[Row]:
    return [row_of(document.title, document.text[p.start : p.end], p) for p in pieces]


def _by_words(queries: Sequence[str], title: str, rows: Sequence[Row]) -> Vectors:
    """BM25 of each window relative to the best one, times the share of the query's terms the best one has.

    Shape (queries, windows); one row of zeros without queries."""
    scores = np.zeros((max(1, len(queries)), len(rows)), np.float32)
    index = Index.of([("", title, rows)], np.zeros((len(rows), 1), np.float32))
    for q, query in enumerate(queries):
        terms = set(query_terms(query)) or set(content_terms(query))
        raw = index.bm25(terms)
        if (top := float(raw.max())) > 0:
            best = set(content_terms(rows[int(raw.argmax())].embedded))
            scores[q] = raw / top * (len(terms & best) / len(terms))
    return scores


def _near_the_cut(by_words: Vectors, pieces: Sequence[Piece], limit_words: int) -> list[int]:
    """Windows worth embedding: about twice what fits, best by words; spread over the text where no word is shared."""
    fits = max(1, limit_words * len(pieces) // max(1, sum(p.words for p in pieces)))
    room = min(len(pieces), max(12, 2 * fits + 4))
    best = by_words.max(0)
    order = [int(i) for i in np.argsort(-best, kind="stable") if best[i] > 0][: room - 2]
    spread = [int(i) for i in np.linspace(0, len(pieces) - 1, room - len(order))]
    return sorted({*order, *spread})


def _spans(pieces: Sequence[Piece], order: Sequence[int], scores: Vectors, limit_words: int) -> tuple[Span, ...]:
    spans: list[Span] = []
    left = limit_words
    for i in order:
        piece = pieces[i]
        if spans and piece.words > left:
            continue
        left -= piece.words
        spans.append(Span(start=piece.start, end=piece.end, heading=piece.heading, score=round(float(scores[i]), 4)))
    return tuple(spans)
