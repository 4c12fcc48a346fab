"""Shards and limits of sessions, costs as numbers, snapshots, metrics, keys, signs of life and caches."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

USAGE: dict[str, sa.types.TypeEngine[Any]] = {  # what a `Usage` was made of then
    "calls": sa.Integer(),
    "searches": sa.Integer(),
    "fetches": sa.Integer(),
    "tokens_in": sa.Integer(),
    "tokens_out": sa.Integer(),
    "cost": sa.Float(),
    "seconds": sa.Float(),
    "reused": sa.Integer(),
    "throttled": sa.Integer(),
}


def upgrade() -> None:
    _sessions()
    _calls()
    _new_tables()
    _snapshots_of_old_logs()
    op.drop_table("meta")


def _sessions() -> None:
    with op.batch_alter_table("sessions") as table:
        table.alter_column("owner", existing_type=sa.String(200), type_=sa.Text(), existing_nullable=False)
        table.alter_column("holder", existing_type=sa.String(64), type_=sa.String(200), existing_nullable=False)
        table.add_column(sa.Column("shard", sa.Integer, nullable=False, server_default="0"))
        table.add_column(sa.Column("limits", sa.Text, nullable=False, server_default="{}"))
        table.add_column(sa.Column("token", sa.String(32)))
        table.create_index("ix_sessions_work", ["status", "holder", "shard"])


def _calls() -> None:
    spent = _spent()
    with op.batch_alter_table("calls") as table:
        table.alter_column("task_id", existing_type=sa.String(200), type_=sa.Text(), existing_nullable=False)
        table.add_column(sa.Column("epoch", sa.Integer, nullable=False, server_default="0"))
        table.add_column(sa.Column("attempt", sa.Text))
        table.add_column(sa.Column("token", sa.String(32)))
        for kind in ("used", "reserved", "lost"):
            for name, number in USAGE.items():
                table.add_column(sa.Column(f"{kind}_{name}", number, nullable=False, server_default="0"))
        table.drop_column("usage")
    if spent:
        calls = sa.table("calls", *(sa.column(c) for c in ("session_id", "key", *(f"used_{n}" for n in USAGE))))
        of = sa.and_(calls.c.session_id == sa.bindparam("session"), calls.c.key == sa.bindparam("asked"))
        values: dict[str, Any] = {f"used_{name}": sa.bindparam(f"n_{name}") for name in USAGE}
        op.get_bind().execute(calls.update().where(of).values(values), spent)


def _spent() -> list[dict[str, object]]:
    """The costs of settled calls, which were kept as JSON."""
    rows = op.get_bind().execute(sa.text("SELECT session_id, key, usage FROM calls WHERE status = 'settled'")).all()
    return [
        {"session": r.session_id, "asked": r.key, **{f"n_{n}": json.loads(r.usage).get(n, 0) for n in USAGE}}
        for r in rows
    ]


def _new_tables() -> None:
    op.create_table(
        "snapshots",
        sa.Column("session_id", sa.String(64), primary_key=True),
        sa.Column("source_id", sa.String(64), primary_key=True),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
    )
    op.create_table(
        "metrics",
        sa.Column("session_id", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "keys",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("session_id", sa.String(64), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    op.create_table(
        "shards",
        sa.Column("holder", sa.String(200), primary_key=True),
        sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("beat_at", sa.String(40), nullable=False),
    )
    op.create_table(
        "cache",
        sa.Column("space", sa.String(40), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("stored_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("hits", sa.Integer, nullable=False),
    )
    op.create_index("ix_cache_expires_at", "cache", ["expires_at"])


def _snapshots_of_old_logs() -> None:
    """What old sessions have read stands in their logs."""
    query = sa.text("SELECT session_id, seq, body FROM log WHERE body LIKE :kind ORDER BY session_id, seq")
    found: dict[tuple[str, str], dict[str, object]] = {}
    for row in op.get_bind().execute(query, {"kind": "%source_read%"}):
        message = json.loads(row.body)
        source = message.get("source")
        if message.get("kind") == "source_read" and source:
            fields = {name: source[name].replace("\x00", "") for name in ("location", "kind", "title")}
            fresh = {"session_id": row.session_id, "source_id": source["id"], "seq": row.seq, **fields}
            found.setdefault((row.session_id, source["id"]), fresh)
    if found:
        names = ("session_id", "source_id", "seq", "location", "kind", "title")
        op.bulk_insert(sa.table("snapshots", *(sa.column(n) for n in names)), list(found.values()))
