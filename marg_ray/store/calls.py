"""Paid calls and what they cost, as functions of a connection. Those that write run in a transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from marg_ray.budget import larger
from marg_ray.records import Usage
from marg_ray.seams import CallKey
from marg_ray.store.log import fence, limits_of, now, storable
from marg_ray.store.protocol import Account, CallRow
from marg_ray.store.schema import CALLS, SESSIONS, add
from marg_ray.store.statements import Statement

_FIELDS = tuple(Usage.model_fields)
_ONE = sa.and_(CALLS.c.session_id == sa.bindparam("session"), CALLS.c.key == sa.bindparam("asked"))
_SEEN = Statement(sa.select(CALLS).where(_ONE))
_KNOWN = Statement(sa.select(CALLS).where(_ONE).with_for_update())
_CHANGE = Statement(sa.update(CALLS).where(_ONE))  # what is set comes with the parameters
_CHANGE_OPEN = Statement(sa.update(CALLS).where(_ONE, CALLS.c.status != "settled"))
_CHANGE_BEGUN = Statement(sa.update(CALLS).where(_ONE, CALLS.c.status == "begun"))
_OF_SESSION = Statement(
    sa.select(CALLS).where(CALLS.c.session_id == sa.bindparam("session")).order_by(CALLS.c.begun_at, CALLS.c.key)
)
_SUMS = [
    sa.func.coalesce(sa.func.sum(CALLS.c[f"{kind}_{name}"]), 0).label(f"{kind}_{name}")
    for kind in ("used", "lost")
    for name in _FIELDS
]
_ACCOUNT = Statement(
    sa.select(SESSIONS.c.limits, *_SUMS)
    .select_from(SESSIONS.outerjoin(CALLS, CALLS.c.session_id == SESSIONS.c.id))
    .where(SESSIONS.c.id == sa.bindparam("session"))
    .group_by(SESSIONS.c.id, SESSIONS.c.limits)
)


@dataclass(frozen=True)
class BeginCall:
    """A call that begins. `token` names this attempt, so that it is known again when its answer was lost."""

    call: CallKey
    reserved: Usage
    token: str

    def __call__(self, db: sa.Connection) -> CallRow:
        if self.call.epoch:
            fence(db, self.call.session_id, self.call.epoch, hold=True)
        reserved = _numbers("reserved", self.reserved)
        fresh = {
            **_named(self.call),
            "status": "begun",
            "begun": 1,
            "begun_at": now(),
            "token": self.token,
            "result": "",
        }
        if add(db, CALLS, {**fresh, **reserved}):
            at = datetime.fromisoformat(str(fresh["begun_at"]))
            return CallRow(call=self.call, status="begun", reserved=self.reserved, begun_at=at)
        stored = _KNOWN.all(db, _place(self.call))[0]
        known = _call_row(stored)
        the_same = stored.token == self.token or (self.call.attempt and stored.attempt == self.call.attempt)
        if known.status == "settled":
            return known
        if known.status == "begun" and the_same:
            return _raised(db, known, self.reserved)
        died = known.status == "begun"
        again = CallRow(
            call=self.call,
            status="begun",
            reserved=self.reserved,
            lost=known.lost + known.reserved if died else known.lost,
            begun=known.begun + died,
            begun_at=known.begun_at,
        )
        changes = {**_named(self.call), "status": "begun", "begun": again.begun, "token": self.token}
        _CHANGE.changes(db, {**_place(self.call), **changes, **reserved, **_numbers("lost", again.lost)})
        return again


def _raised(db: sa.Connection, known: CallRow, reserved: Usage) -> CallRow:
    """The call under way with at least `reserved` reserved for it."""
    most = larger(known.reserved, reserved)
    if most == known.reserved:
        return known
    _CHANGE.changes(db, {**_place(known.call), **_numbers("reserved", most)})
    return known.model_copy(update={"reserved": most})


@dataclass(frozen=True)
class SettleCall:
    """A call's result. One that nobody began is kept as well: it was paid."""

    call: CallKey
    result: str
    usage: Usage

    def __call__(self, db: sa.Connection) -> None:
        if self.call.epoch:
            fence(db, self.call.session_id, self.call.epoch, hold=True)
        done = {"status": "settled", "result": self.result, **_numbers("used", self.usage)}
        changes = {**_place(self.call), **done, **_numbers("reserved", Usage())}
        if _CHANGE_OPEN.changes(db, changes) == 0:
            add(db, CALLS, {**_named(self.call), "begun": 1, "begun_at": now(), **done})


def release_call(db: sa.Connection, call: CallKey) -> None:
    _CHANGE_BEGUN.changes(db, {**_place(call), "status": "released", **_numbers("reserved", Usage())})


def call(db: sa.Connection, session_id: str, key: str) -> CallRow | None:
    row = _SEEN.first(db, {"session": session_id, "asked": key})
    return None if row is None else _call_row(row)


def calls(db: sa.Connection, session_id: str) -> list[CallRow]:
    return [_call_row(row) for row in _OF_SESSION.all(db, {"session": session_id})]


def account(db: sa.Connection, session_id: str) -> Account | None:
    row = _ACCOUNT.first(db, {"session": session_id})
    if row is None:
        return None
    return Account(limits=limits_of(row.limits), spent=_usage("used", row), lost=_usage("lost", row))


def _place(call: CallKey) -> dict[str, str]:
    return {"session": call.session_id, "asked": call.key}


def _named(call: CallKey) -> dict[str, object]:
    named = {"session_id": call.session_id, "key": call.key, "kind": call.kind, "role": str(call.role)}
    return {**named, "task_id": storable(call.task_id), "epoch": call.epoch, "attempt": call.attempt}


def _numbers(kind: str, usage: Usage) -> dict[str, int | float]:
    return {f"{kind}_{name}": getattr(usage, name) for name in _FIELDS}


def _usage(kind: str, row: Any) -> Usage:
    return Usage(**{name: getattr(row, f"{kind}_{name}") for name in _FIELDS})


def _call_row(row: Any) -> CallRow:
    call = CallKey(
        session_id=row.session_id,
        kind=row.kind,
        key=row.key,
        role=row.role,
        task_id=row.task_id,
        epoch=row.epoch,
        attempt=row.attempt or "",
    )
    return CallRow(
        call=call,
        status=row.status,
        result=row.result,
        usage=_usage("used", row),
        reserved=_usage("reserved", row),
        lost=_usage("lost", row),
        begun=row.begun,
        begun_at=_begun_at(row),
    )


def _begun_at(row: Any) -> datetime:
    """When a call began: one that left no trace before it was settled has the moment of that in its row."""
    at = datetime.fromisoformat(row.begun_at)
    return at if row.token is not None else at - timedelta(seconds=row.used_seconds)
