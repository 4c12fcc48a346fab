"""A section as every format draws it: runs of sentences under one mark, lists, tables, run-in labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from marg_ray.grounding.markdown import row_cells
from marg_ray.records import Verdict
from marg_ray.report.inline import Inline, literal, parse
from marg_ray.report.model import BlockKind, Report, ReportBlock, ReportEvidence, ReportSection, ReportSentence
from marg_ray.report.wording import label
from marg_ray.text import one_line

_LEAD = re.compile(r"\*\*[^*]{1,120}\*\* ")
FLAGGED = frozenset({Verdict.UNSUPPORTED, Verdict.CONTRADICTED})


@dataclass(frozen=True)
class Line:
    """A sentence ready to draw."""

    sentence: ReportSentence
    nodes: tuple[Inline, ...]


@dataclass(frozen=True)
class Run:
    """Sentences in a row that cite the same: they share one mark, at the end of the last."""

    lines: tuple[Line, ...]
    warning: str = ""  # where a reader must be warned: the verdict in words; all sentences of such a run have it

    @property
    def citations(self) -> tuple[str, ...]:
        return self.lines[0].sentence.citations

    @property
    def numbers(self) -> tuple[int, ...]:
        return self.lines[0].sentence.numbers


@dataclass(frozen=True)
class Row:
    """A table's row: as many cells as the table has columns, and what it cites."""

    cells: tuple[tuple[Inline, ...], ...]
    run: Run


@dataclass(frozen=True)
class Piece:
    """A block ready to draw. `label` is the bold name that runs into it; `level` is 0 for the outermost list."""

    kind: BlockKind
    runs: tuple[Run, ...] = ()
    label: tuple[Inline, ...] = ()
    nodes: tuple[Inline, ...] = ()  # of a heading
    text: str = ""  # of code and formulas, verbatim
    level: int = 0
    language: str = ""
    header: tuple[tuple[Inline, ...], ...] = ()
    rows: tuple[Row, ...] = ()


class Layout:
    """Draws sentences with the evidence at hand: what stands verbatim in a cited passage is shown letter by letter."""

    def __init__(self, report: Report) -> None:
        self._evidence: dict[str, ReportEvidence] = {e.id: e for e in report.evidence}
        self._warnings = {verdict: label(report, verdict.value) for verdict in FLAGGED}

    def section(self, section: ReportSection) -> tuple[Piece, ...]:
        return self.pieces(section.blocks, section.sentences)

    def pieces(self, blocks: Sequence[ReportBlock], sentences: Sequence[ReportSentence]) -> tuple[Piece, ...]:
        """The blocks in order; sentences that no block holds (there should be none) follow as a paragraph."""
        held = {i for b in blocks for i in range(b.start, b.end)}
        drawn = [piece for b in blocks for piece in self._pieces(b, sentences[b.start : b.end])]
        rest = [s for i, s in enumerate(sentences) if i not in held]
        if rest:
            drawn.append(Piece("paragraph", self.runs(rest)))
        return tuple(_with_labels(drawn))

    def runs(self, sentences: Iterable[ReportSentence]) -> tuple[Run, ...]:
        groups = groupby(sentences, key=_shared)
        return tuple(self._run(group) for _, group in groups)

    def _run(self, sentences: Iterable[ReportSentence]) -> Run:
        lines = tuple(Line(s, self.nodes(s)) for s in sentences)
        return Run(lines, self._warnings.get(lines[0].sentence.verdict, ""))

    def nodes(self, sentence: ReportSentence) -> tuple[Inline, ...]:
        lead, text = _split_lead(one_line(sentence.text))
        words = text.rstrip(".") or text  # a source's missing full stop is added outside the quotation
        quotes = (self._evidence[c].quote for c in sentence.citations if c in self._evidence)
        if text and any(words in one_line(quote) for quote in quotes):
            return (*parse(lead.strip()), Inline("text", f" {text}")) if lead else literal(text)
        return parse(lead + text)

    def _pieces(self, block: ReportBlock, sentences: Sequence[ReportSentence]) -> Iterator[Piece]:
        match block.kind:
            case "heading" | "label":
                yield Piece(block.kind, self.runs(sentences), nodes=parse(block.text), level=block.level)
            case "code" | "formula":
                runs = self.runs(sentences)
                yield Piece(block.kind, runs, text=block.text.strip("\n"), language=one_line(block.language))
            case "table":
                table = self._table(block, sentences)
                if table.header or not table.rows:
                    yield table
                else:
                    yield from (Piece("bullet", (row.run,)) for row in table.rows)
            case _:
                yield Piece(block.kind, self.runs(sentences), level=max(0, block.level))

    def _table(self, block: ReportBlock, sentences: Sequence[ReportSentence]) -> Piece:
        """Rows of any length: the longest sets the columns, shorter ones end in empty cells.

        Without a header and with one cell a row it has no columns, and so no header here.
        """
        header = _cells(block.text)
        rows = [(_cells(s.text), s) for s in sentences]
        width = max([len(header), *(len(cells) for cells, _ in rows)])
        return Piece(
            "table",
            header=tuple(parse(c) for c in _padded(header, width)) if header or width > 1 else (),
            rows=tuple(Row(tuple(parse(c) for c in _padded(cells, width)), self._run((s,))) for cells, s in rows),
        )


def _shared(sentence: ReportSentence) -> tuple[object, ...]:
    """Sentences with equal keys share a mark."""
    return (sentence.citations, sentence.verdict if sentence.verdict in FLAGGED else None)


def _with_labels(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """A label runs into the prose that follows it; on its own it is a line of its own."""
    label: Piece | None = None
    for piece in pieces:
        if label is not None and piece.kind in ("paragraph", "bullet", "ordered") and not label.runs:
            piece = Piece(piece.kind, piece.runs, label=label.nodes, level=piece.level)
        elif label is not None:
            yield label
        label = piece if piece.kind == "label" else None
        if label is None:
            yield piece
    if label is not None:
        yield label


def _padded(cells: list[str], width: int) -> list[str]:
    return cells + [""] * (width - len(cells))


def _split_lead(text: str) -> tuple[str, str]:
    """A bold name that runs into the sentence, with its blank, and the sentence."""
    lead = _LEAD.match(text)
    return (lead.group(), text[lead.end() :]) if lead else ("", text)


def _cells(row: str) -> list[str]:
    cells = row_cells(one_line(row))
    return cells if any(cells) else []
