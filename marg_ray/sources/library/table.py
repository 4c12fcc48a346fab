"""The passages of all documents in a LanceDB table: texts, vectors, and hashed word statistics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from marg_ray.seams import Vectors
from marg_ray.sources.library.index import Index
from marg_ray.sources.library.passages import Row

_COLUMNS = ["source_id", "start", "end", "title", "heading", "label", "text", "terms", "counts", "names", "vector"]


class Table:
    """Rows are added and removed by whole documents. `made` names how they were cut; other rows are not seen."""

    def __init__(self, table: Any, made: str, dimension: int) -> None:
        self._table = table
        self._made = made
        self._dimension = dimension

    @classmethod
    async def open(cls, folder: Path, model: str, made: str, dimension: int) -> Table:
        import lancedb
        import pyarrow as pa

        ids, words = pa.list_(pa.int64()), pa.list_(pa.int32())
        schema = pa.schema(
            [
                ("source_id", pa.string()),
                ("made", pa.string()),
                ("start", pa.int32()),
                ("end", pa.int32()),
                ("title", pa.string()),
                ("heading", pa.string()),
                ("label", pa.string()),
                ("text", pa.large_string()),
                ("digest", pa.binary(16)),
                ("terms", ids),
                ("counts", words),
                ("names", ids),
                ("vector", pa.list_(pa.float32(), dimension)),
            ]
        )
        db = await lancedb.connect_async(folder)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"passages_{model}")  # vectors of two models never meet
        return cls(await _created(db, name, schema), made, dimension)

    async def present(self) -> set[str]:
        """The documents whose passages are all here."""
        await self._table.checkout_latest()
        found = await self._table.query().where(f"made = '{self._made}'").select(["source_id"]).to_arrow()
        return set(found["source_id"].unique().to_pylist())

    async def known_vectors(self, digests: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors of passages that were embedded before, by the digest of what was embedded."""
        wanted = set(digests)
        rows = await self._table.query().select(["digest"]).with_row_id().to_arrow()
        first = {
            d: i for i, d in zip(rows["_rowid"].to_pylist(), rows["digest"].to_pylist(), strict=True) if d in wanted
        }
        if not first:
            return {}
        taken = await self._table.take_row_ids(list(first.values())).select(["digest", "vector"]).to_arrow()
        vectors = _vectors(taken["vector"], self._dimension)
        return dict(zip(taken["digest"].to_pylist(), vectors, strict=True))

    async def add(self, documents: Sequence[tuple[str, str, Sequence[Row]]], vectors: Vectors) -> None:
        """Add documents (id, title, rows) in one commit; `vectors` has one row per passage in the same order."""
        import pyarrow as pa

        rows = [(source_id, title, row) for source_id, title, part in documents for row in part]
        if not rows:
            return
        data = {
            "source_id": [source_id for source_id, _, _ in rows],
            "made": [self._made] * len(rows),
            "title": [title for _, title, _ in rows],
            "digest": [digest(row.embedded) for _, _, row in rows],
        }
        for column in ("start", "end", "heading", "label", "text", "terms", "counts", "names"):
            data[column] = [getattr(row, column) for _, _, row in rows]
        schema = await self._table.schema()
        flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
        arrays = {**data, "vector": pa.FixedSizeListArray.from_arrays(flat, self._dimension)}
        await self.remove([source_id for source_id, _, _ in documents])  # what an interrupted run left
        await self._table.add(pa.table([pa.array(arrays[f.name], f.type) for f in schema], schema=schema))

    async def remove(self, source_ids: Iterable[str]) -> None:
        ids = sorted(set(source_ids))
        for i in range(0, len(ids), 200):
            listed = ", ".join(f"'{source_id}'" for source_id in ids[i : i + 200])
            await self._table.delete(f"source_id in ({listed})")

    async def count(self, source_ids: Iterable[str]) -> int:
        """How many passages these documents have."""
        ids = set(source_ids)
        found = await self._table.query().where(f"made = '{self._made}'").select(["source_id"]).to_arrow()
        return sum(source_id in ids for source_id in found["source_id"].to_pylist())

    async def all_ids(self) -> set[str]:
        rows = await self._table.query().select(["source_id"]).to_arrow()
        return set(rows["source_id"].unique().to_pylist())

    async def tidy(self) -> None:
        """Merge small fragments; drop what no reader of the last hour can need."""
        await self._table.optimize(cleanup_older_than=timedelta(hours=1))

    async def load(self, source_ids: Sequence[str]) -> Any:
        """The Arrow table of some documents' passages, in the order of `source_ids` and of each text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        await self._table.checkout_latest()
        rows = await self._table.query().where(f"made = '{self._made}'").select(_COLUMNS).to_arrow()
        place = pc.index_in(rows["source_id"], pa.array(source_ids, pa.string()))
        rows = rows.append_column("place", place).filter(pc.is_valid(place))
        return rows.sort_by([("place", "ascending"), ("start", "ascending")]).combine_chunks()


async def _created(db: Any, name: str, schema: Any, tries: int = 5) -> Any:
    """The table, made where there is none; another process may be making it."""
    while True:
        try:
            return await db.create_table(name, schema=schema, exist_ok=True)
        except RuntimeError as exc:
            tries -= 1
            if tries == 0 or "conflict" not in str(exc):
                raise


def index_of(rows: Any) -> Index:
    """The searchable form of `Table.load`'s rows. CPU work."""
    counts = [int(n) for n in rows["terms"].combine_chunks().value_lengths().to_numpy()] if len(rows) else []
    named = [int(n) for n in rows["names"].combine_chunks().value_lengths().to_numpy()] if len(rows) else []
    dimension = rows.schema.field("vector").type.list_size
    return Index(
        source_ids=rows["source_id"].to_pylist(),
        starts=rows["start"].to_numpy(),
        ends=rows["end"].to_numpy(),
        titles=rows["title"].to_pylist(),
        headings=rows["heading"].to_pylist(),
        labels=rows["label"].to_pylist(),
        texts=rows["text"].to_pylist(),
        terms=_flat(rows["terms"], np.int64),
        counts=_flat(rows["counts"], np.int32),
        terms_per_passage=np.array(counts, np.int64),
        names=_flat(rows["names"], np.int64),
        names_per_passage=np.array(named, np.int64),
        vectors=_vectors(rows["vector"], dimension),
    )


def _flat(column: Any, dtype: Any) -> Any:
    return column.combine_chunks().flatten().to_numpy(zero_copy_only=False).astype(dtype, copy=False)


def _vectors(column: Any, dimension: int) -> Vectors:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(-1, dimension), np.float32)


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
