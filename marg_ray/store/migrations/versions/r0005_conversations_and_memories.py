"""Conversations, their turns, and what is remembered of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "conversations",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("updated_at", sa.Float, nullable=False),
    )
    op.create_table(
        "turns",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("conversation", sa.String(64), primary_key=True),
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "memories",
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
