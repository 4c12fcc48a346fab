"""Whose words a sentence gives: what it quotes, what it says in the first person, what it denies and nobody did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marg_ray.grounding.alignment import Passage, Unit
from marg_ray.grounding.terms import words

_QUOTED = re.compile(r"[\"“„«]([^\"”“»„]{8,600})[\"”»]|(?<![\w'’])[`‘]([^`‘’]{8,300}(?:’\w[^`‘’]{0,200})*)’(?!\w)")
_LEFT_OUT = re.compile(r"\.{2,}|…|\[[^\]]*\]|\([^)]*\)")
_SHOWN = 60  # letters
_WORDS_QUOTED = 4  # fewer may be a name, or a word that is only spoken of


def misquoted(text: str, passages: Sequence[Passage]) -> str:
    """What is wrong with words between quotation marks that no passage has so, or "".

    Titles are not meant: most of their words have capitals. What is left out ("...", "[sic]") may be.
    """
    said = ""
    for match in _QUOTED.finditer(text):
        quote = match[1] or match[2]
        shown = re.findall(r"[^\W\d_]{4,}", quote)
        if sum(w[0].islower() for w in shown) * 2 <= len(shown) or len(words(quote)) < _WORDS_QUOTED:
            continue
        said = said or " ".join(["", *(w for p in passages for w in (*words(p.text), "|")), ""])
        if any(part and f" {' '.join(part)} " not in said for part in map(words, _LEFT_OUT.split(quote))):
            return f"the cited passages do not have the quoted words “{_shortened(quote)}”"
    return ""


def _shortened(quote: str) -> str:
    return quote if len(quote) <= _SHOWN else f"{quote[:_SHOWN].rsplit(' ', 1)[0]} ..."


_BEFORE_ONE = ("type", "phase", "class", "grade", "stage", "level", "group", "factor", "part", "war")  # "type I"
_ORDERED = "".join(f"(?<!(?i:{word}) )" for word in _BEFORE_ONE)
_OF_ITSELF = re.compile(
    rf"{_ORDERED}(?<![–-])"
    r"\b(?:[Ii](?=['’](?:m|ve|d|ll)\b| (?!and\b|or\b|to\b)[a-z]{2})|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself)\b"
)
_SAID = re.compile(r"[\"“„«][^\"”“»]*[\"”»]|(?<!\w)['‘`][^'’]{2,300}['’]+(?!\w)")
_SPEAKERS = frozenset("i me my mine myself im ive we our us".split())  # noqa: SIM905


def own_voice(text: str, passages: Sequence[Passage]) -> str:
    """What is wrong with the first person outside quotation marks, where nobody uses it in the passages, or ""."""
    found = _OF_ITSELF.search(_SAID.sub(" ", text))
    if found is None or any(_SPEAKERS & p.words for p in passages):
        return ""
    return f"“{found.group()}” is in the first person, the cited passages are not"


_DENIES = frozenset(
    "not no never nor neither none cannot nothing unrelated ineffective without nobody nowhere".split()  # noqa: SIM905
)
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
# Words that deny without a "not": "rejected" is "did not accept".
_AGAINST = re.compile(
    r"\b(?:reject|refus|den(?:y|ied|ies)|fail|lack|declin|stop|prevent|prohibit|bann?ed|oppos|exclud|avoid|absen|miss|"
    r"los[est]|abandon|cancel|ceas|end(?:ed|s)\b|vacan|empty|zero|instead|rather|only|except|few|little|hardly|rare|seldom|"
    r"free of|impossib|insignifican|independent|inadequ|insuffic|inab|fals|wrong|myth|unlike|un[a-z]{5}|dis[a-z]{5}|"
    r"non-?[a-z]{4})",
    re.IGNORECASE,
)


def lone_denial(sentence: Unit, passages: Sequence[Passage]) -> str:
    """What is wrong with a denial where no passage denies anything at all, or ""."""
    own = next((w for w in sentence.words if w in _DENIES), "") or ("not" if _NOT.search(sentence.text) else "")
    if not own or any(_DENIES & p.words or _NOT.search(p.text) or _AGAINST.search(p.text) for p in passages):
        return ""
    return f"the sentence says “{own}”, the cited passages deny nothing"
