"""What is said when the sources do not answer: the reason, what was found nowhere, and what comes nearest."""

from __future__ import annotations

from collections.abc import Iterator

from marg_ray.records import Answerability
from marg_ray.report.inline import escape
from marg_ray.report.model import ReportAnswerability
from marg_ray.text import one_line

NO_REASON = "the sources hold nothing that answers the question"


def refusal_text(question: str, reason: str, found: Answerability | ReportAnswerability | None) -> str:
    """The refusal for a terminal: a few plain lines."""
    lines = [f"No report: {_reason(reason)}.", f"Question: {one_line(question)}"]
    if found and found.missing_terms:
        lines.append(f"Found in no document: {', '.join(map(one_line, found.missing_terms))}")
    if found and found.nearest:
        lines += ["Nearest material:", *(f"  - {one_line(title)}" for title in found.nearest)]
    return "\n".join(lines) + "\n"


def refusal_markdown(question: str, reason: str, found: Answerability | ReportAnswerability | None) -> str:
    """The refusal as a page of its own."""
    return "\n\n".join(_markdown(question, reason, found)) + "\n"


def _markdown(question: str, reason: str, found: Answerability | ReportAnswerability | None) -> Iterator[str]:
    yield f"# {escape(one_line(question))}"
    yield f"> **No report.** {escape(_sentence(_reason(reason)))}"
    if found and found.missing_terms:
        yield f"**Found in no document:** {escape(', '.join(map(one_line, found.missing_terms)))}"
    if found and found.nearest:
        yield "**Nearest material:**"
        yield "\n".join(f"- {escape(one_line(title))}" for title in found.nearest)


def _reason(reason: str) -> str:
    return one_line(reason).rstrip(".") or NO_REASON


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
