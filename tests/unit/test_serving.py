"""Which models are served on which nodes: the configuration that `ray.serve.llm` gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marg_ray.errors import UsageError
from marg_ray.models.serving import Plan, name_of, plan
from marg_ray.models.vllm import Served, _with
from marg_ray.settings import ServingSettings, Settings, StrongServing, TierServing, load

L4 = {"CPU": 8.0, "GPU": 1.0, "accelerator_type:L4": 1.0}
H100 = {"CPU": 64.0, "GPU": 8.0, "accelerator_type:H100": 1.0}
CPU = {"CPU": 4.0}
FAST, STRONG = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"


def serving(**fields: Any) -> ServingSettings:
    return ServingSettings.model_validate(fields)


def by_name(planned: Plan) -> dict[str, dict[str, Any]]:
    return {config["model_loading_config"]["model_id"]: config for config in planned.configs}


def test_each_tier_has_a_model_on_gpus_of_its_own_type() -> None:
    planned = plan(serving(), [CPU, L4, H100])
    assert (planned.fast, planned.strong, planned.notes) == (FAST, STRONG, ())
    configs = by_name(planned)
    assert configs[FAST]["accelerator_type"] == "L4"
    assert configs[STRONG]["accelerator_type"] == "H100"
    assert configs[STRONG]["engine_kwargs"]["tensor_parallel_size"] == 2
    assert configs[STRONG]["engine_kwargs"]["quantization"] == "fp8"
    assert "quantization" not in configs[FAST]["engine_kwargs"]
    assert all(c["engine_kwargs"]["enable_prefix_caching"] for c in configs.values())
    assert configs[FAST]["deployment_config"]["autoscaling_config"] == {
        "min_replicas": 1,
        "max_replicas": 4,
        "target_ongoing_requests": 32,
    }


@pytest.mark.parametrize(
    "nodes",
    [[L4], [L4, {"GPU": 1.0, "accelerator_type:H100": 1.0}], [L4, L4, L4]],
    ids=["none of its GPUs", "too few of them", "only others"],
)
def test_a_strong_model_that_does_not_fit_leaves_its_calls_to_the_fast_one_and_says_so(nodes: list[Any]) -> None:
    planned = plan(serving(), nodes)
    assert planned.fast == planned.strong == FAST
    assert list(by_name(planned)) == [FAST]
    assert len(planned.notes) == 1
    assert STRONG in planned.notes[0]
    assert "2 H100 GPU" in planned.notes[0]


def test_gpus_that_both_tiers_draw_on_are_counted_once() -> None:
    same = {"fast": {"accelerator": "H100"}, "strong": {"tensor_parallel": 4}}
    four = {"GPU": 4.0, "accelerator_type:H100": 1.0}
    assert plan(serving(**same), [four]).strong == FAST
    assert plan(serving(**same), [four, {"GPU": 1.0, "accelerator_type:H100": 1.0}]).strong == STRONG


def test_nodes_that_may_still_come_are_waited_for() -> None:
    planned = plan(serving(), [CPU], wait=True)
    assert (planned.fast, planned.strong, planned.notes) == (FAST, STRONG, ())


def test_without_gpus_the_fast_tier_is_refused_with_what_to_do() -> None:
    with pytest.raises(UsageError, match="1 L4 GPU, and the cluster has 0") as caught:
        plan(serving(), [CPU])
    assert "device" in caught.value.hint


def test_on_cpus_small_models_are_served_without_an_accelerator() -> None:
    small = {"fast": {"model": "/m/a"}, "strong": {"model": "/m/b", "tensor_parallel": 1}}
    planned = plan(serving(device="cpu", cpu_cache_gib=2, **small), [{"CPU": 2.0}])
    assert (planned.fast, planned.strong) == ("a", "b")
    for config in planned.configs:
        assert "accelerator_type" not in config
        assert config["placement_group_config"] == {"bundles": [{"CPU": 1}]}
        assert config["runtime_env"]["env_vars"]["VLLM_CPU_KVCACHE_SPACE"] == "2"
        assert config["engine_kwargs"]["enforce_eager"] is True
    assert planned.ingress == {"ray_actor_options": {"num_cpus": 0}}


def test_one_cpu_serves_one_model() -> None:
    one = serving(device="cpu", strong={"tensor_parallel": 1})
    assert plan(one, [{"CPU": 1.0}]).strong == FAST
    assert plan(one, [{"CPU": 2.0}]).strong == STRONG


def test_one_model_for_both_tiers_is_served_once() -> None:
    planned = plan(serving(strong={"model": FAST, "accelerator": "L4"}), [L4])
    assert planned.fast == planned.strong == FAST
    assert len(planned.configs) == 1
    assert planned.notes == ()


def test_two_models_cannot_have_one_name() -> None:
    with pytest.raises(UsageError, match="both tiers"):
        plan(serving(fast={"name": "m"}, strong={"name": "m"}), [L4, H100])


@pytest.mark.parametrize(
    ("model", "name"),
    [(FAST, FAST), ("/models/smol", "smol"), ("/models/smol/", "smol"), ("s3://bucket/llama-8b", "llama-8b")],
)
def test_a_model_is_named_after_its_weights(model: str, name: str) -> None:
    assert name_of(TierServing(model=model)) == name
    assert name_of(TierServing(model=model, name="mine")) == "mine"


def test_a_folder_is_found_from_wherever_a_replica_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    planned = plan(serving(fast={"model": "./smol"}), [L4, H100])
    loading = by_name(planned)["smol"]["model_loading_config"]
    assert loading == {"model_id": "smol", "model_source": str(tmp_path / "smol")}
    assert by_name(planned)[STRONG]["model_loading_config"]["model_source"] == STRONG


def test_calls_are_routed_by_their_beginning_where_there_is_a_choice_of_replicas() -> None:
    def router(**fields: Any) -> Any:
        return plan(serving(fast=fields), [L4, H100]).configs[0]["deployment_config"].get("request_router_config")

    assert "Prefix" in router()["request_router_class"]
    assert router(max_replicas=1) is None
    assert router(prefix_routing=False) is None
    assert router(prefix_caching=False) is None


def test_adapters_have_their_place() -> None:
    config = plan(serving(fast={"lora_path": "s3://b/adapters", "loras": 3}), [L4, H100]).configs[0]
    assert config["lora_config"] == {"dynamic_lora_loading_path": "s3://b/adapters", "max_num_adapters_per_replica": 3}
    assert config["engine_kwargs"]["enable_lora"] is True
    assert "lora_config" not in plan(serving(), [L4, H100]).configs[0]


def test_arguments_of_the_engine_win() -> None:
    config = plan(serving(fast={"engine": {"dtype": "bfloat16", "max_model_len": 4096}}), [L4, H100]).configs[0]
    assert config["engine_kwargs"]["dtype"] == "bfloat16"
    assert config["engine_kwargs"]["max_model_len"] == 4096


def test_a_variable_changes_one_setting_of_a_tier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MARG_SERVING__STRONG__TENSOR_PARALLEL", "8")
    strong = load(home=tmp_path).serving.strong
    assert strong == StrongServing(tensor_parallel=8)
    assert strong.model == STRONG


def test_arguments_of_the_application_win_over_the_settings() -> None:
    base = serving(port=9000, fast={"max_replicas": 7})
    merged = _with(base, {"device": "cpu", "fast": {"model": "/m"}})
    assert (merged.device, merged.port, merged.fast.model, merged.fast.max_replicas) == ("cpu", 9000, "/m", 7)
    with pytest.raises(UsageError, match=r"serving\.fast\.max_replicas"):
        _with(base, {"fast": {"max_replicas": 0}})


def test_what_is_served_can_be_asked_by_both_tiers(tmp_path: Path) -> None:
    from marg_ray.models.endpoints import resolve

    served = Served(base_url="http://127.0.0.1:8123/v1", fast="small", strong="org/large", window=2048)
    settings: Settings = served.settings(load(home=tmp_path))
    fast = resolve(settings.models.fast, settings.models, {})
    strong = resolve(settings.models.strong, settings.models, {})
    assert (fast.model, strong.model) == ("small", "org/large")
    assert fast.base_url == strong.base_url == served.base_url
    assert fast.local
    assert settings.models.context_tokens == 2048
