"""Frozen texts of what was read, named by their SHA-256, with their structure beside them."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from marg_ray.errors import SessionNotFound, Unreadable
from marg_ray.files import folder
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


class _Recent:
    """The documents read last, for all threads of a process. What is sent to another process arrives empty."""

    def __init__(self, documents: int, chars: int) -> None:
        self._most, self._most_chars, self._chars = documents, chars, 0
        self._kept: OrderedDict[str, Document] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[_Recent], tuple[int, int]]:
        return _Recent, (self._most, self._most_chars)

    def get(self, source_id: str) -> Document | None:
        with self._lock:
            if source_id in self._kept:
                self._kept.move_to_end(source_id)
            return self._kept.get(source_id)

    def put(self, source_id: str, document: Document) -> None:
        with self._lock:
            if source_id not in self._kept:
                self._kept[source_id] = document
                self._chars += len(document.text)
            while self._kept and (len(self._kept) > self._most or self._chars > self._most_chars):
                self._chars -= len(self._kept.popitem(last=False)[1].text)


class Snapshots:
    """Content-addressed texts in a local folder, or at an fsspec URL. The same text is one file, whole or absent.

    The `recent` documents that were read last, `recent_chars` of text at most, are not read and parsed again.
    """

    def __init__(self, root: Path | str, *, recent: int = 64, recent_chars: int = 8_000_000) -> None:
        self._files = folder(root)
        self._recent = _Recent(recent, recent_chars)

    def put(self, document: Document) -> str:
        """Freeze a document; return its id."""
        source_id = document.source_id
        text, structure = _name(source_id, ".txt"), _name(source_id, ".json")
        data = document.text.encode("utf-8")
        if self._files.size(text) != len(data):  # absent, or cut off by a full disk
            self._files.put(text, data)
        if not self._files.size(structure):  # the same text read again keeps its first structure
            self._files.put(structure, document.model_dump_json(exclude={"text"}).encode("utf-8"))
        return source_id

    def text(self, source_id: str) -> str:
        """The exact frozen text.

        Raises:
            SessionNotFound: nothing was frozen under this id.
            Unreadable: what is stored there is not what was frozen: the file is damaged.
        """
        data = self._read(source_id, ".txt")
        if hashlib.sha256(data).hexdigest() != source_id:
            raise Unreadable(f"{source_id}.txt", "damaged, its content has another SHA-256 than its name says")
        return data.decode("utf-8")

    def document(self, source_id: str) -> Document:
        """The frozen text with its structure. Raises as `text` does."""
        document = self._recent.get(source_id)
        if document is None:
            document = self._parsed(source_id)
            self._recent.put(source_id, document)
        return document

    def _parsed(self, source_id: str) -> Document:
        data = self._read(source_id, ".json")
        try:
            raw = Document.model_validate_json(data[:-1] + b',"text":""}')
        except ValidationError:
            raise Unreadable(f"{source_id}.json", "damaged, it does not say how the text is structured") from None
        return raw.model_copy(update={"text": self.text(source_id)})

    def _read(self, source_id: str, ending: str) -> bytes:
        try:
            return self._files.get(_name(source_id, ending))
        except FileNotFoundError:
            raise SessionNotFound(source_id) from None


def _name(source_id: str, ending: str) -> str:
    if len(source_id) != 64 or not set(source_id) <= set("0123456789abcdef"):
        raise SessionNotFound(source_id)
    return f"{source_id[:2]}/{source_id}{ending}"
