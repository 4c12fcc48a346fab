"""What paper says of single sentences: a sign at the mark, and a list of those that do not wholly hold.

On a screen a mark opens the verdict and its reason; on paper they are listed at the end, with the sentence. So is one
that holds, but rests on a source that carried text which reads like an order to a machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from marg_ray.grounding.markdown import row_cells
from marg_ray.records import Verdict
from marg_ray.report import wording
from marg_ray.report.inline import parse, plain
from marg_ray.report.layout import Layout, Run
from marg_ray.report.model import Report, ReportBlock, ReportSentence
from marg_ray.text import one_line

# Worst last. Letters that every text font has, and that no colour is needed for.
SIGNS: Mapping[Verdict, str] = MappingProxyType(
    {Verdict.NOT_CHECKED: "?", Verdict.PARTIAL: "≈", Verdict.UNSUPPORTED: "×", Verdict.CONTRADICTED: "≠"}
)
CAUTION = "!"  # it holds, but look at what it rests on
_WORST = (Verdict.NOT_FACTUAL, Verdict.SUPPORTED, *SIGNS)


@dataclass(frozen=True)
class Remark:
    """A sentence that does not wholly hold, or whose source calls for caution.

    `number` counts them in reading order; `where` is its section's title.
    """

    number: int
    where: str
    text: str
    verdict: Verdict
    name: str
    reason: str

    @property
    def sign(self) -> str:
        return SIGNS.get(self.verdict, CAUTION)


class Remarks:
    """Those of a report, in reading order, and the one that a run's mark should lead to."""

    def __init__(self, report: Report, layout: Layout) -> None:
        self._by_sentence: dict[int, Remark] = {}  # by identity: two sentences may have the same words
        for where, block, sentence in _sentences(report):
            if sentence.verdict in SIGNS or sentence.caution:
                self._by_sentence[id(sentence)] = Remark(
                    number=len(self._by_sentence) + 1,
                    where=where,
                    text=_words(layout, block, sentence),
                    verdict=sentence.verdict,
                    name=wording.label(report, sentence.verdict.value),
                    reason=one_line("; ".join(filter(None, (sentence.reason, sentence.caution)))),
                )

    @property
    def all(self) -> tuple[Remark, ...]:
        return tuple(self._by_sentence.values())

    def of(self, run: Run) -> Remark | None:
        """That of the run's worst sentence, the first of several."""
        found = [r for line in run.lines if (r := self._by_sentence.get(id(line.sentence)))]
        return max(found, key=lambda r: (_WORST.index(r.verdict), -r.number), default=None)


def _sentences(report: Report) -> Iterator[tuple[str, ReportBlock | None, ReportSentence]]:
    parts = [(wording.label(report, "in_brief"), report.summary_blocks, report.summary)]
    parts += [(s.title, s.blocks, s.sentences) for s in report.sections]
    for title, blocks, sentences in parts:
        held = {i: b for b in blocks for i in range(b.start, b.end)}
        for i, sentence in enumerate(sentences):
            yield title, held.get(i), sentence


def _words(layout: Layout, block: ReportBlock | None, sentence: ReportSentence) -> str:
    if block is not None and block.kind == "table":
        return " · ".join(words for cell in row_cells(one_line(sentence.text)) if (words := plain(parse(cell))))
    return plain(layout.nodes(sentence))
