"""What `plan` says is what Ray and vLLM take: names of arguments, types of GPU, placement."""

from __future__ import annotations

from typing import Any

import pytest

from marg_ray.models.serving import plan
from marg_ray.settings import ServingSettings

pytest.importorskip("vllm", reason="vLLM is not in this environment (tests/vllm/environment.sh makes one)")


def taken(fields: dict[str, Any]) -> list[Any]:
    from ray.serve.llm import LLMConfig

    return [LLMConfig(**config) for config in plan(ServingSettings.model_validate(fields), [], wait=True).configs]


def test_the_default_tiers_are_placed_on_gpus_of_their_types() -> None:
    fast, strong = taken({})
    assert fast.get_engine_config().placement_bundles == [{"GPU": 1, "accelerator_type:L4": 0.001}]
    assert strong.get_engine_config().placement_bundles == [{"GPU": 1, "accelerator_type:H100": 0.001}] * 2
    assert strong.get_engine_config().get_initialization_kwargs()["quantization"] == "fp8"


def test_without_gpus_none_is_asked_for() -> None:
    for config in taken({"device": "cpu", "strong": {"tensor_parallel": 1}}):
        assert config.get_engine_config().placement_bundles == [{"CPU": 1}]


def test_adapters_are_multiplexed() -> None:
    fast, _ = taken({"fast": {"lora_path": "s3://bucket/adapters", "loras": 3}})
    assert fast.multiplex_config().max_num_models_per_replica == 3
    assert fast.get_engine_config().engine_kwargs["enable_lora"] is True


def test_an_argument_that_the_engine_does_not_know_is_refused() -> None:
    (fast, _) = taken({"fast": {"engine": {"no_such_argument": 1}}})
    with pytest.raises(ValueError, match="no_such_argument"):
        fast.get_engine_config()
