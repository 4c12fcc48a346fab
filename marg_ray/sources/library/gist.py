"""The sentences that say most of a document, word for word."""

from __future__ import annotations

import numpy as np

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.snapshots import Document
from marg_ray.records import Span
from marg_ray.seams import Embedder, Vectors

MOST = 160  # sentences that are weighed; of a longer document spread over it
SHORTEST, LONGEST = 40, 600  # characters of a sentence worth quoting
FIRST = 0.08  # for the sentence that begins the document, falling to none
RELEVANCE = 0.5  # against what was chosen already
_PROSE = frozenset({"paragraph", "list_item", "quote"})


async def gist(document: Document, embedder: Embedder, most: int) -> tuple[Span, ...]:
    """Up to `most` sentences in the order of the text: near what the whole is about, and unlike each other.

    Centroid salience (D. Radev et al., "Centroid-based summarization of multiple documents", 2004) with maximal
    marginal relevance (J. Carbonell and J. Goldstein, "The use of MMR", 1998).
    """
    spans = _sentences(document)
    if not spans:
        return ()
    vectors = await embedder.embed([document.text[s:e] for s, e in spans])
    chosen = _choose(vectors, most)
    return tuple(
        Span(start=spans[i][0], end=spans[i][1], heading=document.heading_path(spans[i][0]), score=round(score, 4))
        for i, score in sorted(chosen.items())
    )


def _sentences(document: Document) -> list[tuple[int, int]]:
    found = [
        (part.start + start, part.start + end)
        for part in document.parts
        if part.kind in _PROSE
        for start, end in sentence_spans(document.text[part.start : part.end])
        if SHORTEST <= end - start <= LONGEST
    ]
    if not document.parts:
        found = [(s, e) for s, e in sentence_spans(document.text) if SHORTEST <= e - s <= LONGEST]
    keep = np.unique(np.linspace(0, len(found) - 1, min(MOST, len(found))).astype(int)) if found else ()
    return [found[int(i)] for i in keep]


def _choose(vectors: Vectors, most: int) -> dict[int, float]:
    """Rows by index, with their salience."""
    centre = vectors.mean(0)
    length = float(np.linalg.norm(centre))
    salience = vectors @ (centre / length if length else centre) + FIRST * np.linspace(1, 0, len(vectors))
    chosen: dict[int, float] = {}
    nearest = np.zeros(len(vectors))
    while len(chosen) < min(most, len(vectors)):
        worth = RELEVANCE * salience - (1 - RELEVANCE) * nearest
        worth[list(chosen)] = -np.inf
        best = int(worth.argmax())
        chosen[best] = float(salience[best])
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return chosen
