"""The report as Markdown that CommonMark and GitHub readers show alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from marg_ray.report import wording
from marg_ray.report.charts.showing import charts_in, rows_of
from marg_ray.report.inline import (
    Inline,
    code_span,
    escape,
    line_start,
    literal,
    markdown_link,
    plain,
)
from marg_ray.report.inline import to_markdown as inline_markdown
from marg_ray.report.layout import Layout, Piece, Row, Run
from marg_ray.report.model import Disagreement, Report, ReportChart, ReportSection, ReportSource
from marg_ray.report.refusal import refusal_markdown
from marg_ray.report.remarks import CAUTION
from marg_ray.report.text import ends_wide, gap_between
from marg_ray.text import one_line

_MAX_LEVEL = 6


def to_markdown(report: Report) -> str:
    """The whole report; a refusal where the sources do not answer."""
    if wording.is_refusal(report):
        return refusal_markdown(report.question, report.verdict, report.answerability)
    layout = Layout(report)
    parts = [
        *_head(report),
        *_summary(report, layout),
        *_contents(report),
        *(p for section in report.sections for p in _section(report, section, layout)),
        *_disagreements(report),
        *_unanswered(report),
        *_references(report),
        *_checks(report),
        *_notes(report),
    ]
    return "\n\n".join(parts) + "\n"


# ---- front


def _head(report: Report) -> Iterator[str]:
    yield f"# {_heading(literal(report.title))}"
    lead, rest = wording.disclosure(report)
    yield f"> **{lead}** {escape(rest)}"
    for notice in wording.notices(report):
        yield f"> **{notice.name}.** {escape(notice.text)}"
    if one_line(report.question) != report.title:
        yield f"**{wording.label(report, 'question')}:** {escape(one_line(report.question))}"


def _summary(report: Report, layout: Layout) -> Iterator[str]:
    if report.summary:
        yield f"## {wording.label(report, 'in_brief')}"
        yield from _pieces(layout.pieces(report.summary_blocks, report.summary))


def _contents(report: Report) -> Iterator[str]:
    if len(report.sections) > 1:
        yield f"## {wording.label(report, 'contents')}"
        yield "\n".join(f"- [{escape(s.title)}](#{anchor(s)})" for s in report.sections)


def anchor(section: ReportSection) -> str:
    """The section's anchor, the same in every format; it cannot equal one that is made from a title."""
    return "section--" + re.sub(r"[^A-Za-z0-9-]", "-", section.id)


# ---- body


def _section(report: Report, section: ReportSection, layout: Layout) -> Iterator[str]:
    yield f'<a id="{anchor(section)}"></a>'
    yield f"## {_heading(literal(section.title))}"
    if section.quoted_only:
        yield f"*{wording.label(report, 'only_quotes')}*"
    yield from _pieces(layout.section(section))
    for chart in charts_in(report, section.id):
        yield from _chart(chart)
    if section.gap:
        yield f"*{wording.label(report, 'unanswered')}: {escape(one_line(section.gap))}*"


def _chart(chart: ReportChart) -> Iterator[str]:
    """Its figures as a table: Markdown has no pictures of its own."""
    marks = "".join(f"[{n}]" for n in chart.numbers)
    notes = "".join(f" {escape(note)}." for note in chart.notes)
    yield f"**{escape(chart.title)}** {marks}{notes}".rstrip()
    header = (chart.x, *(s.name for s in chart.series))
    lines = [header, ("---",) * len(header), *rows_of(chart)]
    yield "\n".join(f"| {' | '.join(c if c == '---' else escape(c) for c in line)} |" for line in lines)


def _pieces(pieces: Sequence[Piece]) -> Iterator[str]:
    """One string a block; list items that follow each other stay one list."""
    items: list[str] = []
    ordinals: dict[int, int] = {}
    for piece in pieces:
        if piece.kind in ("bullet", "ordered"):
            items.append(_item(piece, ordinals))
            continue
        if items:
            yield "\n".join(items)
            items, ordinals = [], {}
        yield _block(piece)
    if items:
        yield "\n".join(items)


def _item(piece: Piece, ordinals: dict[int, int]) -> str:
    for deeper in [level for level in ordinals if level > piece.level]:
        del ordinals[deeper]
    ordinals[piece.level] = ordinals.get(piece.level, 0) + 1 if piece.kind == "ordered" else 0
    mark = f"{ordinals[piece.level]}." if piece.kind == "ordered" else "-"
    return f"{'    ' * piece.level}{mark} {line_start(_prose(piece))}"


def _block(piece: Piece) -> str:
    match piece.kind:
        case "heading":
            level = min(_MAX_LEVEL, 2 + max(1, piece.level))
            return f"{'#' * level} {_heading(piece.nodes)}"
        case "label":
            return f"**{escape(plain(piece.nodes))}** {_runs(piece.runs)}".rstrip()
        case "code":
            return _fenced(piece)
        case "formula":
            return f"$$\n{piece.text}\n$$" + _after(piece.runs)
        case "table":
            return _table(piece)
        case "quote":
            return f"> {line_start(_prose(piece))}"
    return line_start(_prose(piece))


def _prose(piece: Piece) -> str:
    label = plain(piece.label)
    lead = f"**{escape(label)}{'' if label[-1:] in '.:?!。：' else '.'}** " if label else ""
    return lead + _runs(piece.runs)


