"""Relevance of search results, and of the paragraphs of one document, to a query."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from marg_ray.grounding.snapshots import Document
from marg_ray.grounding.terms import content_terms, words
from marg_ray.records import Hit, SourceKind, Span
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.sources.answerability import query_terms
from marg_ray.sources.library.hybrid import latin_share
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Piece, Row, cut, row_of

DENSE = 0.75  # of meaning against words
SAME = 0.85  # shared word triples above which two results are one text
_LEAST_TRIPLES = 6
_OWN = frozenset({SourceKind.LIBRARY, SourceKind.PROVIDED})  # ranked by their own index already


async def rank_hits(query: str, hits: Sequence[Hit], embedder: Embedder) -> tuple[Hit, ...]:
    """The hits by relevance, best first, near-identical texts once (the more relevant one stays).

    Relevance is .75 cosine + .25 share of the query's terms, weighted by their rarity among the hits; hits of a
    library keep theirs, which is on the same scale.
    """
    if not hits:
        return ()
    texts = [f"{hit.title}. {hit.snippet}" for hit in hits]
    vectors = await embedder.embed([query, *texts])
    weight = DENSE * latin_share(query)
    covered = _coverage(query, texts)
    scored = [
        hit if hit.kind in _OWN else hit.model_copy(update={"relevance": _blend(weight, float(cosine), share)})
        for hit, cosine, share in zip(hits, vectors[1:] @ vectors[0], covered, strict=True)
    ]
    return without_echoes(sorted(scored, key=lambda hit: -hit.relevance))


def _blend(weight: float, cosine: float, share: float) -> float:
    return round(min(1.0, weight * max(0.0, cosine) + (1 - weight) * share), 4)


def _coverage(query: str, texts: Sequence[str]) -> list[float]:
    terms = set(query_terms(query)) or set(content_terms(query))
    held = [terms & set(content_terms(text)) for text in texts]
    weights = {t: math.log1p((len(texts) + 1) / (sum(t in h for h in held) + 0.5)) for t in terms}
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
    small = min(len(a), len(b))
    return small >= _LEAST_TRIPLES and len(a & b) >= SAME * small and small >= 0.5 * max(len(a), len(b))


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
