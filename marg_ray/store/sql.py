"""The store on a SQL database: a SQLite file, or PostgreSQL on a cluster. The same statements serve both."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from marg_ray.errors import SessionNotFound
from marg_ray.messages import MESSAGES, Message
from marg_ray.records import Usage
from marg_ray.seams import CallKey
from marg_ray.store import api_keys, cache, calls, log
from marg_ray.store.database import RETRY_S, Database, connect
from marg_ray.store.protocol import (
    Account,
    ApiKey,
    CacheCount,
    CacheRow,
    CallRow,
    LogEntry,
    SessionRow,
    ShardRow,
    SnapshotRow,
)
from marg_ray.store.talk_sql import SqlTalk
from marg_ray.store.upgrade import bring_up_to_date

T = TypeVar("T")


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


class SqlStore:
    """A `Store` over one database. Open it with `await SqlStore.open(url)`.

    While the database is away (a restart, a lost connection, another process that writes for long) an operation waits
    and tries again for half a minute; each may be repeated without harm. Then it raises `StoreUnavailable`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.talk = SqlTalk(database)

    @classmethod
    async def open(cls, url: str, *, retry_s: float = RETRY_S) -> SqlStore:
        """The store at `url`; made where there is none, brought up to date where it is older.

        Raises:
            UsageError: the address cannot be used, or a newer version of this package has written there.
            StoreUnavailable: the database does not answer within `retry_s` seconds.
        """
        database = connect(url, retry_s=retry_s)
        try:
            await bring_up_to_date(database)
        except BaseException:
            await database.close()
            raise
        return cls(database)

    async def close(self) -> None:
        await self._database.close()

    # ---- sessions and their logs

    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        await self._database.write(partial(log.create, session_id=session_id, owner=owner, question=question))

    async def take_over(
        self, session_id: str, *, holder: str = "", shard: int = 0, expected_epoch: int | None = None
    ) -> int:
        return await self._database.write(log.TakeOver(session_id, holder, shard, expected_epoch, uuid4().hex))

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        body = MESSAGES.dump_json(message).decode()
        return await self._database.write(log.Append(session_id, message, body, expected_seq, epoch, status))

    async def read(self, session_id: str, *, after: int = 0, most: int | None = None) -> list[LogEntry]:
        return await self._database.read(partial(log.read, session_id=session_id, after=after, most=most))

    async def session(self, session_id: str) -> SessionRow:
        return _found(session_id, await self._database.read(partial(log.session, session_id=session_id)))

    async def sessions(
        self, *, limit: int = 100, status: str = "", holder: str = "", shard: int | None = None, owner: str = ""
    ) -> list[SessionRow]:
        query = partial(log.sessions, limit=limit, status=status, holder=holder, shard=shard, owner=owner)
        return await self._database.read(query)

    async def session_counts(self) -> dict[str, int]:
        return await self._database.read(log.counts)

    async def fence(self, session_id: str, epoch: int) -> None:
        if epoch and not await self._database.read(partial(log.fence, session_id=session_id, epoch=epoch)):
            raise SessionNotFound(session_id)

    async def snapshots(self, session_id: str) -> list[SnapshotRow]:
        return await self._database.read(partial(log.snapshots, session_id=session_id))

    # ---- paid calls

    async def begin_call(self, call: CallKey, reserved: Usage | None = None) -> CallRow:
        return await self._database.write(calls.BeginCall(call, reserved or Usage(), uuid4().hex))

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        await self._database.write(calls.SettleCall(call, result, usage))

    async def release_call(self, call: CallKey) -> None:
        await self._database.write(partial(calls.release_call, call=call))

    async def call(self, session_id: str, key: str) -> CallRow | None:
        return await self._database.read(partial(calls.call, session_id=session_id, key=key))

    async def calls(self, session_id: str) -> list[CallRow]:
        return await self._database.read(partial(calls.calls, session_id=session_id))

    async def account(self, session_id: str) -> Account:
        return _found(session_id, await self._database.read(partial(calls.account, session_id=session_id)))

    # ---- by key

    async def put_metrics(self, session_id: str, metrics: str) -> None:
        await self._database.write(partial(cache.put_metrics, session_id=session_id, metrics=metrics))

    async def metrics(self, session_id: str) -> str:
        return await self._database.read(partial(cache.metrics, session_id=session_id))

    async def claim_key(self, owner: str, key: str, body: str, session_id: str) -> tuple[str, str]:
        claim = partial(cache.claim_key, owner=owner, key=key, body=body, session_id=session_id)
        return await self._database.write(claim)

    async def put_api_key(self, key: ApiKey) -> None:
        await self._database.write(partial(api_keys.put, key=key))

    async def api_key(self, key_id: str) -> ApiKey | None:
        return await self._database.read(partial(api_keys.find, key_id=key_id))

    async def api_keys(self, owner: str = "") -> list[ApiKey]:
        return await self._database.read(partial(api_keys.listed, owner=owner))

    async def revoke_api_key(self, key_id: str) -> bool:
        return await self._database.write(partial(api_keys.revoke, key_id=key_id))

    async def touch_api_key(self, key_id: str, at: datetime) -> None:
        await self._database.write(partial(api_keys.touch, key_id=key_id, at=at))

    async def tally(self, name: str, period: int, since: int) -> dict[int, int]:
        return await self._database.write(partial(cache.tally, name=name, period=period, since=since))

    async def beat(self, holder: str, shard: int) -> None:
        await self._database.write(partial(cache.beat, holder=holder, shard=shard))

    async def shards(self, holder: str = "") -> list[ShardRow]:
        return await self._database.read(partial(cache.shards, holder=holder))

    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        if not await self._database.read(partial(cache.is_cached, space=space, key=key)):
            return None  # most often, and without a place in the queue of those who write
        return await self._database.write(partial(cache.hit, space=space, key=key))

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None:
        await self._database.write(partial(cache.store, space=space, key=key, value=value, ttl_s=ttl_s))

    async def cache_drop(self, space: str = "", *, expired: bool = True) -> int:
        return await self._database.write(partial(cache.drop, space=space, expired=expired))

    async def cache_counts(self) -> list[CacheCount]:
        return await self._database.read(cache.counts)


def _found(session_id: str, row: T | None) -> T:
    if row is None:
        raise SessionNotFound(session_id)
    return row
