"""Which model answers: what is configured, else the best that is at hand, else none at all."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from marg_ray.errors import UsageError
from marg_ray.models.client import ModelClient, Tier
from marg_ray.models.endpoints import PROVIDERS, Endpoint, is_local, ollama_base, provider_of, resolve
from marg_ray.records import Role
from marg_ray.settings import Settings

EXTRACTIVE = "extractive"
PROBE_S = 0.3
_EMBEDDERS = re.compile(r"embed|minilm|\bbge\b|bge-|rerank|whisper", re.I)
_BILLIONS = re.compile(r"(\d+(?:\.\d+)?)\s*b\b", re.I)
GetJson = Callable[[str, float], Awaitable[Any]]  # (url, seconds) -> the JSON, or None where nothing answers


@dataclass(frozen=True)
class Choice:
    """The specs of both tiers (`resolve` reads them), and why these, for `marg doctor`."""

    spec_fast: str
    spec_strong: str
    why: str

    @property
    def extractive(self) -> bool:
        return self.spec_fast == self.spec_strong == EXTRACTIVE


async def get_json(url: str, seconds: float) -> Any:
    """The JSON at `url`, or None if none came in time. Redirects are not followed."""
    if not await _listens(url, seconds):  # mostly nothing does, and the HTTP client takes 0.2 s to load
        return None
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=seconds)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, allow_redirects=False) as reply:
            return await reply.json(content_type=None) if reply.status == 200 else None
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError):
        return None


async def _listens(url: str, seconds: float) -> bool:
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(seconds):
            port = parts.port or (443 if parts.scheme == "https" else 80)
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, ValueError, TimeoutError):
        return False
    writer.close()
    return True


def has_gpu() -> bool:
    """Whether the machine has a GPU that vLLM can use (NVIDIA or AMD), judged without loading a driver."""
    devices = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd")
    return any(Path(d).exists() for d in devices) or shutil.which("nvidia-smi") is not None


async def choose(
    settings: Settings,
    env: Mapping[str, str] | None = None,
    *,
    offline: bool = False,
    get: GetJson = get_json,
    gpu: Callable[[], bool] = has_gpu,
) -> Choice:
    """Decide which model a run uses. With `offline` only models on this machine come into question.

    Raises:
        UsageError: the configured model is not on this machine and `offline` is asked.
    """
    if settings.tape.replay:
        from marg_ray.models.tape import choice_of

        return choice_of(Path(settings.tape.replay))
    env = os.environ if env is None else env
    models = settings.models
    configured = settings.model.strip()
    if configured.lower() in ("", "auto"):
        configured = ""
    if configured or models.fast or models.strong:
        base = configured or models.strong or models.fast
        choice = Choice(models.fast or base, models.strong or base, "it is configured")
        _check_offline(choice, settings, env, offline)
        return choice
    if models.base_url:
        ids = _ids(await get(f"{models.base_url.rstrip('/')}/models", 3.0))
        if not ids:
            raise UsageError(
                f"no model is named, and {urlsplit(models.base_url).netloc} does not say which it has",
                "set MARG_MODEL=provider:model",
            )
        choice = Choice(*_pair(ids), f"it is what {urlsplit(models.base_url).netloc} serves")
        _check_offline(choice, settings, env, offline)
        return choice
    if not offline:
        for name, provider in PROVIDERS.items():
            if provider.key and env.get(provider.key, "").strip():
                fast, strong = f"{name}:{provider.fast}", f"{name}:{provider.strong}"
                return Choice(fast, strong, f"{provider.key} is set")
    return await _local(env, get, gpu)


async def _local(env: Mapping[str, str], get: GetJson, gpu: Callable[[], bool]) -> Choice:
    ollama = ollama_base(env.get("OLLAMA_HOST", "").strip() or "127.0.0.1:11434").removesuffix("/v1")
    if is_local(ollama) and (name := _ollama_model(await get(f"{ollama}/api/tags", PROBE_S))):
        return Choice(f"ollama:{name}", f"ollama:{name}", f"an Ollama on this machine has {name}")
    if not gpu():
        return Choice(
            EXTRACTIVE, EXTRACTIVE, "no model is configured, no key is set, no Ollama answers, no GPU is here"
        )
    vllm = (env.get("VLLM_BASE_URL", "").strip() or PROVIDERS["vllm"].base_url).rstrip("/")
    if is_local(vllm) and (ids := _ids(await get(f"{vllm}/models", PROBE_S))):
        fast, strong = _pair(ids)
        return Choice(f"vllm:{fast}", f"vllm:{strong}", f"a GPU is here and {urlsplit(vllm).netloc} serves models")
    return Choice(
        EXTRACTIVE,
        EXTRACTIVE,
        f"a GPU is here, but no vLLM answers at {urlsplit(vllm).netloc}; start one to use it",
    )


def build_model(
    choice: Choice,
    settings: Settings,
    *,
    extractive_factory: Callable[[], ModelClient],
    env: Mapping[str, str] | None = None,
) -> ModelClient:
    """The client for a choice. Equal specs share one client, hence one breaker and one connection pool.

    Raises:
        UsageError: a spec names no known provider or model, or its key is missing.
    """
    from marg_ray.models.openai_api import OpenAIModel
    from marg_ray.models.probe import as_remembered
    from marg_ray.models.tiers import TieredModel
    from marg_ray.models.wrappers import FallbackModel

    env = os.environ if env is None else env
    made: dict[str, ModelClient] = {}

    first = {provider_of(choice.spec_fast), provider_of(choice.spec_strong)}

    def single(spec: str, role: str = "") -> ModelClient:
        named = f"{spec} for {role}" if role in settings.models.keys else spec
        if named not in made:
            if spec.strip().lower() == EXTRACTIVE:
                made[named] = extractive_factory()
            else:
                second = provider_of(spec) not in first
                endpoint = resolve(spec, settings.models, env, role=role, second=second)
                made[named] = OpenAIModel(as_remembered(settings.home, endpoint), settings.models)
        return made[named]

    def backed(spec: str, role: str = "") -> ModelClient:
        others = [other for other in fallbacks(settings) if other != spec]
        if not others or spec == EXTRACTIVE:
            return single(spec, role)
        models = (single(spec, role), *map(single, others))
        return made.setdefault(" or ".join(str(id(m)) for m in models), FallbackModel(*models))

    fast, strong = backed(choice.spec_fast), backed(choice.spec_strong)
    roles = {role: backed(spec, role) for role, spec in role_specs(choice, settings).items()}
    return fast if fast is strong and not roles else TieredModel(fast, strong, roles, settings.models.tiers)


def fallbacks(settings: Settings) -> list[str]:
    """The specs that are asked, in order, when a model is unavailable."""
    return list(dict.fromkeys(s for spec in settings.models.fallback.split(",") if (s := spec.strip())))


def role_specs(choice: Choice, settings: Settings) -> dict[Role, str]:
    """The roles that have a model, or a key, of their own, and that model."""
    from marg_ray.models.tasks import TASKS

    tiers = {task.role: task.tier for task in TASKS}
    keyed = {
        role: choice.spec_fast if tiers.get(role) is Tier.FAST else choice.spec_strong
        for role in Role
        if role in settings.models.keys
    }
    return {**keyed, **settings.models.roles}


def endpoints_of(choice: Choice, settings: Settings, env: Mapping[str, str]) -> list[Endpoint]:
    """Every endpoint that a run may ask, the tiers' first; none where no model is used.

    Raises:
        UsageError: a spec names no known provider or model, or its key is missing.
    """
    first = {provider_of(choice.spec_fast), provider_of(choice.spec_strong)}
    named = [(choice.spec_strong, ""), (choice.spec_fast, "")]
    named += [(spec, str(role)) for role, spec in role_specs(choice, settings).items()]
    named += [(spec, "") for spec in fallbacks(settings)]
    found = [
        resolve(spec, settings.models, env, role=role, second=provider_of(spec) not in first)
        for spec, role in named
        if spec.strip().lower() != EXTRACTIVE
    ]
    return list({(e.name, e.base_url, e.key): e for e in found}.values())


def _check_offline(choice: Choice, settings: Settings, env: Mapping[str, str], offline: bool) -> None:
    if not offline:
        return
    specs = {choice.spec_fast, choice.spec_strong, *fallbacks(settings), *settings.models.roles.values()}
    for spec in specs - {EXTRACTIVE, ""}:
        if not resolve(spec, settings.models, env).local:
            raise UsageError(
                f"{spec} is not on this machine, and offline was asked for",
                "use a local model (ollama, vllm) or MARG_MODEL=extractive",
            )


def _ids(reply: Any) -> list[str]:
    """The model ids in an answer of `/v1/models`."""
    data = reply.get("data") if isinstance(reply, dict) else None
    found = [m.get("id") for m in data if isinstance(m, dict)] if isinstance(data, list) else []
    return [i for i in found if isinstance(i, str) and not _EMBEDDERS.search(i)]


def _pair(ids: list[str]) -> tuple[str, str]:
    """The smallest and the largest model by the billions in their names."""
    by_size = sorted(ids, key=_billions)
    return by_size[0], by_size[-1]


def _billions(name: str) -> float:
    return max((float(n) for n in _BILLIONS.findall(name)), default=0.0)


def _ollama_model(tags: Any) -> str:
    """The largest chat model of at most 16 GB, else the smallest; "" where there is none."""
    models = tags.get("models") if isinstance(tags, dict) else None
    sizes: dict[str, int] = {
        m["name"]: int(m.get("size") or 0)
        for m in (models if isinstance(models, list) else [])
        if isinstance(m, dict) and isinstance(m.get("name"), str) and not _EMBEDDERS.search(m["name"])
    }
    fitting = [name for name, size in sizes.items() if size <= 16e9]
    if fitting:
        return max(fitting, key=lambda name: sizes[name])
    return min(sizes, key=lambda name: sizes[name], default="")
