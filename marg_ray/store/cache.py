"""What is looked up by a key of the caller's: cached values, idempotency keys, tallies, metrics, signs of life."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import sqlalchemy as sa

from marg_ray.store.log import now
from marg_ray.store.protocol import CacheCount, CacheRow, ShardRow
from marg_ray.store.schema import CACHE, KEYS, METRICS, SHARDS, TALLIES, add, put, raise_number
from marg_ray.store.statements import Statement

_FRESH = (
    CACHE.c.space == sa.bindparam("of"),
    CACHE.c.key == sa.bindparam("asked"),
    CACHE.c.expires_at > sa.bindparam("now"),
)
_IS_THERE = Statement(sa.select(CACHE.c.hits).where(*_FRESH))
_HIT = Statement(
    sa.update(CACHE)
    .where(*_FRESH)
    .values(hits=CACHE.c.hits + 1)
    .returning(CACHE.c.value, CACHE.c.stored_at, CACHE.c.hits)
)
_TIED = Statement(
    sa.select(KEYS.c.session_id, KEYS.c.body).where(
        KEYS.c.owner == sa.bindparam("whose"), KEYS.c.key == sa.bindparam("asked")
    )
)
_FORGET = Statement(sa.delete(TALLIES).where(TALLIES.c.period < sa.bindparam("first")))
_TALLIES = Statement(
    sa.select(TALLIES.c.period, TALLIES.c.number).where(
        TALLIES.c.name == sa.bindparam("whose"), TALLIES.c.period >= sa.bindparam("first")
    )
)


def is_cached(db: sa.Connection, space: str, key: str) -> bool:
    return bool(_IS_THERE.all(db, {"of": space, "asked": key, "now": time.time()}))


def hit(db: sa.Connection, space: str, key: str) -> CacheRow | None:
    row = _HIT.first(db, {"of": space, "asked": key, "now": time.time()})
    if row is None:
        return None
    return CacheRow(value=row.value, stored_at=datetime.fromtimestamp(row.stored_at, UTC), hits=row.hits)


def store(db: sa.Connection, space: str, key: str, value: str, ttl_s: float) -> None:
    at = time.time()
    row: dict[str, object] = {"space": space, "key": key, "value": value, "hits": 0}
    put(db, CACHE, {**row, "stored_at": at, "expires_at": at + ttl_s})


def drop(db: sa.Connection, space: str, expired: bool) -> int:
    statement = sa.delete(CACHE)
    if space:
        statement = statement.where(CACHE.c.space == space)
    if expired:
        statement = statement.where(CACHE.c.expires_at <= time.time())
    return db.execute(statement).rowcount


def counts(db: sa.Connection) -> list[CacheCount]:
    query = sa.select(CACHE.c.space, sa.func.count(), sa.func.sum(CACHE.c.hits))
    rows = db.execute(query.group_by(CACHE.c.space).order_by(CACHE.c.space))
    return [CacheCount(space=space, entries=entries, hits=hits) for space, entries, hits in rows]


def claim_key(db: sa.Connection, owner: str, key: str, body: str, session_id: str) -> tuple[str, str]:
    if add(db, KEYS, {"owner": owner, "key": key, "body": body, "session_id": session_id}):
        return session_id, body
    row = _TIED.all(db, {"whose": owner, "asked": key})[0]
    return row.session_id, row.body


def tally(db: sa.Connection, name: str, period: int, since: int) -> dict[int, int]:
    if raise_number(db, name, period) == 1:
        _FORGET.changes(db, {"first": since})
    return {row.period: row.number for row in _TALLIES.all(db, {"whose": name, "first": since})}


def put_metrics(db: sa.Connection, session_id: str, metrics: str) -> None:
    put(db, METRICS, {"session_id": session_id, "body": metrics})


def metrics(db: sa.Connection, session_id: str) -> str:
    query = sa.select(METRICS.c.body).where(METRICS.c.session_id == session_id)
    return db.execute(query).scalar_one_or_none() or ""


def beat(db: sa.Connection, holder: str, shard: int) -> None:
    put(db, SHARDS, {"holder": holder, "shard": shard, "beat_at": now()})


def shards(db: sa.Connection, holder: str) -> list[ShardRow]:
    query = sa.select(SHARDS).order_by(SHARDS.c.shard, SHARDS.c.holder)
    if holder:
        query = query.where(SHARDS.c.holder == holder)
    rows = db.execute(query)
    return [ShardRow(holder=r.holder, shard=r.shard, beat_at=datetime.fromisoformat(r.beat_at)) for r in rows]
