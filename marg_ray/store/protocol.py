"""The durable side of a session: its log, and the calls it paid for. Every backend passes one contract suite."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from marg_ray.messages import Message, WireMessage
from marg_ray.records import Record, Usage
from marg_ray.seams import CallKey


class LogEntry(Record):
    seq: int  # from 1, without holes
    at: datetime
    message: WireMessage


class SessionRow(Record):
    id: str
    owner: str
    question: str
    created_at: datetime
    updated_at: datetime
    status: str  # "running", "halted", "cancelled", or the report's status
    seq: int
    artefact: str = ""  # SHA-256 of the report's JSON
    holder: str = ""


class CallRow(Record):
    """A paid call that was begun; `result` is there once it is settled."""

    call: CallKey
    status: Literal["begun", "settled"]
    result: str = ""
    usage: Usage = Usage()
    begun: int = 1  # how often it was begun: above 1 where a process died inside it


class Store(Protocol):
    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        """Make room for a session. An existing one stays as it is."""

    async def take_over(self, session_id: str, *, holder: str = "") -> int:
        """Raise the session's epoch and return it; every writer of an earlier epoch is refused from now on.

        `holder` names the runtime that works on the session, so that a restarted coordinator finds its own.

        Raises:
            SessionNotFound: there is no such session.
        """

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        """Add `message` durably as number `expected_seq + 1`, and note the session's status.

        Raises:
            StoreConflict: the log is not at `expected_seq`; somebody else wrote first.
            StaleEpoch: a newer coordinator has taken the session over.
        """

    async def read(self, session_id: str, *, after: int = 0) -> list[LogEntry]:
        """Entries with a number above `after`, in order; empty for an unknown session."""

    async def session(self, session_id: str) -> SessionRow:
        """One session.

        Raises:
            SessionNotFound: there is no such session.
        """

    async def sessions(self, *, limit: int = 100, status: str = "", holder: str = "") -> list[SessionRow]:
        """Sessions, newest first; `status` and `holder` narrow them where given."""

    async def begin_call(self, call: CallKey) -> CallRow:
        """Note that a call is under way; a settled one comes back with its result and is not touched."""

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        """Keep a call's result. The first result stays."""

    async def calls(self, session_id: str) -> list[CallRow]:
        """Every call of a session, in the order they were begun."""

    async def close(self) -> None: ...
