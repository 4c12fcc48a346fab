"""What a file is, by its content; its name and the server's header only decide between kinds of text."""

from __future__ import annotations

import re
import zlib

from marg_ray.errors import Unreadable

HTML, PDF, DOCX = (
    "text/html",
    "application/pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)
MARKDOWN, TEXT, CSV, TSV = "text/markdown", "text/plain", "text/csv", "text/tab-separated-values"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
EPUB = "application/epub+zip"

_SUFFIXES = {
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".pdf": PDF,
    ".docx": DOCX,
    ".xlsx": XLSX,
    ".pptx": PPTX,
    ".epub": EPUB,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".txt": TEXT,
    ".text": TEXT,
    ".rst": TEXT,
    ".csv": CSV,
    ".tsv": TSV,
}
SUPPORTED_SUFFIXES: tuple[str, ...] = (*_SUFFIXES, ".gz")
"""Endings of files worth indexing; `.gz` stands for one packed file of another kind, such as `notes.txt.gz`."""

_ALIASES = {
    "application/xhtml+xml": HTML,
    "application/x-pdf": PDF,
    "text/x-markdown": MARKDOWN,
    "application/csv": CSV,
    "text/comma-separated-values": CSV,
}
_KINDS = {kind: f"a {word} file" for kind, word in ((PDF, "PDF"), (DOCX, "Word"), (XLSX, "Excel"))} | {
    PPTX: "a PowerPoint file",
    EPUB: "an EPUB book",
}

_HTML_START = re.compile(r"(?i)<(?:!doctype\s+html|html|head|body)\b")
_XML_START = re.compile(r"<\?xml[^>]{0,500}>")
_HTML_TAGS = re.compile(r"(?i)</?(?:p|div|span|table|tr|td|ul|ol|li|h[1-6]|a|br|article|section|main|script)\b[^>]*>")
_GZIP = b"\x1f\x8b"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def media_type_of(name: str) -> str:
    """The media type that a file's or URL's ending stands for, "" where it says nothing."""
    return _SUFFIXES.get(suffix_of(name), "")


def suffix_of(name: str) -> str:
    last = re.split(r"[?#]", name, maxsplit=1)[0].replace("\\", "/").rsplit("/", 1)[-1].lower()
    last = last.removesuffix(".gz")
    dot = last.rfind(".")
    return last[dot:] if dot > 0 else ""


def sniff(body: bytes, name: str, media_type: str) -> str:
    """The media type of what the bytes are.

    Raises:
        Unreadable: they are no document that can be read, or not the one that name or header promise.
    """
    promised = _promised(name, media_type)
    found = _packed_or_binary(body, name)
    if found is None:
        return _kind_of_text(body, name, media_type, promised)
    if promised in (DOCX, XLSX, PPTX, EPUB) and found == "zip":
        raise Unreadable(name, f"not {_KINDS[promised]}")
    if found == "zip":
        raise Unreadable(name, "an archive, not a document")
    return found


def _promised(name: str, media_type: str) -> str:
    """What the name says, or else the header: the header of a binary file is often a server's default."""
    given = media_type.partition(";")[0].strip().lower()
    return media_type_of(name) or _ALIASES.get(given, given)


def _packed_or_binary(body: bytes, name: str) -> str | None:
    """The type of a binary document, "zip" for an unknown archive, None for text."""
    head = body[:1024]
    if not body.strip(b"\x00 \t\r\n"):
        raise Unreadable(name, "empty: it has no text")
    if b"%PDF-" in head:
        return PDF
    if body.startswith(b"PK\x03\x04") or body.startswith(b"PK\x05\x06"):
        return _zip_kind(body)
    if body.startswith(_OLE):
        raise Unreadable(name, "an old or password-protected Office file; save it as .docx")
    if body.startswith((b"{\\rtf",)):
        raise Unreadable(name, "an RTF file, which is not read; save it as .docx")
    if _is_text(body):
        return None
    raise Unreadable(name, _binary_reason(body, name))


def _zip_kind(body: bytes) -> str:
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, UnicodeError, EOFError):
        # A truncated archive has lost its directory, which stands at the end; the local headers still name files.
        for mark, kind in ((b"word/", DOCX), (b"xl/", XLSX), (b"ppt/", PPTX)):
            if mark in body[:1_000_000]:
                return kind
        return "zip"
    for member, kind in (
        ("word/document.xml", DOCX),
        ("xl/workbook.xml", XLSX),
        ("ppt/presentation.xml", PPTX),
        ("META-INF/container.xml", EPUB),
    ):
        if member in names:
            return kind
    return "zip"


