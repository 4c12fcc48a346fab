"""A client of event streams that reads bytes: what a browser would see, and a connection that a test can break."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

LIMIT_S = 60


@dataclass(frozen=True)
class Event:
    name: str
    data: Any
    id: int | None  # None: it had none of its own

    @property
    def entry(self) -> bool:
        """Whether it is of the log."""
        return self.id is not None and self.name != "resync"


@dataclass
class Parser:
    """The standard's algorithm: lines end with CR LF, LF or CR; a blank line dispatches; other fields are ignored."""

    comments: int = 0
    retry: str = ""
    last_id: str = ""
    _decoder: codecs.IncrementalDecoder = field(default_factory=codecs.getincrementaldecoder("utf-8"))
    _rest: str = ""
    _data: list[str] = field(default_factory=list)
    _name: str = ""
    _id: int | None = None

    def feed(self, data: bytes) -> list[Event]:
        """The events that are complete by now."""
        lines = re.split(r"\r\n|\n|\r", self._rest + self._decoder.decode(data))
        self._rest = lines.pop()
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            self.comments += 1
            return None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case "id":
                self._id = int(value)
            case "retry":
                self.retry = value
            case _:
                raise AssertionError(f"a line that is no field: {line!r}")
        return None

    def _dispatch(self) -> Event | None:
        event = Event(self._name, json.loads("\n".join(self._data)), self._id) if self._data else None
        self.last_id = str(self._id) if self._id is not None else self.last_id
        self._data, self._name, self._id = [], "", None
        return event


def parse(data: bytes) -> list[Event]:
    return Parser().feed(data)


@dataclass
class Stream:
    """An open answer of a server, read as it comes."""

    status: int
    headers: Mapping[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    parser: Parser = field(default_factory=Parser)

    @classmethod
    async def open(cls, port: int, path: str, **headers: str) -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        named = {"Host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
        lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        async with asyncio.timeout(LIMIT_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        found = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return cls(int(head[0].split()[1]), found, reader, writer)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body's chunks, until the server ends it or the connection breaks."""
        async with asyncio.timeout(LIMIT_S):
            if "content-length" in self.headers:
                yield await self.reader.readexactly(int(self.headers["content-length"]))
                return
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                yield (await self.reader.readexactly(size + 2))[:-2]

    async def events(self) -> AsyncIterator[Event]:
        async for piece in self.pieces():
            for event in self.parser.feed(piece):
                yield event

    async def all(self) -> list[Event]:
        found = [event async for event in self.events()]
        self.drop()
        return found

    async def until(self, seq: int) -> list[Event]:
        """The entries up to number `seq`, which is waited for; others are left out."""
        found: list[Event] = []
        async for event in self.events():
            found += [event] if event.entry else []
            if event.id == seq:
                break
        return found

    def drop(self) -> None:
        """Break the connection, as a network does: without a word."""
        self.writer.transport.abort()
