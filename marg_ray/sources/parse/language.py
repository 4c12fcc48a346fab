"""The language of a text that does not say it."""

from __future__ import annotations

import re

_SAMPLE = 2000  # letters
_LEAST = 60  # letters; shorter texts say too little
_LETTERS = re.compile(r"[^\W\d_]")


def language_of(text: str) -> str:
    """ISO 639-1 code, "" where the text is too short to tell."""
    middle = max(0, len(text) // 2 - _SAMPLE // 2)
    sample = text[middle : middle + _SAMPLE]
    letters = _LETTERS.findall(sample)
    wide = sum(c > "\u2e7f" for c in letters)
    if len(letters) + 3 * wide < _LEAST:
        return ""
    import py3langid

    return str(py3langid.classify(sample)[0])
