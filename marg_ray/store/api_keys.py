"""Keys of the HTTP service, as functions of a connection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from marg_ray.store.log import now, storable
from marg_ray.store.protocol import ApiKey
from marg_ray.store.schema import API_KEYS, add
from marg_ray.store.statements import Statement

_ID = API_KEYS.c.id == sa.bindparam("asked")
_ONE = Statement(sa.select(API_KEYS).where(_ID))
_REVOKE = Statement(
    sa.update(API_KEYS).where(_ID, API_KEYS.c.revoked_at.is_(None)).values(revoked_at=sa.bindparam("when"))
)
_TOUCH = Statement(sa.update(API_KEYS).where(_ID).values(used_at=sa.bindparam("when")))
_MOMENTS = ("created_at", "expires_at", "used_at", "revoked_at")


def put(db: sa.Connection, key: ApiKey) -> None:
    moments = {name: at.isoformat() if (at := getattr(key, name)) else None for name in _MOMENTS}
    row = {"id": key.id, "owner": storable(key.owner), "name": storable(key.name), "digest": key.digest}
    add(db, API_KEYS, {**row, **moments, "scopes": " ".join(key.scopes)})


def find(db: sa.Connection, key_id: str) -> ApiKey | None:
    row = _ONE.first(db, {"asked": key_id})
    return None if row is None else _key(row)


def listed(db: sa.Connection, owner: str) -> list[ApiKey]:
    query = sa.select(API_KEYS).order_by(API_KEYS.c.created_at, API_KEYS.c.id)
    if owner:
        query = query.where(API_KEYS.c.owner == owner)
    return [_key(row) for row in db.execute(query)]


def revoke(db: sa.Connection, key_id: str) -> bool:
    return bool(_REVOKE.changes(db, {"asked": key_id, "when": now()})) or find(db, key_id) is not None


def touch(db: sa.Connection, key_id: str, at: datetime) -> None:
    _TOUCH.changes(db, {"asked": key_id, "when": at.isoformat()})


def _key(row: Any) -> ApiKey:
    fields = row._asdict()
    moments = {name: datetime.fromisoformat(at) if (at := fields[name]) else None for name in _MOMENTS}
    return ApiKey(**{**fields, **moments, "scopes": tuple(fields["scopes"].split())})