def _runs(runs: Sequence[Run]) -> str:
    """The sentences in a row; where the next run would show the same marks, they wait for its end."""
    text, last = "", ""
    for run, following in zip_longest(runs, runs[1:]):
        for line in run.lines:
            words = plain(line.nodes)
            text += gap_between(last, words) + inline_markdown(line.nodes)
            last = words
        again = following is not None and not run.warning and not following.warning
        text += "" if again and following.numbers == run.numbers else marks(run)
    return text


def marks(run: Run) -> str:
    """E.g. " [1][3]"; a warning first where the sentence does not hold."""
    warning = f" *({run.warning})*" if run.warning else ""
    space = "" if ends_wide(plain(run.lines[-1].nodes)) else " "
    return warning + (space + "".join(f"[{n}]" for n in run.numbers) if run.numbers else "")


def _after(runs: tuple[Run, ...]) -> str:
    return f"\n\n{_runs(runs)}" if runs else ""


def _fenced(piece: Piece) -> str:
    ticks = max((len(run) for run in re.findall("`+", piece.text)), default=0)
    fence = "`" * max(3, ticks + 1)
    language = re.sub(r"[^\w+#.-]", "", piece.language)
    return f"{fence}{language}\n{piece.text}\n{fence}" + _after(piece.runs)


def _table(piece: Piece) -> str:
    header = [_cell(c) for c in piece.header]
    rows = [header, ["---"] * len(header), *(_cells(row) for row in piece.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(row: Row) -> list[str]:
    cells = [_cell(c) for c in row.cells]
    cells[-1] = (cells[-1] + marks(row.run)).strip()
    return cells


def _cell(nodes: Iterable[Inline]) -> str:
    return inline_markdown(nodes).replace("|", "\\|")


def _heading(nodes: Iterable[Inline]) -> str:
    """On one line, and with no closing # of its own."""
    return re.sub(r"(#+)$", lambda m: "\\" + m.group(), inline_markdown(nodes).strip())


# ---- back


def _disagreements(report: Report) -> Iterator[str]:
    if not report.contradictions:
        return
    evidence = {e.id: e for e in report.evidence}
    sources = {s.id: s for s in report.sources}
    numbers = {r.source: r.number for r in report.references}
    yield f"## {wording.label(report, 'disagree')}"
    for box in report.contradictions:
        lines = [f"> **{escape(box.subject)}**{_box_note(box)}", ">"]
        for side in box.sides:
            source = sources[evidence[side.evidence].source]
            mark = f" [{numbers[source.id]}]" if source.id in numbers else ""
            date = f" ({escape(side.date)})" if side.date else ""
            lines.append(f"> - {escape(side.value)}: {escape(wording.source_title(source))}{date}{mark}")
        yield "\n".join(lines)


def _box_note(box: Disagreement) -> str:
    return f" {escape(one_line(box.note))}" if box.note else ""


def _unanswered(report: Report) -> Iterator[str]:
    titles = {s.id: s.title for s in report.sections}
    lines = [f"- **{escape(titles.get(g.section, g.section))}**: {escape(one_line(g.reason))}" for g in report.gaps]
    lines += [f"- {line_start(escape(one_line(u)))}" for u in report.unknowns]
    if lines:
        yield f"## {wording.label(report, 'unanswered')}"
        yield "\n".join(lines)


def _references(report: Report) -> Iterator[str]:
    if not report.references:
        return
    sources = {s.id: s for s in report.sources}
    yield f"## {wording.label(report, 'references')}"
    yield "\n".join(f"{r.number}. {reference(report, sources[r.source])}" for r in report.references)


def reference(report: Report, source: ReportSource) -> str:
    """One entry on one line: title with its link, where it was found, and the dates."""
    title, place = wording.source_title(source), wording.source_place(source)
    link = wording.source_link(source)
    if link:
        entry = markdown_link(escape(title), link)
    elif title == place:
        entry = code_span(place)
    else:
        entry = f"{line_start(escape(title))}, {code_span(place)}"
    return f"{entry} ({escape(wording.source_dates(report, source))})"


def _checks(report: Report) -> Iterator[str]:
    yield f"## {wording.label(report, 'checked')}"
    if report.verdict:
        yield f"**{wording.label(report, report.status.value)}:** {escape(one_line(report.verdict))}"
    if report.scores is not None:
        scores = report.scores.model_dump()
        names = " | ".join(name.capitalize() for name in scores)
        values = " | ".join(f"{value:.2f}" for value in scores.values())
        yield f"| {names} |\n|{' ---: |' * len(scores)}\n| {values} |"
    lines = [
        *(f"- {escape(line)}" for line in wording.check_facts(report)),
        f"- {escape(wording.usage_text(report.usage))}",
        f"- Written by {code_span(one_line(report.model))} in {wording.duration(report.usage.wall_seconds)}, "
        f"session {code_span(one_line(report.session_id))}",
    ]
    yield "\n".join([*lines, *_cautions(report)])


def _cautions(report: Report) -> Iterator[str]:
    """The sentences that hold, and whose sources call for a second look."""
    for sentence in (s for part in (report.summary, *(p.sentences for p in report.sections)) for s in part):
        if sentence.caution:
            yield f"- {CAUTION} “{escape(one_line(sentence.text))}” {escape(sentence.caution)}"


def _notes(report: Report) -> Iterator[str]:
    titles = {s.id: s.title for s in report.sections}
    lines = []
    for note in report.notes:
        where = f"{escape(titles[note.section])}: " if note.section in titles else ""
        lines.append(f"- {where}{line_start(escape(one_line(note.text)))}")
    if lines:
        yield f"## {wording.label(report, 'notes')}"
        yield "\n".join(lines)
