"""Words and their stems: what texts are compared by."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Any

# Indic scripts write vowels as combining marks, which `\w` leaves out. The second part has no spaces between words.
_WORD = re.compile(
    r"[\u2e80-\u2eff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff"
    r"\u1000-\u109f\u1780-\u17ff]+"
    r"|\d+(?:[.,٫٬]\d+)*"
    r"|(?:[^\W\d_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0970-\u0dff])"
    r"(?:[^\W_]|[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff])*"
    r"(?:['’][^\W\d_]+)?"
)
_LATIN_WORD = re.compile(r"\d+(?:[.,]\d+)*|[a-z][a-z0-9]*(?:'[a-z]+)?")  # what `_WORD` comes to in lower-case ASCII
_DASHES = re.compile("[\u2010-\u2018\u201a-\u2027]")  # and quotation marks, bullets: they part words, as spaces do
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")

_STOP_WORDS = """
    a about above after again against all also although am among an and any are as at be because been before being
    below between both but by can could did do does doing down during each either else etc ever for from further had
    has have having he hence her here hers herself him himself his how however i if in into is it its itself just let
    may me might more most much must my myself nor of off on once one only onto or other others our ours out over own
    per rather same shall she should since so some such than that the their theirs them themselves then there
    therefore these they this those though through thus to too toward towards under until up upon us very via was we
    were what when where whether which while who whom whose why will with within would yet you your yours
    s t d ll re ve m
    """
STOP_WORDS = frozenset(_STOP_WORDS.split())
REMEMBERED = 2000  # characters; the words of a longer text are worked out anew
_PER_THREAD = threading.local()


def words(text: str) -> list[str]:
    """Lower-case words in order, accents folded; numbers without thousands separators; unspaced scripts as bigrams."""
    return list(_words(text) if len(text) <= REMEMBERED else _words.__wrapped__(text))


@lru_cache(maxsize=2048)  # a snippet is compared by its words several times, in several places
def _words(text: str) -> tuple[str, ...]:
    if not text.isascii():
        text = _DASHES.sub(" ", unicodedata.normalize("NFKC", text)).replace("’", "'")
    if text.isascii():
        return tuple([word if word.isalpha() else _read(word) for word in _LATIN_WORD.findall(text.lower())])
    found: list[str] = []
    for match in _WORD.finditer(text):
        word = match.group()
        if _UNSPACED.match(word):
            found.extend(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        else:
            found.append(_read(word))
    return tuple(found)


def _read(word: str) -> str:
    return _plain_number(word) if word[0].isdigit() else _fold(word)


def content_terms(text: str) -> list[str]:
    """The stems of the words that carry meaning, in order, with repeats: stop words are left out."""
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


@lru_cache(maxsize=2048)  # a result's title and snippet are looked at for every query that finds it
def stems(text: str) -> frozenset[str]:
    """The stems of all words of a short text."""
    return frozenset([stem(word) for word in _words(text)])


@lru_cache(maxsize=2048)
def content_stems(text: str) -> frozenset[str]:
    """The stems of the words of a short text that carry meaning."""
    return frozenset([stem(word) for word in _words(text) if word not in STOP_WORDS])


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Porter's stem of a Latin-script word; any other word as it is."""
    return str(_stemmer().stemWord(word)) if word.isascii() and word.isalpha() else word


def _stemmer() -> Any:
    """This thread's stemmer: it keeps the word it works on, so threads must not share one."""
    if not hasattr(_PER_THREAD, "stemmer"):
        import snowballstemmer

        _PER_THREAD.stemmer = snowballstemmer.stemmer("porter")
    return _PER_THREAD.stemmer


@lru_cache(maxsize=100_000)
def _fold(word: str) -> str:
    low = word.casefold().replace("’", "'")
    low = low.removesuffix("'s")
    if low.isascii():
        return low
    parts = unicodedata.normalize("NFD", low)
    if parts[0].isascii():
        parts = "".join(c for c in parts if not unicodedata.combining(c))
    return unicodedata.normalize("NFC", parts)


def _plain_number(word: str) -> str:
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", word):
        return word.replace(",", "")
    if re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}", word):
        return word.replace(".", "")
    return word
