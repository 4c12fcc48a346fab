"""Cuts text into sentences, in any script, in one pass."""

from __future__ import annotations

import re
from itertools import pairwise

from marg_ray.grounding.abbreviations import (
    BEFORE_NUMBER,
    GERMAN_BEFORE_ORDINAL,
    MAY_BE_LAST,
    MONTHS,
    NEVER_LAST,
    STARTERS,
)

_WIDE = "。！？｡．፧።။។"  # close a sentence without a space after them
_STOP = re.compile(
    rf"(?P<stop>[.!?…‽؟۔।॥։]+|[{_WIDE}]+[{_WIDE}…!?]*)"
    r"(?P<close>(?:[\"'”’»›)\]}」』】）〉》*_`]|\[\d{1,3}\])*)"
)
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|[\u2028\u2029]")
_LINE_ITEM = re.compile(r"\n(?=[^\S\n]*(?:[-*+•‣◦▪–]|\d{1,3}[.)]|#{1,6})[^\S\n]+\S)")
_ROW = re.compile(r"^[^\n:;]{1,80}: [^\n;]{0,400}; [^\n:;]{1,80}: ", re.MULTILINE)
_BEFORE = re.compile(r"[^\s(\[{\"'“”„«‘’—–/]+\Z")
_NEXT_WORD = re.compile(r"[\"'“„«‘(\[{*_¿¡]*([^\W_]+)")
_MAX_TOKEN = 40  # how far back an abbreviation is looked for


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences of `text` as (start, end) offsets in order, without the white space around them.

    Blank lines, list items and table rows ("Header: value; Header: value") end a sentence as full stops do. Every
    character that is not white space lies in exactly one span.
    """
    spans: list[tuple[int, int]] = []
    for start, end in _segments(text):
        cut = start
        for match in _STOP.finditer(text, start, end):
            if match.end() < end and _ends(text, match, cut, end):
                _add(spans, text, cut, match.end())
                cut = match.end()
        _add(spans, text, cut, end)
    return spans


def split_sentences(text: str) -> list[str]:
    """The sentences of `text`, each as it stands there."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _add(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    end -= len(piece) - len(piece.rstrip())
    if start < end:
        spans.append((start, end))


def _segments(text: str) -> list[tuple[int, int]]:
    cuts = {0, len(text)}
    cuts.update(m.start() for m in _PARAGRAPH.finditer(text))
    cuts.update(m.start() for m in _LINE_ITEM.finditer(text))
    if _ROW.search(text):
        cuts.update(_row_cuts(text))
    ordered = sorted(cuts)
    return list(pairwise(ordered))


def _row_cuts(text: str) -> list[int]:
    cuts: list[int] = []
    at, was_row = 0, False
    for line in text.splitlines(keepends=True):
        is_row = bool(_ROW.match(line))
        if at and (is_row or was_row):
            cuts.append(at)
        at, was_row = at + len(line), is_row
    return cuts


def _ends(text: str, match: re.Match[str], cut: int, end: int) -> bool:
    """Whether the stop at `match` closes a sentence; something follows it."""
    stop, close, after = match["stop"], match["close"], text[match.end()]
    if stop[0] in _WIDE:
        return not (close and after in "とっ、，,") and _wide_stop_is_real(text, match)
    if not after.isspace():
        return stop[0] in "।॥" or (_is_wide(after) and stop[-1] in "!?" and not close)
    following = _NEXT_WORD.search(text, match.end(), min(end, match.end() + _MAX_TOKEN))
    word = following.group(1) if following else ""
    lower = word[:1].islower() and word.islower()
    if stop[0] in "؟۔।॥։":
        return True
    if stop != ".":
        return not lower
    return _full_stop_ends(text, match, cut, word, lower)


def _wide_stop_is_real(text: str, match: re.Match[str]) -> bool:
    around = text[max(0, match.start() - 1) : match.end() + 1]
    return match["stop"] != "．" or not (around[0].isdigit() and around[-1].isdigit())


def _full_stop_ends(text: str, match: re.Match[str], cut: int, word: str, lower: bool) -> bool:
    before = _BEFORE.search(text[max(cut, match.start() - _MAX_TOKEN) : match.start()])
    token = before.group().lstrip("*_`") if before else ""
    low = token.lower()
    at = match.start() - len(token)
    if token.isdigit():
        return _number_ends(text, token, at, cut, word, lower)
    if low in BEFORE_NUMBER and word[:1].isdigit() and not match["close"]:
        return False
    if low in NEVER_LAST and not match["close"]:
        return False
    if low in MAY_BE_LAST or _dotted(token):
        return not lower and (word.lower() in STARTERS or not word)
    if len(token) == 1 and token.isalpha() and not _is_wide(token):
        return _initial_ends(text, token, at, word, lower)
    if lower:
        return (len(token) >= 5 and token.isalpha()) or (bool(match["close"]) and not token.isalpha())
    return True


def _number_ends(text: str, token: str, at: int, cut: int, word: str, lower: bool) -> bool:
    if not text[cut:at].strip("( \t\n*_"):
        return False  # "1. Introduction": the number of an item
    if lower:
        return len(token) > 2
    if len(token) > 2:
        return True
    previous = text[max(cut, at - 12) : at].split()
    return not (word.lower() in MONTHS or (previous and previous[-1].lower() in GERMAN_BEFORE_ORDINAL))


def _initial_ends(text: str, token: str, at: int, word: str, lower: bool) -> bool:
    """ "J. K. Rowling" and "z. B." go on; "Vitamin C. The" ends."""
    if lower or len(word) == 1:
        return False
    if token.isupper() and word.lower() in STARTERS:
        previous = text[max(0, at - 3) : at].rstrip()
        return not previous.endswith(".")
    return not token.isupper() and word.lower() in STARTERS


def _dotted(token: str) -> bool:
    """ "U.S", "e.V", "Ph.D": letters with stops between them."""
    parts = token.split(".")
    return len(parts) > 1 and all(0 < len(p) <= 2 and p.isalpha() for p in parts)


def _is_wide(char: str) -> bool:
    return "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" or "\uf900" <= char <= "\ufaff"
