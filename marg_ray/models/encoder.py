"""The sentence encoder: sentence-transformers, for one core and short texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from marg_ray.seams import Vectors


class Encoder:
    """Vectors of length 1 from the model in `folder` (Reimers and Gurevych 2019). Usable from several threads.

    With `half` the weights are kept in bfloat16: on a processor with matrix units that halves the work, and a cosine
    moves by less than .006. Casting them at every call instead would cost what it saves.
    """

    def __init__(self, folder: Path, *, half: bool) -> None:
        os.environ["HF_HUB_OFFLINE"] = "1"  # read when the library is imported
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).eval()
        self._width = int(self._model.get_sentence_embedding_dimension() or 0)
        if half:
            self._model.bfloat16()

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension). A batch is padded to its longest text: give neighbours in length."""
        import torch

        if not texts:
            return np.zeros((0, self._width), np.float32)
        with torch.inference_mode():
            out = self._model(self._model.preprocess(list(texts)))["sentence_embedding"].float()
            rows = torch.nn.functional.normalize(out, dim=1).numpy()
        return np.ascontiguousarray(rows, dtype=np.float32)
