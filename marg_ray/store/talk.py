"""Conversations and what is remembered of them: the durable side. Everything belongs to one owner."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

from marg_ray.errors import SessionNotFound
from marg_ray.records import Record

USE_WORTH_S = 7 * 86_400.0  # each use keeps a memory so much longer


class ConversationRow(Record):
    id: str
    owner: str
    title: str  # what it began with
    created_at: datetime
    updated_at: datetime
    turns: int = 0


class TurnRow(Record):
    """What one side said. `id` is given by who writes it, so that the same turn written twice is one."""

    id: str
    role: Literal["user", "assistant"]
    text: str
    body: str = ""  # JSON: sentences with what they cite, and what was looked at
    at: float  # seconds since 1970, UTC; turns are in its order


class MemoryRow(Record):
    """Something remembered of an owner. `core` is in every prompt, `archival` is searched for."""

    id: str
    conversation: str  # in which it was said
    kind: Literal["core", "archival"]
    by: Literal["user", "assistant"]  # at whose wish it is kept
    text: str
    at: float
    used_at: float
    uses: int = 0

    @property
    def worth(self) -> float:
        """What is least goes first."""
        return self.used_at + USE_WORTH_S * self.uses


class Talk(Protocol):
    """Conversations with their turns, and memories. What is another owner's is not there."""

    async def open(self, owner: str, conversation: str, title: str) -> None:
        """Begin a conversation. An existing one stays as it is."""

    async def conversation(self, owner: str, conversation: str) -> ConversationRow:
        """One conversation.

        Raises:
            SessionNotFound: this owner has none of this id.
        """

    async def conversations(self, owner: str, limit: int = 100) -> list[ConversationRow]:
        """An owner's conversations, the one that was last spoken in first."""

    async def say(self, owner: str, conversation: str, turn: TurnRow) -> None:
        """Add a turn; one whose id is there already is not added again."""

    async def turns(self, owner: str, conversation: str, limit: int = 1000) -> list[TurnRow]:
        """The last turns of a conversation, in their order."""

    async def end(self, owner: str, conversation: str, *, keep: bool = False) -> int:
        """Remove a conversation's turns, and the conversation itself unless it is to `keep`. Returns how many turns."""

    async def remember(self, owner: str, rows: Sequence[MemoryRow], archive: int) -> None:
        """Keep memories; one whose id is there is replaced. Beyond `archive` archival ones the least worthy go."""

    async def memories(self, owner: str) -> list[MemoryRow]:
        """All that is remembered of an owner, in the order of time."""

    async def used(self, owner: str, ids: Collection[str], at: float) -> None:
        """Note that memories were of use."""

    async def forget(self, owner: str, *, ids: Collection[str] | None = None, conversation: str = "") -> int:
        """Remove memories: those named, those of a conversation, or (neither given) all. Returns how many."""


class MemoryTalk:
    """The double: conversations in memory."""

    def __init__(self) -> None:
        self._conversations: dict[tuple[str, str], ConversationRow] = {}
        self._turns: dict[tuple[str, str], dict[str, TurnRow]] = {}
        self._memories: dict[str, dict[str, MemoryRow]] = {}

    async def open(self, owner: str, conversation: str, title: str) -> None:
        now = datetime.now(UTC)
        row = ConversationRow(id=conversation, owner=owner, title=title, created_at=now, updated_at=now)
        self._conversations.setdefault((owner, conversation), row)

    async def conversation(self, owner: str, conversation: str) -> ConversationRow:
        row = self._conversations.get((owner, conversation))
        if row is None:
            raise SessionNotFound(conversation)
        return row.model_copy(update={"turns": len(self._turns.get((owner, conversation), ()))})

    async def conversations(self, owner: str, limit: int = 100) -> list[ConversationRow]:
        own = [await self.conversation(*key) for key in self._conversations if key[0] == owner]
        return sorted(own, key=lambda row: row.updated_at, reverse=True)[:limit]

    async def say(self, owner: str, conversation: str, turn: TurnRow) -> None:
        row = await self.conversation(owner, conversation)
        self._turns.setdefault((owner, conversation), {}).setdefault(turn.id, turn)
        self._conversations[owner, conversation] = row.model_copy(update={"updated_at": datetime.now(UTC)})

    async def turns(self, owner: str, conversation: str, limit: int = 1000) -> list[TurnRow]:
        rows = sorted(self._turns.get((owner, conversation), {}).values(), key=lambda t: (t.at, t.id))
        return rows[-limit:]

    async def end(self, owner: str, conversation: str, *, keep: bool = False) -> int:
        if not keep:
            self._conversations.pop((owner, conversation), None)
        return len(self._turns.pop((owner, conversation), {}))

    async def remember(self, owner: str, rows: Sequence[MemoryRow], archive: int) -> None:
        own = self._memories.setdefault(owner, {})
        own.update({row.id: row for row in rows})
        archived = sorted((m for m in own.values() if m.kind == "archival"), key=lambda m: (m.worth, m.id))
        for row in archived[: max(0, len(archived) - archive)]:
            del own[row.id]

    async def memories(self, owner: str) -> list[MemoryRow]:
        return sorted(self._memories.get(owner, {}).values(), key=lambda m: (m.at, m.id))

    async def used(self, owner: str, ids: Collection[str], at: float) -> None:
        own = self._memories.get(owner, {})
        for one in set(ids) & own.keys():
            own[one] = own[one].model_copy(update={"used_at": at, "uses": own[one].uses + 1})

    async def forget(self, owner: str, *, ids: Collection[str] | None = None, conversation: str = "") -> int:
        own = self._memories.get(owner, {})
        gone = [
            m.id
            for m in own.values()
            if (ids is None or m.id in ids) and (not conversation or m.conversation == conversation)
        ]
        for one in gone:
            del own[one]
        return len(gone)
