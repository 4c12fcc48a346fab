"""Single-fact edits of paraphrased sentences, and the paraphrases themselves: how many are caught, how many kept.

    python -m benchmarks.edits_paraphrased --data PATH [--per-kind 60] [--show roles] [--layer flags]

Independent of the rules that it measures: its word pairs and paraphrases are its own. `--layer flags` counts an edit as
caught only where a complaint names it, and a paraphrase as kept where there is none; `verdict` asks for "supported".
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.edits_reworded import paraphrased
from benchmarks.verification_sets import articles, held_out
from marg_ray.grounding.verify import check_sentence
from marg_ray.records import Evidence, Verdict

_MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty".split()  # noqa: SIM905
_ORDINALS = "third fourth fifth sixth seventh eighth ninth tenth".split()  # noqa: SIM905
_DIRECTION = """
    increased/decreased rose/fell grew/shrank gained/lost won/lost strengthened/weakened expanded/contracted
    improved/worsened accelerated/slowed opened/closed began/ended started/finished arrived/departed entered/left
    joined/left accepted/rejected approved/rejected supported/opposed allowed/prohibited permitted/banned bought/sold
    hired/fired appointed/dismissed praised/criticized praised/condemned built/demolished created/destroyed
    founded/dissolved established/abolished arrested/released captured/freed imprisoned/released attacked/defended
    advanced/retreated ascended/descended appeared/disappeared revealed/concealed confirmed/denied admitted/denied
    included/excluded added/removed raised/lowered encouraged/discouraged attracted/repelled connected/separated
    continued/ceased remained/left succeeded/failed survived/perished promoted/demoted united/divided merged/split
    higher/lower larger/smaller longer/shorter older/younger stronger/weaker faster/slower better/worse more/fewer
    greater/lesser earlier/later taller/shorter wider/narrower richer/poorer cheaper/costlier heavier/lighter
    largest/smallest highest/lowest longest/shortest oldest/youngest best/worst most/least fastest/slowest
    high/low large/small long/short old/new early/late major/minor strong/weak heavy/light deep/shallow wide/narrow
    rich/poor hot/cold warm/cool dry/wet hard/soft difficult/easy expensive/cheap famous/obscure popular/unpopular
    positive/negative successful/unsuccessful legal/illegal official/unofficial public/private male/female
    northern/southern eastern/western north/south east/west upper/lower inner/outer left/right front/rear
    domestic/foreign urban/rural military/civilian temporary/permanent common/rare modern/ancient first/last
    former/current senior/junior main/secondary active/inactive direct/indirect visible/invisible likely/unlikely
    able/unable complete/incomplete violent/peaceful friendly/hostile safe/dangerous dead/alive full/empty
    victory/defeat success/failure increase/decrease rise/fall growth/decline profit/loss support/opposition
    birth/death beginning/end majority/minority winter/summer morning/evening day/night father/mother son/daughter
    brother/sister husband/wife king/queen men/women enemy/ally advantage/disadvantage strength/weakness
    often/rarely always/never before/after above/below inside/outside over/under with/without into/from to/from
    up/down against/for initially/finally mostly/rarely quickly/slowly partially/completely widely/narrowly
    positively/negatively publicly/privately mainly/rarely previously/subsequently nearly/exactly
