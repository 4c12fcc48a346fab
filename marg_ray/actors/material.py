"""What an answer may rest on: passages with what stands around them, ranked for a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.grounding.verify import check_sentence
from marg_ray.memory.chat import Passage
from marg_ray.records import Answerability, Evidence, Zone
from marg_ray.report.model import Report, ReportEvidence
from marg_ray.seams import Embedder, Offload, Vectors, in_thread
from marg_ray.sources.answerability import assess
from marg_ray.sources.library.found import candidates
from marg_ray.sources.library.hybrid import Opening, complete, first_hop
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Piece, Row, count_words, row_of

AROUND = 400  # characters on either side of a quotation, as far as sentences go
LONGEST = 1200  # characters of quotations that stand together
SHOWN = 12  # passages that an answer is written from
DENSE = 0.75  # of meaning against words


@dataclass(frozen=True)
class Material:
    """Passages, best first where they were ranked. `passages` says of each what a reader is shown."""

    evidence: tuple[Evidence, ...] = ()
    passages: Mapping[str, Passage] = field(default_factory=dict)
    answerability: Answerability = field(default_factory=Answerability)
    anchors: Mapping[str, tuple[Evidence, ...]] = field(default_factory=dict)  # what a passage was made around

    def cited_as(self, sentence: str, evidence_id: str) -> str:
        """The quotation within a passage that a sentence rests on: the report has evidence for each, by its id."""
        inside = self.anchors.get(evidence_id, ())
        if len(inside) < 2:
            return evidence_id
        titles = self.titles
        return max(
            inside, key=lambda e: check_sentence(sentence, [e], titles=[t for t in (titles.get(e.source),) if t]).score
        ).id

    @property
    def quoted(self) -> list[Evidence]:
        """The passages, and the quotations within them."""
        return [*self.evidence, *(e for one in self.evidence for e in self.anchors.get(one.id, ()))]

    @property
    def titles(self) -> dict[str, str]:
        return {e.source: self.passages[e.id].title for e in self.evidence if e.id in self.passages}

    def __add__(self, other: Material) -> Material:
        """Both; whatever stands in the two stands once."""
        evidence = {e.id: e for e in (*self.evidence, *other.evidence)}
        anchors = {**self.anchors, **other.anchors}
        return Material(tuple(evidence.values()), {**self.passages, **other.passages}, anchors=anchors)


def of_report(report: Report, texts: Mapping[str, str]) -> Material:
    """A report's evidence with the sentences around it; quotations that stand close together are one passage.

    Args:
        texts: source id to frozen text, as far as it is there; else the quotation stands alone.
    """
    sources = {s.id: s for s in report.sources}
    quoted = sorted((_evidence(e) for e in report.evidence), key=lambda e: (e.source, e.start, -e.end))
    stretches: list[Evidence] = []
    anchors: dict[str, tuple[Evidence, ...]] = {}
    for source, group in groupby(quoted, key=lambda e: e.source):
        text, before = texts.get(source, ""), 0
        runs = _runs(list(group), joined=bool(text))
        for number, run in enumerate(runs):
            start, end = run[0].start, max(e.end for e in run)
            following = runs[number + 1][0].start if number + 1 < len(runs) else len(text)
            low, high = window(text, start, end, before, following)
            before = high
            first = run[0].model_copy(update={"tainted": any(e.tainted for e in run)})
            whole = {"quote": text[low:high], "start": low, "end": high} if text else {}
            stretches.append(first.model_copy(update=whole))
            anchors[first.id] = tuple(run)
    passages = {
        e.id: Passage(
            id=e.id,
            quote=stretch.quote,
            title=sources[e.source].title if e.source in sources else "",
            location=sources[e.source].location if e.source in sources else "",
            source=e.source,
            start=stretch.start,
            end=stretch.end,
            session=report.session_id,
        )
        for stretch in stretches
        for e in anchors[stretch.id]
    }
    return Material(tuple(stretches), passages, anchors=anchors)


def _evidence(e: ReportEvidence) -> Evidence:
    fields = ("id", "source", "quote", "start", "end", "claim", "heading", "page", "tainted")
    return Evidence(**{name: getattr(e, name) for name in fields})


def _runs(quoted: Sequence[Evidence], *, joined: bool) -> list[list[Evidence]]:
    """Quotations of one source that stand close together: one passage, in which a sentence finds what it refers to."""
    runs: list[list[Evidence]] = []
    for one in quoted:
        last = runs[-1] if runs else None
        if last is not None and joined:
            end = max(e.end for e in last)
            if one.end <= end or (one.start - end <= AROUND and one.end - last[0].start <= LONGEST):
                last.append(one)
                continue
        runs.append([one])
    return runs


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
        return Material(answerability=assess(question, [], lambda _: 0, 0))
    index = index or await index_of(material, embedder, light)
    opening = await light(first_hop, index, question, await embedder.embed([question]), DENSE)
    more = await embedder.embed(opening.texts) if opening.texts else None
    order, verdict = await light(_judged, index, question, opening, more)
    best = [material.evidence[i] for i in order[:limit]]
    if verdict.zone is Zone.NOTHING:
        best = best[:3]
    top = max(1, len(best))
    scored = tuple(e.model_copy(update={"relevance": round(1 - n / top, 4)}) for n, e in enumerate(best))
    return Material(scored, material.passages, verdict, material.anchors)


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
