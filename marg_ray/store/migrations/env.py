"""Run by alembic: the migrations on the connection that `marg_ray.store.upgrade` has opened, in its transaction."""

from __future__ import annotations

from alembic import context

from marg_ray.store.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    transactional_ddl=True,  # all or nothing, on SQLite too
    transaction_per_migration=False,
)
context.run_migrations()