"""
_PAIRS = [tuple(pair.split("/")) for pair in _DIRECTION.split()]
_QUANTIFIERS = [
    ("some", "all"), ("many", "few"), ("most", "all"), ("several", "all"), ("all", "some"), ("often", "always"),
    ("usually", "always"), ("sometimes", "never"), ("at least", "at most"), ("more than", "less than"),
    ("up to", "at least"), ("about", "exactly"), ("both", "neither of the"), ("mostly", "only"), ("many", "all"),
    ("may", "will"), ("could", "did"), ("partly", "entirely"), ("one of the", "the only one of the"),
]  # fmt: skip
_UNITS = [
    ("km", "mi"), ("kilometers", "miles"), ("kilometres", "miles"), ("miles", "kilometers"), ("mi", "km"), ("m", "ft"),
    ("meters", "feet"), ("metres", "feet"), ("feet", "metres"), ("ft", "m"), ("million", "billion"), ("kg", "lb"),
    ("billion", "million"), ("million", "thousand"), ("percent", "percentage points"), ("%", " percentage points"),
    ("tons", "kilograms"), ("tonnes", "kilograms"), ("acres", "hectares"), ("hectares", "acres"), ("inches", "feet"),
    ("pounds", "tonnes"), ("°C", "°F"), ("°F", "°C"), ("hours", "minutes"), ("minutes", "hours"), ("days", "months"),
    ("weeks", "days"), ("months", "weeks"), ("years", "months"), ("MW", "kW"), ("cm", "mm"), ("mm", "cm"),
    ("dollars", "euros"), ("mph", "knots"), ("seconds", "minutes"), ("decades", "centuries"), ("knots", "mph"),
]  # fmt: skip
_AUX = r"\b(?:is|was|were|are|has|had|have|can|will|would|could|did)\b(?! not| no\b| never)"
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_CAUSE = re.compile(r"\b(caused|led to|resulted in|triggered|due to|because of|prompted|sparked)\b")


@dataclass(frozen=True)
class Item:
    kind: str
    kept: bool
    text: str
    evidence: str
    title: str


@dataclass(frozen=True)
class World:
    """Where wrong facts are taken from: sentences."""

    paragraph: Sequence[str]
    article: Sequence[str]
    others: Sequence[str]


Change = Callable[[str, random.Random, World], str]


def _replaced(s: str, spot: re.Match[str], new: str) -> str:
    return s[: spot.start()] + new + s[spot.end() :]


def _number(s: str, dice: random.Random, _: World) -> str:
    spots = [
        m
        for m in re.finditer(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?![\w-])", s)
        if not re.fullmatch(r"1[0-9]\d\d|20\d\d", m[0])
    ]
    if not spots:
        return ""
    spot = dice.choice(spots)
    places = [i for i, c in enumerate(spot[0]) if c.isdigit()]
    place = dice.choice(places)
    digit = dice.choice([c for c in "123456789" if c != spot[0][place]])
    return _replaced(s, spot, spot[0][:place] + digit + spot[0][place + 1 :])


def _number_word(s: str, dice: random.Random, _: World) -> str:
    words = _NUMBER_WORDS + _ORDINALS
    spots = list(re.finditer(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])", s))
    if not spots:
        return ""
    spot = dice.choice(spots)
    group = _NUMBER_WORDS if spot[0] in _NUMBER_WORDS else _ORDINALS
    return _replaced(s, spot, dice.choice([w for w in group if w != spot[0]]))


def _number_nearby(s: str, dice: random.Random, world: World) -> str:
    pattern = r"(?<![\w.,$£€-])(?!1[0-9]\d\d\b|20\d\d\b)\d[\d,.]*\d?(?![\w%-])"
    spots = list(re.finditer(pattern, s))
    others = [m[0] for o in world.paragraph for m in re.finditer(pattern, o) if m[0] not in s]
    return _replaced(s, dice.choice(spots), dice.choice(others)) if spots and others else ""


def _date(s: str, dice: random.Random, _: World) -> str:
    spots = list(re.finditer(rf"\b(?:1[0-9]\d\d|20[0-2]\d|{'|'.join(_MONTHS + _DAYS)})\b", s))
    if not spots:
        return ""
    spot = dice.choice(spots)
    for group in (_MONTHS, _DAYS):
        if spot[0] in group:
            return _replaced(s, spot, dice.choice([m for m in group if m != spot[0]]))
    return _replaced(s, spot, str(int(spot[0]) + dice.choice((-10, -4, -2, -1, 1, 2, 3, 11))))


def _date_nearby(s: str, dice: random.Random, world: World) -> str:
    pattern = r"\b(?:1[5-9]\d\d|20[0-2]\d)\b"
    spots = list(re.finditer(pattern, s))
    others = [m[0] for o in world.paragraph for m in re.finditer(pattern, o) if m[0] not in s]
    return _replaced(s, dice.choice(spots), dice.choice(others)) if spots and others else ""


def _entity(source: str) -> Change:
    def change(s: str, dice: random.Random, world: World) -> str:
        spots = [m for m in _NAME.finditer(s) if m[0] not in _MONTHS and m[0] not in _DAYS]
        pool: Sequence[str] = getattr(world, source)
        some = pool if len(pool) < 40 else dice.sample(list(pool), 40)
        others = [m[0] for o in some for m in _NAME.finditer(o) if m[0] not in _MONTHS]
        if not spots:
            return ""
        spot = dice.choice(spots)
        others = [o for o in others if not set(o.split()) & set(re.findall(r"\w+", s))]
        return _replaced(s, spot, dice.choice(others)) if others else ""

    return change


def _negation(s: str, dice: random.Random, _: World) -> str:
    def after(word: str) -> str:
        match = re.search(_AUX, s)
        return f"{s[: match.end()]} {word}{s[match.end() :]}" if match else ""

    def verb(lead: str) -> str:
        match = re.search(r"(?<=[a-z] )([a-z]{2,}[^e\W])ed\b(?= (?:the|a|an|to|his|her|its|their)\b)", s)
        return _replaced(s, match, f"{lead} {match[1]}") if match else ""

    forms = [
        lambda: after("not"), lambda: after("never"), lambda: after("no longer"), lambda: verb("did not"),
        lambda: verb("failed to"), lambda: verb("refused to"),
        lambda: re.sub(r"\bwith (?=the|a|an)", "without ", s, count=1),
        lambda: re.sub(r"\b(?:a|an|some|several|many) (?=[a-z]+s?\b)", "no ", s, count=1),
        lambda: re.sub(r"\b(popular|successful|able|known|usual|clear|likely|common|important|even|official)\b",
                       r"un\1", s, count=1),
        lambda: re.sub(r"\b(?:not|never) ", "", s, count=1),
    ]  # fmt: skip
    dice.shuffle(forms)
    return next((made for form in forms if (made := form()) and made != s), "")


def _direction(s: str, dice: random.Random, _: World) -> str:
    pairs = [(a, b) for x, y in _PAIRS for a, b in ((x, y), (y, x)) if re.search(rf"\b{a}\b", s)]
    if len(pairs) > 1:  # small words are in every sentence
        pairs = [p for p in pairs if len(p[0]) > 4] or pairs
    if not pairs:
        return ""
    old, new = dice.choice(pairs)
    return re.sub(rf"\b{old}\b", new, s, count=1)


def _unit(s: str, dice: random.Random, _: World) -> str:
    spots = [
        (m, new)
        for old, new in _UNITS
        for m in re.finditer(rf"(?:\d|\b(?:{'|'.join(_NUMBER_WORDS)}))\s?({re.escape(old)})(?![A-Za-z²])", s)
    ]
    if not spots:
        return ""
    spot, new = dice.choice(spots)
    return s[: spot.start(1)] + new + s[spot.end(1) :]


def _currency(s: str, dice: random.Random, _: World) -> str:
    match = re.search(r"[$£€](?=\d)", s)
    return _replaced(s, match, dice.choice([c for c in "$£€" if c != match[0]])) if match else ""


def _roles(s: str, dice: random.Random, _: World) -> str:
    """Two names around a verb, or around "of", "from", "to", "than" or "by"."""
    spots = list(re.finditer(r"(?:(?<=[a-z,;] )|\A)[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*", s))
    spots = [
        m for m in spots if m[0] not in _MONTHS and m[0].split()[0] not in ("The", "In", "After", "During", "This")
    ]
    link = r"\b(?:[a-z]+ed|beat|won|led|met|left|became|gave|told|wrote|than|from|by|over|replacing|against|of)\b"
    pairs = [
        (a, b)
        for n, a in enumerate(spots)
        for b in spots[n + 1 : n + 2]
        if a[0] != b[0] and re.search(link, s[a.end() : b.start()])
    ]
    if not pairs:
        return ""
    a, b = dice.choice(pairs)
    return s[: a.start()] + b[0] + s[a.end() : b.start()] + a[0] + s[b.end() :]


def _sides(s: str, _: random.Random, __: World) -> str:
    """ "the army attacked the town": subject and object, without names."""
    match = re.search(
        r"\b(?:[Tt]he|[Aa]n?|[Hh]is|[Hh]er|[Tt]heir) ([a-z]{4,}) "
        r"((?:was |were )?[a-z]+ed(?: by)?) (?:the|an?|his|her|their) ([a-z]{4,})\b",
        s,
    )
    if not match or match[1] == match[3]:
        return ""
    return s[: match.start(1)] + match[3] + s[match.end(1) : match.start(3)] + match[1] + s[match.end(3) :]


def _cause(s: str, _: random.Random, __: World) -> str:
    match = _CAUSE.search(s)
    if not match:
        return ""
    before = re.search(r"([\w' -]{6,60})\s\Z", s[: match.start()])
    after = re.match(r"\s([\w' -]{6,60})", s[match.end() :])
    if not (before and after):
        return ""
    a, b = before[1].strip(), after[1].strip()
    head = s[: match.start()].removesuffix(before[0])
    text = f"{head}{b} {match[0]} {a}{s[match.end() + after.end() :]}"
    return text[0].upper() + text[1:]


def _course(s: str, _: random.Random, __: World) -> str:
    match = re.search(r"\bfrom ([A-Za-z0-9,.$£€%]+(?: [A-Z][a-z]+)?) to ([A-Za-z0-9,.$£€%]+(?: [A-Z][a-z]+)?)", s)
    if not match:
        return ""
    return _replaced(s, match, f"from {match[2].rstrip('.,')} to {match[1]}")


def _quantifier(s: str, dice: random.Random, _: World) -> str:
    pairs = [(a, b) for a, b in _QUANTIFIERS if re.search(rf"\b{a}\b", s)]
    if not pairs:
        return ""
    old, new = dice.choice(pairs)
    return re.sub(rf"\b{old}\b", new, s, count=1)


EDITS: dict[str, Change] = {
    "number": _number,
    "number word": _number_word,
    "number nearby": _number_nearby,
    "date": _date,
    "date nearby": _date_nearby,
    "entity foreign": _entity("others"),
    "entity article": _entity("article"),
    "entity nearby": _entity("paragraph"),
    "negation": _negation,
    "direction": _direction,
    "unit": _unit,
    "currency": _currency,
    "roles": _roles,
    "sides": _sides,
    "cause": _cause,
    "from to": _course,
    "quantifier": _quantifier,
}


def items(found: dict[str, list[list[str]]], per_kind: int, seed: int = 5) -> list[Item]:
    """Edits of every kind, on a paraphrase two times in three, and as many paraphrases of every kind."""
    dice = random.Random(seed)
    chosen = held_out(found)
    places = [
        (title, paragraph, at)
        for title in chosen
        for paragraph in found[title]
        for at, s in enumerate(paragraph)
        if 8 <= len(s.split()) <= 45
    ]
    dice.shuffle(places)
    everything = {t: [s for p in found[t] for s in p] for t in chosen}
    counts: dict[str, int] = defaultdict(int)
    made: list[Item] = []
    for title, paragraph, at in places:
        sentence = paragraph[at].strip()
        world = World(
            [s for n, s in enumerate(paragraph) if n != at],
            everything[title],
            [s for t in dice.sample(chosen, 4) if t != title for s in everything[t][:60]],
        )
        before, after = dice.choice(((0, 0), (0, 1), (1, 1), (2, 2), (4, 4)))
        evidence = " ".join(f"{s.strip().rstrip('.')}." for s in paragraph[max(0, at - before) : at + after + 1])
        whole = " ".join(f"{s.strip().rstrip('.')}." for s in paragraph)
        reworded, ways = paraphrased(sentence, paragraph, at, title, dice)
        kind = "+".join(ways)
        if reworded != sentence and counts[f"kept {ways[0]}"] < per_kind:
            counts[f"kept {ways[0]}"] += 1
            shown = whole if "fused" in ways else evidence
            made.append(Item(f"kept {ways[0]}", True, reworded, shown, title))
        base = reworded if dice.random() < 0.67 else sentence
        shown = whole if "fused" in kind or dice.random() < 0.3 else evidence
        for name in sorted(EDITS, key=lambda k: counts[k]):
            if counts[name] >= per_kind:
                continue
            text = EDITS[name](base, dice, world)
            if text and text != base and text not in shown:
                counts[name] += 1
                near = whole if "nearby" in name else shown
                made.append(Item(name, False, text, near, title))
                break
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--per-kind", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--show", default="", help="a kind whose mistakes are shown")
    parser.add_argument("--layer", choices=("verdict", "flags"), default="verdict")
    options = parser.parse_args()
    right: dict[str, list[bool]] = defaultdict(list)
    kept: dict[str, bool] = {}
    for item in items(articles(options.data), options.per_kind, options.seed):
        evidence = Evidence(id="e1", source="s1", quote=item.evidence, start=0, end=len(item.evidence))
        check = check_sentence(item.text, [evidence], titles=[item.title])
        good = not check.complaints if options.layer == "flags" else check.verdict is Verdict.SUPPORTED
        right[item.kind].append(good == item.kept)
        kept[item.kind] = item.kept
        if options.show and any(s in item.kind for s in options.show.split(",")) and good != item.kept:
            print(f"--- {item.kind}: {item.text}\n    {item.evidence}\n    {check.recall:.2f} {check.reason}")
    for kind in sorted(right, key=lambda k: (kept[k], k)):
        share = 100 * sum(right[kind]) / len(right[kind])
        print(f"{kind:20} {'kept' if kept[kind] else 'caught'} {share:5.1f} of {len(right[kind])}")
    for wanted, name in ((False, "edits caught"), (True, "paraphrases kept")):
        all_of = [r for k in right for r in right[k] if kept[k] is wanted]
        print(f"{name} {100 * sum(all_of) / len(all_of):.1f} of {len(all_of)}")


if __name__ == "__main__":
    main()
