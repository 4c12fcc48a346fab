"""Which runs share actors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors.deploy import namespace_of
from marg_ray.models.select import Choice
from marg_ray.settings import ModelSettings, Settings, TapeSettings

CHOICE = Choice("vllm:small", "vllm:large", "it is configured")


def of(home: Path, choice: Choice = CHOICE, **areas: Any) -> str:
    return namespace_of(Settings(home=home, **areas), choice)


def test_equal_models_and_state_are_one(tmp_path: Path) -> None:
    assert of(tmp_path) == of(tmp_path, models=ModelSettings(timeout_s=1.0))


@pytest.mark.parametrize(
    "areas",
    [
        {"models": ModelSettings(base_url="http://127.0.0.1:8001/v1")},
        {"models": ModelSettings(fallback="openai:gpt-5")},
        {"models": ModelSettings.model_validate({"roles": {"critic": "openai:gpt-5"}})},
        {"tape": TapeSettings(replay="/tapes/one")},
    ],
    ids=lambda areas: next(iter(areas)),
)
def test_a_run_never_meets_actors_that_ask_somebody_else(tmp_path: Path, areas: dict[str, Any]) -> None:
    assert of(tmp_path, **areas) != of(tmp_path)
    assert of(tmp_path, Choice("extractive", "extractive", "")) != of(tmp_path)
