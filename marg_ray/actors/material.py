"""What an answer may rest on: passages with what stands around them, ranked for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.memory.chat import Passage
from marg_ray.records import Answerability, Evidence, Zone
from marg_ray.report.model import Report
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.sources.answerability import assess
from marg_ray.sources.library.found import candidates
from marg_ray.sources.library.hybrid import Opening, complete, first_hop
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Piece, Row, count_words, row_of

AROUND = 400  # characters on either side of a quotation, as far as sentences go
SHOWN = 12  # passages that an answer is written from
DENSE = 0.75  # of meaning against words


@dataclass(frozen=True)
class Material:
    """Passages, best first where they were ranked. `passages` says of each what a reader is shown."""

    evidence: tuple[Evidence, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    answerability: Answerability = field(default_factory=Answerability)

    @property
    def titles(self) -> dict[str, str]:
        return {e.source: self.passages[e.id].title for e in self.evidence if e.id in self.passages}

    def __add__(self, other: Material) -> Material:
        """Both; whatever stands in the two stands once."""
        evidence = {e.id: e for e in (*self.evidence, *other.evidence)}
        return Material(tuple(evidence.values()), {**self.passages, **other.passages})


def of_report(report: Report, texts: Mapping[str, str]) -> Material:
    """A report's evidence, each with the sentences around it.

    Args:
        texts: source id to frozen text, as far as it is there; else the quotation stands alone.
    """
    sources = {s.id: s for s in report.sources}
    quoted = sorted(report.evidence, key=lambda e: (e.source, e.start, -e.end))
    evidence: list[Evidence] = []
    for source, group in groupby(quoted, key=lambda e: e.source):
        own = list(group)
        before = 0
        for number, one in enumerate(own):
            if one.end <= before:  # it stands in the one before it
                continue
            following = next((e.start for e in own[number + 1 :] if e.start >= one.end), len(texts.get(source, "")))
            start, end = window(texts.get(source, ""), one.start, one.end, before, following)
            quote = texts[source][start:end] if source in texts else one.quote
            before = end
            evidence.append(
                Evidence(
                    id=one.id,
                    source=source,
                    quote=quote,
                    start=start,
                    end=end,
                    claim=one.claim,
                    heading=one.heading,
                    page=one.page,
                    tainted=one.tainted,
                )
            )
    passages = {
        e.id: Passage(
            id=e.id,
            quote=e.quote,
            title=sources[e.source].title if e.source in sources else "",
            location=sources[e.source].location if e.source in sources else "",
            source=e.source,
            start=e.start,
            end=e.end,
            session=report.session_id,
        )
        for e in evidence
    }
    return Material(tuple(evidence), passages)


def window(text: str, start: int, end: int, after: int, until: int) -> tuple[int, int]:
    """A stretch with the whole sentences around it, `AROUND` characters on either side; within `after` and `until`."""
    low, high = max(after, start - AROUND), min(until, end + AROUND, len(text))
    if not text or low >= start:
        low = start
    before = [low + a for a, _ in sentence_spans(text[low:start])]
    behind = [end + b for _, b in sentence_spans(text[end:high])]
    begins = before if low in (0, after) else before[1:]  # what was cut by the limit is no whole sentence
    ends = behind if high in (until, len(text)) else behind[:-1]
    return min(begins, default=start), max(ends, default=end)


async def ranked(
    question: str,
    material: Material,
    embedder: Embedder,
    *,
    light: Offload = in_thread,
    limit: int = SHOWN,
    index: Index | None = None,
) -> Material:
    """The best passages for a question, and whether they can answer it.

    Args:
        index: of this material, where `index_of` made it before.
    """
    if not material.evidence or not question.strip():
        return Material()
    index = index or await index_of(material, embedder, light)
    opening = await light(first_hop, index, question, await embedder.embed([question]), DENSE)
    more = await embedder.embed(opening.texts) if opening.texts else None
    order, verdict = await light(_judged, index, question, opening, more)
    best = [material.evidence[i] for i in order[:limit]]
    if verdict.zone is Zone.NOTHING:
        best = best[:3]
    top = max(1, len(best))
    scored = tuple(e.model_copy(update={"relevance": round(1 - n / top, 4)}) for n, e in enumerate(best))
    return Material(scored, {e.id: material.passages[e.id] for e in scored if e.id in material.passages}, verdict)


async def index_of(material: Material, embedder: Embedder, light: Offload = in_thread) -> Index:
    """The material as an index: passage `i` of it is `material.evidence[i]`."""
    rows = await light(_rows, material)
    vectors = await embedder.embed([row.embedded for _, _, (row,) in rows])
    return await light(Index.of, rows, vectors)


def _rows(material: Material) -> list[tuple[str, str, Sequence[Row]]]:
    titles = material.titles
    return [(e.source, titles.get(e.source, ""), [_row(e, titles.get(e.source, ""))]) for e in material.evidence]


def _row(evidence: Evidence, title: str) -> Row:
    piece = Piece(evidence.start, evidence.end, heading=evidence.heading, words=count_words(evidence.quote))
    return row_of(title, evidence.quote, piece)


def _judged(index: Index, question: str, opening: Opening, more: Vectors | None) -> tuple[list[int], Answerability]:
    ranking = complete(index, opening, more)
    verdict = assess(question, candidates(index, ranking), index.df, len(index))
    return [int(i) for i in ranking.order], verdict
