"""Makes a database, or brings an older one up to date; one process does it, others that open it then wait."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from marg_ray.errors import UsageError
from marg_ray.store.database import Database
from marg_ray.store.schema import HEAD, METADATA, VERSION

_LOCK = 0x6D617267  # of PostgreSQL's advisory locks
_OLDER = frozenset(f"{n:04}" for n in range(int(HEAD)))  # revisions are numbered
_OURS = frozenset(METADATA.tables) | {"meta"}


async def bring_up_to_date(database: Database) -> None:
    """See to it that the database has the newest tables.

    Raises:
        UsageError: a newer version of this package has written there.
    """
    if await database.read(version) != HEAD:
        await database.write(_upgrade)


def version(db: sa.Connection) -> str:
    """The database's revision; empty where it has none."""
    if not sa.inspect(db).has_table(VERSION.name):
        return ""
    return db.execute(sa.select(VERSION.c.version_num)).scalar() or ""


def _upgrade(db: sa.Connection) -> None:
    if db.dialect.name == "postgresql":  # SQLite's transaction has the file to itself already
        db.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    found = version(db)
    if found == HEAD:  # somebody else was faster
        return
    if found and found not in _OLDER:
        raise UsageError(f"the store was written by a newer MARG (revision {found})", "update marg, then try again")
    if not found and not (_OURS & set(sa.inspect(db).get_table_names())):
        METADATA.create_all(db, checkfirst=False)
        VERSION.create(db)
        db.execute(sa.insert(VERSION), {"version_num": HEAD})
        return
    migrate(db)


def migrate(db: sa.Connection, revision: str = "head") -> None:
    """Run the migrations up to `revision` on a connection, in its transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = db
    command.upgrade(config, revision)
