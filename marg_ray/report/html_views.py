"""What the HTML page shows, laid out for its template: prose as safe HTML, and one passage box per citation mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import quote

import nh3
from markupsafe import Markup, escape

from marg_ray.records import SourceKind, Verdict
from marg_ray.report import wording
from marg_ray.report.charts.showing import ChartView, charts_in, view_of
from marg_ray.report.inline import Inline, plain
from marg_ray.report.layout import Layout, Line, Piece, Row, Run
from marg_ray.report.markdown import anchor
from marg_ray.report.model import Report, ReportClaim, ReportEvidence, ReportSection, ReportSentence, ReportSource
from marg_ray.report.text import gap_between
from marg_ray.text import one_line

_LAST_WORD = re.compile(r"[^\s\u2e80-\uffef]{0,24}.?\Z", re.DOTALL)  # of scripts without blanks, the last letters
_TAGS = {"em", "strong", "code", "a", "span"}
CUTS_SHOWN, CUT_SHOWN = 10, 400  # of a source, and letters of each
_ATTRIBUTES = {"a": {"href"}, "span": {"class"}}


@dataclass(frozen=True)
class Quote:
    text: str
    where: str  # headings, page, characters
    parts: tuple[tuple[str, bool], ...] = ()  # the text in pieces, and whether each decided on a sentence


@dataclass(frozen=True)
class Check:
    verdict: Verdict
    name: str
    reason: str
    text: str  # the sentence's words where a box covers several
    caution: str = ""


@dataclass(frozen=True)
class SourceView:
    number: int
    title: str
    place: str
    dates: str
    kind: str
    href: str
    tainted: bool
    snapshot: str
    quotes: tuple[Quote, ...] = ()
    cuts: tuple[str, ...] = ()  # instruction-like text that is not used


@dataclass(frozen=True)
class Box:
    """What a citation mark opens. Without `source` it explains a sentence that cites nothing."""

    id: str
    source: SourceView | None
    quotes: tuple[Quote, ...]
    checks: tuple[Check, ...]


@dataclass
class Item:
    html: Markup
    children: list[ItemList] = field(default_factory=list)


@dataclass
class ItemList:
    kind: str  # bullet | ordered
    level: int
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class View:
    """One thing in a section: `kind` as in the layout, or "list"."""

    kind: str
    html: Markup = field(default_factory=Markup)
    text: str = ""
    id: str = ""
    level: int = 0
    language: str = ""
    header: tuple[Markup, ...] = ()
    rows: tuple[tuple[Markup, ...], ...] = ()
    list: ItemList | None = None


@dataclass(frozen=True)
class SectionView:
    id: str
    title: str
    views: tuple[View, ...]
    boxes: tuple[Box, ...]
    gap: str = ""
    quoted_only: bool = False
    charts: tuple[ChartView, ...] = ()


class Views:
    """Builds the views of one report; numbers its passage boxes as it goes."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._layout = Layout(report)
        self._evidence: dict[str, ReportEvidence] = {e.id: e for e in report.evidence}
        self._sources: dict[str, ReportSource] = {s.id: s for s in report.sources}
        self._numbers = {r.source: r.number for r in report.references}
        self._boxes: list[Box] = []
        self._made = 0
        self._report = report

    # ---- sections

    def summary(self) -> SectionView:
        pieces = self._layout.pieces(self._report.summary_blocks, self._report.summary)
        return self._section_view("in-brief", wording.label(self._report, "in_brief"), pieces)

    def section(self, section: ReportSection) -> SectionView:
        pieces = self._layout.section(section)
        view = self._section_view(
            anchor(section), section.title, pieces, gap=section.gap, quoted_only=section.quoted_only
        )
        return replace(view, charts=tuple(view_of(c) for c in charts_in(self._report, section.id)))

    def _section_view(
        self, id: str, title: str, pieces: Sequence[Piece], gap: str = "", quoted_only: bool = False
    ) -> SectionView:
        self._boxes = []
        views = tuple(self._views(pieces, id))
        return SectionView(id, title, views, tuple(self._boxes), gap, quoted_only)

    def _views(self, pieces: Sequence[Piece], prefix: str) -> Iterator[View]:
        pending: list[Piece] = []
        for at, piece in enumerate(pieces):
            if piece.kind in ("bullet", "ordered"):
                pending.append(piece)
                continue
            yield from self._lists(pending)
            pending = []
            yield self._view(piece, f"{prefix}--{at}")
        yield from self._lists(pending)

    def _view(self, piece: Piece, id: str) -> View:
        prose = self._prose(piece)
        match piece.kind:
            case "heading":
                level = min(6, 2 + max(1, piece.level))
                return View("heading", inline_html(piece.nodes), id=id, level=level)
            case "label":
                return View("paragraph", Markup("<strong>{}</strong> {}").format(inline_html(piece.nodes), prose))
            case "code" | "formula":
                return View(piece.kind, prose, text=piece.text, language=piece.language)
            case "table":
                header = tuple(inline_html(c) for c in piece.header)
                return View("table", header=header, rows=tuple(self._row(r) for r in piece.rows))
        return View(piece.kind, prose)

    def _row(self, row: Row) -> tuple[Markup, ...]:
        cells = [inline_html(c) for c in row.cells]
        cells[-1] += self._marks(row.run)
        return tuple(cells)

    def _lists(self, pieces: Sequence[Piece]) -> Iterator[View]:
        """Items as nested lists, by their level and kind."""
        stack: list[ItemList] = []
        for piece in pieces:
            while stack and (
                piece.level < stack[-1].level or (piece.level == stack[-1].level and piece.kind != stack[-1].kind)
            ):
                done = stack.pop()
                if not stack:
                    yield View("list", list=done)
            if not stack or piece.level > stack[-1].level:
                opened = ItemList(piece.kind, piece.level)
                if stack:
                    stack[-1].items[-1].children.append(opened)
                stack.append(opened)
            stack[-1].items.append(Item(self._prose(piece)))
        if stack:
            yield View("list", list=stack[0])

    # ---- prose and its marks

    def _prose(self, piece: Piece) -> Markup:
        label = plain(piece.label)
        lead = Markup()
        if label:
            stop = "" if label[-1:] in ".:?!。：" else "."
            lead = Markup('<strong class="label">{}{}</strong> ').format(inline_html(piece.label), stop)
        return lead + self._runs(piece.runs)

    def _runs(self, runs: Iterable[Run]) -> Markup:
        html, last = Markup(), ""
        for run in runs:
            marks = self._marks(run)
            for line in run.lines:
                words = plain(line.nodes)
                html += gap_between(last, words)
                html += self._sentence(line, marks if line is run.lines[-1] else Markup())
                last = words
        return html

    def _sentence(self, line: Line, marks: Markup) -> Markup:
        """A sentence and its marks, which never part from its last word."""
        verdict, (nodes, tail) = line.sentence.verdict.value, last_word(line.nodes) if marks else (line.nodes, "")
        html = Markup('<span class="s v-{}">{}</span>').format(verdict, inline_html(nodes))
        if not tail:
            return html + marks
        last = Markup('<span class="nb"><span class="t v-{}">{}</span>{}</span>')
        return html + last.format(verdict, tail, marks)

    def _marks(self, run: Run) -> Markup:
        checks = tuple(self._check(line, several=len(run.lines) > 1) for line in run.lines)
        worst = max((c.verdict for c in checks), key=list(_BY_WEIGHT).index)
        if not run.numbers:
            return self._mark(None, "!", run, checks, worst) if run.warning else Markup()
        return Markup("").join(
            self._mark(source, str(self._numbers[source]), run, checks, worst)
            for source in sorted({self._evidence[c].source for c in run.citations}, key=self._numbers.__getitem__)
        )

    def _check(self, line: Line, several: bool) -> Check:
        s = line.sentence
        name = wording.label(self._report, s.verdict.value)
        return Check(s.verdict, name, wording.reason(s), plain(line.nodes) if several else "", s.caution)

    def _mark(self, source: str | None, label: str, run: Run, checks: tuple[Check, ...], worst: Verdict) -> Markup:
        """A button that opens its box, which is kept for the section's end."""
        self._made += 1
        id = f"passage--{self._made}"
        sentences = [line.sentence for line in run.lines]
        quotes = tuple(
            _quote(self._evidence[c], sentences) for c in run.citations if self._evidence[c].source == source
        )
        self._boxes.append(Box(id, self.source(source) if source else None, quotes, checks))
        spoken = f"Reference {label}" if source else "No source"
        return Markup(
            '<button type="button" class="mark v-{}" popovertarget="{}" aria-label="{}: {}">{}</button>'
        ).format(worst.value, id, spoken, wording.label(self._report, worst.value), label)

    # ---- sources

    def source(self, id: str, with_quotes: bool = False) -> SourceView:
        source = self._sources[id]
        quotes = [_quote(e) for e in self._report.evidence if e.source == id] if with_quotes else []
        return SourceView(
            number=self._numbers.get(id, 0),
            title=wording.source_title(source),
            place=wording.source_place(source),
            dates=wording.source_dates(self._report, source),
            kind=wording.KIND_NAMES[source.kind],
            href=source_href(source),
            tainted=bool(source.injections),
            snapshot=id,
            quotes=tuple(quotes),
            cuts=tuple(one_line(c.text)[:CUT_SHOWN] for c in source.injections[:CUTS_SHOWN]),
        )

    def evidence(self, id: str) -> tuple[Quote, SourceView]:
        found = self._evidence[id]
        return _quote(found), self.source(found.source)