def _is_text(body: bytes) -> bool:
    """Few control bytes, or two-byte letters. A handful of NULs in a page is damage, not a binary file."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    sample = body[:65536]
    controls = sum(sample.count(c) for c in _CONTROLS)
    if controls * 50 <= len(sample):
        return True
    from marg_ray.sources.parse.charset import decode

    decoded = decode(sample[: len(sample) & ~3])
    if not decoded.charset.startswith(("utf-16", "utf-32")):
        return False
    return sum(c.isprintable() or c.isspace() for c in decoded.text) >= 0.95 * len(decoded.text)


_CONTROLS = [bytes([b]) for b in range(32) if b not in b"\t\n\r\x0c\x1b"] + [b"\x7f"]


def _binary_reason(body: bytes, name: str) -> str:
    import puremagic

    promised = _KINDS.get(media_type_of(name))
    try:
        found = puremagic.from_string(body[:65536], mime=True)
    except (puremagic.PureError, ValueError):
        found = ""
    if found and not found.startswith(("text/", "application/octet-stream")):
        kind = f"a binary file ({found}), not a document"
    else:
        kind = "a binary file, not a document"
    return f"not {promised}: {kind}" if promised else kind


def _kind_of_text(body: bytes, name: str, media_type: str, promised: str) -> str:
    head = body[:65536].replace(b"\x00", b"").decode("latin-1").removeprefix("ÿþ").removeprefix("ï»¿")
    if _starts_html(head):
        return HTML
    if promised in (DOCX, XLSX, PPTX, EPUB):
        raise Unreadable(name, f"not {_KINDS[promised]}")
    given = _ALIASES.get(media_type.partition(";")[0].strip().lower(), media_type.partition(";")[0].strip().lower())
    by_name = media_type_of(name)
    if promised == PDF or HTML in (by_name, given) or by_name == given == "":
        if len(_HTML_TAGS.findall(head)) >= 2:
            return HTML
        if promised == PDF:
            raise Unreadable(name, "not a PDF file")
    for kind in (by_name, given):
        if kind in (MARKDOWN, CSV, TSV):
            return kind
    return HTML if HTML in (by_name, given) else TEXT


def _starts_html(head: str) -> bool:
    """Whether a page begins, after comments and an XML declaration."""
    head = head.lstrip()
    if declaration := _XML_START.match(head):
        head = head[declaration.end() :].lstrip()
    while head.startswith("<!--"):
        _, end, head = head.partition("-->")
        head = head.lstrip() if end else ""
    return _HTML_START.match(head) is not None


def unpack(body: bytes, name: str, limit: int) -> bytes:
    """A gzip file's content; anything else as it is.

    Raises:
        Unreadable: it is damaged, or unpacks to more than `limit` bytes.
    """
    if not body.startswith(_GZIP):
        return body
    stream = zlib.decompressobj(wbits=31)
    try:
        out = stream.decompress(body, limit + 1)
    except zlib.error:
        raise Unreadable(name, "a damaged gzip file") from None
    if len(out) > limit:
        raise Unreadable(name, f"too large: unpacks to more than {limit // 1_000_000} MB")
    if not stream.eof:
        raise Unreadable(name, "a truncated gzip file")
    return out
