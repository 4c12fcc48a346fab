"""What a report says about itself, in words; no format's markup."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from marg_ray.records import ReportStatus, SourceKind, Verdict, Zone
from marg_ray.report.inline import web_address
from marg_ray.report.model import Report, ReportSource, Spent
from marg_ray.report.text import is_blank
from marg_ray.text import one_line

EXTRACTIVE = "extractive"

STATUS_NAMES = {
    ReportStatus.PASSED: "Passed",
    ReportStatus.QUALITY_WARNING: "Quality warning",
    ReportStatus.INSUFFICIENT_EVIDENCE: "Insufficient evidence",
    ReportStatus.BUDGET_STOPPED: "Stopped by its budget",
    ReportStatus.CANCELLED: "Cancelled",
}
VERDICT_NAMES = {
    Verdict.SUPPORTED: "supported",
    Verdict.PARTIAL: "partly supported",
    Verdict.UNSUPPORTED: "not supported",
    Verdict.CONTRADICTED: "contradicted",
    Verdict.NOT_FACTUAL: "nothing to check",
    Verdict.NOT_CHECKED: "not checked",
}
KIND_NAMES = {
    SourceKind.WEB: "web page",
    SourceKind.LIBRARY: "library document",
    SourceKind.PROVIDED: "text provided with the question",
    SourceKind.ACADEMIC: "academic work",
    SourceKind.DATABASE: "database",
    SourceKind.MCP: "tool answer",
}
_STATUS_TEXTS = {
    ReportStatus.PASSED: "Every factual sentence was checked against the passages it cites.",
    ReportStatus.QUALITY_WARNING: "This report did not pass its own check. Read it as a draft.",
    ReportStatus.INSUFFICIENT_EVIDENCE: "The sources do not answer the question.",
    ReportStatus.BUDGET_STOPPED: "A limit was reached before the report was finished; this is what had been written.",
    ReportStatus.CANCELLED: "The run was cancelled; this is what had been written.",
}


def is_refusal(report: Report) -> bool:
    """There is no report to show, only the reason."""
    return report.status is ReportStatus.INSUFFICIENT_EVIDENCE and not report.sentences()


def disclosure(report: Report) -> tuple[str, str]:
    """Who wrote this, as a bold lead and the rest of the sentence."""
    read, cited = len(report.sources), len(report.references)
    origin = f"{_count(read, 'source')} read, {cited} cited."
    if report.model.split(":")[0] == EXTRACTIVE:
        return "Composed without a language model", f"from verbatim quotations. {origin}"
    return "AI-generated", f"by {report.model}. {origin} Each citation leads to the passage it rests on."


def status(report: Report) -> tuple[str, str]:
    """The outcome's name, and what it means for a reader."""
    counts = verdict_counts(report)
    bad = [f"{n} {VERDICT_NAMES[v]}" for v in (Verdict.UNSUPPORTED, Verdict.CONTRADICTED) if (n := counts[v])]
    text = _STATUS_TEXTS[report.status]
    if bad:
        text += f" Of {_count(sum(counts.values()), 'sentence')}, {' and '.join(bad)}: they are marked."
    return STATUS_NAMES[report.status], text


def nearest_notice(report: Report) -> str:
    """Says that what follows is only the nearest material, or nothing."""
    found = report.answerability
    if found is None or found.zone is Zone.ANSWER:
        return ""
    text = "The sources do not state this directly. What follows is the nearest material in them."
    if found.missing_terms:
        text += f" Found in no document: {', '.join(one_line(t) for t in found.missing_terms)}."
    return text


def verdict_counts(report: Report) -> Counter[Verdict]:
    return Counter(s.verdict for section in report.sections for s in section.sentences)


def check_summary(report: Report) -> str:
    """E.g. "41 sentences: 38 supported, 1 partly supported, 2 nothing to check"."""
    counts = verdict_counts(report)
    named = ", ".join(f"{counts[v]} {VERDICT_NAMES[v]}" for v in Verdict if counts[v])
    total = _count(sum(counts.values()), "sentence")
    return f"{total}: {named}" if named else total


def usage_text(spent: Spent) -> str:
    """E.g. "12 model calls, 8,100 tokens in, 2,300 out, 4 searches, 9 pages fetched, $0.0213"."""
    parts = [_count(spent.calls, "model call")]
    if spent.tokens_in or spent.tokens_out:
        parts.append(f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out")
    if spent.searches:
        parts.append(f"{spent.searches:,} search{'es' if spent.searches != 1 else ''}")
    if spent.fetches:
        parts.append(f"{_count(spent.fetches, 'page')} fetched")
    if spent.reused:
        parts.append(f"{_count(spent.reused, 'call')} reused")
    return ", ".join([*parts, money(spent.cost)])


def money(dollars: float) -> str:
    return f"${dollars:.2f}" if dollars == 0 or dollars >= 1 else f"${dollars:.4f}"


def duration(seconds: float) -> str:
    """E.g. "4.2 s" or "3 min 5 s"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def source_title(source: ReportSource) -> str:
    """A title on one line; the place where there is none."""
    title = one_line(source.title)
    return source_place(source) if is_blank(title) else title


def source_place(source: ReportSource) -> str:
    """Where it was read: the address, the path, or what kind of thing it is."""
    place = one_line(source.location)
    return KIND_NAMES[source.kind] if is_blank(place) else place


def source_dates(source: ReportSource) -> str:
    published = f"published {one_line(source.published)}, " if source.published else ""
    return f"{published}read {day(source.fetched_at)}"


def source_link(source: ReportSource) -> str:
    """The web address to link to, or ""."""
    return web_address(source.location)


def day(moment: datetime) -> str:
    return moment.date().isoformat()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
