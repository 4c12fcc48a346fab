"""Search results of several sources made one, and what the library has beside the web."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.records import Answerability, Hit, Note, Usage, Zone
from marg_ray.sources.protocol import Found

GOOD, ENOUGH = 0.45, 5  # so many local hits of this relevance fill a search
ZONES = (Zone.NOTHING, Zone.NEAREST, Zone.ANSWER)  # rising


@dataclass(frozen=True)
class Results:
    """What all sources together found for a query."""

    hits: tuple[Hit, ...]
    answerability: Answerability
    notes: tuple[Note, ...]
    usage: Usage


def merge(found: Sequence[Found], notes: tuple[Note, ...]) -> Results:
    """Results of several sources as one list, best first; the best of them says how far the query is answered."""
    hits = sorted((h for f in found for h in f.hits), key=lambda h: -h.relevance)
    best = max((f.answerability for f in found), key=lambda a: (ZONES.index(a.zone), a.coverage))
    missing = [set(f.answerability.missing_terms) for f in found]
    nowhere = tuple(t for t in best.missing_terms if all(t in m for m in missing))
    nearest = tuple(dict.fromkeys(t for f in found for t in f.answerability.nearest))[:5]
    return Results(
        hits=tuple({h.location: h for h in reversed(hits)}.values())[::-1],
        answerability=best.model_copy(update={"missing_terms": nowhere, "nearest": nearest}),
        notes=(*notes, *(n for f in found for n in f.notes)),
        usage=Usage(searches=sum(f.searches for f in found), reused=sum(f.cached for f in found)),
    )


def filled(local: Sequence[Found]) -> bool:
    """Whether the library answers, and has as much as is read: the web's hits need no fine order then."""
    good = sum(h.relevance >= GOOD for f in local for h in f.hits)
    return good >= ENOUGH and any(f.answerability.zone is Zone.ANSWER for f in local)


def as_read(hit: Hit) -> Hit:
    """Without what only a planner looks at."""
    return hit.model_copy(update={"headings": ()}) if hit.headings else hit


def has_some(local: Sequence[Found]) -> bool:
    """Whether the library has something near the query: a web hit without one of its words is hardly nearer."""
    return any(h.relevance >= GOOD for f in local for h in f.hits)


def better(first: Results, second: Results) -> Results:
    """The rewritten query's result where it found more; other words never prove that the question is answered."""
    if ZONES.index(second.answerability.zone) <= ZONES.index(first.answerability.zone) and first.hits:
        return first
    zone = min(second.answerability.zone, Zone.NEAREST, key=ZONES.index) if first.hits else second.answerability.zone
    return Results(second.hits, second.answerability.model_copy(update={"zone": zone}), second.notes, second.usage)
