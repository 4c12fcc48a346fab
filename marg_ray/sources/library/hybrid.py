"""Ranks passages for a query by meaning and words, and follows what the best ones lead to (a second hop)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from marg_ray.grounding.terms import content_terms, words
from marg_ray.seams import Embedder, Vectors, in_thread
from marg_ray.sources.answerability import query_terms
from marg_ray.sources.library.index import Floats, Index, best_first, minmax
from marg_ray.sources.library.passages import name_key, names

SEEDS = 5  # whose links are followed
RESIDUALS = 2  # of them are asked what they leave open; more of them only crowd out what was found
SEED_SHARE = (
    0.85  # of the best seed's score: one below is not asked (recall is the same, a tenth to a fifth fewer texts)
)
KEPT_FIRST = 3  # of the first hop stay in front
RESIDUAL = 0.6
LINKS = 0.3
NAMES = 0.6  # of a link's weight
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, eq=False)
class Ranking:
    """`order`: all passages, the best 256 first and in order (see `best_first`).

    `scores` (both hops) and `base` (the first) are comparable within one query.
    """

    order: NDArray[np.intp]
    scores: Floats
    base: Floats
    cosines: Floats
    bm25: Floats


@dataclass(frozen=True, eq=False)
class Opening:
    """The first hop, and what the second is to ask: passages with what each leaves open; None without a second hop."""

    ranking: Ranking
    left: list[tuple[int, str]] | None

    @property
    def texts(self) -> list[str]:
        """What is to be embedded for the second hop, each once."""
        return list(dict.fromkeys(text for _, text in self.left or ()))


async def rank(
    index: Index,
    query: str,
    embedder: Embedder,
    *,
    dense_weight: float = 0.75,
    second_hop: bool = True,
) -> Ranking:
    """Rank all passages of a non-empty index. Embeds one text, then up to `RESIDUALS` more.

    There is no second hop where the best passage has all that is asked for.
    """
    vectors = await embedder.embed([query])
    opening = await in_thread(first_hop, index, query, vectors, dense_weight, follow=second_hop)
    found = await embedder.embed(opening.texts) if opening.texts else None
    return await in_thread(complete, index, opening, found)


def first_hop(index: Index, query: str, vectors: Vectors, dense_weight: float, *, follow: bool = True) -> Opening:
    """Rank by the query alone; `vectors` holds its embedding, shape (1, dimension). CPU work, as is `complete`."""
    weight = dense_weight * latin_share(query)
    cosines = index.cosines(vectors)[0]
    bm25 = index.bm25(content_terms(query) or words(query))
    base = weight * minmax(cosines) + (1 - weight) * minmax(bm25)
    first = Ranking(best_first(base), base, base, cosines, bm25)
    return Opening(first, _left_open(index, query, first) if follow else None)


def complete(index: Index, opening: Opening, vectors: Vectors | None) -> Ranking:
    """The second hop; `vectors` holds the embeddings of the opening's texts, None where there are none."""
    if opening.left is None:
        return opening.ranking
    found = {} if vectors is None else dict(zip(opening.texts, vectors, strict=True))
    return _second_hop(index, opening.ranking, [(seed, text, found[text]) for seed, text in opening.left])


def latin_share(text: str) -> float:
    """How far the English encoder can be trusted with `text`: the share of Latin letters, at least .2."""
    letters = len(_LETTER.findall(text))
    return max(0.2, len(_LATIN.findall(text)) / letters) if letters else 1.0


def _left_open(index: Index, query: str, first: Ranking) -> list[tuple[int, str]] | None:
    """The best seeds, each with what it leaves open; None where the best of all leaves nothing open."""
    seeds = [int(i) for i in first.order[:RESIDUALS]]
    held, _ = _content(index.titles[seeds[0]], index.texts[seeds[0]])
    if query_terms(query).keys() <= held:
        return None
    near = SEED_SHARE * float(first.base[seeds[0]])
    seeds = [seed for seed in seeds if first.base[seed] >= near]
    return [(seed, text) for seed in seeds if (text := residual_query(query, index, seed))]


def residual_query(query: str, index: Index, seed: int) -> str:
    """What a seed leaves open: the query's words it does not hold, and its own names that the query lacks."""
    held, own = _content(index.titles[seed], index.texts[seed])
    left = [word for word in re.findall(r"[\w'’-]+", query) if (t := content_terms(word)) and not held.issuperset(t)]
    asked = name_key(query)
    new = [name for name, key in own if key not in asked]
    return " ".join([*left, *new[:8]])


@lru_cache(maxsize=2048)  # the same few passages answer most of a session's queries
def _content(title: str, text: str) -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    """A passage's terms, and its names with their keys."""
    terms = frozenset(content_terms(f"{title} {text}"))
    return terms, tuple((name, name_key(name)) for name in names(f"{title}. {text}"))


def _second_hop(index: Index, first: Ranking, residuals: list[tuple[int, str, Vectors]]) -> Ranking:
    base = first.base
    best = np.zeros(len(index), np.float32)
    if residuals:
        cosines = index.cosines(np.stack([vector for _, _, vector in residuals]))
        for (seed, text, _), cosine in zip(residuals, cosines, strict=True):
            score = 0.5 * minmax(cosine) + 0.5 * minmax(index.bm25(content_terms(text)))
            np.maximum(best, base[seed] * score, out=best)
    scores = base + RESIDUAL * best
    scores = scores + LINKS * _links(index, base, scores, [int(i) for i in first.order[:SEEDS]])
    order = best_first(scores)
    front = first.order[:KEPT_FIRST]
    others = np.ones(len(index), np.bool_)
    others[front] = False
    order = np.concatenate([front, order[others[order]]])
    return Ranking(order, scores, base, first.cosines, first.bm25)


def _links(index: Index, base: Floats, scores: Floats, seeds: list[int]) -> Floats:
    """What the seeds lead to: 1 x the seed's score for what it calls by title, heading or term, and up to `NAMES` x
    for shared rare names. A title leads to the best passage of its document, not to all of them.
    """
    links = np.zeros(len(index), np.float32)
    for seed in seeds:
        here: dict[int, float] = dict.fromkeys(_called(index, scores, seed), 1.0)
        for i, rarity in index.sharing(seed).items():
            here[i] = here.get(i, 0.0) + NAMES * min(1.0, 2 * rarity)
        for i, strength in here.items():
            links[i] = max(links[i], strength * base[seed])
    return links


def _called(index: Index, scores: Floats, seed: int) -> set[int]:
    own = index.source_ids[seed]
    found: set[int] = set()
    for name in index.called_by(seed):
        other = [i for i in index.title_targets.get(name, ()) if index.source_ids[i] != own]
        if other:
            found.add(max(other, key=lambda i: float(scores[i])))
        found.update(i for i in index.heading_targets.get(name, ()) if i != seed)
    return found
