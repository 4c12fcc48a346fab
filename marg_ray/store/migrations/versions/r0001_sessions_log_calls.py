"""Sessions, their logs and their calls.

Databases of that time carry no revision: where the tables are there already, this changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table("meta", sa.Column("schema_version", sa.Integer, primary_key=True), if_not_exists=True)
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("owner", sa.String(200), nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("updated_at", sa.String(40), nullable=False),
        sa.Column("status", sa.String(40), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("artefact", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(64), nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_sessions_created_at", "sessions", ["created_at"], if_not_exists=True)
    op.create_table(
        "log",
        sa.Column("session_id", sa.String(64), primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True),
        sa.Column("at", sa.String(40), nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "calls",
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
        if_not_exists=True,
    )
