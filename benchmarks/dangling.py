"""Sentences that lean on one that is not there, found without the rules that chose them.

`marg_ray.models.extractive.rules` decides which sentences may open a quotation; measured by the same rules, nothing
would ever dangle. The patterns here are their own, and look into the middle of a sentence too.
"""

from __future__ import annotations

import re

_OPENING = re.compile(
    r"(?:It|This|That|These|Those|They|He|She|Him|Them|His|Her|Its|Their|Such|Both|Neither|Either|Others|Another|So|"
    r"The (?:former|latter|two|three|other|others|same|remaining|rest|above|latest|first of these))\b"
)
_EXPLETIVE = re.compile(
    r"(?:It (?:is|was|has been|can be|may be|would be) (?:[a-z]+ ){1,3}(?:that|whether)\b|"
    r"It (?:is|was|can be|may be|would be) (?:[a-z]+ ){0,2}(?:possible|impossible|necessary|important|recommended|"
    r"usual|common|easy|difficult|hard|likely|unclear|unknown|best|good|advisable|essential|worth|estimated|useful)\b|"
    r"That said|This (?:manual|document|guide|report|paper|study)|Both [\w-]+(?: [\w-]+){0,5} and|"
    r"Either [\w-]+(?: [\w-]+){0,5} or|Neither [\w-]+(?: [\w-]+){0,5} nor|Such (?:as|a thing)|So (?:far|called))"
)
_LINKING = re.compile(
    r"(?:However|But|Also|Therefore|Then|Thus|Hence|And|Or|Yet|Instead|Otherwise|Finally|Later|Meanwhile|Moreover|"
    r"Furthermore|Nevertheless|Nonetheless|Additionally|Similarly|Likewise|Conversely|Consequently|Accordingly|"
    r"Subsequently|Afterwards?|Eventually|Again|Besides|Indeed|Next|Soon|Still|In (?:addition|contrast|response|turn|"
    r"return|other words|this|that|these|both)|For (?:example|instance|this|that|these)|As (?:a result|such)|"
    r"On (?:the other hand|the contrary|this|that)|At (?:this|that|the same time)|By (?:contrast|then|this)|"
    r"After (?:this|that)|Since then|Because of (?:this|that)|Despite (?:this|that)|The (?:next|following|previous)"
    r" \w+)\b"
)
_BOUNDARY = re.compile(
    r"[,;:–—(]|\b(?:and|but|or|that|which|who|when|while|because|if|as|where|although|after|before|so)\b"
)
_BARE = re.compile(
    r"\b(?:this|these|those|them)(?= (?:as|to|for|in|on|by|with|from|at|into|through|after|before|is|was|were|are|"
    r"would|will|can|has|have|had)\b|[.,;)]|$)"
)
_OBJECT = re.compile(
    r"\b\w+(?:ed|made|found|saw|put|took|gave|called|used|held|kept|left|led|sent|met|won|lost|bought|sold) it\b"
    r"(?! \w+ (?:to|for|that)\b)"
)
_SO = re.compile(
    r"\b(?:do|did|does|doing|done) (?:so|this|that)\b|\bthe (?:former|latter|aforementioned)\b|"
    r"\b(?:that|this|the same) (?:year|day|month|week|season|night|time)\b"
)
_FIGURE = re.compile(
    r"(?:It|This|That|They|These|The (?:figure|number|total|amount|rate|share|price|cost|value|capacity|score|toll))"
    r" (?:is|was|are|were|has|had|rose|fell|grew|increased|decreased|reached|stood|amounted|dropped)\b[^.]*\d|"
    r"(?:About|Around|Nearly|Over|Another|A further|An additional|Some|At least|More than)? ?"
    r"(?!(?:1[5-9]|20)\d\d\b)\d[\d,.]*\s?%?\s(?:were|was|are|is|had|have|of (?:them|these|those|which)|others?|more)\b"
)
_PERSON = re.compile(r"\b(?:he|she|him|his|her|hers)\b")
_NAME = re.compile(
    r"(?<!^)\b[A-Z][\w'’.-]+|^(?!(?:In|On|At|After|Before|When|While|As|By|For|From|During|Since|If)\b)[A-Z]\w+"
)
_MONTH = re.compile(
    r"^(?:January|February|March|April|May|June|July|August|September|October|November|December|Monday|Tuesday|"
    r"Wednesday|Thursday|Friday|Saturday|Sunday)$"
)


def dangling(sentence: str) -> str:
    """What in an English sentence refers to something before it, "" where nothing does.

    Meant for a sentence that opens a quotation: one that follows its own predecessor refers to that.
    """
    text = sentence.strip().lstrip("\"'“‘")
    if (found := _FIGURE.match(text)) and not _EXPLETIVE.match(text):
        return f"figure: {found.group()[:30]}"
    if (found := _OPENING.match(text)) and not _EXPLETIVE.match(text):
        return f"start: {found.group()}"
    if found := _LINKING.match(text):
        return f"link: {found.group()}"
    first = _BOUNDARY.split(text, maxsplit=1)[0].rstrip()
    for pattern in (_BARE, _OBJECT, _SO):
        if found := pattern.search(first):
            return f"middle: {found.group()}"
    if found := _PERSON.search(text):
        before = [m.group() for m in _NAME.finditer(text[: found.start()])]
        if not any(not _MONTH.match(name) for name in before) and not _plain_person(text[: found.start()]):
            return f"person: {found.group()}"
    return ""


def _plain_person(before: str) -> bool:
    """Whether somebody is named by what he is: "A sponsor should check his key"."""
    return bool(re.search(r"\b(?:[Aa]|[Aa]n|[Tt]he|[Ee]very|[Ee]ach|[Ss]omeone|[Aa]nyone)\b", before))