_BY_WEIGHT = (
    Verdict.NOT_FACTUAL,
    Verdict.SUPPORTED,
    Verdict.NOT_CHECKED,
    Verdict.PARTIAL,
    Verdict.UNSUPPORTED,
    Verdict.CONTRADICTED,
)


def last_word(nodes: tuple[Inline, ...]) -> tuple[tuple[Inline, ...], str]:
    """The nodes without their last word, and that word; empty where they do not end in text."""
    if not nodes or nodes[-1].kind != "text":
        return nodes, ""
    tail = _LAST_WORD.search(nodes[-1].text).group()  # type: ignore[union-attr]
    return (*nodes[:-1], Inline("text", nodes[-1].text[: len(nodes[-1].text) - len(tail)])), tail


def _quote(e: ReportEvidence, sentences: Iterable[ReportSentence] = ()) -> Quote:
    place = [e.heading] if e.heading else []
    place += [f"page {e.page}"] if e.page is not None else []
    where = " · ".join([*place, f"characters {e.start:,} to {e.end:,}"])
    return Quote(e.quote, where, _parts(e, sentences))


def _parts(e: ReportEvidence, sentences: Iterable[ReportSentence]) -> tuple[tuple[str, bool], ...]:
    """A quotation cut where the stretches begin and end that decided on the sentences."""
    checked: list[ReportSentence | ReportClaim] = []
    for sentence in sentences:
        checked += [sentence, *sentence.claims]
    parts: list[tuple[str, bool]] = []
    at = 0
    for start, end in sorted(one.span for one in checked if one.span and one.evidence == e.id):
        if end > at:
            parts += [(e.quote[at : max(start, at)], False), (e.quote[max(start, at) : end], True)]
            at = end
    return tuple((text, decides) for text, decides in (*parts, (e.quote[at:], False)) if text)


def source_href(source: ReportSource) -> str:
    """Where a reader can open it: a web address, a file of this machine, or nowhere ("")."""
    if link := wording.source_link(source):
        return link
    path = source.location
    if source.kind is not SourceKind.LIBRARY or "\n" in path:
        return ""
    if PurePosixPath(path).is_absolute():
        return "file://" + quote(path)
    return PureWindowsPath(path).as_uri() if PureWindowsPath(path).is_absolute() else ""


def inline_html(nodes: Iterable[Inline]) -> Markup:
    """Inline nodes as HTML in which only emphasis, code and web links are left."""
    html = nh3.clean(
        str(Markup("").join(_html(n) for n in nodes)),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(html)


def _html(node: Inline) -> Markup:
    inner = Markup("").join(_html(n) for n in node.children)
    match node.kind:
        case "text":
            return escape(node.text)
        case "code":
            return Markup("<code>{}</code>").format(node.text)
        case "formula":
            return Markup('<span class="formula">{}</span>').format(node.text)
        case "emphasis":
            return Markup("<em>{}</em>").format(inner)
        case "strong":
            return Markup("<strong>{}</strong>").format(inner)
        case "link":
            return Markup('<a href="{}">{}</a>').format(node.href, inner)
