"""Enough of English grammar to see where a clause begins: finite verbs, and the words that start a noun phrase."""

from __future__ import annotations

import re

_REGULAR = """
account achieve add adopt aim allow announce appear appoint approve assess attack award base become
begin belong break build buy carry cause change choose close collapse collect come comprise conduct
confirm connect consist construct contain continue contribute control cost cover create cut damage
decide declare decline decrease define deliver demolish depend describe design destroy develop die
direct discover double draw drop earn elect employ empty enable end enter establish exceed expand
extend face fail fall feature feed fight fill find finish flood follow force form found fund
generate get give go grow halve hand happen have help hit hold host import improve include increase
inhabit inherit injure install introduce invade invent invest join keep kill know lack land last
launch lead leak leave lie link lose lower maintain make manage manufacture mark marry measure meet
merge move name need obtain occupy occur open operate order organize organise overlook own
participate pass pay perform plan play premiere prevent produce promote protect prove provide
publish purchase raise range reach rebuild receive record recover reduce reject release relocate
remain remove rename renew repair replace represent require resign restore result retire return
reveal rise rule run secure sell send separate serve settle share shut sign sit sink spend split
spread stand start stay stop store study succeed suffer supply support surrender survive take teach
test total train transfer travel treble triple turn undergo use vary visit vote weigh win withdraw
work write
"""
_IRREGULAR = {
    "become": "became", "begin": "began begun", "break": "broke broken", "build": "built", "buy": "bought",
    "choose": "chose chosen", "come": "came", "cost": "cost", "cut": "cut", "draw": "drew drawn",
    "fall": "fell fallen", "feed": "fed", "fight": "fought", "find": "found", "get": "got", "give": "gave given",
    "go": "went gone", "grow": "grew grown", "hit": "hit", "hold": "held", "keep": "kept", "know": "knew known",
    "lead": "led", "leave": "left", "lie": "lay lain", "lose": "lost", "make": "made", "meet": "met", "pay": "paid",
    "prove": "proved proven", "rebuild": "rebuilt", "rise": "rose risen", "run": "ran run", "sell": "sold",
    "send": "sent", "shut": "shut", "sink": "sank sunk", "sit": "sat", "spend": "spent", "split": "split",
    "spread": "spread", "stand": "stood", "take": "took taken", "teach": "taught", "undergo": "underwent undergone",
    "win": "won", "withdraw": "withdrew withdrawn", "write": "wrote written", "have": "had",
}  # fmt: skip
BE = frozenset(["is", "are", "was", "were"])
HAVE = frozenset(["has", "have", "had"])
MODAL = frozenset(
    """
    will would can could may might must shall should does did do
    """.split()  # noqa: SIM905
)
AUXILIARIES = BE | HAVE | MODAL
DETERMINERS = frozenset(
    """
        the a an its their his her this these that those each every some many most all it they he she there
        we
        """.split()  # noqa: SIM905
)


def _past(verb: str) -> list[str]:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb].split()
    if verb.endswith("e"):
        return [verb + "d"]
    if re.search(r"[^aeiou]y$", verb):
        return [verb[:-1] + "ied"]
    doubled = re.search(r"[^aeiou][aeiou][bdgmnprt]$", verb) and verb in {"plan", "drop", "stop", "transfer", "ban"}
    return [f"{verb}{verb[-1]}ed" if doubled else f"{verb}ed"]


def _third(verb: str) -> str:
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", verb) else "s")


# As often plural nouns: after "and" they do not show that a clause begins.
_NOUNS = frozenset(
    """
        accounts aims attacks awards bases causes changes controls costs covers cuts damages declines
        decreases designs drops ends faces falls features feeds fills finds forces forms funds hands helps
        holds hosts imports increases keeps lands launches leads leaves links marks measures moves names
        needs orders passes plans plays promotes ranges reaches records releases repairs results returns
        rises rules runs shares signs stands starts stays stops stores studies supplies supports tests
        totals trains transfers travels turns uses visits votes works founds
        """.split()  # noqa: SIM905
)
BASE = frozenset(_REGULAR.split())
PAST_SIMPLE = frozenset(forms.split()[0] for forms in _IRREGULAR.values() if len(forms.split()) > 1)  # nothing else
PAST = frozenset(form for verb in _REGULAR.split() for form in _past(verb)) - {"had"}
PRESENT = frozenset(_third(verb) for verb in _REGULAR.split()) - _NOUNS - {"haves"}


PARTICIPLES = frozenset(form for forms in _IRREGULAR.values() for form in forms.split()[1:]) - PAST_SIMPLE
_NO_VERBS = frozenset(
    ["hundred", "indeed", "sacred", "naked", "wicked", "rugged", "united", "ragged", "crooked", "biped"]
)
PREPOSITIONS = frozenset(
    """
    about across after against among around as at back before between by down during for from in into near of off on
    out over since through to under until up with within without
    """.split()  # noqa: SIM905
)


def is_past(word: str) -> bool:
    """Whether it may be a past tense or a past participle."""
    return word in PAST or (
        len(word) > 4 and word.endswith("ed") and not word.endswith("eed") and word not in _NO_VERBS
    )


def is_finite(word: str) -> bool:
    """Whether a word, in lower case, reads as a verb that a clause can rest on."""
    return word in AUXILIARIES or word in PRESENT or (is_past(word) and word not in PARTICIPLES)


def is_verb(word: str) -> bool:
    """The same, with the forms that are often nouns."""
    return is_finite(word) or word in _NOUNS
