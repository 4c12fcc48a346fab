"""The report as one HTML file that asks nothing of the network and lets no foreign script run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from marg_ray.records import Verdict
from marg_ray.report import wording
from marg_ray.report.html_views import Views
from marg_ray.report.labels import labels
from marg_ray.report.model import Report
from marg_ray.report.text import direction
from marg_ray.text import one_line

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


def to_html(report: Report) -> str:
    """The whole page. Every citation mark opens its passages, source, verdict and reason, also without scripts."""
    css, script = asset("report.css"), asset("report.js")
    views = Views(report)
    context = {
        "report": report,
        "refused": wording.is_refusal(report),
        "t": labels(report.language),
        "direction": direction(report.language),
        "policy": _policy(css, script),
        "css": Markup(css),
        "script": Markup(script),
        **front(report),
        **body(report, views),
        **back(report, views),
    }
    return environment().get_template("report.html.j2").render(context)


def front(report: Report) -> dict[str, Any]:
    """What a template shows before the text."""
    question = one_line(report.question)
    counts = wording.verdict_counts(report)
    return {
        "question": "" if question == report.title else question,
        "disclosure": wording.disclosure(report),
        "notices": wording.notices(report),
        "counts": [(v.value, wording.label(report, v.value), counts[v]) for v in Verdict if counts[v]],
        "extras": list(_extras(report)),
    }


def _extras(report: Report) -> Iterator[tuple[str, str]]:
    if report.contradictions:
        yield "disagreements", wording.label(report, "disagree")
    if (report.gaps or report.unknowns) and not wording.is_refusal(report):
        yield "unanswered", wording.label(report, "unanswered")
    if report.references:
        yield "references", wording.label(report, "references")
    yield "checks", wording.label(report, "checked")


def body(report: Report, views: Views) -> dict[str, Any]:
    """The text: summary, sections, and where the sources disagree."""
    summary = views.summary()
    sections = [] if wording.is_refusal(report) else [views.section(s) for s in report.sections]
    return {"summary": summary, "sections": sections, "disagreements": list(_disagreements(report, views))}


def _disagreements(report: Report, views: Views) -> Iterator[dict[str, Any]]:
    for box in report.contradictions:
        sides = []
        for side in box.sides:
            quote, source = views.evidence(side.evidence)
            sides.append({"value": side.value, "date": side.date, "quote": quote, "source": source})
        yield {"subject": box.subject, "note": one_line(box.note), "sides": sides}


def back(report: Report, views: Views) -> dict[str, Any]:
    """What stands behind the text: references, and the record of how it was checked."""
    cited = {r.source for r in report.references}
    titles = {s.id: s.title for s in report.sections}
    unanswered = [(titles.get(g.section, g.section), one_line(g.reason)) for g in report.gaps]
    unanswered += [("", one_line(u)) for u in report.unknowns]
    return {
        "unanswered": [] if wording.is_refusal(report) else unanswered,
        "references": [views.source(r.source, with_quotes=True) for r in report.references],
        "uncited": [views.source(s.id) for s in report.sources if s.id not in cited],
        "scores": [(n.capitalize(), v) for n, v in report.scores.model_dump().items()] if report.scores else [],
        "check_facts": wording.check_facts(report),
        "usage": wording.usage_text(report.usage),
        "by_role": list(report.usage.by_role.items()),
        "duration": wording.duration(report.usage.wall_seconds),
        "money": wording.money,
        "issues": [
            {
                "kind": i.kind.value.replace("_", " "),
                "severity": i.severity,
                "section": titles.get(i.section, ""),
                "detail": one_line(i.detail),
            }
            for i in report.issues
        ],
        "notes": [(titles.get(n.section, ""), one_line(n.text)) for n in report.notes],
        "trace": report.trace,
    }


def _policy(css: str, script: str) -> str:
    """Nothing may be loaded; only our own style and script, named by their hashes, may run."""
    return (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def asset(name: str) -> str:
    """A file beside the templates, as text."""
    return (_TEMPLATES / name).read_text("utf-8")


@cache
def environment() -> Environment:
    """The templates; everything is escaped, and a name they do not know is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=False
    )
