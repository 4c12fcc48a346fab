"""Words that turn a statement round: negation, opposites, hedges, quantifiers. Data for `polarity`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache

from marg_ray.grounding.antonyms import IRREGULAR, PLACED, VERBS
from marg_ray.grounding.antonyms_of_kind import ADJECTIVES, OTHERS
from marg_ray.grounding.terms import stem, words

NEGATIONS = frozenset(
    """
    not n't no never none neither nor without cannot nobody nothing nowhere hardly barely scarcely isn't aren't wasn't
    weren't doesn't don't didn't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't mustn't non
    """.split()  # noqa: SIM905
)
FOREIGN_NEGATIONS = frozenset(
    words(
        """
    nicht kein keine keinen keinem keiner keines nie niemals ohne weder
    pas jamais aucun aucune sans ni
    no nunca ningún ninguna ninguno sin jamás tampoco
    non mai nessun nessuno nessuna senza não nem nenhum nenhuma sem geen niet nooit zonder
    не нет ни никогда без
    لا لم لن ليس ليست غير
    """
    )
)
# They negate what follows: "failed to open", "refused to sign".
DENIALS = frozenset(
    stem(word)
    for word in [
        "fail",
        "failure",
        "lack",
        "refuse",
        "refusal",
        "deny",
        "denial",
        "decline",
        "cease",
        "absent",
        "absence",
        "unable",
        "false",
        "untrue",
        "impossible",
        "refrain",
        "avoid",
        "neglect",
        "abstain",
        "prevent",
        "devoid",
        "inability",
        "unwilling",
        "rarely",
        "seldom",
    ]
)
WIDE_NEGATIONS = "不没未无非沒無ません ない なかった ず"

# Of other languages, as they are used; left against right.
_FOREIGN = """
    steigen stieg gestiegen zunehmen wachsen wuchs erhöht höher mehr
        | sinken sank gesunken abnehmen fallen fiel gesenkt niedriger weniger
    augmenté augmentation hausse plus | diminué diminution baisse moins
    aumentó aumento subió más | disminuyó disminución bajó menos
