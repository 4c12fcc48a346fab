"""Embeddings that outlive the process: a SQLite file of half-precision rows, read and written in batches."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from marg_ray.models.embeddings import DIMENSION
from marg_ray.seams import Vectors

log = logging.getLogger(__name__)

ROWS = 200_000  # of 384 dimensions: about 200 MB
TTL_S = 30 * 86_400.0
READ_AT_ONCE = 500  # keys in a statement
WRITE_AT_ONCE, WRITE_AFTER_S = 256, 1.0
TOUCH_AFTER_S = 86_400.0  # a row that is used is written anew after this, so that it is not the oldest
BUSY_S = 0.2  # for another process that writes; then the batch is let go
SCHEMA = """
create table if not exists vectors (id integer primary key, key blob not null unique, used real not null, row blob)
"""


class VectorFile:
    """The vectors of one model by the key of their text, the latest `rows` of them, each until unused for `ttl_s`.

    Half precision moves a cosine by less than 1e-3. All of it happens on a thread of its own; writing is put off
    until there is a batch, and what was not written when the process ended is computed again. A file that is damaged
    is begun anew; one that is locked or cannot be written is passed over.
    """

    def __init__(
        self,
        path: Path,
        *,
        model: str,
        dimension: int = DIMENSION,
        ttl_s: float = TTL_S,
        rows: int = ROWS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self._model, self._dimension = path, model.encode(), dimension
        self._ttl_s, self._rows, self._clock = ttl_s, rows, clock
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="vectors")
        self._db: sqlite3.Connection | None = None
        self._pending: dict[bytes, bytes] = {}  # computed or used since the last batch was written
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Future[None]] = set()
        self._told = False

    async def read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The rows that are there, of length 1, by key."""
        found = await asyncio.get_running_loop().run_in_executor(self._executor, self._guarded_read, list(keys))
        rows, touched = found
        if touched:
            self._put_off(touched)
        return rows

    def write(self, rows: Mapping[bytes, Vectors]) -> None:
        """Keep rows, within a second or with the next batch."""
        self._put_off({key: np.asarray(row, np.float16).tobytes() for key, row in rows.items()})

    async def flush(self) -> None:
        """See that everything is written."""
        self._start_writing()
        if self._writing:
            await asyncio.wait(self._writing)

    async def close(self) -> None:
        await self.flush()
        await asyncio.get_running_loop().run_in_executor(self._executor, self._disconnect)
        self._executor.shutdown(wait=False)

    # ---- on the loop

    def _put_off(self, rows: Mapping[bytes, bytes]) -> None:
        self._pending.update(rows)
        if len(self._pending) >= WRITE_AT_ONCE:
            self._start_writing()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WRITE_AFTER_S, self._start_writing)

    def _start_writing(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            batch, self._pending = self._pending, {}
            done = asyncio.get_running_loop().run_in_executor(self._executor, self._guarded_write, batch)
            self._writing.add(done)
            done.add_done_callback(self._writing.discard)

    # ---- on the thread

    def _guarded_read(self, keys: list[bytes]) -> tuple[dict[bytes, Vectors], dict[bytes, bytes]]:
        try:
            return self._read(keys)
        except (sqlite3.Error, OSError) as exc:
            self._give_up(exc)
            return {}, {}

    def _guarded_write(self, batch: Mapping[bytes, bytes]) -> None:
        try:
            self._write(batch)
        except (sqlite3.Error, OSError) as exc:
            self._give_up(exc)

    def _read(self, keys: list[bytes]) -> tuple[dict[bytes, Vectors], dict[bytes, bytes]]:
        now, width = self._clock(), self._dimension * 2
        names = {self._name(key): key for key in keys}
        stored: dict[bytes, bytes] = {}
        touched: dict[bytes, bytes] = {}
        wanted = list(names)
        for start in range(0, len(wanted), READ_AT_ONCE):
            part = wanted[start : start + READ_AT_ONCE]
            marks = ",".join("?" * len(part))
            sql = f"select key, used, row from vectors where used >= ? and key in ({marks})"
            for name, used, row in self._connection().execute(sql, (now - self._ttl_s, *part)):
                if isinstance(row, bytes) and len(row) == width:
                    stored[names[name]] = row
                    if used < now - TOUCH_AFTER_S:
                        touched[names[name]] = row
        if not stored:
            return {}, {}
        vectors = np.frombuffer(b"".join(stored.values()), np.float16).reshape(-1, self._dimension).astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1)
        whole = np.isfinite(lengths) & (np.abs(lengths - 1) < 0.01)
        rows = {
            key: vector / length for key, vector, length, ok in zip(stored, vectors, lengths, whole, strict=True) if ok
        }
        return rows, {key: row for key, row in touched.items() if key in rows}

    def _write(self, batch: Mapping[bytes, bytes]) -> None:
        now, db = self._clock(), self._connection()
        with db:
            db.executemany(
                "insert or replace into vectors (key, used, row) values (?, ?, ?)",
                [(self._name(key), now, row) for key, row in batch.items()],
            )
            # ids rise with the time of use: the oldest go first, without counting the table
            db.execute("delete from vectors where id <= (select max(id) from vectors) - ?", (self._rows,))
            first = "select id from vectors where used >= ? order by id limit 1"
            db.execute(f"delete from vectors where id < ({first})", (now - self._ttl_s,))

    def _name(self, key: bytes) -> bytes:
        return hashlib.blake2b(key, key=self._model[:64], digest_size=16).digest()

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, timeout=BUSY_S, check_same_thread=False)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = normal")
            self._db.execute(SCHEMA)
            self._db.commit()
        return self._db

    def _give_up(self, exc: Exception) -> None:
        """This batch is lost; a file that is damaged as well."""
        log.log(logging.DEBUG if self._told else logging.WARNING, "%s was passed over: %s", self.path, exc)
        self._told = True
        self._disconnect()
        if isinstance(exc, sqlite3.DatabaseError) and not isinstance(exc, sqlite3.OperationalError):
            for ending in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def _disconnect(self) -> None:
        if self._db is not None:
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
            self._db = None
