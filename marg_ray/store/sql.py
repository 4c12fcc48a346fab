"""The store on SQLAlchemy: SQLite (write-ahead log) embedded; the same statements serve PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.messages import MESSAGES, Message, ReportReady
from marg_ray.records import Usage
from marg_ray.store.protocol import CallRow, LogEntry, SessionRow

if TYPE_CHECKING:
    from marg_ray.seams import CallKey

SCHEMA_VERSION = 1

METADATA = sa.MetaData()
META = sa.Table("meta", METADATA, sa.Column("schema_version", sa.Integer, primary_key=True))
SESSIONS = sa.Table(
    "sessions",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("owner", sa.String(200), nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(40), nullable=False, index=True),
    sa.Column("updated_at", sa.String(40), nullable=False),
    sa.Column("status", sa.String(40), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("artefact", sa.String(64), nullable=False),
    sa.Column("holder", sa.String(64), nullable=False),
)
LOG = sa.Table(
    "log",
    METADATA,
    sa.Column("session_id", sa.String(64), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
CALLS = sa.Table(
    "calls",
    METADATA,
    sa.Column("session_id", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("task_id", sa.String(200), nullable=False),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("begun", sa.Integer, nullable=False),
    sa.Column("begun_at", sa.String(40), nullable=False),
    sa.Column("result", sa.Text, nullable=False),
    sa.Column("usage", sa.Text, nullable=False),
)


def _now() -> str:
    return datetime.now(UTC).isoformat()


def sqlite_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


class SqlStore:
    """A `Store` over one database. Open it with `await SqlStore.open(url)`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    @classmethod
    async def open(cls, url: str) -> SqlStore:
        if url.startswith("sqlite") and ":memory:" not in url:
            Path(url.split(":///", 1)[1]).parent.mkdir(parents=True, exist_ok=True)
        engine = create_async_engine(url, connect_args={"timeout": 30} if url.startswith("sqlite") else {})
        if url.startswith("sqlite"):
            sa.event.listen(engine.sync_engine, "connect", _sqlite_pragmas)
        async with engine.begin() as db:
            await db.run_sync(METADATA.create_all)
            if (await db.execute(sa.select(META.c.schema_version))).first() is None:
                await db.execute(META.insert().values(schema_version=SCHEMA_VERSION))
        return cls(engine)

    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        now = _now()
        row = {"id": session_id, "owner": owner, "question": question, "created_at": now, "updated_at": now}
        async with self._engine.begin() as db:
            known = await db.execute(sa.select(SESSIONS.c.id).where(SESSIONS.c.id == session_id))
            if known.first() is None:
                await db.execute(
                    SESSIONS.insert().values(**row, status="running", epoch=0, seq=0, artefact="", holder="")
                )

    async def take_over(self, session_id: str, *, holder: str = "") -> int:
        async with self._engine.begin() as db:
            mine = SESSIONS.c.id == session_id
            await db.execute(SESSIONS.update().where(mine).values(epoch=SESSIONS.c.epoch + 1, holder=holder))
            epoch = (await db.execute(sa.select(SESSIONS.c.epoch).where(mine))).scalar_one_or_none()
        if epoch is None:
            raise SessionNotFound(session_id)
        return int(epoch)

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        now, seq = _now(), expected_seq + 1
        changes: dict[str, Any] = {"seq": seq, "updated_at": now, "status": status}
        if isinstance(message, ReportReady):
            changes["artefact"] = message.artefact
        at_expected = sa.and_(SESSIONS.c.id == session_id, SESSIONS.c.seq == expected_seq, SESSIONS.c.epoch == epoch)
        async with self._engine.begin() as db:
            done = await db.execute(SESSIONS.update().where(at_expected).values(**changes))
            if done.rowcount != 1:
                await self._refuse(db, session_id, expected_seq, epoch)
            body = MESSAGES.dump_json(message).decode()
            await db.execute(LOG.insert().values(session_id=session_id, seq=seq, at=now, epoch=epoch, body=body))
        return LogEntry(seq=seq, at=datetime.fromisoformat(now), message=message)

    @staticmethod
    async def _refuse(db: AsyncConnection, session_id: str, expected_seq: int, epoch: int) -> None:
        found = await db.execute(sa.select(SESSIONS.c.seq, SESSIONS.c.epoch).where(SESSIONS.c.id == session_id))
        row = found.first()
        if row is None:
            raise SessionNotFound(session_id)
        if row.epoch != epoch:
            raise StaleEpoch(session_id, epoch, row.epoch)
        raise StoreConflict(session_id, expected_seq, row.seq)

    async def read(self, session_id: str, *, after: int = 0) -> list[LogEntry]:
        query = sa.select(LOG.c.seq, LOG.c.at, LOG.c.body).where(LOG.c.session_id == session_id, LOG.c.seq > after)
        async with self._engine.connect() as db:
            rows = (await db.execute(query.order_by(LOG.c.seq))).all()
        return [
            LogEntry(seq=r.seq, at=datetime.fromisoformat(r.at), message=MESSAGES.validate_json(r.body)) for r in rows
        ]

    async def session(self, session_id: str) -> SessionRow:
        async with self._engine.connect() as db:
            row = (await db.execute(sa.select(SESSIONS).where(SESSIONS.c.id == session_id))).first()
        if row is None:
            raise SessionNotFound(session_id)
        return _session_row(row)

    async def sessions(self, *, limit: int = 100, status: str = "", holder: str = "") -> list[SessionRow]:
        query = sa.select(SESSIONS).order_by(SESSIONS.c.created_at.desc(), SESSIONS.c.id).limit(limit)
        if status:
            query = query.where(SESSIONS.c.status == status)
        if holder:
            query = query.where(SESSIONS.c.holder == holder)
        async with self._engine.connect() as db:
            return [_session_row(r) for r in (await db.execute(query)).all()]

    async def begin_call(self, call: CallKey) -> CallRow:
        mine = sa.and_(CALLS.c.session_id == call.session_id, CALLS.c.key == call.key)
        async with self._engine.begin() as db:
            again = CALLS.update().where(mine, CALLS.c.status == "begun").values(begun=CALLS.c.begun + 1)
            await db.execute(again)
            row = (await db.execute(sa.select(CALLS).where(mine))).first()
            if row is not None:
                return _call_row(row)
            fields = {"session_id": call.session_id, "key": call.key, "kind": call.kind, "role": str(call.role)}
            await db.execute(
                CALLS.insert().values(
                    **fields, task_id=call.task_id, status="begun", begun=1, begun_at=_now(), result="", usage="{}"
                )
            )
        return CallRow(call=call, status="begun")

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        mine = sa.and_(CALLS.c.session_id == call.session_id, CALLS.c.key == call.key, CALLS.c.status == "begun")
        values = {"status": "settled", "result": result, "usage": usage.model_dump_json()}
        async with self._engine.begin() as db:
            await db.execute(CALLS.update().where(mine).values(**values))

    async def calls(self, session_id: str) -> list[CallRow]:
        query = sa.select(CALLS).where(CALLS.c.session_id == session_id).order_by(CALLS.c.begun_at, CALLS.c.key)
        async with self._engine.connect() as db:
            return [_call_row(r) for r in (await db.execute(query)).all()]

    async def close(self) -> None:
        await self._engine.dispose()


def _sqlite_pragmas(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")  # readers do not wait for the writer
    cursor.execute("PRAGMA synchronous=NORMAL")  # a killed process loses nothing; only a power cut may
    cursor.close()


def _session_row(row: Any) -> SessionRow:
    fields = {k: v for k, v in row._mapping.items() if k != "epoch"}
    for name in ("created_at", "updated_at"):
        fields[name] = datetime.fromisoformat(fields[name])
    return SessionRow(**fields)


def _call_row(row: Any) -> CallRow:
    from marg_ray.seams import CallKey

    call = CallKey(session_id=row.session_id, kind=row.kind, key=row.key, role=row.role, task_id=row.task_id)
    usage = Usage.model_validate_json(row.usage)
    return CallRow(call=call, status=row.status, result=row.result, usage=usage, begun=row.begun)
