"""Small things every format does to text: join sentences, tell right-to-left scripts, see what is blank."""

from __future__ import annotations

import re
import unicodedata

_WIDE_SCRIPT = re.compile(r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff00-\uff0f\uff1a-\uff20]")
_RTL_LANGUAGES = frozenset({"ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"})


def gap_between(before: str, after: str) -> str:
    """What stands between two sentences: a blank, or nothing in scripts that write none."""
    if not before or not after:
        return ""
    return "" if _WIDE_SCRIPT.match(before[-1]) and _WIDE_SCRIPT.match(after[0]) else " "


def ends_wide(text: str) -> bool:
    """The last letter is of a script that puts no blank before what follows."""
    return bool(_WIDE_SCRIPT.match(text[-1:]))


def direction(language: str) -> str:
    """`rtl` or `ltr` for an ISO 639 code."""
    return "rtl" if language.split("-")[0].lower() in _RTL_LANGUAGES else "ltr"


def is_blank(text: str) -> bool:
    """Nothing in it that a reader would see."""
    return all(unicodedata.category(c) in {"Zs", "Zl", "Zp", "Cc", "Cf"} for c in text)


def text_direction(text: str, otherwise: str = "ltr") -> str:
    """`rtl` or `ltr` by the first letter that has a direction, as browsers do for `dir=auto`."""
    for letter in text:
        kind = unicodedata.bidirectional(letter)
        if kind == "L":
            return "ltr"
        if kind in ("R", "AL"):
            return "rtl"
    return otherwise
