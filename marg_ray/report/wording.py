"""What a report says about itself, in words; no format's markup."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from marg_ray.records import ReportStatus, SourceKind, Verdict, Zone
from marg_ray.report.inline import web_address
from marg_ray.report.labels import ENGLISH, labels
from marg_ray.report.model import Report, ReportSentence, ReportSource, Spent
from marg_ray.report.text import is_blank
from marg_ray.text import one_line

EXTRACTIVE = "extractive"

KIND_NAMES = {
    SourceKind.WEB: "web page",
    SourceKind.LIBRARY: "library document",
    SourceKind.PROVIDED: "text provided with the question",
    SourceKind.ACADEMIC: "academic work",
    SourceKind.DATABASE: "database",
    SourceKind.MCP: "tool answer",
}


def is_refusal(report: Report) -> bool:
    """There is no report to show, only the reason."""
    return report.status is ReportStatus.INSUFFICIENT_EVIDENCE and not report.sentences()


FIGURES_ONLY = "of this language only figures, dates, names and words are compared"


def reason(sentence: ReportSentence) -> str:
    """Why a sentence has its verdict, and what of the check does not know its language."""
    said = [one_line(sentence.reason), FIGURES_ONLY if sentence.checked_by == "figures" else ""]
    return "; ".join(part for part in said if part)


def label(report: Report, key: str, **values: object) -> str:
    """One of the report's own headings or notices, in its language."""
    return labels(report.language)[key].format(**values)


def disclosure(report: Report) -> tuple[str, str]:
    """Who wrote this, as a bold lead and the rest."""
    origin = label(report, "sources", read=len(report.sources), cited=len(report.references))
    if report.model.split(":")[0] == EXTRACTIVE:
        return label(report, "quoted"), f"{label(report, 'quoted_from')} {origin}"
    by = label(report, "ai_by", model=one_line(report.model))
    return label(report, "ai"), f"{by} {origin} {label(report, 'leads')}"


@dataclass(frozen=True)
class Notice:
    """Something to know before reading. `kind` is a report status or "nearest"."""

    kind: str
    name: str
    text: str


def notices(report: Report) -> tuple[Notice, ...]:
    """The outcome, and whether what follows is only the nearest material.

    That the material is only near is a quality warning of its own: where every sentence holds, it is not said
    besides that the report did not pass its check.
    """
    nearest, marked = _nearest_text(report), _marked_text(report)
    found = []
    if not nearest or marked or report.status is not ReportStatus.QUALITY_WARNING:
        key = report.status.value
        text = label(report, f"{key}_text")
        found.append(Notice(key, label(report, key), f"{text} {marked}" if marked else text))
    if nearest:
        found.append(Notice("nearest", label(report, "nearest"), nearest))
    return tuple(found)


def _marked_text(report: Report) -> str:
    """How many sentences carry a warning, or nothing."""
    counts = verdict_counts(report)
    bad = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED)
    marked = ", ".join(f"{label(report, v.value)} ({counts[v]})" for v in bad if counts[v])
    return label(report, "marked", list=marked) if marked else ""


def _nearest_text(report: Report) -> str:
    found = report.answerability
    if found is None or found.zone is Zone.ANSWER:
        return ""
    text = label(report, "nearest_text")
    if found.missing_terms:
        text += " " + label(report, "missing", terms=", ".join(one_line(t) for t in found.missing_terms))
    return text


def verdict_counts(report: Report) -> Counter[Verdict]:
    return Counter(s.verdict for section in report.sections for s in section.sentences)


def check_summary(report: Report) -> str:
    """E.g. "41 sentences: 38 supported, 1 partly supported, 2 nothing to check"."""
    counts = verdict_counts(report)
    named = ", ".join(f"{counts[v]} {ENGLISH[v.value]}" for v in Verdict if counts[v])
    total = _count(sum(counts.values()), "sentence")
    return f"{total}: {named}" if named else total


def citation_text(report: Report) -> str:
    """E.g. "Citations: coverage 0.97 (38 of 39 factual sentences), precision 1.00 (41 of 41 cited passages)"."""
    found = report.citations
    if found is None or not found.factual:
        return ""
    parts = [f"coverage {_share(found.coverage)} ({found.supported} of {_count(found.factual, 'factual sentence')})"]
    if found.cited:
        passages = _count(found.cited, "cited passage")
        parts.append(f"precision {_share(found.precision)} ({found.contributing} of {passages})")
    if report.dropped_citations:
        parts.append(f"{len(report.dropped_citations)} left out that said the same")
    return f"Citations: {', '.join(parts)}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{math.floor(value * 100) / 100:.2f}"


def unmeasured_text(report: Report) -> str:
    """The measurements that do not apply to this report, e.g. for its language; or nothing."""
    names = [s.name.replace("_", " ") for s in report.signals if s.value is None]
    return f"Not measured: {', '.join(names)}" if names else ""


def check_facts(report: Report) -> list[str]:
    """The lines on how the report was checked, without what it cost."""
    lines = [check_summary(report), citation_text(report)]
    lines += [f"{report.iterations} round{'' if report.iterations == 1 else 's'} of review", unmeasured_text(report)]
    return [line for line in lines if line]


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


def source_dates(report: Report, source: ReportSource) -> str:
    read = label(report, "read", date=day(source.fetched_at))
    published = one_line(source.published)
    return f"{label(report, 'published', date=published)}, {read}" if published else read


def source_link(source: ReportSource) -> str:
    """The web address to link to, or ""."""
    return web_address(source.location)


def day(moment: datetime) -> str:
    return moment.date().isoformat()


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
