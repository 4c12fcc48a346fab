"""Frozen texts of what was read, named by their SHA-256, with their structure beside them."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Literal

from marg_ray.errors import SessionNotFound
from marg_ray.files import write_whole
from marg_ray.records import Injection, Record


class Part(Record):
    """A stretch of a document's text. Parts are in reading order and do not overlap."""

    kind: Literal["heading", "paragraph", "list_item", "table_row", "quote", "code", "caption"]
    start: int
    end: int
    level: int = 0  # of a heading (1 = topmost), or of a nested list item (0 = outermost)
    page: int | None = None  # of a PDF, from 1
    term: str = ""  # the definition-list term (or short list lead) that this part explains


class Document(Record):
    """A parsed document: clean text and where its parts stand in it.

    `text` is what gets frozen: NFC, "\\n" line ends, no NUL, no lone surrogates, no control characters but
    newline and tab; parts are separated by a blank line, table rows by a newline. A table row whose header is
    known reads "Header: value; Header: value", so that each row stands on its own.
    """

    title: str
    text: str
    parts: tuple[Part, ...]
    media_type: str = ""
    language: str = ""
    published: str = ""  # ISO date where the document says
    injections: tuple[Injection, ...] = ()  # instruction-like passages that were cut from `text`
    warnings: tuple[str, ...] = ()

    @cached_property
    def source_id(self) -> str:
        return text_id(self.text)

    def heading_path(self, offset: int) -> str:
        """The headings above `offset`, outermost first, joined by " > "."""
        path: list[tuple[int, str]] = []
        for part in self.parts:
            if part.start > offset:
                break
            if part.kind == "heading":
                path = [p for p in path if p[0] < part.level]
                path.append((part.level, self.text[part.start : part.end]))
        return " > ".join(title for _, title in path)

    def page_at(self, offset: int) -> int | None:
        page = None
        for part in self.parts:
            if part.start > offset:
                break
            page = part.page if part.page is not None else page
        return page


def text_id(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class Snapshots:
    """Content-addressed texts in a folder. The same text is one file; a file is whole or absent."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, document: Document) -> str:
        """Freeze a document; return its id."""
        source_id = document.source_id
        self._write(self._path(source_id, ".txt"), document.text)
        self._write(self._path(source_id, ".json"), document.model_dump_json(exclude={"text"}))
        return source_id

    def text(self, source_id: str) -> str:
        """The exact frozen text.

        Raises:
            SessionNotFound: nothing was frozen under this id.
        """
        return self._read(source_id, ".txt")

    def document(self, source_id: str) -> Document:
        """The frozen text with its structure."""
        data = self._read(source_id, ".json")
        raw = Document.model_validate_json(data[:-1] + ',"text":""}')
        return raw.model_copy(update={"text": self.text(source_id)})

    def _path(self, source_id: str, ending: str) -> Path:
        if len(source_id) != 64 or not set(source_id) <= set("0123456789abcdef"):
            raise SessionNotFound(source_id)
        return self.root / source_id[:2] / f"{source_id}{ending}"

    def _read(self, source_id: str, ending: str) -> str:
        try:
            return self._path(source_id, ending).read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise SessionNotFound(source_id) from None

    @staticmethod
    def _write(path: Path, text: str) -> None:
        if not path.exists():
            write_whole(path, text.encode("utf-8"))
