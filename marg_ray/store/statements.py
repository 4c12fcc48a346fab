"""Statements that are run for every log entry and every paid call."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

Core: TypeAlias = sa.Select[Any] | sa.UpdateBase
_SQLITE: sa.Dialect = sqlite.dialect(paramstyle="named")
_tuple_type: Callable[..., Any] = namedtuple


def _named(columns: list[str]) -> Callable[[tuple[Any, ...]], Any]:
    make: Callable[[tuple[Any, ...]], Any] = _tuple_type("Row", columns)._make
    return make


class Statement:
    """A statement of SQLAlchemy Core, and what it says on SQLite.

    SQLite's driver is asked directly: what Core does around a statement takes ten times as long as the statement. So
    its values are numbers and texts, which need no conversion. Text is made once for each set of parameters.
    """

    def __init__(self, core: Core, on_sqlite: Core | None = None) -> None:
        self._core, self._on_sqlite = core, core if on_sqlite is None else on_sqlite
        self._texts: dict[tuple[str, ...], tuple[str, dict[str, Any]]] = {}
        self._row: Callable[[tuple[Any, ...]], Any] | None = None

    def changes(self, db: sa.Connection, values: Mapping[str, Any]) -> int:
        """Run it; how many rows it changed."""
        if db.dialect.name == "sqlite":
            return int(self._run(db, values).rowcount)
        return db.execute(self._core, values).rowcount

    def all(self, db: sa.Connection, values: Mapping[str, Any]) -> list[Any]:
        """Its rows, whose fields are named as its columns are."""
        if db.dialect.name != "sqlite":
            return list(db.execute(self._core, values))
        cursor = self._run(db, values)
        if self._row is None:
            self._row = _named([name for name, *_ in cursor.description])
        return [self._row(row) for row in cursor.fetchall()]

    def first(self, db: sa.Connection, values: Mapping[str, Any]) -> Any | None:
        rows = self.all(db, values)
        return rows[0] if rows else None

    def _run(self, db: sa.Connection, values: Mapping[str, Any]) -> Any:
        names = tuple(values)
        if (made := self._texts.get(names)) is None:
            made = self._texts[names] = self._made(names)
        text, constants = made
        driver: Any = db.connection.dbapi_connection
        return driver.execute(text, {**constants, **values})

    def _made(self, names: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
        compiled = self._on_sqlite.compile(dialect=_SQLITE, column_keys=list(names))
        constants = {name: value for name, value in compiled.params.items() if value is not None and name not in names}
        return str(compiled), constants
