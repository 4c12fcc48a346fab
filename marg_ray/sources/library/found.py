"""Groups ranked passages into documents."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.records import Answerability, Hit, SourceKind, Span
from marg_ray.sources.answerability import BEST, Candidate
from marg_ray.sources.library.catalog import Entry
from marg_ray.sources.library.hybrid import Ranking
from marg_ray.sources.library.index import Index

POOL = 80  # passages that documents are made of
SPANS = 8  # passages per document
SNIPPET = 300  # characters
FLOOR = 0.35  # of the best score; below, a passage is not shown


def candidates(index: Index, ranking: Ranking) -> list[Candidate]:
    """The best passages by the first hop, and the nearest in meaning: what they lead to does not make an answer."""
    some = ranking.base.argpartition(1 - BEST)[1 - BEST :] if len(index) >= BEST else range(len(index))
    chosen = {int(i) for i in some} | {int(ranking.cosines.argmax())}
    order = sorted(chosen, key=lambda i: -float(ranking.base[i]))
    return [
        Candidate(index.texts[i], index.titles[i], f"{index.headings[i]} {index.labels[i]}", float(ranking.cosines[i]))
        for i in order
    ]


def hits(
    index: Index,
    ranking: Ranking,
    entries: Mapping[str, Entry],
    verdict: Answerability,
    limit: int,
    kind: SourceKind = SourceKind.LIBRARY,
) -> tuple[Hit, ...]:
    """Documents by their best passage, each with its passages, best first.

    `relevance` is how well the best passage of all fits the query (.75 cosine, .25 coverage), scaled by the scores.
    """
    order = [int(i) for i in ranking.order[:POOL]]
    scores = dict(zip(order, ranking.scores[order].tolist(), strict=True))
    best = max(scores.values())
    worth = max(0.0, min(1.0, 0.75 * verdict.cosine + 0.25 * verdict.coverage))
    groups: dict[str, list[int]] = {}
    seen: set[int] = set()  # a passage that stands in two places is shown in the better one
    for i in order:
        if scores[i] >= FLOOR * best and (wording := index.wording(i)) not in seen:
            groups.setdefault(index.source_ids[i], []).append(i)
            seen.add(wording)
    found: list[Hit] = []
    ceiling = 1.0
    for source_id, passages in groups.items():
        entry = entries.get(source_id)
        if entry is None or len(found) == limit:
            continue
        snippet = shorten(index.texts[passages[0]])
        passages = sorted(passages, key=lambda i: -scores[i])[:SPANS]
        share = [scores[i] / best if best > 0 else 0.0 for i in passages]
        ceiling = min(ceiling, max(share))  # the first hop's best stay in front, whatever the second says
        found.append(
            Hit(
                location=entry.path,
                title=entry.title,
                kind=kind,
                snippet=snippet,
                relevance=round(worth * ceiling, 4),
                source_id=source_id,
                spans=tuple(
                    Span(
                        start=int(index.starts[i]),
                        end=int(index.ends[i]),
                        heading=index.headings[i],
                        score=round(worth * min(s, 1.0), 4),
                    )
                    for i, s in zip(passages, share, strict=True)
                ),
                headings=entry.headings,
                published=entry.published,
            )
        )
    return tuple(found)


@lru_cache(maxsize=2048)
def shorten(text: str, limit: int = SNIPPET) -> str:
    """The first sentences that fit; a longer one is cut between words."""
    if len(text) <= limit:
        return text
    ends = [end for _, end in sentence_spans(text[: limit * 2]) if limit / 3 <= end <= limit]
    if ends:
        return text[: ends[-1]]
    space = text.rfind(" ", limit // 2, limit - 1)
    return text[: space if space > 0 else limit - 1] + "…"
