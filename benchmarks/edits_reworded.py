"""Paraphrases of real sentences that leave every fact in place, each with the ways it was reworded."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_SYNONYMS = {
    "began": "started", "started": "began", "film": "movie", "movie": "film", "large": "big", "said": "stated",
    "many": "numerous", "received": "got", "killed": "slain", "several": "a number of", "also": "additionally",
    "announced": "made public", "during": "in the course of", "near": "close to", "city": "town", "used": "employed",
    "help": "assist", "showed": "demonstrated", "due to": "because of", "approximately": "about", "about": "roughly",
    "located": "situated", "built": "constructed", "constructed": "built", "won": "took", "bought": "purchased",
    "company": "firm", "located in": "in", "children": "kids", "often": "frequently", "whole": "entire",
    "however": "nevertheless", "although": "though", "while": "whereas", "because": "since", "more than": "over",
    "died": "passed away", "wrote": "penned", "became": "turned into", "created": "made", "made": "produced",
    "released": "issued", "moved": "relocated", "called": "named", "known as": "referred to as", "main": "chief",
    "important": "significant", "different": "distinct", "area": "region", "people": "persons", "home": "residence",
    "number of": "count of", "end": "close", "rose": "went up", "fell": "dropped", "increased": "grew",
    "decreased": "declined", "joined": "became part of", "left": "departed from", "opened": "was inaugurated",
    "destroyed": "wiped out", "attack": "assault", "responsible for": "in charge of",
    "first": "initial", "later": "subsequently", "led to": "resulted in", "according to": "as reported by",
    "did not": "didn't", "was not": "wasn't", "were not": "weren't", "could not": "couldn't", "cannot": "can't",
    "unable to": "not able to", "failed to": "did not manage to", "such as": "like", "including": "among them",
    "United States": "US", "United Kingdom": "UK", "primarily": "mainly", "mostly": "for the most part",
    "performed": "carried out", "shows": "displays", "considered": "regarded as", "team": "squad", "match": "game",
}  # fmt: skip
_NUMBERS = {"2": "two", "3": "three", "4": "four", "5": "five", "6": "six", "7": "seven", "8": "eight", "9": "nine",
            "10": "ten", "11": "eleven", "12": "twelve", "20": "twenty", "30": "thirty"}  # fmt: skip
_WORDS = {word: digits for digits, word in _NUMBERS.items()}
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_SMALL = r"(?<=[a-z] )(?<!ber )(?<!ary )(?<!rch )(?<!ril )(?<!uly )(?:[2-9]|1[0-2]|[23]0)(?= [a-z]{3,})"
_SMALL_WORD = rf"(?<![\w-])({'|'.join(_WORDS)})\b(?![ -](?:of|hundred|thousand|million|billion|third|half|and))"
_LEAD = re.compile(r"((?:In|On|After|During|By|At|Since|From|For|Following|Before) [^,]{3,50}), ([A-Za-z].*?)\.?\Z")
_CONVERTED = {"km": ("mi", 0.621371), "miles": ("kilometres", 1.609344), "feet": ("metres", 0.3048),
              "kg": ("lb", 2.20462),
              "acres": ("hectares", 0.404686), "metres": ("feet", 3.28084), "meters": ("feet", 3.28084),
              "kilometers": ("miles", 0.621371)}  # fmt: skip

Reword = Callable[[str, Sequence[str], int, str, random.Random], str]


def _synonyms(s: str, _: Sequence[str], __: int, ___: str, dice: random.Random) -> str:
    there = [old for old in _SYNONYMS if re.search(rf"\b{old}\b", s)]
    dice.shuffle(there)
    for old in there[:3]:
        s = re.sub(rf"\b{old}\b", _SYNONYMS[old], s, count=1)
    return s


def _moved(s: str, _: Sequence[str], __: int, ___: str, ____: random.Random) -> str:
    if match := _LEAD.match(s):
        first = match[1][0].lower() + match[1][1:]
        return f"{match[2][0].upper()}{match[2][1:]} {first}."
    match = re.match(r"((?:The|He|She|It|They|This) .{20,90}?) ((?:in|on|during|after) [\w ]{0,12}\d{4})\.?\Z", s)
    if not match:
        return s
    return f"{match[2][0].upper()}{match[2][1:]}, {match[1][0].lower()}{match[1][1:]}."


def _dropped(s: str, _: Sequence[str], __: int, ___: str, dice: random.Random) -> str:
    ways = [
        lambda: re.sub(r" \([^()]{3,60}\)", "", s, count=1),
        lambda: m[2][0].upper() + m[2][1:] + "." if (m := _LEAD.match(s)) else s,
        lambda: re.sub(r", (?:which|who|where|including|with|after|as|making|while)\b[^,]{8,70}\.?\Z", ".", s),
        lambda: re.sub(r" (?:also|initially|eventually|however|subsequently|later|generally|mainly)\b", "", s, count=1),
    ]  # fmt: skip
    dice.shuffle(ways)
    return next((made for way in ways if (made := way()) != s and len(made.split()) >= 6), s)


def _fused(s: str, paragraph: Sequence[str], at: int, _: str, dice: random.Random) -> str:
    if at + 1 >= len(paragraph):
        return s
    other = paragraph[at + 1].strip()
    if not 5 <= len(other.split()) <= 25 or not re.match(
        r"(?:The|It|He|She|They|This|In|A|These|Its|His|Her)\b", other
    ):
        return s
    return f"{s.rstrip('. ')}{dice.choice((', and ', '; '))}{other[0].lower()}{other[1:]}"


def _notation(s: str, _: Sequence[str], __: int, ___: str, dice: random.Random) -> str:
    ways: list[Callable[[], str]] = [
        lambda: re.sub(r"(?<=\d),(?=\d{3})", "", s),
        lambda: re.sub(r"(\d)%", r"\1 percent", s),
        lambda: re.sub(r"(\d) per ?cent\b", r"\1%", s),
        lambda: re.sub(rf"\b(\d{{1,2}}) ({_MONTHS}) (\d{{4}})\b", r"\2 \1, \3", s),
        lambda: re.sub(rf"\b({_MONTHS}) (\d{{1,2}}), (\d{{4}})\b,?", r"\2 \1 \3", s),
        lambda: re.sub(_SMALL, lambda m: _NUMBERS.get(m[0], m[0]), s, count=1),
        lambda: re.sub(_SMALL_WORD, lambda m: _WORDS[m[0]], s, count=1),
        lambda: re.sub(r"(\d+(?:\.\d+)?) million", lambda m: f"{float(m[1]) * 1e6:,.0f}", s, count=1),
        lambda: re.sub(r"\b(\d{1,3}),([1-9]00),000\b", lambda m: f"{m[1]}.{m[2][0]} million", s, count=1),
        lambda: re.sub(r"(?<!US)\$(\d[\d.,]*\d)( million| billion)?(?! [mb]illion)", r"\1\2 dollars", s, count=1),
        lambda: re.sub(r"\b(1[0-9])th century", lambda m: {"19": "nineteenth", "18": "eighteenth", "17": "seventeenth",
                       "16": "sixteenth"}.get(m[1], m[1] + "th") + " century", s),
    ]  # fmt: skip
    dice.shuffle(ways)
    return next((made for way in ways if (made := way()) != s), s)


def _converted(s: str, _: Sequence[str], __: int, ___: str, ____: random.Random) -> str:
    match = re.search(rf"(?<![\w.,-])(\d[\d,]*(?:\.\d+)?) ({'|'.join(_CONVERTED)})\b", s)
    if not match:
        return s
    unit, factor = _CONVERTED[match[2]]
    value = float(match[1].replace(",", "")) * factor
    return f"{s[: match.start()]}{f'{value:,.0f}' if value >= 100 else f'{value:.1f}'} {unit}{s[match.end() :]}"


def _voiced(s: str, _: Sequence[str], __: int, ___: str, ____: random.Random) -> str:
    """ "X was founded by Y" to "Y founded X", where both are short, and back."""
    name = r"(?:[Tt]he )?[A-Z][\w'-]+(?: (?:of |and )?[A-Z][\w'-]+){0,3}"
    match = re.search(rf"\A({name}) (?:was|were|is|are) ([a-z]+ed) by ({name})", s)
    if match:
        return f"{match[3][0].upper()}{match[3][1:]} {match[2]} {match[1]}{s[match.end() :]}"
    match = re.search(rf"\A({name}) ([a-z]{{3,}}ed) ({name})(?=[.,;]| (?:in|on|for|after|during|at)\b)", s)
    if match:
        return f"{match[3]} was {match[2]} by {match[1]}{s[match.end() :]}"
    return s


def _named(s: str, _: Sequence[str], __: int, title: str, ____: random.Random) -> str:
    """The title for the pronoun, or the pronoun for the title."""
    subject = re.sub(r"\s*\(.*\)", "", title)
    if re.match(r"\d|List|History|.*\b(?:season|election|festival|final|crash|earthquake)", subject, re.IGNORECASE):
        return s
    if re.match(r"(?:He|She|It) [a-z]", s):
        return re.sub(r"\A\w+", subject, s, count=1)
    if s.startswith(subject + " "):
        return f"It{s[len(subject) :]}"
    return s


WAYS: dict[str, Reword] = {
    "voiced": _voiced,
    "converted": _converted,
    "named": _named,
    "notation": _notation,
    "moved": _moved,
    "fused": _fused,
    "dropped": _dropped,
    "synonyms": _synonyms,
}


def paraphrased(
    sentence: str, paragraph: Sequence[str], at: int, title: str, dice: random.Random
) -> tuple[str, list[str]]:
    """A paraphrase in one to three ways; the rarest way that applies comes first."""
    text, ways = sentence, []
    for name, way in WAYS.items():
        chance = 0.9 if name in ("voiced", "converted", "named", "moved") else 0.5 if name != "fused" else 0.15
        if len(ways) < 3 and dice.random() < chance:
            made = way(text, paragraph, at, title, dice)
            if made != text:
                text, ways = made, [*ways, name]
    return text, ways or ["copy"]
