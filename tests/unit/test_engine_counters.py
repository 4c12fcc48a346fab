"""vLLM's counters, as its own server and as Ray's nodes export them."""

from __future__ import annotations

import pytest

from benchmarks.engine_counters import Counters, parse

OWN = """
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 100.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 40.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 7.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 1.0
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 999.0
"""
RAYS = OWN.replace("vllm:", "ray_vllm_").replace('engine="0"', 'engine="0",ReplicaId="a"')


@pytest.mark.parametrize("text", [OWN, RAYS], ids=["vLLM", "Ray"])
def test_counters_are_read_from_either_export(text: str) -> None:
    assert parse(text) == {"m": Counters(running=2, prefix_asked=100, prefix_hits=40, finished=7)}


def test_replicas_of_a_model_are_added_up_and_models_kept_apart() -> None:
    second = RAYS.replace('ReplicaId="a"', 'ReplicaId="b"')
    other = RAYS.replace('model_name="m"', 'model_name="n"')
    lines = [line for text in (second, other) for line in text.splitlines() if not line.startswith("#")]
    counted = parse(RAYS + "\n".join(lines) + "\n")
    assert counted["m"].prefix_hits == 80
    assert counted["n"].prefix_hits == 40


def test_what_grew_is_counted_and_what_runs_is_told() -> None:
    before, now = (
        Counters(running=3, prefix_asked=10, prefix_hits=5),
        Counters(running=1, prefix_asked=30, prefix_hits=20),
    )
    grown = now - before
    assert (grown.running, grown.prefix_asked, grown.hit_rate) == (1, 20, 0.75)
    assert Counters().hit_rate == 0
