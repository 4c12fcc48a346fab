"""A small BERT that turns texts into vectors: the forward pass alone, for one core and short texts.

The library that trained the model takes seven seconds of CPU to import, and four times as long for one query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marg_ray.seams import Vectors

TOKENS_AT_ONCE = 2048  # word pieces that go through the layers together


@dataclass(frozen=True)
class _Affine:
    """A linear layer, with `gelu` after it where it says so."""

    weight: Any
    bias: Any
    gelu: bool = False
    packed: bool = False  # its weight is laid out for the matrix units

    @classmethod
    def of(cls, weight: Any, bias: Any, *, half: bool, gelu: bool = False) -> _Affine:
        import torch

        if not half:
            return cls(weight.contiguous(), bias.contiguous(), gelu)
        weight, bias = weight.bfloat16().contiguous(), bias.bfloat16().contiguous()
        try:  # what compiled models use, unless this build of torch has it not
            laid_out = torch.ops.mkldnn._reorder_linear_weight(weight, TOKENS_AT_ONCE)
        except (AttributeError, NotImplementedError, RuntimeError):
            return cls(weight, bias, gelu)
        return cls(laid_out, bias, gelu, packed=True)

    def __call__(self, x: Any) -> Any:
        import torch

        if self.packed:
            after, kind = ("gelu", "none") if self.gelu else ("none", "")
            rows = torch.zeros(_few_sizes(len(x)), x.shape[1], dtype=self.bias.dtype)
            rows[: len(x)] = x
            return torch.ops.mkldnn._linear_pointwise(rows, self.weight, self.bias, after, [], kind)[: len(x)]
        x = x.to(self.bias.dtype)
        y = torch.nn.functional.linear(x, self.weight, self.bias)
        return torch.nn.functional.gelu(y) if self.gelu else y


@dataclass(frozen=True)
class _Layer:
    """Attention and feed-forward of one layer; `norms` are weight and bias after each of the two."""

    query_key_value: _Affine
    output: _Affine
    up: _Affine
    down: _Affine
    norms: tuple[tuple[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class _Packed:
    """Some texts' word pieces one after the other, and where they stand in a padded table of (texts, longest)."""

    ids: Any
    positions: Any
    mask: Any  # bool, shape (texts, longest); None where all texts are of one length
    lengths: Any


class Encoder:
    """Mean-pooled vectors of length 1 (Devlin et al. 2019; Reimers and Gurevych 2019). Usable from several threads.

    With `half`, the linear layers hold bfloat16 weights and all else stays in single precision: a cosine moves by
    less than .003. Texts are packed without padding; only attention sees a padded table.
    """

    def __init__(self, folder: Path, *, half: bool) -> None:
        from safetensors.torch import load_file
        from tokenizers import Tokenizer

        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.max_pieces = int(json.loads((folder / "sentence_bert_config.json").read_text("utf-8"))["max_seq_length"])
        self._heads, self._eps = int(config["num_attention_heads"]), float(config["layer_norm_eps"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.max_pieces)
        w = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
        types = w["embeddings.token_type_embeddings.weight"][0]
        self._words, self._positions = (
            w["embeddings.word_embeddings.weight"],
            w["embeddings.position_embeddings.weight"] + types,
        )
        self._norm = _pair(w, "embeddings.LayerNorm")
        count = int(config["num_hidden_layers"])
        self._layers = [_layer(w, f"encoder.layer.{n}", half) for n in range(count)]

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension)."""
        import torch

        pieces = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        rows = np.zeros((len(pieces), self._words.shape[1]), np.float32)
        with torch.inference_mode():
            for some in _groups([len(ids) for ids in pieces]):
                rows[some] = self._vectors(_pack([pieces[i] for i in some])).numpy()
        return rows

    def _vectors(self, packed: _Packed) -> Any:
        import torch

        x = self._normed(self._words[packed.ids] + self._positions[packed.positions], self._norm)
        for layer in self._layers:
            attended = self._attention(layer.query_key_value(x).float(), packed)
            x = self._normed(layer.output(attended) + x, layer.norms[0])
            x = self._normed(layer.down(layer.up(x)) + x, layer.norms[1])
        owner = torch.repeat_interleave(packed.lengths)
        sums = torch.zeros(len(packed.lengths), x.shape[1]).index_add_(0, owner, x)
        return torch.nn.functional.normalize(sums, dim=1)  # the length of a sum and of its mean are one direction

    def _attention(self, qkv: Any, packed: _Packed) -> Any:
        """Scaled dot products within each text; shapes (pieces, 3 x width) to (pieces, width)."""
        import torch

        count, longest, width = len(packed.lengths), int(packed.lengths.max()), qkv.shape[1] // 3
        table, bias = qkv, None
        if packed.mask is not None:
            table = torch.zeros(count, longest, 3 * width)
            table[packed.mask] = qkv
            bias = packed.mask[:, None, None, :]
        q, k, v = table.view(count, longest, 3, self._heads, width // self._heads).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        mixed = mixed.transpose(1, 2).reshape(count, longest, width)
        return mixed.view(-1, width) if packed.mask is None else mixed[packed.mask]

    def _normed(self, x: Any, norm: tuple[Any, Any]) -> Any:
        import torch

        return torch.nn.functional.layer_norm(x, (x.shape[1],), *norm, self._eps)


def _few_sizes(rows: int) -> int:
    """So many rows or a few more: code is generated for every size of a product that is met for the first time."""
    step = 16 if rows <= 128 else 64 if rows <= 512 else 256
    return -(-rows // step) * step


def _pair(weights: dict[str, Any], name: str) -> tuple[Any, Any]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _layer(w: dict[str, Any], name: str, half: bool) -> _Layer:
    import torch

    three = [_pair(w, f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
    return _Layer(
        query_key_value=_Affine.of(torch.cat([a for a, _ in three]), torch.cat([b for _, b in three]), half=half),
        output=_Affine.of(*_pair(w, f"{name}.attention.output.dense"), half=half),
        up=_Affine.of(*_pair(w, f"{name}.intermediate.dense"), half=half, gelu=True),
        down=_Affine.of(*_pair(w, f"{name}.output.dense"), half=half),
        norms=(_pair(w, f"{name}.attention.output.LayerNorm"), _pair(w, f"{name}.output.LayerNorm")),
    )


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Neighbours in length, about `TOKENS_AT_ONCE` word pieces together."""
    group: list[int] = []
    size = 0
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and size + lengths[i] > TOKENS_AT_ONCE:
            yield group
            group, size = [], 0
        group.append(i)
        size += lengths[i]
    if group:
        yield group


def _pack(pieces: Sequence[Sequence[int]]) -> _Packed:
    import torch

    lengths = np.array([len(ids) for ids in pieces])
    places = np.concatenate([np.arange(n) for n in lengths])
    mask = None if (lengths == lengths[0]).all() else np.arange(lengths.max())[None, :] < lengths[:, None]
    return _Packed(
        ids=torch.from_numpy(np.concatenate([np.asarray(ids, np.int64) for ids in pieces])),
        positions=torch.from_numpy(places),
        mask=None if mask is None else torch.from_numpy(mask),
        lengths=torch.from_numpy(lengths),
    )
