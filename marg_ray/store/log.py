"""Sessions and their logs, as functions of a connection. Those that write run in a transaction."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.messages import MESSAGES, Message, ReportReady, SessionStarted, SourceRead, Steered
from marg_ray.records import Limits, SourceKind
from marg_ray.store.protocol import LogEntry, SessionRow, SnapshotRow
from marg_ray.store.schema import LOG, SESSIONS, SNAPSHOTS, add
from marg_ray.store.statements import Statement

logger = logging.getLogger(__name__)

_ID = SESSIONS.c.id == sa.bindparam("session")
_EPOCH = Statement(sa.select(SESSIONS.c.epoch).where(_ID))
# nobody takes the session over before this transaction ends
_EPOCH_HELD = Statement(sa.select(SESSIONS.c.epoch).where(_ID).with_for_update(read=True))
_ADVANCE = Statement(
    sa.update(SESSIONS)
    .where(_ID, SESSIONS.c.seq == sa.bindparam("expected"), SESSIONS.c.epoch == sa.bindparam("writer"))
    .values(seq=sa.bindparam("next"), updated_at=sa.bindparam("now"), status=sa.bindparam("word"))
)
_WHERE = Statement(sa.select(SESSIONS.c.seq, SESSIONS.c.epoch).where(_ID))
_ENTRY = Statement(
    sa.select(LOG.c.at, LOG.c.epoch, LOG.c.body).where(
        LOG.c.session_id == sa.bindparam("session"), LOG.c.seq == sa.bindparam("number")
    )
)
_NEW_ENTRY = Statement(sa.insert(LOG))
_ABOVE = (
    sa.select(LOG.c.seq, LOG.c.at, LOG.c.epoch, LOG.c.body)
    .where(LOG.c.session_id == sa.bindparam("session"), LOG.c.seq > sa.bindparam("after"))
    .order_by(LOG.c.seq)
)
_ENTRIES = Statement(_ABOVE)
_FIRST_ENTRIES = Statement(_ABOVE.limit(sa.bindparam("most", type_=sa.Integer)))
_LIMITS = Statement(sa.select(SESSIONS.c.limits).where(_ID))
_SET_LIMITS = Statement(sa.update(SESSIONS).where(_ID).values(limits=sa.bindparam("body")))
_SET_ARTEFACT = Statement(sa.update(SESSIONS).where(_ID).values(artefact=sa.bindparam("name")))
_TAKE = (
    sa.update(SESSIONS)
    .where(_ID, SESSIONS.c.token.is_distinct_from(sa.bindparam("mine")))
    .values(
        epoch=SESSIONS.c.epoch + 1,
        holder=sa.bindparam("who"),
        shard=sa.bindparam("number"),
        token=sa.bindparam("mine"),
    )
    .returning(SESSIONS.c.epoch)
)
_TAKE_IN_EPOCH = _TAKE.where(SESSIONS.c.epoch == sa.bindparam("expected"))
_BEYOND = Statement(sa.delete(LOG).where(LOG.c.session_id == sa.bindparam("session"), LOG.c.seq > sa.bindparam("last")))
_SET_SEQ = Statement(sa.update(SESSIONS).where(_ID).values(seq=sa.bindparam("last")))
_TAKEN = Statement(sa.select(SESSIONS.c.epoch, SESSIONS.c.token).where(_ID))
_COLUMNS = [c for c in SESSIONS.c if c.name != "token"]
_SESSION = Statement(sa.select(*_COLUMNS).where(_ID))
_SNAPSHOTS = Statement(
    sa.select(SNAPSHOTS.c.source_id, SNAPSHOTS.c.location, SNAPSHOTS.c.kind, SNAPSHOTS.c.title)
    .where(SNAPSHOTS.c.session_id == sa.bindparam("session"))
    .order_by(SNAPSHOTS.c.seq, SNAPSHOTS.c.source_id)
)


def now() -> str:
    return datetime.now(UTC).isoformat()


def storable(text: str) -> str:
    """Text that every database takes: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def create(db: sa.Connection, session_id: str, owner: str, question: str) -> None:
    at = now()
    row: dict[str, object] = {"id": session_id, "owner": storable(owner), "question": storable(question)}
    row |= {"created_at": at, "updated_at": at, "status": "running", "epoch": 0, "seq": 0, "artefact": "", "holder": ""}
    add(db, SESSIONS, row)


@dataclass(frozen=True)
class TakeOver:
    """A takeover. `token` is its own, so that it is known again when its answer was lost."""

    session_id: str
    holder: str
    shard: int
    expected_epoch: int | None
    token: str

    def __call__(self, db: sa.Connection) -> int:
        values = {"session": self.session_id, "who": self.holder, "number": self.shard, "mine": self.token}
        if self.expected_epoch is None:
            epoch = db.execute(_TAKE, values).scalar_one_or_none()
        else:
            epoch = db.execute(_TAKE_IN_EPOCH, values | {"expected": self.expected_epoch}).scalar_one_or_none()
        if epoch is not None:
            _drop_damaged(db, self.session_id)
            return int(epoch)
        row = _TAKEN.first(db, {"session": self.session_id})
        if row is None:
            raise SessionNotFound(self.session_id)
        if row.token == self.token:
            return int(row.epoch)
        raise StaleEpoch(self.session_id, self.expected_epoch or 0, row.epoch)


