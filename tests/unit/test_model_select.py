"""Which model is picked, in which order, and why."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.simulated_llm import SimulatedLLM
from marg_ray.errors import UsageError
from marg_ray.models.client import Call
from marg_ray.models.endpoints import PROVIDERS, is_local
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.select import Choice, build_model, choose, get_json
from marg_ray.models.testing import CannedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.models.wrappers import FallbackModel, aclose
from marg_ray.records import Role
from marg_ray.settings import ModelSettings, Settings
from tests import model_tasks as samples


def settings(model: str = "auto", **models: Any) -> Settings:
    return Settings(model=model, models=ModelSettings(**models))


class Net:
    """Answers the probes from a table and keeps what was probed."""

    def __init__(self, **pages: Any) -> None:
        self.pages, self.asked = pages, []

    async def __call__(self, url: str, seconds: float) -> Any:
        self.asked.append(url)
        return next((page for part, page in self.pages.items() if part in url), None)


TAGS = {
    "models": [
        {"name": "nomic-embed-text:latest", "size": 300_000_000},
        {"name": "llama3.1:8b", "size": 4_900_000_000},
        {"name": "llama3.3:70b", "size": 42_000_000_000},
    ]
}
SERVED = {"data": [{"id": "meta-llama/Llama-3.3-70B-Instruct"}, {"id": "meta-llama/Llama-3.1-8B-Instruct"}]}
EXTRACTIVE = ("extractive", "extractive")


async def pick(env: dict[str, str], net: Net, gpu: bool = False, offline: bool = False, **models: Any) -> Choice:
    model = models.pop("model", "auto")
    return await choose(settings(model, **models), env, offline=offline, get=net, gpu=lambda: gpu)


async def test_what_is_configured_comes_first() -> None:
    net = Net(tags=TAGS)
    choice = await pick({"GROQ_API_KEY": "k"}, net, model="ollama:mistral")
    assert (choice.spec_fast, choice.spec_strong) == ("ollama:mistral", "ollama:mistral")
    assert net.asked == []
    choice = await pick({}, net, model="extractive")
    assert choice.extractive


async def test_a_tier_may_be_configured_alone() -> None:
    choice = await pick({}, Net(), model="vllm:big", fast="vllm:small")
    assert (choice.spec_fast, choice.spec_strong) == ("vllm:small", "vllm:big")
    choice = await pick({}, Net(), strong="vllm:big")
    assert (choice.spec_fast, choice.spec_strong) == ("vllm:big", "vllm:big")


@pytest.mark.parametrize("name", [n for n, p in PROVIDERS.items() if p.key])
async def test_then_a_key_in_the_environment(name: str) -> None:
    net = Net(tags=TAGS)
    choice = await pick({PROVIDERS[name].key: "k"}, net)
    assert choice.spec_fast.startswith(f"{name}:")
    assert choice.spec_strong == f"{name}:{PROVIDERS[name].strong}"
    assert PROVIDERS[name].key in choice.why
    assert net.asked == []


async def test_then_an_ollama_with_a_model_that_can_chat() -> None:
    choice = await pick({"OPENAI_API_KEY": "  "}, Net(tags=TAGS), gpu=True)
    assert (choice.spec_fast, choice.spec_strong) == ("ollama:llama3.1:8b", "ollama:llama3.1:8b")
    only_embeddings = {"models": TAGS["models"][:1]}
    assert (await pick({}, Net(tags=only_embeddings))).extractive


async def test_then_vllm_where_there_is_a_gpu() -> None:
    net = Net(models=SERVED)
    choice = await pick({}, net, gpu=True)
    assert choice.spec_fast == "vllm:meta-llama/Llama-3.1-8B-Instruct"
    assert choice.spec_strong == "vllm:meta-llama/Llama-3.3-70B-Instruct"
    assert (await pick({}, net, gpu=False)).extractive
    without = await pick({}, Net(), gpu=True)
    assert without.extractive
    assert "no vLLM answers" in without.why


@pytest.mark.parametrize("junk", [None, [], {"models": None}, {"models": [{"nome": 1}, 7]}, "text", {"data": 3}])
async def test_else_no_model_at_all(junk: Any) -> None:
    choice = await pick({}, Net(tags=junk, models=junk), gpu=True)
    assert choice.extractive
    assert choice.why


async def test_a_server_that_is_set_without_a_model_is_asked_which_it_has() -> None:
    choice = await pick({}, Net(models=SERVED), base_url="http://10.0.0.9:8000/v1")
    assert "8B" in choice.spec_fast
    assert "70B" in choice.spec_strong
    with pytest.raises(UsageError, match=r"10\.0\.0\.9"):
        await pick({}, Net(), base_url="http://10.0.0.9:8000/v1")


async def test_offline_looks_only_on_this_machine() -> None:
    env = {"OPENAI_API_KEY": "k", "OLLAMA_HOST": "http://big.example:11434"}
    net = Net(tags=TAGS)
    assert (await pick(env, net, offline=True)).extractive
    assert net.asked == []
    with pytest.raises(UsageError, match="not on this machine"):
        await pick(env, net, offline=True, model="openai:gpt-5")
    with pytest.raises(UsageError, match="not on this machine"):
        await pick(env, net, offline=True, model="vllm:m", fallback="openai:gpt-5")
    assert (await pick(env, net, offline=True, model="vllm:m")).spec_fast == "vllm:m"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.9.1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://10.0.0.1/v1", False),
        ("http://localhost.example/v1", False),
    ],
)
def test_local_addresses(url: str, local: bool) -> None:
    assert is_local(url) is local


async def test_the_probe_of_a_real_server() -> None:
    async with SimulatedLLM(ollama_models=("llama3.1:8b",)) as server:
        root = server.base_url.removesuffix("/v1")
        env = {"OLLAMA_HOST": root}
        choice = await choose(settings(), env, gpu=lambda: False)
        assert choice.spec_fast == "ollama:llama3.1:8b"
        model = build_model(choice, settings(), extractive_factory=CannedModel, env=env)
        reply = await model.run(samples.make_plan(), Call(session_id="s", task_id="t"))
        assert reply.output.sections
        await aclose(model)
        assert await get_json(f"{root}/nothing", 1.0) is None
    assert await get_json(f"{root}/api/tags", 0.3) is None  # it is gone


class TestBuild:
    def test_extractive_is_made_by_its_factory(self) -> None:
        model = build_model(Choice(*EXTRACTIVE, ""), settings(), extractive_factory=CannedModel, env={})
        assert isinstance(model, CannedModel)

    def test_one_spec_is_one_client(self) -> None:
        choice = Choice("vllm:m", "vllm:m", "")
        assert isinstance(build_model(choice, settings(), extractive_factory=CannedModel, env={}), OpenAIModel)

    def test_two_specs_are_two_tiers(self) -> None:
        choice = Choice("vllm:small", "vllm:big", "")
        model = build_model(choice, settings(), extractive_factory=CannedModel, env={})
        assert isinstance(model, TieredModel)
        assert model.name == "vllm:big + vllm:small"

    def test_a_fallback_stands_behind_each(self) -> None:
        choice = Choice("vllm:m", "vllm:m", "")
        model = build_model(choice, settings(fallback="extractive"), extractive_factory=CannedModel, env={})
        assert isinstance(model, FallbackModel)

    def test_a_role_may_have_its_own(self) -> None:
        own = settings(roles={Role.CRITIC: "openai:gpt-5"})
        model = build_model(
            Choice("vllm:m", "vllm:m", ""), own, extractive_factory=CannedModel, env={"OPENAI_API_KEY": "k"}
        )
        assert model.name == "vllm:m + openai:gpt-5"
        with pytest.raises(UsageError, match="needs a key"):
            build_model(Choice("vllm:m", "vllm:m", ""), own, extractive_factory=CannedModel, env={})
