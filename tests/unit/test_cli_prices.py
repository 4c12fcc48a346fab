from __future__ import annotations

import pytest

from marg_ray.cli.run import Output, Watch
from marg_ray.models.select import Choice
from marg_ray.records import Limits, Request
from marg_ray.settings import load


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("https://models.test/v1:my-own", True),
        ("openai:gpt-4o-mini", False),
        ("ollama:llama3.1", False),
        ("extractive", False),
    ],
)
async def test_a_limit_in_dollars_says_when_it_cannot_hold(
    spec: str, told: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    request = Request(question="How much?", limits=Limits(usd=1))
    watch = Watch(load(model=spec), request, Output(), "S", resumed=False)
    await watch._warn_of_unknown_prices(Choice(spec_fast=spec, spec_strong=spec, why=""))
    assert ("no price is known" in capsys.readouterr().err) is told
