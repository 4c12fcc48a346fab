"""Statements made from sentences of real articles, true and false, for the training of the verifier's scorer.

Written apart from `benchmarks/edits.py`, which tests it: other word lists, other ways to change a sentence, and other
articles. A false statement differs by one fact, from the sentence itself or from a paraphrase of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from marg_ray.grounding.names import names

Paragraph = Sequence[str]
_MONTH = "January February March April May June July August September October November December".split()  # noqa: SIM905
_REWORDED = {
    "approximately": "roughly", "roughly": "approximately", "located": "situated", "established": "founded",
    "founded": "set up", "built": "constructed", "constructed": "built", "died": "passed away", "bought": "purchased",
    "purchased": "bought", "company": "firm", "children": "kids", "won": "took", "often": "frequently",
    "because": "since", "although": "even though", "while": "whereas", "reported": "said", "stated": "said",
    "first": "initially", "later": "subsequently", "subsequently": "later", "primarily": "mainly", "mainly": "chiefly",
    "known as": "called", "including": "among them", "as well as": "and also", "such as": "for example",
    "area": "region", "region": "area", "attack": "assault", "movie": "film", "gave": "provided", "made": "produced",
    "create": "make", "began": "commenced", "ended": "finished", "wrote": "penned", "more than": "over",
    "according to": "as stated by", "various": "a number of", "important": "significant", "received": "was given",
    "team": "side", "country": "nation", "government": "authorities", "students": "pupils", "people": "persons",
    "resulted in": "led to", "led to": "caused", "members": "people", "held": "took place", "home": "residence",
}  # fmt: skip
_TURNED = [
    ("increase", "reduction"), ("growth", "decline"), ("larger", "smaller"), ("faster", "slower"), ("hot", "cold"),
    ("south", "north"), ("western", "eastern"), ("older", "younger"), ("entered", "left"), ("arrived", "departed"),
    ("positive", "negative"), ("success", "failure"), ("allowed", "banned"), ("highest", "lowest"),
    ("maximum", "minimum"),
    ("started", "stopped"), ("upper", "lower"), ("inside", "outside"), ("majority", "minority"), ("strong", "weak"),
    ("win", "defeat"), ("victory", "defeat"), ("internal", "external"), ("public", "private"), ("male", "female"),
    ("better", "worse"), ("added", "removed"), ("earlier", "later"), ("longest", "shortest"), ("rich", "poor"),
    ("many", "few"), ("always", "never"), ("all", "no"), ("support", "opposition"), ("agreed", "refused"),
    ("son", "daughter"), ("father", "mother"), ("husband", "wife"), ("rise", "drop"), ("rising", "falling"),
]  # fmt: skip
_OTHER_UNIT = {
    "km": "m", "m": "km", "kilometers": "feet", "meters": "miles", "feet": "meters", "foot": "mile", "mi": "km",
    "kg": "tonnes", "tonnes": "kg", "pounds": "tons", "million": "thousand", "billion": "million",
    "thousand": "million",
    "percent": "percentage points", "%": " per mille", "minutes": "hours", "hours": "minutes", "weeks": "months",
    "years": "months", "days": "years", "acres": "hectares", "MW": "GW", "GW": "MW", "mm": "cm", "cm": "mm",
    "euros": "dollars", "dollars": "euros", "°C": "°F",
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    kind: str
    supported: bool
    text: str
    evidence: str
    group: str  # the article


def pairs(articles: dict[str, list[list[str]]], per_article: int, seed: int = 11) -> Iterator[Pair]:
    """Up to `per_article` sentences of every article, each as one true and one or two false statements."""
    dice = random.Random(seed)
    for title, paragraphs in sorted(articles.items()):
        pool = [s for p in paragraphs for s in p if 8 <= len(s.split()) <= 45]
        other = [n for t, ps in articles.items() if t != title for n in names(" ".join(ps[0][:2]))][:400]
        places = [(p, at) for p in paragraphs for at, s in enumerate(p) if 8 <= len(s.split()) <= 45]
        dice.shuffle(places)
        for paragraph, at in places[:per_article]:
            sentence = paragraph[at].strip()
            evidence = _evidence(paragraph, at, dice)
            world = World(paragraph, pool, other)
            rewritten = paraphrased(sentence, paragraph, at, dice)
            yield Pair("paraphrase", True, rewritten, evidence, title)
            if dice.random() < 0.4:
                yield Pair("copy", True, sentence, evidence, title)
            made = 0
            for kind, change in dice.sample(list(CHANGES.items()), len(CHANGES)):
                base = rewritten if dice.random() < 0.6 else sentence
                text = change(base, dice, world)
                if text and text.split() != base.split() and text not in evidence:
                    yield Pair(kind, False, text, evidence, title)
                    made += 1
                if made == 2:
                    break


@dataclass(frozen=True)
class World:
    """Where wrong facts are taken from."""

    paragraph: Paragraph
    article: Sequence[str]
    other_names: Sequence[str]


def _evidence(paragraph: Paragraph, at: int, dice: random.Random) -> str:
    before, after = dice.choice(((0, 1), (1, 1), (2, 2), (0, 0), (1, 3), (4, 4)))
    return " ".join(f"{s.strip().rstrip('.')}." for s in paragraph[max(0, at - before) : at + after + 1])


# ---- true statements


def paraphrased(sentence: str, paragraph: Paragraph, at: int, dice: random.Random) -> str:
    """The same said otherwise: one to three light changes that leave every fact in place."""
    text = sentence
    for change in dice.sample(_LIGHT, 3):
        if dice.random() < 0.7:
            text = change(text, dice)
    if dice.random() < 0.15 and at + 1 < len(paragraph):
        follower = paragraph[at + 1].strip()
        if len(follower.split()) < 25:
            head = follower[:1] if names(follower[:20]) else follower[:1].lower()
            text = f"{text.rstrip('. ')}, and {head}{follower[1:]}"
    return text


def _reworded(s: str, dice: random.Random) -> str:
    there = [w for w in _REWORDED if re.search(rf"\b{re.escape(w)}\b", s)]
    for word in dice.sample(there, min(len(there), 3)):
        s = re.sub(rf"\b{re.escape(word)}\b", _REWORDED[word], s, count=1)
    return s


def _fronted(s: str, _: random.Random) -> str:
    """ "X happened in 1990." as "In 1990, X happened." """
    found = re.match(
        r"(?P<main>[^,;]{20,}?) (?P<when>(?:in|on|during|after|before|since) (?:[A-Z]\w+ )?\d[\w ,]*?)\.?\Z", s
    )
    if not found:
        return s
    main = found["main"]
    head = main if names(main[:25]) or main.startswith("I ") else main[0].lower() + main[1:]
    return f"{found['when'][0].upper()}{found['when'][1:]}, {head}."


def _shortened(s: str, _: random.Random) -> str:
    """Without a parenthesis or an apposition."""
    out = re.sub(r"\s*\([^()]{3,80}\)", "", s)
    return out if out != s else re.sub(r", (?:a|an|the|which|who) [^,]{4,60},", "", s, count=1)


def _written_out(s: str, dice: random.Random) -> str:
    s = re.sub(r"(\d)%", r"\1 per cent", s) if dice.random() < 0.5 else s
    return re.sub(r"\b(\d{1,3}),(\d{3})\b", r"\1\2", s) if dice.random() < 0.5 else s


def _introduced(s: str, dice: random.Random) -> str:
    lead = dice.choice(("The source says that ", "It is reported that ", "As a matter of record, ", "Notably, "))
    head = s if names(s[:25]) else s[:1].lower() + s[1:]
    return lead + head


_LIGHT = (_reworded, _fronted, _shortened, _written_out, _introduced)


# ---- false statements


def _number(s: str, dice: random.Random, world: World) -> str:
    spots = [m for m in re.finditer(r"(?<![\w.,])\d[\d,.]*\d|(?<![\w.,])\d(?![\w.,])", s) if not _is_year(m[0])]
    if not spots:
        return ""
    spot = dice.choice(spots)
    value = float(spot[0].replace(",", "")) if spot[0].count(".") <= 1 else 0.0
    new = value * dice.choice((0.5, 0.9, 1.1, 1.25, 2, 3, 10)) + dice.choice((0, 1, 2))
    shown = f"{new:,.0f}" if "." not in spot[0] else f"{new:,.1f}"
    return s if shown == spot[0] else s[: spot.start()] + shown + s[spot.end() :]


def _borrowed_number(s: str, dice: random.Random, world: World) -> str:
    """A figure that stands elsewhere in the paragraph."""
    here = re.findall(r"(?<![\w.,])\d[\d,.]*\d", s)
    there = [n for t in world.paragraph for n in re.findall(r"(?<![\w.,])\d[\d,.]*\d", t) if n not in here]
    spots = [n for n in here for m in there if _is_year(n) == _is_year(m)]
    if not spots:
        return ""
    old = dice.choice(spots)
    return s.replace(old, dice.choice([m for m in there if _is_year(m) == _is_year(old)]), 1)


def _date(s: str, dice: random.Random, world: World) -> str:
    spots = list(re.finditer(rf"\b(?:1[5-9]\d\d|20[0-3]\d)\b|\b(?:{'|'.join(_MONTH)})\b", s))
    if not spots:
        return ""
    spot = dice.choice(spots)
    new = dice.choice(_MONTH) if spot[0].isalpha() else str(int(spot[0]) + dice.choice((-20, -5, -2, -1, 1, 2, 4, 10)))
    return s[: spot.start()] + new + s[spot.end() :]


def _name_near(s: str, dice: random.Random, world: World) -> str:
    return _renamed(s, dice, [n for t in world.paragraph for n in names(t)])


def _name_of_article(s: str, dice: random.Random, world: World) -> str:
    return _renamed(
        s, dice, [n for t in dice.sample(list(world.article), min(20, len(world.article))) for n in names(t)]
    )


def _name_elsewhere(s: str, dice: random.Random, world: World) -> str:
    return _renamed(s, dice, world.other_names)


def _renamed(s: str, dice: random.Random, others: Sequence[str]) -> str:
    mine = [n for n in names(s) if len(n) > 2 and n in s]
    foreign = [n for n in dict.fromkeys(others) if n not in s and len(n) > 2 and not any(w in s for w in n.split())]
    if not mine or not foreign:
        return ""
    return s.replace(dice.choice(mine), dice.choice(foreign), 1)


def _exchanged(s: str, dice: random.Random, world: World) -> str:
    mine = [n for n in dict.fromkeys(names(s)) if n in s and len(n) > 2]
    if len(mine) < 2:
        return ""
    a, b = dice.sample(mine, 2)
    if a in b or b in a:
        return ""
    return s.replace(a, "\0").replace(b, a).replace("\0", b)


_DENIED = (
    (r"\b(is|are|was|were|has|have|had|can|could|will|would|does|did|do)\b(?! not)", r"\1 not"),
    (r"\b(is|are|was|were)\b(?! not| never| no)", r"\1 never"),
    (r"\b(became|made|won|took|gave|led|held|moved|played|wrote|received)\b", r"never \1"),
    (r"\bwith\b", "without"),
)


def _denied(s: str, dice: random.Random, world: World) -> str:
    if re.search(r"\bnot\b|n't\b|\bnever\b", s) and dice.random() < 0.7:
        return re.sub(r"\s?\b(?:not|never)\b|n't\b", "", s, count=1)
    for old, new in dice.sample(_DENIED, len(_DENIED)):
        if re.search(old, s):
            return re.sub(old, new, s, count=1)
    return ""


def _turned(s: str, dice: random.Random, world: World) -> str:
    there = [(a, b) for x, y in _TURNED for a, b in ((x, y), (y, x)) if re.search(rf"\b{a}\b", s)]
    if not there:
        return ""
    old, new = dice.choice(there)
    return re.sub(rf"\b{old}\b", new, s, count=1)


def _other_unit(s: str, dice: random.Random, world: World) -> str:
    there = [u for u in _OTHER_UNIT if re.search(rf"\d\s?{re.escape(u)}(?![\w%])", s)]
    if not there:
        return ""
    unit = dice.choice(there)
    return re.sub(rf"(\d\s?){re.escape(unit)}(?![\w%])", lambda m: m[1] + _OTHER_UNIT[unit], s, count=1)


def _joined(s: str, dice: random.Random, world: World) -> str:
    return f"{s.rstrip('. ')}, {dice.choice(('and', 'while', 'because'))} {dice.choice(world.article)}"


def _sibling(s: str, dice: random.Random, world: World) -> str:
    """Another sentence of the article."""
    return dice.choice(world.article)


def _blended(s: str, dice: random.Random, world: World) -> str:
    """The beginning of the sentence with the end of another one."""
    one, two = s.split(), dice.choice(world.article).split()
    return " ".join([*one[: len(one) // 2], *two[len(two) // 2 :]])


def _is_year(figure: str) -> bool:
    return bool(re.fullmatch(r"1[5-9]\d\d|20[0-3]\d", figure))


CHANGES: dict[str, Callable[[str, random.Random, World], str]] = {
    "number": _number,
    "borrowed number": _borrowed_number,
    "date": _date,
    "name near": _name_near,
    "name of article": _name_of_article,
    "name elsewhere": _name_elsewhere,
    "roles": _exchanged,
    "negation": _denied,
    "direction": _turned,
    "unit": _other_unit,
    "added": _joined,
    "sibling": _sibling,
    "blended": _blended,
}
