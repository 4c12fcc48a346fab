"""Bytes of any kind to a `Document`, or an `Unreadable` that says why not."""

from __future__ import annotations

import re
from dataclasses import replace

from marg_ray.errors import Unreadable
from marg_ray.grounding.disguise import tag_letters
from marg_ray.grounding.injection import hidden
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import sniff
from marg_ray.sources.parse.blocks import Parsed, assemble
from marg_ray.sources.parse.sniff import SUPPORTED_SUFFIXES, media_type_of

__all__ = ["SUPPORTED_SUFFIXES", "media_type_of", "parse"]

_COMMENT = re.compile(r"<!--(.*?)-->|^\[[^\]\n]*\]:\s*#\s*([^\n]*)$", re.DOTALL | re.MULTILINE)
MAX_UNPACKED = 60_000_000  # bytes that a packed file may unpack to


def parse(body: bytes, *, name: str, media_type: str = "", charset: str = "") -> Document:
    """Read a document. What it is follows from its content; `name`, `media_type` and `charset` are hints.

    Raises:
        Unreadable: there is no document in the bytes; says why in a few words. Nothing else is raised on any bytes.
    """
    try:
        body = sniff.unpack(body, name, MAX_UNPACKED)
        kind = sniff.sniff(body, name, media_type)
        return assemble(_read(body, kind, name, media_type, charset), name=name, media_type=kind)
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable(name, "nested too deeply") from None
    except MemoryError:
        raise Unreadable(name, "too large: not enough memory") from None
    except Exception as error:  # a reader's library met bytes it did not expect
        raise Unreadable(name, f"damaged ({type(error).__name__})") from error


def _read(body: bytes, kind: str, name: str, media_type: str, charset: str) -> Parsed:
    """Hand over to the reader of a kind; each imports its library when first used."""
    if kind == sniff.PDF:
        from marg_ray.sources.parse.pdf import read_pdf

        return read_pdf(body, name)
    if kind == sniff.DOCX:
        from marg_ray.sources.parse.docx import read_docx

        return read_docx(body, name)
    if kind in (sniff.XLSX, sniff.PPTX, sniff.EPUB):
        from marg_ray.sources.parse import office

        readers = {sniff.XLSX: office.read_xlsx, sniff.PPTX: office.read_pptx, sniff.EPUB: office.read_epub}
        return readers[kind](body, name)
    from marg_ray.sources.parse.charset import decode

    decoded = decode(body, charset, html=kind == sniff.HTML)
    parsed = _read_text(decoded.text, kind, name, media_type)
    unseen = tag_letters(decoded.text)
    return replace(parsed, injections=(*parsed.injections, *hidden(unseen))) if unseen else parsed


def _read_text(text: str, kind: str, name: str, media_type: str) -> Parsed:
    if kind == sniff.HTML:
        from marg_ray.sources.parse.html import read_html

        return read_html(text, name, media_type)
    if kind == sniff.MARKDOWN:
        from marg_ray.sources.parse.markdown import read_markdown

        parsed = read_markdown(text)
        comments = [a or b for a, b in _COMMENT.findall(text)]
        return replace(parsed, injections=hidden(comments)) if comments else parsed
    if kind in (sniff.CSV, sniff.TSV):
        from marg_ray.sources.parse.delimited import read_delimited

        return read_delimited(text, tabs=kind == sniff.TSV)
    from marg_ray.sources.parse.plain import read_plain

    return read_plain(text)
