"""What a tool answers, as pieces of text with their titles and addresses.

There is no agreed form: some tools return a list of records, some JSON in a text, some prose. Records are recognised
by the names of their fields; anything else is taken as the text that it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marg_ray.sources.urls import web_url
from marg_ray.text import one_line

if TYPE_CHECKING:
    from mcp.types import CallToolResult

LONGEST_TEXT = 200_000  # characters of one piece
LONGEST_TITLE = 300
FEWEST = 12  # letters and digits; less says nothing

_LISTS = (
    "results", "result", "hits", "items", "documents", "docs", "passages", "matches", "chunks", "entries", "records",
    "pages", "articles", "papers", "sources", "data", "output",
)  # fmt: skip
_TEXTS = (
    "text", "content", "body", "page_content", "passage", "markdown", "chunk", "answer", "abstract", "extract",
    "snippet", "excerpt", "summary", "description",
)  # fmt: skip
_TITLES = ("title", "name", "headline", "document", "file", "heading")
_LINKS = ("url", "link", "href", "uri", "source", "location", "path", "id")
_DATES = ("published", "publishedDate", "published_at", "date", "updated", "updated_at", "year")
_ISO_DATE = re.compile(r"\d{4}(?:-\d{2}-\d{2})?")
_NOTHING = re.compile(
    r"\b(no|0|zero)\s+(\w+\s+)?(results?|matches|hits|documents?|entries)\b|\bnothing\b.*\bfound\b", re.I
)
_LONGEST_NOTHING = 200
_DEEPEST, _MOST_LINES = 6, 2000  # of JSON that is spelled out


@dataclass(frozen=True)
class Piece:
    """A text of an answer. `place` is a web address, or how the tool names the thing; either may be empty."""

    text: str
    title: str = ""
    place: str = ""
    published: str = ""
    media_type: str = "text/markdown"

    @property
    def says_something(self) -> bool:
        return sum(map(str.isalnum, self.text[:400])) >= FEWEST


@dataclass(frozen=True)
class Pieces:
    found: tuple[Piece, ...] = ()
    dropped: int = 0  # parts without a text: images, links, empty records


def error_of(result: CallToolResult) -> str:
    """What a tool says went wrong, in one line; empty where nothing did."""
    if not result.is_error:
        return ""
    texts = (getattr(block, "text", "") for block in result.content)
    return one_line(" ".join(t for t in texts if isinstance(t, str)))[:300] or "it failed without saying why"


def pieces_of(result: CallToolResult) -> Pieces:
    """The texts of an answer, in its order, each once."""
    records = _records(result.structured_content)
    pieces = [p for record in records for p in _read(record)] if records else list(_blocks(result))
    said = [p for p in pieces if p is not None and p.says_something and not _says_nothing(p)]
    found = tuple({(p.place, p.text): p for p in said}.values())
    empty = len(pieces) - sum(p is not None and p.says_something for p in pieces)
    return Pieces(found, empty)


def _blocks(result: CallToolResult) -> Iterator[Piece | None]:
    for block in result.content:
        if block.type == "text":
            yield from _text(block.text)
        elif block.type == "resource" and isinstance(text := getattr(block.resource, "text", None), str):
            kind = (block.resource.mime_type or "").partition(";")[0].strip().lower()
            yield Piece(_cut(text), place=_place(block.resource.uri), media_type=kind or "text/markdown")
        else:
            yield None


def _text(text: str) -> Iterator[Piece | None]:
    """A text block: records where it is JSON that holds some, else the text."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if records := _records(value):
            yield from map(_piece, records)
            return
        if isinstance(value, Mapping | list):
            yield Piece("\n\n".join(_spelled(value)), media_type="text/plain")
            return
    yield Piece(_cut(text))


def _records(value: Any, depth: int = 0) -> list[Any]:
    """The records in a structured answer: mappings with a text, or texts."""
    if isinstance(value, str):
        return [value] if depth else []
    if isinstance(value, Mapping):
        own = [value] if _text_of(value) else []
        for name in _LISTS:
            inner = _records(value.get(name), depth + 1) if depth < _DEEPEST else []
            if inner and not (own and all(isinstance(item, str) for item in inner)):
                return inner
        return own
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [item for item in value if isinstance(item, str) or (isinstance(item, Mapping) and _text_of(item))]
    return []


def _read(record: Any) -> Iterator[Piece | None]:
    if isinstance(record, str):
        yield from _text(record)
    else:
        yield _piece(record)


def _piece(record: Any) -> Piece | None:
    if isinstance(record, str):
        return Piece(_cut(record))
    text = _text_of(record)
    if not text:
        return None
    return Piece(
        text=_cut(text),
        title=_first(record, _TITLES)[:LONGEST_TITLE],
        place=next((p for name in _LINKS if (p := _place(record.get(name)))), ""),
        published=_date(record),
    )


def _text_of(record: Mapping[str, Any]) -> str:
    """The longest of a record's texts; records that hold both a snippet and the whole are known for it."""
    return max((_plain(record.get(name)) for name in _TEXTS), key=len, default="")


def _plain(value: Any) -> str:
    """A text, or the texts of parts such as `[{"type": "text", "text": ...}]`."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _plain(value.get("text"))
    if isinstance(value, list):
        return "\n\n".join(t for item in value if (t := _plain(item)))
    return ""


def _first(record: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((line for n in names if isinstance(v := record.get(n), str) and (line := one_line(v))), "")


def _place(value: object) -> str:
    if not isinstance(value, str) or not (line := one_line(value)):
        return ""
    return web_url(line) or line[:LONGEST_TITLE]


def _date(record: Mapping[str, Any]) -> str:
    for name in _DATES:
        value = record.get(name)
        if isinstance(value, str | int) and (found := _ISO_DATE.match(str(value))):
            return found[0]
    return ""


def _cut(text: str) -> str:
    return text[:LONGEST_TEXT]


def _says_nothing(piece: Piece) -> bool:
    """Whether a text only says that nothing was found."""
    return not piece.title and len(piece.text) <= _LONGEST_NOTHING and bool(_NOTHING.search(piece.text))


def _spelled(value: Any, name: str = "", depth: int = 0) -> list[str]:
    """JSON in lines that can be quoted: `city.name: Paris`."""
    if isinstance(value, Mapping) and depth < _DEEPEST:
        inner = [line for k, v in value.items() for line in _spelled(v, f"{name}.{k}" if name else str(k), depth + 1)]
        return inner[:_MOST_LINES]
    if isinstance(value, list) and depth < _DEEPEST:
        return [line for v in value for line in _spelled(v, name, depth + 1)][:_MOST_LINES]
    text = one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return [f"{name}: {text}" if name else text][:_MOST_LINES] if text and value is not None else []
