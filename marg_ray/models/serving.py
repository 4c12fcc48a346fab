"""What is to be served for the two tiers, and on what: settings and a cluster's nodes in, configuration out.

The configuration is that of `ray.serve.llm` and of vLLM's engine, as plain data. Neither is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from marg_ray.errors import UsageError
from marg_ray.settings import ServingSettings, TierServing

Node = Mapping[str, float]  # what a node of the cluster has, by Ray's names of resources

PREFIX_ROUTER = "ray.serve.llm.request_router.PrefixCacheAffinityRouter"
IMBALANCE = 8  # calls that one replica may have more than another before its known prefixes count no longer
CONSTRUCTOR_TRIES = 3  # of a replica: a missing file or a wrong argument stays what it is


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is served. `configs` holds the arguments of one `ray.serve.llm.LLMConfig` for each model.

    `fast` and `strong` are the names to ask for. They are equal where one model answers for both tiers.
    """

    fast: str
    strong: str
    window: int  # tokens of prompt and answer together that both tiers have
    configs: tuple[dict[str, Any], ...]
    ingress: dict[str, Any]
    notes: tuple[str, ...] = ()


def plan(serving: ServingSettings, nodes: Sequence[Node], *, wait: bool = False) -> Plan:
    """Fit the tiers to the cluster. A strong model that does not fit is left out: the fast one answers for it.

    With `wait` every model is taken to fit: its nodes may still come.

    Raises:
        UsageError: the fast model does not fit, or two different models have one name.
    """
    fast, strong = serving.fast, serving.strong
    if (name_of(fast) == name_of(strong)) and fast.model != strong.model:
        raise UsageError(
            f"both tiers' models are named {name_of(fast)}", "set serving.fast.name and serving.strong.name"
        )
    one = name_of(fast) == name_of(strong)
    if not wait and (lack := _lack(fast, serving, nodes)):
        raise UsageError(
            f"{name_of(fast)} needs {lack}", "see [serving.fast] in docs/settings.md; serving.device = cpu needs no GPU"
        )
    taken = 0 if one else gpus(fast) * max(1, fast.min_replicas)
    lack = "" if wait or one else _lack(strong, serving, nodes, taken if _share(fast, strong, serving) else 0)
    tiers = [fast] if one or lack else [fast, strong]
    notes = (f"{name_of(strong)} needs {lack}: {name_of(fast)} answers for the strong tier too",) if lack else ()
    return Plan(
        fast=name_of(fast),
        strong=name_of(tiers[-1]),
        window=min(tier.max_model_len for tier in tiers),
        configs=tuple(_config(tier, serving) for tier in tiers),
        ingress={"ray_actor_options": {"num_cpus": 0}} if serving.device == "cpu" else {},
        notes=notes,
    )


def name_of(tier: TierServing) -> str:
    """The name under which a model is asked for: of a folder or bucket its last part."""
    if tier.name:
        return tier.name
    placed = _is_folder(tier.model) or "://" in tier.model
    return PurePath(tier.model.rstrip("/")).name if placed else tier.model


def _is_folder(model: str) -> bool:
    return model.startswith(("/", ".", "~"))


def _source(model: str) -> str:
    """Where the weights are: of a folder the whole path, since replicas work in a folder of their own."""
    return str(Path(model).expanduser().resolve()) if _is_folder(model) else model


def gpus(tier: TierServing) -> int:
    """GPUs (or, without any, CPU cores as Ray counts them) of one replica."""
    return tier.tensor_parallel * tier.pipeline_parallel


def _share(fast: TierServing, strong: TierServing, serving: ServingSettings) -> bool:
    """Whether both tiers draw on the same GPUs."""
    kinds = {fast.accelerator, strong.accelerator}
    return serving.device == "cpu" or len(kinds) == 1 or "" in kinds


def _lack(tier: TierServing, serving: ServingSettings, nodes: Sequence[Node], taken: int = 0) -> str:
    """What one replica of a tier would need and the nodes do not have, in words; "" where it fits."""
    needed = gpus(tier)
    if serving.device == "cpu":
        there = int(sum(node.get("CPU", 0) for node in nodes)) - taken
        return "" if there >= needed else f"{needed} CPU, and {max(there, 0)} are free for it"
    kind = tier.accelerator
    fitting = [n for n in nodes if n.get("GPU") and (not kind or f"accelerator_type:{kind}" in n)]
    there = int(sum(node["GPU"] for node in fitting)) - taken
    if there >= needed:
        return ""
    return f"{needed} {kind or 'GPU'}{' GPU' if kind else ''}, and the cluster has {max(there, 0)} for it"


def _config(tier: TierServing, serving: ServingSettings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": name_of(tier), "model_source": _source(tier.model)},
        "engine_kwargs": {**_engine(tier, serving), **tier.engine},
        "deployment_config": _deployment(tier),
        "runtime_env": {"env_vars": {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}},
    }
    if tier.lora_path:
        config["lora_config"] = {
            "dynamic_lora_loading_path": tier.lora_path,
            "max_num_adapters_per_replica": tier.loras,
        }
    if serving.device == "cpu":
        config["placement_group_config"] = {"bundles": [{"CPU": 1}] * gpus(tier)}
        config["deployment_config"]["ray_actor_options"] = {"num_cpus": 0}  # the bundle is the replica's
        config["runtime_env"]["env_vars"] |= {"VLLM_CPU_KVCACHE_SPACE": str(serving.cpu_cache_gib)}
    elif tier.accelerator:
        config["accelerator_type"] = tier.accelerator
    return config


def _engine(tier: TierServing, serving: ServingSettings) -> dict[str, Any]:
    engine: dict[str, Any] = {
        "max_model_len": tier.max_model_len,
        "tensor_parallel_size": tier.tensor_parallel,
        "pipeline_parallel_size": tier.pipeline_parallel,
        "gpu_memory_utilization": tier.gpu_memory,
        "enable_prefix_caching": tier.prefix_caching,
        # A grammar that allows any white space lets a weak model write nothing else until it is cut off.
        "structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True},
    }
    if tier.quantization:
        engine["quantization"] = tier.quantization
    if tier.lora_path:
        engine |= {"enable_lora": True, "max_loras": tier.loras}
    if serving.device == "cpu":
        engine |= {"enforce_eager": True, "dtype": "float32"}
    return engine


def _deployment(tier: TierServing) -> dict[str, Any]:
    most = max(tier.max_replicas, tier.min_replicas)
    deployment: dict[str, Any] = {
        "autoscaling_config": {
            "min_replicas": tier.min_replicas,
            "max_replicas": most,
            "target_ongoing_requests": tier.requests_per_replica,
        },
        "max_constructor_retry_count": CONSTRUCTOR_TRIES,
    }
    if tier.prefix_routing and tier.prefix_caching and most > 1:
        deployment["request_router_config"] = {
            "request_router_class": PREFIX_ROUTER,
            "request_router_kwargs": {"imbalanced_threshold": IMBALANCE, "do_eviction": True},
        }
    return deployment