@dataclass(frozen=True)
class Append:
    """One message for the log, with its JSON."""

    session_id: str
    message: Message
    body: str
    expected_seq: int
    epoch: int
    status: str

    def __call__(self, db: sa.Connection) -> LogEntry:
        at, seq = now(), self.expected_seq + 1
        place = {"session": self.session_id, "expected": self.expected_seq, "writer": self.epoch}
        if _ADVANCE.changes(db, {**place, "next": seq, "now": at, "word": self.status}) != 1:
            return self._there_already(db)
        row = {"session_id": self.session_id, "seq": seq, "at": at, "epoch": self.epoch, "body": self.body}
        _NEW_ENTRY.changes(db, row)
        self._note(db, seq)
        return LogEntry(seq=seq, epoch=self.epoch, at=datetime.fromisoformat(at), message=self.message)

    def _note(self, db: sa.Connection, seq: int) -> None:
        """Keep beside the log what the message says of its session."""
        match self.message:
            case SessionStarted(request=request):
                self._set_limits(db, request.limits)
            case Steered(action="raise", limits=Limits() as limits):
                known = limits_of(_LIMITS.all(db, {"session": self.session_id})[0].limits)
                self._set_limits(db, known.raised(limits))
            case ReportReady(artefact=artefact):
                _SET_ARTEFACT.changes(db, {"session": self.session_id, "name": artefact})
            case SourceRead(source=source) if source is not None:
                fields = {"source_id": source.id, "kind": str(source.kind)}
                fields |= {"location": storable(source.location), "title": storable(source.title)}
                add(db, SNAPSHOTS, {"session_id": self.session_id, "seq": seq, **fields})
            case _:
                pass

    def _set_limits(self, db: sa.Connection, limits: Limits) -> None:
        _SET_LIMITS.changes(db, {"session": self.session_id, "body": limits.model_dump_json(exclude_none=True)})

    def _there_already(self, db: sa.Connection) -> LogEntry:
        """The entry, where this very append was done before and only its answer was lost."""
        row = _WHERE.first(db, {"session": self.session_id})
        if row is None:
            raise SessionNotFound(self.session_id)
        if row.epoch != self.epoch:
            raise StaleEpoch(self.session_id, self.epoch, row.epoch)
        if row.seq == self.expected_seq + 1:
            found = _ENTRY.first(db, {"session": self.session_id, "number": row.seq})
            if found is not None and (found.epoch, found.body) == (self.epoch, self.body):
                return LogEntry(
                    seq=row.seq, epoch=self.epoch, at=datetime.fromisoformat(found.at), message=self.message
                )
        raise StoreConflict(self.session_id, self.expected_seq, row.seq)


def read(db: sa.Connection, session_id: str, after: int, most: int | None = None) -> list[LogEntry]:
    """The entries, up to the first that is damaged; whoever takes the session over drops the rest."""
    place: dict[str, object] = {"session": session_id, "after": after}
    rows = _ENTRIES.all(db, place) if most is None else _FIRST_ENTRIES.all(db, place | {"most": most})
    entries = []
    for row in rows:
        try:
            message = MESSAGES.validate_json(row.body)
        except ValidationError:
            logger.warning("session %s: entry %d of its log is damaged; it ends before that", session_id, row.seq)
            break
        at = datetime.fromisoformat(row.at)
        entries.append(LogEntry(seq=row.seq, epoch=row.epoch, at=at, message=message))
    return entries


def _drop_damaged(db: sa.Connection, session_id: str) -> None:
    """End a log before its first damaged entry. What was lost is due again; its calls are settled."""
    good = len(read(db, session_id, after=0))
    if _BEYOND.changes(db, {"session": session_id, "last": good}):
        _SET_SEQ.changes(db, {"session": session_id, "last": good})


def fence(db: sa.Connection, session_id: str, epoch: int, *, hold: bool = False) -> bool:
    """See that `epoch` is the session's; says whether the session is there. `hold`: for the rest of the transaction.

    Raises:
        StaleEpoch: it is not.
    """
    found = (_EPOCH_HELD if hold else _EPOCH).first(db, {"session": session_id})
    if found is not None and found.epoch != epoch:
        raise StaleEpoch(session_id, epoch, found.epoch)
    return found is not None


def session(db: sa.Connection, session_id: str) -> SessionRow | None:
    row = _SESSION.first(db, {"session": session_id})
    return None if row is None else _session_row(row)


def sessions(
    db: sa.Connection, limit: int, status: str, holder: str, shard: int | None, owner: str
) -> list[SessionRow]:
    query = sa.select(*_COLUMNS).order_by(SESSIONS.c.created_at.desc(), SESSIONS.c.id).limit(limit)
    wanted = {"status": status or None, "holder": holder or None, "shard": shard, "owner": owner or None}
    for name, value in wanted.items():
        if value is not None:
            query = query.where(SESSIONS.c[name] == value)
    return [_session_row(row) for row in db.execute(query)]


def counts(db: sa.Connection) -> dict[str, int]:
    rows = db.execute(sa.select(SESSIONS.c.status, sa.func.count()).group_by(SESSIONS.c.status))
    return {row[0]: row[1] for row in rows}


def snapshots(db: sa.Connection, session_id: str) -> list[SnapshotRow]:
    rows = _SNAPSHOTS.all(db, {"session": session_id})
    return [
        SnapshotRow(source_id=r.source_id, location=r.location, kind=SourceKind(r.kind), title=r.title) for r in rows
    ]


def limits_of(body: str) -> Limits:
    return Limits() if body == "{}" else Limits.model_validate_json(body)


def _session_row(row: Any) -> SessionRow:
    fields = row._asdict()
    for name in ("created_at", "updated_at"):
        fields[name] = datetime.fromisoformat(fields[name])
    return SessionRow(**fields | {"limits": limits_of(fields["limits"])})
