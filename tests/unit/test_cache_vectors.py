from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from marg_ray.memory.vectors import VectorFile
from marg_ray.models.embeddings import DIMENSION, Cache, CachedEmbedder, EmbedCounts
from marg_ray.seams import Vectors

Make = Callable[..., VectorFile]


def unit_rows(count: int, seed: int = 1) -> Vectors:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_key(rows: Vectors) -> dict[bytes, Vectors]:
    return {Cache.key(f"text {n}"): row for n, row in enumerate(rows)}


@pytest.fixture
def file(tmp_path: Path) -> Make:
    def make(**options: object) -> VectorFile:
        options = {"model": "MiniLM"} | options
        return VectorFile(tmp_path / "deep" / "vectors.db", **options)  # type: ignore[arg-type]

    return make


async def test_rows_come_back_in_another_process_with_the_cosines_they_had(file: Make) -> None:
    rows = unit_rows(600)
    first = file()
    first.write(by_key(rows))
    await first.close()
    second = file()
    found = await second.read(list(by_key(rows)))
    again = np.stack([found[key] for key in by_key(rows)])
    assert again.dtype == np.float32
    assert np.abs(again @ again.T - rows @ rows.T).max() < 1e-3
    assert np.allclose(np.linalg.norm(again, axis=1), 1, atol=1e-6)
    assert await second.read([Cache.key("never seen")]) == {}
    await second.close()


async def test_another_models_rows_are_not_found(file: Make) -> None:
    one, other = file(), file(model="another")
    one.write(by_key(unit_rows(1)))
    await one.flush()
    assert await other.read(list(by_key(unit_rows(1)))) == {}
    await one.close()
    await other.close()


async def test_a_batch_is_written_without_anybody_asking(file: Make) -> None:
    first, second = file(), file()
    rows = by_key(unit_rows(3))
    first.write(rows)
    async with asyncio.timeout(30):
        while len(await second.read(list(rows))) < 3:
            pass
    await first.close()
    await second.close()


async def test_the_file_is_bounded_and_forgets_the_oldest(file: Make) -> None:
    kept = file(rows=100)
    rows = by_key(unit_rows(250))
    for start in range(0, 250, 50):
        kept.write(dict(list(rows.items())[start : start + 50]))
        await kept.flush()
    assert set(await kept.read(list(rows))) == set(list(rows)[150:])
    await kept.close()


async def test_a_row_is_kept_as_long_as_it_is_used(file: Make) -> None:
    now = 1e9
    kept = file(ttl_s=10 * 86_400.0, clock=lambda: now)
    rows = by_key(unit_rows(2))
    used, unused = rows
    kept.write(rows)
    await kept.flush()
    for _ in range(4):
        now += 4 * 86_400
        assert used in await kept.read([used])
        await kept.flush()
    assert await kept.read([unused]) == {}
    kept.write({b"x" * 16: unit_rows(1)[0]})
    await kept.close()
    with sqlite3.connect(kept.path) as db:
        assert db.execute("select count(*) from vectors").fetchone() == (2,)
    db.close()


@pytest.mark.parametrize(
    "row",
    [
        b"",
        b"short",
        bytes(2 * DIMENSION),
        np.full(DIMENSION, np.nan, np.float16).tobytes(),
        np.full(DIMENSION, 1, np.float16).tobytes(),
        "text",
        None,
    ],
    ids=["empty", "short", "zero", "nan", "long", "text", "null"],
)
async def test_a_damaged_row_is_a_miss(file: Make, row: object) -> None:
    kept, rows = file(), by_key(unit_rows(2))
    kept.write(rows)
    await kept.flush()
    with sqlite3.connect(kept.path) as db:
        db.execute("update vectors set row = ? where id = 1", (row,))
    db.close()
    assert set(await kept.read(list(rows))) == {list(rows)[1]}
    await kept.close()


async def test_a_damaged_file_is_begun_anew(file: Make) -> None:
    kept, rows = file(), by_key(unit_rows(2))
    kept.path.parent.mkdir()
    kept.path.write_bytes(b"no database" * 1000)
    assert await kept.read(list(rows)) == {}
    kept.write(rows)
    await kept.flush()
    assert set(await kept.read(list(rows))) == set(rows)
    await kept.close()


async def test_a_place_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept, rows = VectorFile(tmp_path / "file" / "vectors.db", model="m"), by_key(unit_rows(2))
    kept.write(rows)
    assert await kept.read(list(rows)) == {}
    await kept.close()


async def test_a_file_that_another_process_locks_does_not_hold_anybody_up(file: Make) -> None:
    kept, rows = file(), by_key(unit_rows(2))
    kept.write(rows)
    await kept.flush()
    other = sqlite3.connect(kept.path)
    other.execute("begin exclusive")
    assert set(await kept.read(list(rows))) == set(rows)  # readers do not wait for a writer
    more = {b"m" * 16: unit_rows(1)[0]}
    kept.write(more)
    await kept.flush()
    other.rollback()
    other.close()
    assert await kept.read(list(more)) == {}
    kept.write(more)
    await kept.flush()
    assert set(await kept.read(list(more))) == set(more)
    await kept.close()


# ---- under the embedder


class Counting:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> Vectors:
        self.texts += texts
        return np.concatenate([unit_rows(1, seed=len(t)) for t in texts])


async def test_a_vector_is_computed_once_by_all_processes(file: Make) -> None:
    encode = Counting()
    first_file, second_file = file(), file()
    first = CachedEmbedder(encode, kept=first_file)
    a = await first.embed(["a", "bb", "a"])
    await first_file.close()
    second = CachedEmbedder(encode, kept=second_file)
    b = await second.embed(["bb", "ccc", "a", "a"])
    await second.embed(["bb"])
    assert encode.texts == ["a", "bb", "ccc"]
    assert np.abs(b[2] - a[0]).max() < 1e-3
    assert np.abs(b[0] - a[1]).max() < 1e-3
    assert second.counts == EmbedCounts(memory=1, kept=2, computed=1)
    await second_file.close()


async def test_an_embedder_works_over_a_file_that_does_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = VectorFile(tmp_path / "file" / "vectors.db", model="m")
    assert (await CachedEmbedder(Counting(), kept=kept).embed(["a", "b"])).shape == (2, DIMENSION)
    await kept.close()