"""

Sides = dict[str, list[tuple[int, int]]]  # stem to the (pair, side) entries it stands in
_DOUBLED = re.compile(r"[^aeiou][aeiou][bdgmnprt]\Z")


def _lines(text: str) -> list[list[list[str]]]:
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith("        ") and lines:
            lines[-1] += line
        else:
            lines.append(line)
    return [[side.split() for side in line.split("|")] for line in lines]


def _irregular() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for forms in IRREGULAR.replace("\n", "|").split("|"):
        if words := forms.split():
            found[words[0]] = tuple(words[1:])
    return found


def _inflected_verb(word: str, irregular: dict[str, tuple[str, ...]]) -> list[str]:
    for base, forms in irregular.items():  # "reopen" is regular, "rebuild" goes like "build"
        if word == base or (len(base) > 3 and word in (f"re{base}", f"over{base}", f"under{base}")):
            return [word, *(word.removesuffix(base) + form for form in forms)]
    return [word]  # the regular forms have its stem


def _inflected_adjective(word: str) -> list[str]:
    if len(word) > 6 or "-" in word:
        return [word, f"{word}ly"]
    short = f"{word}{word[-1]}" if _DOUBLED.search(word) else word.removesuffix("e")
    short = f"{word[:-1]}i" if word.endswith("y") else short
    adverb = f"{word[:-1]}ily" if word.endswith("y") else f"{word}ly"
    return [word, f"{short}er", f"{short}est", adverb]


@cache
def _tables() -> tuple[Sides, Sides, Sides]:
    """The opposites by stem, those that are judged only in the same place, by word, and those of other languages."""
    irregular = _irregular()
    tables: list[tuple[str, Callable[[str], list[str]]]] = [
        (VERBS, lambda word: _inflected_verb(word, irregular)),
        (ADJECTIVES, _inflected_adjective),
        (OTHERS, lambda word: [word]),
        (_FOREIGN, lambda word: [word]),
    ]
    sides: Sides = {}
    number = 0
    for text, forms in tables:
        for line in _lines(text):
            for side, group in enumerate(line):
                for key in {stem(form) for word in group for form in forms(word)}:
                    sides.setdefault(key, []).append((number, side))
            number += 1
    placed: Sides = {}
    for number, line in enumerate(_lines(PLACED)):
        for side, group in enumerate(line):
            for word in group:
                placed.setdefault(word, []).append((number, side))
    foreign = {stem(w) for line in _lines(_FOREIGN) for words_of_side in line for w in words_of_side}
    return sides, placed, {key: sides[key] for key in foreign}


def sides() -> Sides:
    """Each stem to the (pair, side) entries it stands in; the first call reads the lists."""
    return _tables()[0]


def placed_sides() -> Sides:
    """The same for words that are judged only where they stand in the same place."""
    return _tables()[1]


def foreign_sides() -> Sides:
    return _tables()[2]


@lru_cache(maxsize=8192)
def opposites(term: str) -> frozenset[str]:
    """The stems of the opposites of a stem."""
    mine = {(pair, 1 - side) for pair, side in sides().get(term, ())}
    return frozenset(t for t, entries in sides().items() if mine & set(entries)) if mine else frozenset()


def opposed(word: str, other: str) -> bool:
    """Whether two words are opposites: by the lists, or one is the other with "un-", "in-" or "dis-" before it."""
    return stem(other) in opposites(stem(word)) or denies(word, other) or denies(other, word)


def may_deny(word: str) -> bool:
    """Whether it is worth asking `denies` about a word."""
    return len(word) > 5 and (word.startswith(_PREFIXES) or word.endswith("less"))


def denies(word: str, base: str) -> bool:
    """Whether `word` is `base` with a denying prefix, whatever their endings: "irregularly" and "regular"."""
    if abs(len(word) - len(base)) > 5 or len(word) < 6 or len(base) < 4:
        return False
    if word.endswith("less") and len(base) > 4 and base[:4] == word[:4]:
        return base.removesuffix("ly") == f"{word[:-4]}ful"
    for prefix, allowed in _DENIED_WITH.items():
        if word.startswith(prefix) and stem(word[len(prefix) :]) == stem(base):
            return stem(base) in allowed if allowed else word[2:] not in _NOT_DENIED
    return False


def has_denying_prefix(word: str) -> bool:
    """Whether the word says of itself that something is not so: "unhappy", "illegal", "harmless"."""
    if len(word) < 6:
        return False
    if word.startswith("un"):
        return not word.startswith(("under", "unit", "until", "uni", "unless"))
    if word.endswith(("less", "lessly")):
        return word not in ("unless", "nevertheless", "nonetheless", "regardless", "bless")
    return any(
        word.startswith(prefix) and (not allowed or stem(word[len(prefix) :]) in allowed)
        for prefix, allowed in _DENIED_WITH.items()
    )


_PREFIXES = ("un", "non", "in", "im", "il", "ir", "dis", "mis")
_NOT_DENIED = frozenset(("ion", "ions", "ited", "iform", "iformed", "ique", "it", "its", "iversal"))
_DENIED_WITH: dict[str, frozenset[str]] = {
    "un": frozenset(),
    "non": frozenset(),
} | {
    prefix: frozenset(stem(word) for word in bases.split())
    for prefix, bases in {
        "in": "active accurate adequate advertent appropriate audible auspicious capable coherent comparable "
        "compatible competent complete comprehensible conclusive consistent conspicuous convenient correct credible "
        "curable decent decisive definite dependent direct discreet distinct divisible edible effective efficient "
        "elastic eligible equality equitable evitable exact excusable exhaustible expensive experienced explicable "
        "fallible "
        "famous fertile finite flexible formal frequent hospitable human humane justice offensive operable opportune "
        "organic sane secure sensitive separable significant sincere solvent stability sufficient tangible tolerant "
        "tolerance valid variable vertebrate visible voluntary vulnerable accessible admissible attentive action "
        "ability consequential corruptible",
        "im": "balance balanced material mature measurable mobile moderate modest moral mortal movable mutable partial "
        "passable patient penetrable perceptible perfect permanent permeable personal plausible polite possible "
        "potent practical precise probable proper pure",
        "il": "legal legible legitimate liberal licit literate logical",
        "ir": "rational reconcilable recoverable refutable regular relevant religious reparable replaceable "
        "resistible resolute responsible reverent reversible revocable",
        "dis": "able advantage affected agree agreement allow appear approve approval arm array assemble associate "
        "avow band belief believe charge claim colour comfort connect content continue continued courage credit engage "
        "entangle favour favor heartened honest honour honor incentive inclined infect integrate interested invest "
        "joint like locate lodge loyal loyalty mount obedient obey order organised organized own passionate please "
        "possess prove qualify qualified regard repair reputable respect satisfied satisfy similar trust union unity "
        "united use",
        "mis": "understand understood trust behave fortune calculate judge manage treat represent lead led",
    }.items()
}

HEDGES = frozenset(
    """
    may might possibly perhaps allegedly alleged reportedly rumoured rumored planned plans proposed forecast projected
    expected could potentially hypothesised hypothesized kann könnte möglicherweise geplant pourrait podría
    """.split()  # noqa: SIM905
)
QUANTIFIERS = (
    frozenset("all every each entire whole any both complete total full completely entirely fully".split()),  # noqa: SIM905
    frozenset("only sole solely exclusively just merely alone".split()),  # noqa: SIM905
    frozenset("always constantly invariably".split()),  # noqa: SIM905
)
