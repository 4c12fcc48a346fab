"""What a printed page shows: marks that lead to their reference, signs where a sentence does not wholly hold."""

from __future__ import annotations

import re

from markupsafe import Markup

from marg_ray.report.html_views import Views, inline_html, last_word
from marg_ray.report.inline import plain
from marg_ray.report.layout import Line, Run
from marg_ray.report.model import Report
from marg_ray.report.remarks import SIGNS, Remarks

_ENDLESS = re.compile(r"[\x21-\x7e]{60}\Z")  # a word that fills lines: its mark may begin a line of its own


class PrintViews(Views):
    """The views of one report for paper: nothing opens there, so a mark is a link, and a verdict is a sign."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.remarks = Remarks(report, self._layout)
        self.signed: set[int] = set()  # the remarks that a sign leads to

    def _marks(self, run: Run) -> Markup:
        links = [Markup('<a class="mark" href="#ref-{0}">[{0}]</a>').format(n) for n in run.numbers]
        remark = self.remarks.of(run)
        if remark is not None and (links or run.warning):
            sign = '<a class="mark sign v-{0}" id="said-{1}" href="#remark-{1}">{2}</a>'
            self.signed.add(remark.number)
            links.append(Markup(sign).format(remark.verdict.value, remark.number, remark.sign))
        return Markup("").join(links)

    def _sentence(self, line: Line, marks: Markup) -> Markup:
        """What holds is plain text: fewer boxes to lay out, which in lines from right to left also break better."""
        if line.sentence.verdict in SIGNS:
            return super()._sentence(line, marks)
        if marks and _ENDLESS.search(plain(line.nodes)):
            return inline_html(line.nodes) + "\u200b" + marks
        nodes, tail = last_word(line.nodes) if marks else (line.nodes, "")
        html = inline_html(nodes)
        return html + (Markup('<span class="nb">{}{}</span>').format(tail, marks) if tail else marks)
