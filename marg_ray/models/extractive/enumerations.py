"""The things a question asks about one by one, or holds against each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.models.extractive.clauses import LONGEST, Clause, is_comparison, strip_lead
from marg_ray.models.extractive.words import FUNCTION_WORDS, is_english, squeeze


@dataclass(frozen=True)
class Items:
    """An enumeration in a question, and the question with a place for one of them."""

    names: tuple[str, ...]
    pattern: str  # with "{}" where the enumeration stood
    compared: bool = False


_EACH = re.compile(r"\b(?:each|them|these|those|both|they|their|either)\b", re.I)
_PRONOUN = re.compile(r"they|it|them|he|she|him|this|that|these|those|one|each other", re.I)
_NAME = r"[A-Z0-9][\w.+#'’-]*(?:\s+(?:of|the|for|de|la|von)?\s?[A-Z0-9][\w.+#'’-]*)*"
_LIST = re.compile(
    rf"((?:{_NAME})(?:\s*,\s*(?:the\s+)?(?:{_NAME}))*\s*,?\s+(?:and|or|&|versus|vs\.?|from|to|with|than)\s+(?:the\s+)?(?:{_NAME}))"
)
_NO_VERB = r"(?!(?:differ|compare|different|better)\b)"
_THING = rf"(?:an?\s+|the\s+)?{_NO_VERB}[\w.+#'’-]+(?:\s+{_NO_VERB}[\w.+#'’-]+){{0,3}}?"
_THINGS = rf"{_THING}(?:\s*,\s*{_THING})*"
_TAIL = (
    r"(?=\s+(?:in|on|for|when|with regard|with respect|regarding|as|at|"
    r"and\s+(?:what|how|why|when|where|which))\b|\s*[?.:;,]|$)"
)
_COMPARISONS = tuple(  # two groups: the things before and after the word that compares them
    re.compile(pattern + _TAIL, re.I)
    for pattern in (
        rf"\b(?:do|does|did|can|is|are|was|were)\s+(?P<a>{_THINGS})\s+(?:differ|different)\s+(?:from|to|than)\s+(?P<b>{_THING})",
        rf"\b(?:do|does|did|can)\s+(?P<a>{_THINGS})\s+compare\s+(?:with|to|against|and)\s+(?P<b>{_THING})",
        rf"\b(?:do|does|did|can)\s+(?P<a>{_THINGS})\s*,?\s+and\s+(?P<b>{_THING})\s+(?:differ|compare)",
        rf"\b(?:differences?|comparisons?|distinction)\s+(?:between|of)\s+(?P<a>{_THINGS})\s*,?\s+(?:and|with|to|from|or)\s+"
        rf"(?P<b>{_THING})",
        rf"\b(?:dis)?(?:advantages?|benefits?|drawbacks?|strengths|weaknesses|merits)\s+of\s+(?P<a>{_THING})\s+(?:over|versus|"
        rf"vs\.?|against|compared\s+(?:with|to))\s+(?P<b>{_THING})",
        rf"^(?:compare|contrast|comparing)\s+(?P<a>{_THINGS})\s*,?\s+(?:and|with|to|against|versus|vs\.?)\s+(?P<b>{_THING})",
        rf"^(?:is|are|was|were)\s+(?P<a>{_THING})\s+(?:better|worse|cheaper|safer|larger|faster|(?:more|less)\s+\w+)\s+than\s+"
        rf"(?P<b>{_THING})",
        rf"^(?P<a>{_THING})\s+(?:versus|vs\.?)\s+(?P<b>{_THING})",
    )
)
_PLAIN_LIST = re.compile(
    r"\b(?:on|of|for|about)\s+((?:[\w-]+(?:\s[\w-]+)?)(?:\s*,\s*(?:[\w-]+(?:\s[\w-]+)?))+\s*,?\s+and\s+(?:[\w-]+(?:\s[\w-]+)?))(?=\s*[?.]|$)"
)
_GLUE = re.compile(r"\s*,\s*(?:and\s+|or\s+)?(?:the\s+)?|\s+(?:and|or|&|versus|vs\.?|from|to|with|than)\s+", re.I)


def items(question: str, titles: Sequence[str] = ()) -> Items | None:
    """The things a question asks about one by one ("Depends, Recommends and Suggests"), where it does."""
    text = strip_lead(question[:LONGEST])
    if not is_english(text):
        return None
    compared = is_comparison(text)
    head = re.match(r"\w+\s+", text)  # "What", "Compare": its capital does not make it a name
    offset = head.end() if head else 0
    spans = [m.span(1) for m in _LIST.finditer(text, offset)]
    if not spans and (pair := next((m for p in _COMPARISONS if (m := p.search(text))), None)):
        things = tuple(_bare(t) for t in (*_GLUE.split(pair["a"]), pair["b"]) if t and t.strip())
        things = _heads(_with_nouns(things))
        if len(set(things)) > 1 and not any(_PRONOUN.fullmatch(t) or t.casefold() in FUNCTION_WORDS for t in things):
            pattern = squeeze(text[: pair.start("a")] + "{}" + text[pair.end("b") :])
            return Items(tuple(dict.fromkeys(things)), pattern, compared=True)
    if not spans and (several := _PLAIN_LIST.search(text)):
        spans = [(several.start(1), several.end(1))]
    for start, end in sorted(spans, key=lambda s: s[0] - s[1]):
        things = tuple(dict.fromkeys(squeeze(t) for t in _GLUE.split(text[start:end]) if t and t.strip()))
        things = tuple(map(_bare, things))
        if not 2 <= len(things) <= 8:
            continue
        if len(things) == 2 and not compared and not _titled(things, titles):
            continue
        return Items(things, squeeze(text[:start] + "{}" + text[end:]), compared)
    return None


def _bare(thing: str) -> str:
    return re.sub(r"^(?:an?|the)\s+", "", squeeze(thing), flags=re.I).rstrip(" .,;:!?")


def _with_nouns(things: tuple[str, ...]) -> tuple[str, ...]:
    """What the last thing lends the others: of "simple" and "complex febrile seizures", simple febrile seizures."""
    noun = things[-1].split()[1:]
    lends = bool(noun) and noun[-1].endswith("s") and noun[-1].islower()
    return tuple(f"{t} {' '.join(noun)}" if lends and len(t.split()) == 1 and t.islower() and not t.endswith("s") else t
                 for t in things[:-1]) + things[-1:]  # fmt: skip


def _heads(things: tuple[str, ...]) -> tuple[str, ...]:
    """Plurals without the word they share: of "tidal lagoons" and "tidal barrages", lagoons and barrages."""
    split = [t.split() for t in things]
    shared = all(len(t) > 1 and t[0] == split[0][0] and t[-1].islower() and t[-1].endswith("s") for t in split)
    return tuple(" ".join(t[1:]) for t in split) if shared else things


def _titled(things: Sequence[str], titles: Sequence[str]) -> bool:
    """Whether each is the title of a document of its own."""
    bare = [squeeze(re.sub(r"\s*\([^)]*\)", "", t)).casefold() for t in titles]
    return all(any(thing.casefold() in title for title in bare) for thing in things) and not any(
        all(thing.casefold() in title for thing in things) for title in bare
    )


def of_items(clause: Clause, found: Items) -> bool:
    """Whether a later clause asks the same of each item ("when should each be used?")."""
    return bool(_EACH.search(clause.text)) and not any(n.casefold() in clause.text.casefold() for n in found.names)


def with_item(pattern: str, name: str, compared: bool) -> str:
    """The question asked of one item alone."""
    if compared:
        rest = re.sub(
            r"\b(?:what|how|is|are|the|main|key|major|do|does|did|there|any|differences?|between|compare[sd]?|comparison|of|differ(?:s|ed)?|"
            r"different|explain|with|from|each|other|versus|vs)\b|[?{}]",
            " ",
            pattern,
            flags=re.I,
        )
        plural = name.islower() and re.search(r"[^su]s$", name)
        return squeeze(f"What {'are' if plural else 'is'} {name} {rest}")
    return squeeze(pattern.replace("{}", name))
