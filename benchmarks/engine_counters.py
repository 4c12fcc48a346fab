"""What vLLM counts itself, by model: read where Prometheus would, from Ray's nodes or from vLLM's own server."""

from __future__ import annotations

import asyncio
import urllib.request
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Counters:
    """Sums over a model's replicas. All but `running` and `waiting` only ever grow."""

    running: float = 0
    waiting: float = 0
    prompt_tokens: float = 0
    answer_tokens: float = 0
    prefix_asked: float = 0  # prompt tokens that were looked up in the prefix cache
    prefix_hits: float = 0  # ... and found
    finished: float = 0  # requests that were answered; one whose caller went away is not among them

    def __sub__(self, before: Counters) -> Counters:
        """What was added since `before`; `running` and `waiting` stay as they are now."""
        now = {f.name: getattr(self, f.name) for f in fields(self)}
        grown = {name: value - getattr(before, name) for name, value in now.items()}
        return Counters(**{**grown, "running": self.running, "waiting": self.waiting})

    @property
    def hit_rate(self) -> float:
        return self.prefix_hits / self.prefix_asked if self.prefix_asked else 0.0


_NAMES = {
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "prompt_tokens": "prompt_tokens",
    "generation_tokens": "answer_tokens",
    "prefix_cache_queries": "prefix_asked",
    "prefix_cache_hits": "prefix_hits",
    "request_success": "finished",
}


async def read_counters(urls: Iterable[str]) -> dict[str, Counters]:
    """The counters of every model that is served behind the given `/metrics` addresses.

    Raises:
        OSError: one does not answer.
    """
    texts = await asyncio.gather(*(asyncio.to_thread(_get, url) for url in urls))
    return parse("\n".join(texts))


def parse(text: str) -> dict[str, Counters]:
    """The counters in Prometheus' text format, with or without the prefix that Ray puts before a name."""
    from prometheus_client.parser import text_string_to_metric_families

    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("ray_").replace(":", "_").removesuffix("_total")
            field = _NAMES.get(name.removeprefix("vllm_")) if name.startswith("vllm_") else None
            if field is None or sample.labels.get("finished_reason") == "abort":
                continue
            sums[sample.labels.get("model_name", "")][field] += sample.value
    return {model: Counters(**values) for model, values in sums.items()}


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:
        return str(reply.read().decode("utf-8"))
