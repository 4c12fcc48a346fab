"""A page's body while it comes in: what kinds are wanted, and how much of it, counted after decoding."""

from __future__ import annotations

import re
import zlib

_STEP = 256 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_TEXT_TYPES = re.compile(r"text/[\w.+-]+|application/([\w.-]+\+)?(xml|json|xhtml\+xml|ld\+json|x-ndjson|rtf|yaml|toml)")
_NO_PROSE = frozenset({"text/css", "text/javascript", "text/ecmascript", "text/event-stream", "text/vtt", "text/vcard"})
_DOCUMENT_TYPES = frozenset(
    {
        "application/pdf",
        "application/x-pdf",
        "application/msword",
        "application/vnd.ms-excel",
        "application/epub+zip",
        "application/vnd.oasis.opendocument.text",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    }
)
_VAGUE_TYPES = frozenset(
    {
        "",
        "application/octet-stream",
        "binary/octet-stream",
        "application/download",
        "application/x-download",
        "application/force-download",
    }
)
_DOCUMENT_ENDING = re.compile(r"\.(pdf|docx?|pptx?|xlsx?|epub|odt|csv|tsv|md|txt|html?|xhtml|xml|json)$", re.IGNORECASE)

ACCEPT = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/*;q=0.9,application/xml;q=0.8,*/*;q=0.5"
ACCEPT_ENCODING = "gzip, deflate"  # what can be decoded with a bound on the output


class UnreadableBody(Exception):
    """The body cannot be decoded; args[0] says why."""


def is_text(media_type: str) -> bool:
    """Whether a part of such a body is worth having."""
    return _TEXT_TYPES.fullmatch(media_type) is not None and media_type not in _NO_PROSE


def is_wanted(media_type: str, path: str) -> bool:
    """Whether a body of this type may hold a document. A vague type counts by the ending of the address's path."""
    if media_type in _VAGUE_TYPES:
        return not media_type or _DOCUMENT_ENDING.search(path) is not None
    return is_text(media_type) or media_type in _DOCUMENT_TYPES


class LimitedBody:
    """Collects and decodes at most `limit` bytes.

    Raises:
        UnreadableBody: an encoding that was not asked for (its output could not be bounded).
    """

    def __init__(self, encoding: str, limit: int) -> None:
        names = [n.strip().lower().removeprefix("x-") for n in encoding.split(",")]
        kinds = [n for n in names if n not in ("", "identity")]
        if len(kinds) > 1 or (kinds and kinds[0] not in ("gzip", "deflate")):
            raise UnreadableBody(f"unsupported content encoding {encoding[:40]!r}")
        self._kind = kinds[0] if kinds else ""
        self._limit = limit
        self._out = bytearray()
        self._head = b""  # kept until the first output has shown that they are what they are said to be
        self._inflate: zlib._Decompress | None = None
        self._started = not self._kind
        self.cut = False  # there was more than `limit`, or the compressed stream was damaged

    @property
    def body(self) -> bytes:
        return bytes(self._out)

    def feed(self, data: bytes) -> bool:
        """Take a piece; False when nothing more is needed."""
        if not self._started:
            self._head += data
            if len(self._head) < 2:
                return True
            data = self._head
            self._start(data)
        elif self._kind == "deflate" and not self._out and len(self._head) < 256:
            self._head += data
        return self._plain(data) if self._inflate is None else self._inflated(data)

    def close(self) -> None:
        """The stream has ended."""
        if not self._started:
            self._plain(self._head)
        elif self._inflate is not None and not self._inflate.eof:
            self.cut = True

    def _start(self, head: bytes) -> None:
        """Servers mislabel: a body that does not look compressed is taken as it is."""
        self._started = True
        if head.startswith(_GZIP_MAGIC):
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        elif self._kind == "deflate":
            is_zlib = head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)

    def _plain(self, data: bytes) -> bool:
        room = self._limit - len(self._out)
        self._out += data[:room]
        self.cut |= len(data) > room
        return not self.cut

    def _inflated(self, data: bytes) -> bool:
        pending = True
        while pending and self._inflate is not None:
            try:
                piece = self._inflate.decompress(data, _STEP)
            except zlib.error:
                if not self._out and self._kind == "deflate":
                    self._inflate = None
                    return self._plain(self._head)
                self.cut = True
                return False
            if not self._plain(piece):
                return False
            data = self._inflate.unconsumed_tail
            pending = bool(data) or len(piece) == _STEP
            if self._inflate.eof:
                data = self._inflate.unused_data
                if not data.startswith(_GZIP_MAGIC):
                    return len(data) < 2  # what follows the stream is padding
                self._inflate, pending = zlib.decompressobj(zlib.MAX_WBITS | 16), True
        return True
