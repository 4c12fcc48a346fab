"""The language of a text, as an ISO 639-1 code."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
)
SHARED_SCRIPTS = (("ar", re.compile(r"[\u0600-\u06ff]")), ("ru", re.compile(r"[\u0400-\u04ff]")))  # of many languages
SHARE = 0.2  # of the letters in one script that settle it
SURE = 0.90  # of the classifier; short questions full of names mislead it


def detect(text: str, default: str = "en") -> str:
    """The language; `default` where the text is too short or mixed to say. CPU work of some milliseconds."""
    letters = re.findall(r"[^\W\d_]", text)
    if not letters:
        return default
    for code, pattern in SCRIPTS:
        if len(pattern.findall(text)) >= SHARE * len(letters):
            return code
    for code, pattern in SHARED_SCRIPTS:
        if len(pattern.findall(text)) >= SHARE * len(letters):
            default = code
    code, probability = _classifier().classify(text)
    return str(code) if probability >= SURE else default


@cache
def _classifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
