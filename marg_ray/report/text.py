"""Small things every format does to text: clean it, join sentences, tell right-to-left scripts."""

from __future__ import annotations

import re
import unicodedata

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_SPACE = re.compile(r"\s+")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WIDE_SCRIPT = re.compile(r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff0f\uff1a-\uff20]")
_RTL_LANGUAGES = frozenset({"ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"})


def clean(text: str) -> str:
    """Text that every format can hold: no control or direction-overriding characters, no lone surrogates.

    Line breaks (as "\\n") and tabs stay.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def one_line(text: str) -> str:
    """The cleaned text with every run of white space as one blank."""
    return _SPACE.sub(" ", clean(text)).strip()


def gap_between(before: str, after: str) -> str:
    """What stands between two sentences: a blank, or nothing in scripts that write none."""
    if not before or not after:
        return ""
    return "" if _WIDE_SCRIPT.match(before[-1]) and _WIDE_SCRIPT.match(after[0]) else " "


def direction(language: str) -> str:
    """`rtl` or `ltr` for an ISO 639 code."""
    return "rtl" if language.split("-")[0].lower() in _RTL_LANGUAGES else "ltr"


def is_blank(text: str) -> bool:
    """Nothing in it that a reader would see."""
    return all(unicodedata.category(c) in {"Zs", "Zl", "Zp", "Cc", "Cf"} for c in text)
