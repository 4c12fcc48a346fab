"""The review by measurable signals: no opinion, only what can be counted."""

from __future__ import annotations

import re
from dataclasses import replace

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.analysing import missing_words
from marg_ray.models.extractive.facets import OVERVIEW, facet, word_fit
from marg_ray.models.extractive.measures import is_dangling, is_name, measure
from marg_ray.models.extractive.rewriting import simpler
from marg_ray.models.extractive.summarising import Line, marked_lines
from marg_ray.models.extractive.words import is_english, same_statement, word_count
from marg_ray.models.tasks import IssueIdea, ReviewIdea, ReviewReport, ScoreIdea, SectionText
from marg_ray.records import IssueKind

THIN = 40  # words
_COUNT = re.compile(r"(\d+)\s+(?:of \d+\s+)?(supported|partial(?:ly)?|unsupported|contradicted)\b", re.I)


def review(task: ReviewReport) -> ReviewIdea:
    """Scores and issues from counts: grounding verdicts, filled sections, dangling starts, repetitions, opinion."""
    written = [(s, _labelled(s.title, marked_lines(i, s.text))) for i, s in enumerate(task.sections)]
    measures = measure([s.text for s in task.sections], [s.title for s in task.sections])
    issues: list[IssueIdea] = [
        IssueIdea(
            kind=IssueKind.MISSING_SOURCE, severity="medium", detail=f"No source was found for: {gap}",
            fix_query=simpler(gap, task.question),
        )
        for gap in task.gaps
    ]  # fmt: skip
    filled = 0.0
    for section, lines in written:
        filled += _filled(section, task.question)
        if word_count(section.text) < THIN:
            issues.append(
                IssueIdea(
                    kind=IssueKind.INCOMPLETE, severity="low", section=section.id,
                    detail=f"Only {len(lines)} sentence(s) on this", fix_query=simpler(section.title, task.question),
                )
            )  # fmt: skip
    issues += _dangling(written) + _repetitions(written)
    total = len(task.sections) + len(task.gaps)
    missing = missing_words(
        task.question, " ".join(f"{s.title if not s.title.endswith('?') else ''} {s.text}" for s in task.sections)
    )
    coverage = (filled / total if total else 0.0) - 0.05 * min(3, len(missing))
    clarity = 1.0 - 3 * measures.dangling - 2 * measures.junk - 2 * measures.repeated - measures.pointers
    opinion = _opinion(written)
    return ReviewIdea(
        scores=ScoreIdea(
            accuracy=_accuracy(task.sections),
            coverage=_unit(coverage),
            clarity=_unit(clarity),
            objectivity=_unit(1.0 - opinion),
        ),
        issues=issues[:20],
    )  # fmt: skip


def _labelled(title: str, lines: list[Line]) -> list[Line]:
    """A section named after a term labels its first sentence."""
    return [replace(lines[0], label=lines[0].label or title), *lines[1:]] if lines and is_name(title) else lines


def _unit(x: float) -> float:
    return round(min(1.0, max(0.0, x)), 2)


def _accuracy(sections: tuple[SectionText, ...]) -> float:
    """Supported share by the verdict counts, a partial one counting half; quotations without counts pass."""
    good = total = 0.0
    for section in sections:
        for count, verdict in _COUNT.findall(section.grounding):
            n = int(count)
            total += n
            good += n if verdict.lower() == "supported" else n / 2 if verdict.lower().startswith("partial") else 0
    return round(good / total, 2) if total else 0.95


def _filled(section: SectionText, question: str) -> float:
    size = word_count(section.text)
    if not size:
        return 0.0
    wanted = facet(question, section.title, (section.title,))
    own, everything, cues = word_fit(wanted, section.text, {})
    return (1.0 if size >= THIN else 0.8) * (1.0 if own + everything + cues > 0 or not wanted.english else 0.7)


def _dangling(written: list[tuple[SectionText, list[Line]]]) -> list[IssueIdea]:
    issues = []
    for section, lines in written:
        for i, line in enumerate(lines):
            follows = i > 0 and lines[i - 1].marks == line.marks
            if is_dangling(line, follows):
                issues.append(
                    IssueIdea(
                        kind=IssueKind.LOGIC_ERROR, severity="low", section=section.id,
                        detail=f"Refers to something that is not there: {line.text}",
                        instruction=f"Leave out: {line.text}",
                    )
                )  # fmt: skip
    return issues


def _repetitions(written: list[tuple[SectionText, list[Line]]]) -> list[IssueIdea]:
    """What is said twice. The fuller section gives way, the overview where both are alike, none to its last line."""
    issues: list[IssueIdea] = []
    seen: list[tuple[SectionText, str]] = []
    left = {section.id: len(lines) for section, lines in written}
    # an overview gives way to the section that a sentence belongs to
    for section, lines in sorted(written, key=lambda w: w[0].title == OVERVIEW):
        for line in lines:
            twin = next(((where, text) for where, text in seen if same_statement(text, line.text)), None)
            seen.append((section, line.text))
            if twin is None:
                continue
            stays, giving, words = twin[0], section, line.text
            if left[section.id] < left[stays.id]:
                stays, giving, words = section, twin[0], twin[1]
            kept = left[giving.id] > 1
            left[giving.id] -= kept
            word_for_word = kept and twin[1] == line.text and stays.id != giving.id
            issues.append(
                IssueIdea(
                    kind=IssueKind.LOGIC_ERROR, severity="high" if word_for_word else "low", section=giving.id,
                    detail=f"Already said under {stays.title}: {words}",
                    instruction=f"Leave out: {words}" if kept else "",
                )
            )  # fmt: skip
    return issues


_OPINION = re.compile(
    r"\b(?:obviously|clearly|undoubtedly|of course|unfortunately|fortunately|sadly|amazing|awful|terrible|wonderful|"
    r"best ever|worst ever|must-have|shockingly|ridiculous|stupid|brilliant)\b",
    re.I,
)


def _opinion(written: list[tuple[SectionText, list[Line]]]) -> float:
    lines = [x for _, found in written for x in found]
    if not lines:
        return 0.0
    marked = sum(1 for x in lines if is_english(x.text) and (rules.is_personal(x.text) or _OPINION.search(x.text)))
    return marked / len(lines)
