"""Words of a text: stems for matching, stop words, names, and whether English rules apply."""

from __future__ import annotations

import re
from collections.abc import Iterable

from marg_ray.grounding.terms import stem, words

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SPACE = re.compile(r"\s+")
_NAME = re.compile(
    r"\b(?:\d{4} )?[A-Z][\w'’.\-]*\w(?:(?: (?:of|the|and|de|la|von|van|for))* (?:[A-Z][\w'’.\-]*\w|\d+))*"
)

_FUNCTION = """a an the of in on at to for and or nor but is are was were be been being am it its this that
    these those with
    without by from as into onto about over under than then so if while during through between among against
    what why how when where who whom whose which do does did doing done can could should would will shall may
    might must i me my you your yours he him his she her hers they them their theirs we us our ours one ones not
    no has have had having there here also only just very more most much many some any all each every both other
    others such same own too s t"""
FUNCTION_WORDS = frozenset(_FUNCTION.split())

# Words that a question uses to ask, and an answer need not repeat.
_ASKING = """happen happened explain describe tell discuss list give find information overview summary
    summarize summarise
    report question answer know want need please compare comparison difference differences different between kind
    kinds type types way ways thing things cause caused causes reason reasons effect effects people make made get
    use used using work works wrong go goes going mean means meaning become write research provide detail
    details important main key
    involved exactly currently generally usually like"""
ASKING_WORDS = frozenset(_ASKING.split())

_COMMON = "the of and to in is was for that with as by on are from at it be an this were which or has had not have"
_ENGLISH = frozenset(_COMMON.split())
_OTHERS = """der die das und ist wie wird warum welche ein eine für mit von zu im den dem nicht auf le la les
    des est une et
    pourquoi comment quel quelle quels du au aux pour dans sur el los las que es por qué como cómo cuál una
    un y de con para
    il lo gli che perché come di del della sono è o os não por quais como em do da het een van waarom hoe wat och att är
    hur vad jest jak dlaczego czym co"""
_FOREIGN = frozenset(_OTHERS.split()) - FUNCTION_WORDS - _ENGLISH


def squeeze(text: str) -> str:
    """White space as single spaces."""
    return _SPACE.sub(" ", text).strip()


_NUMBERED = re.compile(
    r"^(?:(?:chapter|section|part|appendix)\s+)?(?:\d+(?:\.\d+)*|[A-Z]|[IVX]+)[.):]\s+|^\d+(?:\.\d+)+\s+", re.I
)


def unnumbered(heading: str) -> str:
    """A heading without its number: `3.1.2. Maintain packages`, `Chapter 2. Package management`."""
    text = squeeze(heading)
    return _NUMBERED.sub("", text).strip(" .:") or text


_AND = re.compile(r"\s+(?:and|or|after|before|during|since|at|in|from|for|as|with)\s+|,\s")


def short_title(title: str, limit: int = 6) -> str:
    """What a document is called in passing: its title up to the colon, without brackets; "" where that is long."""
    text = unnumbered(re.sub(r"\s*\([^)]*\)\s*$", "", squeeze(title)))
    text = re.split(r":\s|\s[–—|-]\s", text, maxsplit=1)[0].strip(" .:")
    if word_count(text) > limit:
        text = next((text[: m.start()] for m in _AND.finditer(text) if word_count(text[: m.start()]) > 1), text)
    if word_count(text) > limit:
        return ""
    return text.capitalize() if text.isupper() and word_count(text) > 2 else text


def word_count(text: str) -> int:
    """Words; where a script has no spaces, two characters count as one."""
    cjk = sum(len(run) for run in _CJK.findall(text))
    return len(_CJK.sub(" ", text).split()) + (cjk + 1) // 2


def terms(text: str) -> list[str]:
    """Stems of the content words, in order, with repetitions."""
    return [stem(w) for w in words(text) if w not in FUNCTION_WORDS]


def term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def asked_terms(question: str) -> frozenset[str]:
    """Stems that an answer should carry: content words less those that only ask."""
    return frozenset(stem(w) for w in words(question) if w not in FUNCTION_WORDS and w not in ASKING_WORDS)


def names(text: str) -> list[str]:
    """Capitalised names in order of appearance; the first word of a sentence counts only inside a longer name."""
    found: list[str] = []
    tokens = [t for t in text.split() if t[:1].isalpha()]
    if len(tokens) > 4 and sum(t[0].isupper() for t in tokens) > 0.65 * len(tokens):
        return []  # In Title Case Every Word Looks Like a Name
    for match in _NAME.finditer(text):
        name = match.group()
        at_start = match.start() == 0 or text[: match.start()].rstrip()[-1:] in {".", "?", "!", ":", ""}
        if at_start and name.split()[0].lower() in FUNCTION_WORDS | ASKING_WORDS:
            name = " ".join(name.split()[1:])
        if name and name not in found and not (at_start and " " not in name and name == match.group()):
            found.append(name)
    return found


def is_english(text: str) -> bool:
    """Whether the rules for English apply: enough of its commonest words, or, in a few words, no sign against it."""
    tokens = [w for w in words(text[:4000]) if w]
    if not tokens:
        return False
    if any(ord(c) > 0x24F and c.isalpha() for c in text[:400]):
        foreign = sum(1 for c in text[:400] if ord(c) > 0x24F and c.isalpha())
        if foreign > 0.2 * sum(1 for c in text[:400] if c.isalpha()):
            return False
    known = sum(1 for w in tokens if w in _ENGLISH or w in FUNCTION_WORDS)
    if len(tokens) <= 12:
        ascii_only = all(ord(c) < 0x80 for c in text if c.isalpha())
        return known >= max(1, sum(1 for w in tokens if w in _FOREIGN)) or (ascii_only and not _FOREIGN & set(tokens))
    return known >= 0.14 * len(tokens)


def contained(smaller: Iterable[str], larger: Iterable[str]) -> float:
    """The share of `smaller`'s words that `larger` has."""
    a, b = set(smaller), set(larger)
    return len(a & b) / len(a) if a else 0.0


_FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def figures(text: str) -> frozenset[str]:
    return frozenset(f.replace(",", "") for f in _FIGURE.findall(text))


def same_statement(a: str, b: str) -> bool:
    """Whether two sentences say the same: over three quarters of the shorter one's words, and the same figures.

    Words, not embeddings: two definitions that differ in one word are nearly equal vectors.
    """
    one, two = sorted((term_set(a), term_set(b)), key=len)
    if len(one) < 4:
        return squeeze(a).casefold() == squeeze(b).casefold()
    if contained(one, two) <= 0.75:
        return False
    mine, other = figures(a), figures(b)
    return mine == other or mine < other or other < mine
