"""Faithful and unfaithful rewrites of real sentences, each with one change of a known kind."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_UP_DOWN = [
    ("increased", "decreased"), ("rose", "fell"), ("higher", "lower"), ("more than", "less than"), ("before", "after"),
    ("won", "lost"), ("first", "last"), ("northern", "southern"), ("largest", "smallest"), ("opened", "closed"),
    ("supported", "opposed"), ("above", "below"), ("accepted", "rejected"), ("most", "least"), ("began", "ended"),
    ("joined", "left"), ("east", "west"), ("approved", "rejected"), ("early", "late"), ("gained", "lost"),
]  # fmt: skip
_SYNONYMS = {
    "began": "started", "film": "movie", "large": "big", "released": "put out", "said": "stated", "many": "numerous",
    "also": "in addition", "received": "got", "around": "about", "killed": "slain", "several": "various",
    "announced": "made known", "following": "after", "during": "in the course of", "however": "yet", "near": "close to",
    "city": "town", "used": "employed", "help": "assist", "showed": "demonstrated", "due to": "because of",
}  # fmt: skip
_UNITS = [("km", "miles"), ("miles", "km"), ("kilometres", "miles"), ("million", "billion"),
          ("billion", "million"),
          ("percent", "million"), ("%", " million"), ("days", "weeks"), ("months", "years"), ("hours", "days"),
          ("metres", "kilometres")]  # fmt: skip
_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


@dataclass(frozen=True)
class Edit:
    kind: str
    kept: bool  # faithful: should stay supported
    text: str
    evidence: str


def edits(articles: dict[str, list[list[str]]], per_kind: int, seed: int = 1) -> list[Edit]:
    """At most `per_kind` rewrites of each kind, from sentences with their paragraph as evidence."""
    dice = random.Random(seed)
    places = [
        (title, paragraph, at)
        for title, paragraphs in articles.items()
        for paragraph in paragraphs
        for at, sentence in enumerate(paragraph)
        if 10 <= len(sentence.split()) <= 40
    ]
    dice.shuffle(places)
    pool = [p[1][p[2]] for p in places[:2000]]
    counts: dict[str, int] = {}
    found: list[Edit] = []
    for _, paragraph, at in places:
        sentence = paragraph[at].strip()
        evidence = " ".join(f"{s.strip().rstrip('.')}." for s in paragraph[max(0, at - 1) : at + 2])
        for kind, (kept, change) in KINDS.items():
            if counts.get(kind, 0) >= per_kind:
                continue
            text = change(sentence, dice, pool)
            if text and text != sentence:
                counts[kind] = counts.get(kind, 0) + 1
                found.append(Edit(kind, kept, text, evidence))
                break
        if all(counts.get(k, 0) >= per_kind for k in KINDS):
            break
    return found


Change = Callable[[str, random.Random, list[str]], str]


def _number(s: str, dice: random.Random, _: list[str]) -> str:
    spots = [
        m
        for m in re.finditer(r"(?<![\d.,-])\d[\d,]*(?:\.\d+)?(?![\d-])", s)
        if not re.fullmatch(r"1[89]\d\d|20\d\d", m[0])
    ]
    if not spots:
        return ""
    spot = dice.choice(spots)
    digits = list(spot[0])
    places = [i for i, c in enumerate(digits) if c.isdigit()]
    place = dice.choice(places)
    digits[place] = dice.choice([c for c in "123456789" if c != digits[place]])
    return s[: spot.start()] + "".join(digits) + s[spot.end() :]


def _date(s: str, dice: random.Random, _: list[str]) -> str:
    spots = list(re.finditer(rf"\b(?:1[89]\d\d|20[0-2]\d|{'|'.join(_MONTHS)})\b", s))
    if not spots:
        return ""
    spot = dice.choice(spots)
    new = (
        dice.choice([m for m in _MONTHS if m != spot[0]])
        if spot[0].isalpha()
        else str(int(spot[0]) + dice.choice((-3, -1, 1, 2)))
    )
    return s[: spot.start()] + new + s[spot.end() :]


def _name_spots(s: str) -> list[re.Match[str]]:
    return [
        m
        for m in re.finditer(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*", s)
        if m[0] not in _MONTHS and not m[0].startswith("The")
    ]


def _entity(s: str, dice: random.Random, pool: list[str]) -> str:
    spots = _name_spots(s)
    others = [m[0] for other in dice.sample(pool, 30) for m in _name_spots(other)]
    others = [o for o in others if o not in s]
    if not spots or not others:
        return ""
    spot = dice.choice(spots)
    return s[: spot.start()] + dice.choice(others) + s[spot.end() :]


def _roles(s: str, _: random.Random, __: list[str]) -> str:
    spots = _name_spots(s)
    if len(spots) < 2 or spots[0][0] == spots[1][0]:
        return ""
    a, b = spots[:2]
    if not re.search(r"\b[a-z]+ed\b", s[a.end() : b.start()]):
        return ""
    return s[: a.start()] + b[0] + s[a.end() : b.start()] + a[0] + s[b.end() :]


def _negation(s: str, _: random.Random, __: list[str]) -> str:
    match = re.search(r"\b(?:is|was|were|are|has|had|have|can|will|would)\b(?! not)", s)
    return f"{s[: match.end()]} not{s[match.end() :]}" if match else ""


def _direction(s: str, dice: random.Random, _: list[str]) -> str:
    pairs = [(a, b) for x, y in _UP_DOWN for a, b in ((x, y), (y, x)) if re.search(rf"\b{a}\b", s)]
    if not pairs:
        return ""
    old, new = dice.choice(pairs)
    return re.sub(rf"\b{old}\b", new, s, count=1)


def _unit(s: str, dice: random.Random, _: list[str]) -> str:
    pairs = [(a, b) for a, b in _UNITS if re.search(rf"\d[\d.,]*\s?{a}(?![a-z])", s)]
    if not pairs:
        return ""
    old, new = dice.choice(pairs)
    return re.sub(rf"(\d[\d.,]*\s?){old}(?![a-z])", rf"\g<1>{new}", s, count=1)


def _added(s: str, dice: random.Random, pool: list[str]) -> str:
    return f"{s.rstrip('. ')}, and {dice.choice(pool)}"


def _other(s: str, dice: random.Random, pool: list[str]) -> str:
    return dice.choice(pool)


def _dropped(s: str, _: random.Random, __: list[str]) -> str:
    match = re.match(r"(?:In|On|After|During|By|At) [^,]{4,40}, (\w.*)", s)
    if match:
        return match[1][0].upper() + match[1][1:]
    head, _, tail = s.rpartition(", ")
    return f"{head}." if len(head.split()) >= 8 and 3 <= len(tail.split()) <= 12 else ""


def _synonyms(s: str, _: random.Random, __: list[str]) -> str:
    out = s
    for old, new in _SYNONYMS.items():
        out = re.sub(rf"\b{old}\b", new, out, count=1)
    return out


def _reordered(s: str, _: random.Random, __: list[str]) -> str:
    match = re.match(r"((?:In|On|After|During|By|At) [^,]{4,40}), (\w.*?)\.?\Z", s)
    if not match:
        return ""
    first = match[1][0].lower() + match[1][1:]
    return f"{match[2][0].upper()}{match[2][1:]} {first}."


def _format(s: str, _: random.Random, __: list[str]) -> str:
    out = re.sub(r"(?<=\d),(?=\d{3})", "", s)
    return re.sub(r"(\d)%", r"\1 percent", out) if out == s else out


KINDS: dict[str, tuple[bool, Change]] = {
    "unit": (False, _unit),
    "roles": (False, _roles),
    "format": (True, _format),
    "reordered": (True, _reordered),
    "direction": (False, _direction),
    "number": (False, _number),
    "date": (False, _date),
    "dropped": (True, _dropped),
    "entity": (False, _entity),
    "negation": (False, _negation),
    "synonyms": (True, _synonyms),
    "added": (False, _added),
    "other": (False, _other),
}


def by_kind(found: list[Edit]) -> Iterator[tuple[str, list[Edit]]]:
    for kind in KINDS:
        yield kind, [e for e in found if e.kind == kind]
