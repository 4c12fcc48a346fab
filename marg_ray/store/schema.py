"""The tables. The same for SQLite and PostgreSQL; `migrations/` leads every older database here."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from marg_ray.records import Usage
from marg_ray.store.statements import Statement

HEAD = "0005"  # the newest migration; a database made from METADATA is stamped with it

METADATA = sa.MetaData()
VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),  # of its own: alembic makes it and leaves it out of comparisons
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def usage_columns(prefix: str) -> list[sa.Column[int] | sa.Column[float]]:
    """A `Usage` as numbers, so that the database can add them up."""
    return [
        sa.Column(
            f"{prefix}_{name}",
            sa.Float() if isinstance(field.default, float) else sa.Integer(),
            nullable=False,
            server_default="0",
        )
        for name, field in Usage.model_fields.items()
    ]


SESSIONS = sa.Table(
    "sessions",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("created_at", sa.String(40), nullable=False, index=True),
    sa.Column("updated_at", sa.String(40), nullable=False),
    sa.Column("status", sa.String(40), nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("artefact", sa.String(64), nullable=False),
    sa.Column("holder", sa.String(200), nullable=False),
    sa.Column("shard", sa.Integer, nullable=False, server_default="0"),
    sa.Column("limits", sa.Text, nullable=False, server_default="{}"),
    sa.Column("token", sa.String(32)),  # names the one that set the epoch
    sa.Index("ix_sessions_work", "status", "holder", "shard"),
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
SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("session_id", sa.String(64), primary_key=True),
    sa.Column("source_id", sa.String(64), primary_key=True),
    sa.Column("seq", sa.Integer, nullable=False),  # the log entry that says it was read
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
)
CALLS = sa.Table(
    "calls",
    METADATA,
    sa.Column("session_id", sa.String(64), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("task_id", sa.Text, nullable=False),
    sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("begun", sa.Integer, nullable=False),
    sa.Column("begun_at", sa.String(40), nullable=False),
    sa.Column("attempt", sa.Text),  # the caller's name of the attempt under way
    sa.Column("token", sa.String(32)),  # and the store's
    sa.Column("result", sa.Text, nullable=False),
    *usage_columns("used"),
    *usage_columns("reserved"),
    *usage_columns("lost"),
)
METRICS = sa.Table(
    "metrics",
    METADATA,
    sa.Column("session_id", sa.String(64), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)
KEYS = sa.Table(
    "keys",
    METADATA,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("session_id", sa.String(64), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
API_KEYS = sa.Table(
    "api_keys",
    METADATA,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),  # with blanks between them
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created_at", sa.String(40), nullable=False),
    sa.Column("expires_at", sa.String(40)),
    sa.Column("used_at", sa.String(40)),
    sa.Column("revoked_at", sa.String(40)),
)
TALLIES = sa.Table(
    "tallies",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("period", sa.Integer, primary_key=True, autoincrement=False, index=True),
    sa.Column("number", sa.Integer, nullable=False),
)
SHARDS = sa.Table(
    "shards",
    METADATA,
    sa.Column("holder", sa.String(200), primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("beat_at", sa.String(40), nullable=False),
)
CACHE = sa.Table(
    "cache",
    METADATA,
    sa.Column("space", sa.String(40), primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("stored_at", sa.Float, nullable=False),  # seconds since 1970, UTC
    sa.Column("expires_at", sa.Float, nullable=False, index=True),
    sa.Column("hits", sa.Integer, nullable=False),
)

CONVERSATIONS = sa.Table(
    "conversations",
    METADATA,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),  # seconds since 1970, UTC, as all times here
    sa.Column("updated_at", sa.Float, nullable=False),
)
TURNS = sa.Table(
    "turns",
    METADATA,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("conversation", sa.String(64), primary_key=True),
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("role", sa.String(20), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
MEMORIES = sa.Table(
    "memories",
    METADATA,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("conversation", sa.String(64), nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("by", sa.String(20), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("used_at", sa.Float, nullable=False),
    sa.Column("uses", sa.Integer, nullable=False),
)


def _new(table: sa.Table) -> Statement:
    return Statement(postgresql.insert(table).on_conflict_do_nothing(), sqlite.insert(table).on_conflict_do_nothing())


_NEW_ROW = {table: _new(table) for table in (SESSIONS, CALLS, SNAPSHOTS, KEYS, API_KEYS, CONVERSATIONS, TURNS)}


def add(db: sa.Connection, table: sa.Table, row: dict[str, object]) -> bool:
    """Insert a row unless its key is there; says whether it was inserted. Of several at once one inserts."""
    return _NEW_ROW[table].changes(db, row) == 1


def _putting(table: sa.Table, *changed: str) -> Statement:
    def on(insert: type[sqlite.Insert] | type[postgresql.Insert]) -> sa.Insert:
        new = insert(table)
        return new.on_conflict_do_update(
            index_elements=list(table.primary_key), set_={name: new.excluded[name] for name in changed}
        )

    return Statement(on(postgresql.Insert), on(sqlite.Insert))


_PUT = {
    METRICS: _putting(METRICS, "body"),
    SHARDS: _putting(SHARDS, "beat_at"),
    CACHE: _putting(CACHE, "value", "stored_at", "expires_at"),
    MEMORIES: _putting(MEMORIES, "conversation", "kind", "by", "text", "at", "used_at", "uses"),
}


def put(db: sa.Connection, table: sa.Table, row: dict[str, object]) -> None:
    """Insert a row, or change the one that has its key."""
    _PUT[table].changes(db, row)


def _counting(insert: type[sqlite.Insert] | type[postgresql.Insert]) -> sa.UpdateBase:
    more = {"number": TALLIES.c.number + 1}
    new = insert(TALLIES).on_conflict_do_update(index_elements=list(TALLIES.primary_key), set_=more)
    return new.returning(TALLIES.c.number)


_COUNT = Statement(_counting(postgresql.Insert), _counting(sqlite.Insert))


def raise_number(db: sa.Connection, name: str, period: int) -> int:
    """Count one more; returns the number."""
    return int(_COUNT.all(db, {"name": name, "period": period, "number": 1})[0].number)
