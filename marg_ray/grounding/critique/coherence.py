"""Sentences that hang in the air: they refer to what is not there, or have nothing to do with their section.

English. A section's title and queries, and what the question asks, say what its subject is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from marg_ray.grounding.alignment import VAGUE
from marg_ray.grounding.critique.prose import Flag, Line, Part, shortened
from marg_ray.grounding.names import names
from marg_ray.grounding.terms import content_terms
from marg_ray.records import IssueKind

Clean = Callable[[Line], bool]

_POINTS_BACK = re.compile(
    r"(?:This|That|These|Those|Such)(?! (?:report|section|document|article|question|summary|overview)\b)\b"
    r"|(?:Both|Neither|Either|Another|Others|The (?:former|latter|others?|same|rest|two|three))\b(?! of the [A-Z])"
    r"|(?:One|Some|Many|Most|Several|Two|All|None|Each) of (?:these|those|them)\b"
)
_PRONOUN = re.compile(
    r"(?:He|She|They|His|Her|Their|Its|Him|Them)\b|It\b(?! (?:is|was|has been|may be|can be|would be|seems|remains)"
    r" (?:\w+ )?(?:possible|impossible|likely|unlikely|known|unknown|unclear|clear|thought|believed|estimated|said|"
    r"common|important|necessary|useful|recommended|advisable|difficult|easy|hard|worth|best|true|not)\b)"
)
_CONNECTIVE = re.compile(
    r"(?:However|But|Also|Therefore|Thus|Hence|Then|And|Or|So|Yet|Nor|Still|Instead|Otherwise|Moreover|Furthermore|"
    r"Nevertheless|Nonetheless|Additionally|Similarly|Likewise|Conversely|Consequently|Accordingly|Subsequently|"
    r"Afterwards?|Meanwhile|Besides|Finally|Thereafter|In (?:addition|contrast|turn|response|other words|this way|"
    r"that case|the latter|both cases)|For (?:example|instance|this reason)|As (?:a result|such|well)|"
    r"On the (?:other hand|contrary)|By (?:contrast|comparison|then)|At (?:that time|the same time)|"
    r"Because of (?:this|that)|Despite (?:this|that|these)|After (?:this|that)|Since then|Until then|Even so)\b[,\s]"
)

_ANCHORS = 2  # sentences that speak of the subject by its words: fewer, and it cannot be told
_TOLD = 5  # words of its own that a sentence says at least
_LEANS = re.compile(r"\b(?:this|these|those|such|it|its|he|she|they|his|her|their|him|them)\b", re.IGNORECASE)


def openings(part: Part, question: str, clean: Clean) -> Iterator[Flag]:
    """Sentences that refer back with nothing before them under their heading."""
    given = " ".join((question, *part.queries))
    named = bool(names(part.title)) or part.title.split(" ")[0] in names(f"About {given}")
    begun: set[int] = set()
    for line in part.lines:
        if line.run in begun or not line.is_prose:
            continue
        found = _POINTS_BACK.match(line.text) or _CONNECTIVE.match(line.text)
        found = found or (None if named else _PRONOUN.match(line.text))
        if found is None:
            if clean(line):
                begun.add(line.run)
            continue
        word = found.group().strip(" ,")
        yield Flag(
            signal="incoherence",
            line=line,
            kind=IssueKind.LOGIC_ERROR,
            words=word,
            detail=f'"{word}" refers to something that is not there: {line.text}',
            instruction=f'Say what "{word}" refers to, or leave out: {line.text}',
        )


def strangers(part: Part, question: str, clean: Clean) -> tuple[bool, list[Flag]]:
    """Whether the section's subject can be told, and the sentences without a word in common with what speaks of it.

    What speaks of it is a sentence with a word of title, queries or question, and in turn what has a word of these.
    """
    subject = around = _telling(" ".join((part.title, *part.queries, question)))
    lines = [line for line in part.lines if line.is_prose and not refers_back(line.text)]
    if sum(bool(line.telling & around) for line in lines) < _ANCHORS:
        return False, []
    left = lines
    while joined := [line for line in left if clean(line) and line.telling & around]:
        around = around.union(*(line.telling for line in joined))
        left = [line for line in left if line not in joined]
    return True, [
        Flag(
            signal="off_subject",
            line=line,
            kind=IssueKind.LOGIC_ERROR,
            words="",
            detail=f"Has nothing to do with {part.title}: {line.text}",
            instruction=f"Say what this has to do with {part.title}, or leave it out: {shortened(line.text, 60)}",
        )
        for line in left
        if len(line.telling) >= _TOLD
        and not (line.telling & around or _telling(line.headings) & subject or _LEANS.search(line.text))
    ]


def refers_back(text: str) -> bool:
    return any(p.match(text) for p in (_POINTS_BACK, _CONNECTIVE, _PRONOUN))


def _telling(text: str) -> frozenset[str]:
    return frozenset(t for t in content_terms(text) if t not in VAGUE and not t[0].isdigit())
