"""The report as a Word file: real headings, a contents field, marks that lead to numbered references."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from marg_ray.records import Verdict
from marg_ray.report import wording
from marg_ray.report.inline import Inline, literal, plain
from marg_ray.report.labels import labels
from marg_ray.report.layout import Layout, Piece, Run
from marg_ray.report.model import Disagreement, Report, ReportChart, ReportEvidence, ReportSection, ReportSource
from marg_ray.report.remarks import SIGNS, Remarks
from marg_ray.report.text import direction, ends_wide, gap_between, text_direction
from marg_ray.report.word import Paragraph, Word
from marg_ray.report.word_parts import BOLD, MARK, PLAIN, Look
from marg_ray.text import one_line

_UNDERLINES = {
    Verdict.PARTIAL: "dotted",
    Verdict.NOT_CHECKED: "dotted",
    Verdict.UNSUPPORTED: "wave",
    Verdict.CONTRADICTED: "double",
}
_DEEPEST = 4  # heading
_LONGEST = 255  # letters of a property of the file
log = logging.getLogger(__name__)


def to_docx(report: Report) -> bytes:
    """The report as a Word file. Blocks for as long as it takes; call it from no event loop."""
    return _Writer(report).write()


class _Writer:
    def __init__(self, report: Report) -> None:
        self.report, self.t = report, labels(report.language)
        self.layout = Layout(report)
        self.remarks = Remarks(report, self.layout)
        self.word = Word(report.language, direction(report.language))
        self.evidence = {e.id: e for e in report.evidence}
        self.sources = {s.id: s for s in report.sources}
        self.numbers = {r.source: r.number for r in report.references}
        self.titles = {s.id: s.title for s in report.sections}

    def write(self) -> bytes:
        self._properties()
        self._front()
        if not wording.is_refusal(self.report):
            self._brief()
            self._contents()
            for number, section in enumerate(self.report.sections, 1):
                self._section(number, section)
            self._disagreements()
            self._unanswered()
        self._references()
        self._careful()
        self._checks()
        return self.word.content()

    def _properties(self) -> None:
        report, about = self.report, self.word.document.core_properties
        about.title = one_line(report.title)[:_LONGEST]
        about.subject = one_line(report.question)[:_LONGEST]
        about.author = f"{self.t['ai']}: {one_line(report.model)}"[:_LONGEST]
        about.last_modified_by = "MARG-Ray"
        about.comments = f"MARG-Ray, session {one_line(report.session_id)}"[:_LONGEST]
        about.keywords = ""
        about.language = report.language[:_LONGEST]
        finished = (report.finished_at or datetime(2000, 1, 1, tzinfo=UTC)).astimezone(UTC).replace(tzinfo=None)
        about.created = about.modified = finished
        self.word.above_and_below(one_line(report.title)[:90], self.t["page_of"])

    # ---- front

    def _front(self) -> None:
        report, found = self.report, self.report.answerability
        day = f" · {wording.day(report.finished_at)}" if report.finished_at else ""
        self.word.paragraph("Detail").text(f"{self.t['report']}{day}")
        self._line(one_line(report.title), "Title")
        if one_line(report.question) != report.title:
            self._line(one_line(report.question), "Subtitle")
        refused = wording.is_refusal(report)
        for notice in wording.notices(report):
            if not refused or notice.kind != "nearest":
                self.word.paragraph("Notice").text(f"{notice.name}. ", BOLD).text(notice.text)
        if not refused:
            lead, rest = wording.disclosure(report)
            self.word.paragraph("Detail").text(lead, BOLD).text(f" {rest}")
            return
        if report.verdict:
            self._line(one_line(report.verdict))
        if found and found.missing_terms:
            self._line(wording.label(report, "missing", terms=", ".join(map(one_line, found.missing_terms))))
        if found and found.nearest:
            self.word.paragraph().text(f"{self.t['nearest']}:", BOLD)
            self._bullets([(one_line(title), "") for title in found.nearest])

    def _brief(self) -> None:
        if self.report.summary:
            self._heading(self.t["in_brief"], 1, "brief")
            self._pieces(self.layout.pieces(self.report.summary_blocks, self.report.summary))

    def _contents(self) -> None:
        """A field that Word renews on demand (F9), filled with links until it does."""
        entries = [(f"section_{n}", s.title) for n, s in enumerate(self.report.sections, 1)]
        entries += [(name, self.t[key]) for name, key in self._behind()]
        if not self.report.sections:
            return
        self.word.paragraph("TOCHeading").text(self.t["contents"])
        for at, (bookmark, title) in enumerate(entries):
            line = self.word.paragraph("TOC1", self._way_of(title))
            if at == 0:
                line.field_start('TOC \\o "1-2" \\h \\z \\u')
            line.leap(bookmark, one_line(title))
            if at == len(entries) - 1:
                line.field_end()
        if self.remarks.all:
            shown = {r.verdict for r in self.remarks.all}
            legend = self.word.paragraph("Detail")
            for verdict in (v for v in SIGNS if v in shown):
                legend.text(SIGNS[verdict], BOLD).text(f" {self.t[verdict.value]}    ")

    def _behind(self) -> list[tuple[str, str]]:
        """What stands behind the sections: bookmark and label."""
        report = self.report
        there = {
            "disagree": bool(report.contradictions),
            "unanswered": bool(report.gaps or report.unknowns),
            "references": bool(report.references),
            "careful": bool(self.remarks.all),
            "checked": True,
        }
        return [(key, key) for key, holds in there.items() if holds]

    # ---- body

    def _section(self, number: int, section: ReportSection) -> None:
        self._heading(one_line(section.title), 1, f"section_{number}")
        if section.quoted_only:
            self.word.paragraph().text(self.t["only_quotes"], Look(italic=True))
        self._pieces(self.layout.section(section))
        self._charts(section.id)
        if section.gap:
            self._line(f"{self.t['unanswered']}: {one_line(section.gap)}", look=Look(italic=True))

    def _pieces(self, pieces: Sequence[Piece]) -> None:
        lists: dict[int, tuple[str, int]] = {}  # by level: the kind and number of the list that is open there
        for piece in pieces:
            if piece.kind not in ("bullet", "ordered"):
                lists.clear()
                self._piece(piece)
                continue
            for deeper in [level for level in lists if level > piece.level]:
                del lists[deeper]
            if lists.get(piece.level, ("", 0))[0] != piece.kind:
                lists[piece.level] = (piece.kind, self.word.new_list(piece.kind == "ordered"))
            item = self.word.item(lists[piece.level][1], piece.level, self._way(piece))
            self._prose(item, piece)

    def _piece(self, piece: Piece) -> None:
        match piece.kind:
            case "heading":
                level = min(_DEEPEST, 1 + max(1, piece.level))
                self.word.paragraph(f"Heading{level}", self._way(piece)).nodes(piece.nodes)
            case "label":
                line = self.word.paragraph(way=self._way(piece)).nodes(piece.nodes, BOLD)
                if piece.runs:
                    self._runs(line.text(" "), piece.runs)
            case "code" | "formula":
                style = PLAIN if piece.kind == "code" else Look(style="Formula")
                self.word.paragraph("Code", "ltr").text(piece.text, style)
                if piece.runs:
                    self._runs(self.word.paragraph(way=self._way(piece)), piece.runs)
            case "table":
                self._table(piece)
            case "quote":
                self._prose(self.word.paragraph("Quote", self._way(piece)), piece)
            case _:
                self._prose(self.word.paragraph(way=self._way(piece)), piece)

    def _way(self, piece: Piece) -> str:
        words = plain(piece.label) + plain(piece.nodes)
        words += "".join(plain(line.nodes) for run in piece.runs for line in run.lines)
        return self._way_of(words)

    def _way_of(self, text: str) -> str:
        return text_direction(text, self.word.way)

    def _prose(self, to: Paragraph, piece: Piece) -> None:
        if label := plain(piece.label):
            to.nodes(piece.label, BOLD).text("" if label[-1:] in ".:?!。：" else ".", BOLD).text(" ")
        self._runs(to, piece.runs)

    def _runs(self, to: Paragraph, runs: Sequence[Run]) -> None:
        last = ""
        for run in runs:
            for line in run.lines:
                words = plain(line.nodes)
                to.text(gap_between(last, words))
                to.nodes(line.nodes, Look(underline=_UNDERLINES.get(line.sentence.verdict, "")))
                last = words
            self._marks(to, run, last)

    def _marks(self, to: Paragraph, run: Run, words: str) -> None:
        remark = self.remarks.of(run)
        signed = remark is not None and (run.numbers or run.warning)
        if (run.numbers or signed) and not ends_wide(words):
            to.text("\u00a0", MARK)
        for number in run.numbers:
            to.leap(f"ref_{number}", f"[{number}]", MARK)
        if remark is not None and signed:
            to.leap(f"remark_{remark.number}", remark.sign, MARK)

    def _table(self, piece: Piece) -> None:
        def cell(nodes: Sequence[Inline], run: Run | None, look: Look) -> Callable[[Paragraph], object]:
            def write(to: Paragraph) -> None:
                to.nodes(nodes, look)
                if run is not None:
                    self._marks(to, run, plain(nodes))

            return write

        header = [cell(nodes, None, BOLD) for nodes in piece.header]
        rows = [
            [cell(nodes, row.run if at == len(row.cells) - 1 else None, PLAIN) for at, nodes in enumerate(row.cells)]
            for row in piece.rows
        ]
        shown = [piece.header, *(row.cells for row in piece.rows)]
        across = self._way_of(" ".join(plain(nodes) for cells in shown[:2] for nodes in cells))
        self.word.table(header, rows, lambda row, at: text_direction(plain(shown[row + 1][at]), across), across)

    def _charts(self, section: str) -> None:
        from marg_ray.report.charts.showing import charts_in, description, rows_of

        for chart in charts_in(self.report, section):
            picture = _drawn(chart)
            if picture:
                self.word.picture(picture, description(chart))
            else:
                self._figures([(chart.x, *(s.name for s in chart.series)), *rows_of(chart)])
            line = self.word.paragraph("Detail", self._way_of(chart.title)).text(one_line(chart.title), BOLD)
            for number in chart.numbers:
                line.leap(f"ref_{number}", f"\u00a0[{number}]", MARK)
            line.text("".join(f" {one_line(note)}." for note in chart.notes))

    def _figures(self, rows: Sequence[Sequence[str]]) -> None:
        across = self._way_of(" ".join(rows[0]))
        header, *cells = [[_writes(cell) for cell in row] for row in rows]
        self.word.table(header, cells, lambda row, at: text_direction(rows[row + 1][at], across), across)

    # ---- back

    def _disagreements(self) -> None:
        if not self.report.contradictions:
            return
        self._heading(self.t["disagree"], 1, "disagree")
        for box in self.report.contradictions:
            self._heading(one_line(box.subject), 2)
            if box.note:
                self._line(one_line(box.note))
            self._sides(box)

    def _sides(self, box: Disagreement) -> None:
        def told(at: int) -> Callable[[Paragraph], object]:
            side = box.sides[at]
            evidence = self.evidence[side.evidence]
            source = self.sources[evidence.source]
            date = f" ({one_line(side.date)})" if side.date else ""

            def write(to: Paragraph) -> None:
                to.text(wording.source_title(source), BOLD).text(date)
                if source.id in self.numbers:
                    to.leap(f"ref_{self.numbers[source.id]}", f"\u00a0[{self.numbers[source.id]}]", MARK)
                to.text(f"\n{one_line(evidence.quote)}")

            return write

        def value(at: int) -> Callable[[Paragraph], object]:
            return lambda to: to.text(one_line(box.sides[at].value), BOLD)

        def way(row: int, column: int) -> str:
            side = box.sides[row]
            title = wording.source_title(self.sources[self.evidence[side.evidence].source])
            return self._way_of(title if column else side.value)

        self.word.table([], [(value(at), told(at)) for at in range(len(box.sides))], way, self.word.way)

    def _unanswered(self) -> None:
        lines = [(one_line(self.titles.get(g.section, g.section)), one_line(g.reason)) for g in self.report.gaps]
        lines += [("", one_line(unknown)) for unknown in self.report.unknowns]
        if lines:
            self._heading(self.t["unanswered"], 1, "unanswered")
            self._bullets(lines)

    def _references(self) -> None:
        if not self.report.references:
            return
        self._heading(self.t["references"], 1, "references")
        quoted: dict[str, list[ReportEvidence]] = {}
        for evidence in self.report.evidence:
            quoted.setdefault(evidence.source, []).append(evidence)
        for reference in self.report.references:
            self._reference(reference.number, self.sources[reference.source], quoted.get(reference.source, []))

    def _reference(self, number: int, source: ReportSource, passages: Sequence[ReportEvidence]) -> None:
        title, place = wording.source_title(source), wording.source_place(source)
        line = self.word.paragraph("Reference", self._way_of(title))
        line.bookmarked(f"ref_{number}", lambda to: to.text(f"[{number}]"))
        line.text(" ").link(wording.source_link(source), literal(title))
        if place != title:
            self.word.paragraph("Detail", "ltr").text(place)
        about = f"{wording.KIND_NAMES[source.kind]}, {wording.source_dates(self.report, source)}"
        if source.injections:
            about += " · instruction-like text was cut out"
        self.word.paragraph("Detail").text(about)
        for passage in passages:
            quote = passage.quote.strip()
            self.word.paragraph("Passage", self._way_of(quote)).text(f"“{quote}”")

    def _careful(self) -> None:
        if not self.remarks.all:
            return
        self._heading(self.t["careful"], 1, "careful")
        for remark in self.remarks.all:
            line = self.word.paragraph("Remark", self._way_of(remark.text))
            line.bookmarked(f"remark_{remark.number}", _writes(remark.sign, BOLD))
            line.text(f" {remark.text}")
            why = f": {remark.reason}" if remark.reason else ""
            detail = self.word.paragraph("Detail", self._way_of(why))
            detail.text(remark.name, BOLD).text(f"{why} ({one_line(remark.where)})")

    def _checks(self) -> None:
        report = self.report
        self._heading(self.t["checked"], 1, "checked")
        if report.verdict and not wording.is_refusal(report):
            self._line(one_line(report.verdict))
        scores = report.scores.model_dump() if report.scores else {}
        facts = [f"{name.capitalize()}: {value:.2f}" for name, value in scores.items()]
        facts += [
            *wording.check_facts(report),
            wording.usage_text(report.usage),
            f"Written by {one_line(report.model)} in {wording.duration(report.usage.wall_seconds)}",
            f"Session {one_line(report.session_id)}",
        ]
        self._bullets([("", fact) for fact in facts])
        if report.notes:
            self._heading(self.t["notes"], 2)
            self._bullets([(self.titles.get(n.section, ""), one_line(n.text)) for n in report.notes])

    # ---- lines

    def _heading(self, text: str, level: int, bookmark: str = "") -> None:
        line = self.word.paragraph(f"Heading{level}", self._way_of(text))
        if bookmark:
            line.bookmarked(bookmark, lambda to: to.text(text))
        else:
            line.text(text)

    def _line(self, text: str, style: str = "", look: Look = PLAIN) -> None:
        self.word.paragraph(style, self._way_of(text)).text(text, look)

    def _bullets(self, lines: Sequence[tuple[str, str]]) -> None:
        """Each with a bold lead or none."""
        number = self.word.new_list(ordered=False)
        for lead, rest in lines:
            item = self.word.item(number, 0, self._way_of(lead or rest))
            if lead:
                item.text(lead, BOLD).text(": " if rest else "")
            item.text(rest)


def _writes(text: str, look: Look = PLAIN) -> Callable[[Paragraph], object]:
    return lambda to: to.text(text, look)


def _drawn(chart: ReportChart) -> bytes:
    """The chart as PNG; nothing where it cannot be drawn, for its figures can be shown all the same."""
    from marg_ray.report.charts import png

    try:
        return png(chart)
    except Exception:
        log.warning("chart %s could not be drawn", chart.id, exc_info=True)
        return b""
