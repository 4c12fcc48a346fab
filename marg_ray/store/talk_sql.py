"""Conversations and memories on a SQL database."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from marg_ray.errors import SessionNotFound
from marg_ray.store.database import Database
from marg_ray.store.log import storable
from marg_ray.store.schema import CONVERSATIONS, MEMORIES, TURNS, add, put
from marg_ray.store.talk import USE_WORTH_S, ConversationRow, MemoryRow, TurnRow

_COUNT = (
    sa.select(sa.func.count())
    .where(TURNS.c.owner == CONVERSATIONS.c.owner, TURNS.c.conversation == CONVERSATIONS.c.id)
    .scalar_subquery()
    .label("turns")
)


class SqlTalk:
    """A `Talk` over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, owner: str, conversation: str, title: str) -> None:
        at = time.time()
        row = {"owner": storable(owner), "id": conversation, "title": storable(title), "created_at": at}
        await self._database.write(lambda db: add(db, CONVERSATIONS, {**row, "updated_at": at}))

    async def conversation(self, owner: str, conversation: str) -> ConversationRow:
        query = _conversations(owner).where(CONVERSATIONS.c.id == conversation)
        rows = await self._database.read(lambda db: db.execute(query).all())
        if not rows:
            raise SessionNotFound(conversation)
        return _conversation(rows[0])

    async def conversations(self, owner: str, limit: int = 100) -> list[ConversationRow]:
        query = _conversations(owner).order_by(CONVERSATIONS.c.updated_at.desc(), CONVERSATIONS.c.id).limit(limit)
        rows = await self._database.read(lambda db: db.execute(query).all())
        return [_conversation(row) for row in rows]

    async def say(self, owner: str, conversation: str, turn: TurnRow) -> None:
        await self._database.write(partial(_say, owner=storable(owner), conversation=conversation, turn=turn))

    async def turns(self, owner: str, conversation: str, limit: int = 1000) -> list[TurnRow]:
        query = (
            sa.select(TURNS.c.id, TURNS.c.role, TURNS.c.text, TURNS.c.body, TURNS.c.at)
            .where(TURNS.c.owner == storable(owner), TURNS.c.conversation == conversation)
            .order_by(TURNS.c.at.desc(), TURNS.c.id.desc())
            .limit(limit)
        )
        rows = await self._database.read(lambda db: db.execute(query).all())
        return [TurnRow(**row._mapping) for row in reversed(rows)]

    async def end(self, owner: str, conversation: str, *, keep: bool = False) -> int:
        return await self._database.write(partial(_end, owner=storable(owner), conversation=conversation, keep=keep))

    async def remember(self, owner: str, rows: Sequence[MemoryRow], archive: int) -> None:
        await self._database.write(partial(_remember, owner=storable(owner), rows=rows, archive=archive))

    async def memories(self, owner: str) -> list[MemoryRow]:
        columns = [c for c in MEMORIES.c if c.name != "owner"]
        query = sa.select(*columns).where(MEMORIES.c.owner == storable(owner)).order_by(MEMORIES.c.at, MEMORIES.c.id)
        rows = await self._database.read(lambda db: db.execute(query).all())
        return [MemoryRow(**row._mapping) for row in rows]

    async def used(self, owner: str, ids: Collection[str], at: float) -> None:
        if ids:
            # the later of two times, and no more than one use a moment: it may be carried out twice
            fresh = (MEMORIES.c.owner == storable(owner), MEMORIES.c.id.in_(sorted(ids)), MEMORIES.c.used_at < at)
            change = sa.update(MEMORIES).where(*fresh).values(used_at=at, uses=MEMORIES.c.uses + 1)
            await self._database.write(lambda db: db.execute(change))

    async def forget(self, owner: str, *, ids: Collection[str] | None = None, conversation: str = "") -> int:
        gone = sa.delete(MEMORIES).where(MEMORIES.c.owner == storable(owner))
        if ids is not None:
            gone = gone.where(MEMORIES.c.id.in_(sorted(ids)))
        if conversation:
            gone = gone.where(MEMORIES.c.conversation == conversation)
        return await self._database.write(lambda db: db.execute(gone).rowcount)


def _conversations(owner: str) -> sa.Select[Any]:
    return sa.select(CONVERSATIONS, _COUNT).where(CONVERSATIONS.c.owner == storable(owner))


def _conversation(row: Any) -> ConversationRow:
    times = {name: datetime.fromtimestamp(getattr(row, name), UTC) for name in ("created_at", "updated_at")}
    return ConversationRow(id=row.id, owner=row.owner, title=row.title, turns=row.turns, **times)


def _say(db: sa.Connection, owner: str, conversation: str, turn: TurnRow) -> None:
    own = (CONVERSATIONS.c.owner == owner, CONVERSATIONS.c.id == conversation)
    if not db.execute(sa.update(CONVERSATIONS).where(*own).values(updated_at=time.time())).rowcount:
        raise SessionNotFound(conversation)
    row = turn.model_dump() | {"text": storable(turn.text), "body": storable(turn.body)}
    add(db, TURNS, {"owner": owner, "conversation": conversation, **row})


def _end(db: sa.Connection, owner: str, conversation: str, keep: bool) -> int:
    gone = db.execute(sa.delete(TURNS).where(TURNS.c.owner == owner, TURNS.c.conversation == conversation)).rowcount
    if not keep:
        db.execute(sa.delete(CONVERSATIONS).where(CONVERSATIONS.c.owner == owner, CONVERSATIONS.c.id == conversation))
    return gone


def _remember(db: sa.Connection, owner: str, rows: Sequence[MemoryRow], archive: int) -> None:
    for row in rows:
        put(db, MEMORIES, {"owner": owner, **row.model_dump(), "text": storable(row.text)})
    archived = (MEMORIES.c.owner == owner, MEMORIES.c.kind == "archival")
    many = db.execute(sa.select(sa.func.count()).select_from(MEMORIES).where(*archived)).scalar_one()
    if many > archive:
        worth = MEMORIES.c.used_at + USE_WORTH_S * MEMORIES.c.uses
        least = sa.select(MEMORIES.c.id).where(*archived).order_by(worth, MEMORIES.c.id).limit(many - archive)
        ids = [row.id for row in db.execute(least)]
        db.execute(sa.delete(MEMORIES).where(MEMORIES.c.owner == owner, MEMORIES.c.id.in_(ids)))
