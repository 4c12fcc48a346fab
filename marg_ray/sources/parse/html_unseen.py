"""What a web page carries and does not show: comments, hidden elements, descriptions of pictures, data about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_HIDDEN = re.compile(
    r"(?i)display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])"
    r"|text-indent\s*:\s*-\d{3}|(?:left|top)\s*:\s*-\d{3}"
)
_ATTRIBUTES = ("alt", "title", "aria-label", "aria-description", "data-content", "placeholder", "summary", "content")
_TAGS = frozenset({"noscript", "template", "textarea", "datalist"})
SHORTEST = 15  # characters of an order
LONGEST = 20_000  # characters of one text that are looked at


def unseen_texts(tree: Any, markup: str) -> Iterator[str]:
    """The texts, each as it stands. Scripts and styles are code and not among them."""
    if "<!--" in markup:
        for match in _COMMENT.finditer(markup):
            if len(match[1]) >= SHORTEST:
                yield match[1][:LONGEST]
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        attributes = element.attrib
        if element.tag in _TAGS or (attributes and _is_hidden(attributes)):
            text = element.text_content()
            if len(text) >= SHORTEST:
                yield text[:LONGEST]
        if attributes:
            for name in _ATTRIBUTES:
                if len(value := attributes.get(name, "")) >= SHORTEST:
                    yield value[:LONGEST]


def _is_hidden(attributes: Any) -> bool:
    if "hidden" in attributes:
        return True
    style = attributes.get("style")
    return bool(style) and _HIDDEN.search(style) is not None
