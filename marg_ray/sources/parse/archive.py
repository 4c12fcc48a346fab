"""Reads members of a ZIP document in memory: bounded, nothing written to disk, no entities expanded."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

from marg_ray.errors import Unreadable

MEMBER_LIMIT = 10_000_000  # bytes that one member may unpack to: its tree takes about ten times that in memory
TOTAL_LIMIT = 60_000_000


class Archive:
    """An opened ZIP document. Member names are only ever keys: no path is made of them."""

    def __init__(self, body: bytes, name: str, what: str) -> None:
        self._name, self._what, self._read = name, what, 0
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
            self._names = frozenset(self._zip.namelist())
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, EOFError, UnicodeError):
            raise Unreadable(name, f"not {what}, or a truncated one") from None

    def __contains__(self, member: str) -> bool:
        return member in self._names

    def names(self) -> frozenset[str]:
        return self._names

    def read(self, member: str) -> bytes:
        """A member's bytes, counted as they unpack: what the directory says about sizes proves nothing.

        Raises:
            Unreadable: too large, encrypted, damaged or missing.
        """
        try:
            with self._zip.open(member) as stream:
                data = stream.read(MEMBER_LIMIT + 1)
        except KeyError:
            raise Unreadable(self._name, f"not {self._what}: {member} is missing") from None
        except RuntimeError:
            raise Unreadable(self._name, "encrypted: it needs a password") from None
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError):
            raise Unreadable(self._name, "truncated or damaged") from None
        self._read += len(data)
        if len(data) > MEMBER_LIMIT or self._read > TOTAL_LIMIT:
            raise Unreadable(self._name, f"too large: unpacks to more than {MEMBER_LIMIT // 1_000_000} MB")
        return data

    def tree(self, member: str) -> Any:
        """A member's XML as an lxml tree.

        Raises:
            Unreadable: as `read`, or the XML is damaged or declares entities, which no office program writes.
        """
        from lxml import etree

        data = self.read(member)
        if b"<!DOCTYPE" in data[:4096] or b"<!ENTITY" in data:
            raise Unreadable(self._name, "refused: its XML declares entities")
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError:
            raise Unreadable(self._name, "truncated or damaged") from None
