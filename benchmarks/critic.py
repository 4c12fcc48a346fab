"""Does the critic see faults that were put into good sections, and does it leave good sections alone?

    python benchmarks/critic.py --data ../shared/data

Sections of encyclopaedia articles are taken as they are, and with one fault of a kind planted. Printed for each kind:
how many planted faults were named at the right place, and how many untouched sections (and sentences) were accused.
Encyclopaedias are not faultless: some of the accusations are deserved. Last, the cost for a report of 2,000 words.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from benchmarks.verification_sets import articles
from marg_ray.grounding.critique import abbreviations
from marg_ray.grounding.critique.prose import Line
from marg_ray.grounding.critique.signals import CLARITY, OBJECTIVITY, measured
from marg_ray.records import Block, Draft, Grounding, Section, Sentence, SentenceVerdict, Verdict
from marg_ray.tasks import Judged

SENTENCES = (8, 16)  # of a section that is taken
Planted = tuple[list[str], set[str]] | None  # the section, and the sentences of which one must be named

PRAISE = (
    "{t} offers an unforgettable experience that nobody should miss.",
    "With its dazzling design, {t} sets a new standard for everyone else.",
    "{t} is the number one choice for people who want real quality.",
    "A truly remarkable and inspiring achievement, {t} has no equal.",
    "{t} delivers world-class results that exceed every expectation.",
    "Visitors will be amazed by the breathtaking beauty of {t}.",
    "{t} stands out as a shining example of excellence and innovation.",
    "The cutting-edge approach of {t} is a game changer.",
)
ONE_SIDED = (
    "Obviously {t} was treated unfairly by everybody involved.",
    "Nobody in his right mind could object to {t}.",
    "The absurd arguments against {t} deserve no attention.",
    "There is no doubt that the opponents of {t} are wrong.",
    "Of course the case of {t} proves that all others failed.",
    "It is clear that {t} was the only reasonable solution.",
    "The shameful attacks on {t} came from ignorant people.",
    "Everyone knows that {t} was right from the beginning.",
)
OPINION = (
    "Unfortunately {t} never got the attention of a wider public.",
    "In our view {t} is among the things that matter most.",
    "Sadly, not enough was done for {t} in those years.",
    "{t} is by far the best thing that happened in that time.",
    "I think {t} should have been handled with more care.",
    "{t} was simply a mistake from start to end.",
    "It is a pity that {t} came so late.",
    "{t} deserves better than what it got.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sections", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", default="", help="a kind: print what is accused in untouched sections")
    given = parser.parse_args()
    chance = Random(given.seed)
    whole = articles(given.data)
    sections = list(_sections(whole, chance, given.sections))
    accused, sentences = _false_alarms(sections, whole, given.show)
    print(f"{len(sections)} sections of {sentences} sentences\n")
    print(f"{'kind':24s} {'planted':>8s} {'named':>7s} {'sections accused':>17s} {'sentences accused':>18s}")
    for kind, (signal, plant) in PLANTS.items():
        tried, found = _detected(sections, signal, plant, chance)
        places = accused.get(signal, [])
        share = len({n for n, _ in places}) / len(sections)
        rate = f"{found / tried:7.1%}" if tried else "      -"
        print(f"{kind:24s} {tried:8d} {rate} {share:17.1%} {len(places) / sentences:18.2%}")
    _sub_questions(sections, chance)
    _cost(sections)


def _sections(found: dict[str, list[list[str]]], chance: Random, most: int) -> Iterator[tuple[str, list[str]]]:
    rows = [(t, s) for t, parts in sorted(found.items()) for s in parts if SENTENCES[0] <= len(s) <= SENTENCES[1]]
    yield from chance.sample(rows, min(most, len(rows)))


def _judged(title: str, texts: list[str], number: int = 1, queries: tuple[str, ...] = ()) -> Judged:
    sentences = tuple(Sentence(text=t, citations=("e1",)) for t in texts)
    key = f"s{number}"
    return Judged(
        section=Section(id=key, title=title, weight=0.2, queries=queries),
        draft=Draft(section=key, revision=1, blocks=(Block(kind="paragraph", sentences=sentences),)),
        grounding=Grounding(
            section=key,
            revision=1,
            verdicts=(SentenceVerdict(verdict=Verdict.SUPPORTED),) * len(texts),
            coverage=1.0,
        ),
        evidence=1,
        sources=1,
    )


def _named(title: str, texts: list[str]) -> list[tuple[str, str]]:
    found = measured([_judged("What happened", texts)], {}, question=title, language="en")
    return [(i.signal, i.sentence) for i in found.issues if i.signal]


def _spelled_elsewhere(kind: str, sentence: str, whole: list[list[str]]) -> bool:
    """Whether the rest of the article spells out all that the sentence abbreviates."""
    if kind != "undefined_abbreviation":
        return False
    known = abbreviations.KNOWN.union(*(abbreviations.defined(text) for part in whole for text in part))
    return abbreviations.named(sentence) <= known


def _false_alarms(
    sections: list[tuple[str, list[str]]], whole: dict[str, list[list[str]]], show: str
) -> tuple[dict[str, list[tuple[int, str]]], int]:
    accused: dict[str, list[tuple[int, str]]] = {}
    for number, (title, texts) in enumerate(sections):
        for kind, sentence in _named(title, texts):
            if _spelled_elsewhere(kind, sentence, whole[title]):
                continue
            accused.setdefault(kind, []).append((number, sentence))
            if kind == show:
                print(f"  {title}: {sentence}")
    return accused, sum(len(texts) for _, texts in sections)


def _detected(
    sections: list[tuple[str, list[str]]], kind: str, plant: Callable[..., Planted], chance: Random
) -> tuple[int, int]:
    tried = found = 0
    for title, texts in sections:
        other = chance.choice([s for t, s in sections if t != title])
        planted = plant(title, texts, other, chance)
        if planted is not None:
            tried += 1
            found += any(k == kind and s in planted[1] for k, s in _named(title, planted[0]))
    return tried, found


# ---- faults


def _with(texts: list[str], sentence: str, chance: Random, after: int = 0) -> Planted:
    at = chance.randint(after + 1, len(texts))
    return [*texts[:at], sentence, *texts[at:]], {sentence}


def _said(forms: tuple[str, ...]) -> Callable[..., Planted]:
    return lambda title, texts, other, chance: _with(texts, chance.choice(forms).format(t=title), chance)


def _abbreviation(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    short = "".join(chance.sample("BCDFGHJKLMNPQRTVWXZ", chance.choice((3, 4))))
    at = chance.randrange(len(texts))
    changed = re.sub(r"[.!]?\s*$", f", as the {short} had it.", texts[at])
    return [*texts[:at], changed, *texts[at + 1 :]], {changed}


def _figure(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    """The sentence again, with another figure, and other words at its beginning."""
    rows = [n for n, t in enumerate(texts) if re.search(r"(?<![\w.,-])\d{2,}(?![\w,]|[.-]\d)", t) and len(t) < 250]
    if not rows:
        return None
    at = chance.choice(rows)
    changed = re.sub(r"(?<![\w.,-])\d{2,}(?![\w,]|[.-]\d)", lambda m: str(int(m[0]) + 7), texts[at], count=1)
    made = _with(texts, changed, chance, after=at)
    return (made[0], {changed, texts[at]}) if made else None


def _denied(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    rows = [n for n, t in enumerate(texts) if re.search(r"\b(?:was|is|were|are|has|had)\b (?!not)", t) and len(t) < 250]
    if not rows:
        return None
    at = chance.choice(rows)
    changed = re.sub(r"\b(was|is|were|are|has|had)\b", r"\1 not", texts[at], count=1)
    made = _with(texts, changed, chance, after=at)
    return (made[0], {changed, texts[at]}) if made else None


def _again(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    """The sentence again with its first clause last."""
    rows = [n for n, t in enumerate(texts) if len(t.split()) >= 10]
    if not rows:
        return None
    at = chance.choice(rows)
    head, comma, tail = texts[at].rstrip(" .").partition(", ")
    changed = f"{tail[0].upper()}{tail[1:]}, {head}." if comma and tail else f"As was said, {texts[at]}"
    made = _with(texts, changed, chance, after=at)
    return (made[0], {changed, texts[at]}) if made else None


def _hanging(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    """The section begins in the middle: its first sentence is one that leans on another."""
    rows = [t for t in texts[1:] if re.match(r"(?:This|These|However|It|He|She|They|Also|His|Her|Their|Its)\b", t)]
    if not rows:
        return None
    first = chance.choice(rows)
    return [first, *(t for t in texts if t != first)], {first}


def _stranger(title: str, texts: list[str], other: list[str], chance: Random) -> Planted:
    return _with(texts, chance.choice([t for t in other if len(t.split()) >= 8] or other), chance)


PLANTS: dict[str, tuple[str, Callable[..., Planted]]] = {
    "undefined abbreviation": ("undefined_abbreviation", _abbreviation),
    "contradiction: figure": ("contradiction", _figure),
    "contradiction: denied": ("contradiction", _denied),
    "repetition": ("repetition", _again),
    "incoherence": ("incoherence", _hanging),
    "off subject": ("off_subject", _stranger),
    "promotional": ("promotional", _said(PRAISE)),
    "one sided": ("one_sided", _said(ONE_SIDED)),
    "unattributed opinion": ("unattributed_opinion", _said(OPINION)),
}
assert {signal for signal, _ in PLANTS.values()} == {*CLARITY, *OBJECTIVITY}


def _sub_questions(sections: list[tuple[str, list[str]]], chance: Random) -> None:
    """Queries made of the words of a sentence that is there, and of one of another section."""
    told = open_ = 0
    for title, texts in sections:
        other = chance.choice([s for t, s in sections if t != title])
        for source, is_there in ((texts, True), (other, False)):
            line = Line(section="s1", at=0, run=0, text=chance.choice(source))
            words = chance.sample(sorted(line.telling), min(4, len(line.telling)))
            found = measured([_judged(title, texts, queries=(" ".join(words),))], {}, question=title, language="en")
            missing = any(i.signal == "sub_questions" for i in found.issues)
            told += is_there and missing
            open_ += not is_there and missing
    count = len(sections)
    print(f"{'sub_questions':24s} {count:8d} {open_ / count:7.1%} {told / count:17.1%}")


def _cost(sections: list[tuple[str, list[str]]]) -> None:
    parts, words = [], 0
    for number, (title, texts) in enumerate(sections):
        if words < 2000:
            parts.append(_judged(title, texts, number, queries=(title,)))
            words += sum(len(t.split()) for t in texts)
    best = min(_timed(parts) for _ in range(3))
    print(f"\na report of {words} words in {len(parts)} sections: {best * 1000:.0f} ms of CPU, nothing kept before")


def _timed(parts: list[Judged]) -> float:
    from marg_ray.grounding import dates, quantities, terms

    for module in (dates, quantities, terms):
        for cached in vars(module).values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
    began = time.process_time()
    measured(parts, {}, question="What is told?", language="en")
    return time.process_time() - began


if __name__ == "__main__":
    main()
