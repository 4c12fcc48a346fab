"""Takes links and pictures out of Markdown that a model wrote: a report's addresses come from its sources alone."""

from __future__ import annotations

import re

_CODE = re.compile(r"(^|\n)[ \t]*(```|~~~).*?(?:\n[ \t]*\2|\Z)|`[^`\n]+`", re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]\n]*\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+[^()]*)?\)|\[[^\]\n]*\])")
_LINK = re.compile(
    r"\[(?P<label>[^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*)\]\(\s*<?(?:[a-z][\w+.-]*:|//|www\.|[^()\s]*[/.])[^()\s]*(?:\([^()\s]*\)[^()\s]*)*"
    r"(?:\s+[^()]*)?\)",
    re.IGNORECASE,
)
_AUTO = re.compile(r"<(?:https?|ftp|mailto|data|javascript):[^<>\s]*>", re.IGNORECASE)
_DEFINITION = re.compile(
    r"^[ ]{0,3}\[[^\]\n]+\]:[ \t]*<?(?:[a-z][\w+.-]*:|//|www\.)\S.*$", re.IGNORECASE | re.MULTILINE
)
_MARK = re.compile(r"\[?\^?[\d,;\s-]+\]?")


def without_links(markdown: str) -> str:
    """The text with each link replaced by its words, and without pictures; a citation mark keeps its brackets.

    Code stays as it is: nothing in it is a link.
    """
    if "](" not in markdown and "][" not in markdown and "]:" not in markdown and "://" not in markdown:
        return markdown
    pieces, at = [], 0
    for match in _CODE.finditer(markdown):
        pieces += [_plain(markdown[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*pieces, _plain(markdown[at:])])


def _plain(text: str) -> str:
    text = _PICTURE.sub("", text)
    text = _LINK.sub(_words, text)
    return _AUTO.sub("", _DEFINITION.sub("", text))


def _words(match: re.Match[str]) -> str:
    label = match["label"]
    return f"[{label}]" if _MARK.fullmatch(label) and label.strip() else label
