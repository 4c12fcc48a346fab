"""What the check of a report found, sentence by sentence, for `marg show --checks`."""

from __future__ import annotations

from collections.abc import Iterator

from marg_ray.report.model import Report, ReportClaim, ReportSentence
from marg_ray.report.wording import reason
from marg_ray.text import one_line


def lines(report: Report) -> Iterator[str]:
    """A sentence a line, with its verdict; below it the reason, the words that decided, and its single statements."""
    quotes = {e.id: e.quote for e in report.evidence}
    numbers = {e.id: r.number for r in report.references for e in report.evidence if e.source == r.source}
    for title, sentences in (("", report.summary), *((s.title, s.sentences) for s in report.sections)):
        if title:
            yield f"# {one_line(title)}"
        for sentence in sentences:
            sure = "" if sentence.probability is None else f" {sentence.probability:.2f}"
            yield f"{sentence.verdict}{sure}: {one_line(sentence.text)}"
            yield from _why(sentence, quotes, numbers)
            for claim in sentence.claims:
                yield f"    - {claim.verdict}: {one_line(claim.text)}"
                yield from (f"    {line}" for line in _why(claim, quotes, numbers))


def _why(found: ReportSentence | ReportClaim, quotes: dict[str, str], numbers: dict[str, int]) -> Iterator[str]:
    if why := reason(found) if isinstance(found, ReportSentence) else one_line(found.reason):
        yield f"    {why}"
    if found.span and found.evidence in quotes:
        start, end = found.span
        yield f"    [{numbers.get(found.evidence, '?')}] “{one_line(quotes[found.evidence][start:end])}”"
