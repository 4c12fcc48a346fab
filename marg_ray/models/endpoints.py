"""Where models answer: the providers we know, and how `provider:model` becomes an address and a key."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit

from marg_ray.errors import UsageError
from marg_ray.settings import ModelSettings


class Structure(StrEnum):
    """How an endpoint is asked for JSON, the surest way first."""

    SCHEMA = "json_schema"
    OBJECT = "json_object"
    PROMPT = "prompt"

    @property
    def weaker(self) -> Structure | None:
        return {Structure.SCHEMA: Structure.OBJECT, Structure.OBJECT: Structure.PROMPT}.get(self)


CLOUD_WINDOW = 64_000  # what today's hosted models have at least; more would only cost more


@dataclass(frozen=True)
class Provider:
    """A service with an OpenAI-compatible address. `fast` and `strong` are what `auto` takes where it has a key."""

    base_url: str
    key: str = ""  # the environment variable of its key; "" = none is needed
    fast: str = ""
    strong: str = ""
    structure: Structure = Structure.SCHEMA
    window: int = CLOUD_WINDOW  # tokens of context that we use where the settings do not say


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5-mini", "gpt-5"),
    "anthropic": Provider(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-haiku-4-5", "claude-sonnet-4-5", Structure.PROMPT
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        "gemini-2.5-flash",
        "gemini-2.5-pro",
    ),
    "groq": Provider(
        "https://api.groq.com/openai/v1", "GROQ_API_KEY", "llama-3.1-8b-instant", "llama-3.3-70b-versatile"
    ),
    "deepseek": Provider(
        "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", "deepseek-chat", "deepseek-chat", Structure.OBJECT
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        "meta-llama/llama-3.1-8b-instruct",
        "meta-llama/llama-3.3-70b-instruct",
    ),
    "ollama": Provider("http://localhost:11434/v1", window=0),
    "vllm": Provider("http://localhost:8000/v1", window=0),
}
_URL = re.compile(r"(?P<base>https?://(?:\[[^\]]+\]|[^/\s:@]+)(?::\d+)?(?:/[^\s:]*)?)(?::(?P<model>\S+))?")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One model at one address. The key stays out of `repr`, names and errors."""

    provider: str
    model: str
    base_url: str
    key: str = field(default="", repr=False)
    structure: Structure = Structure.SCHEMA
    price: tuple[float, float] = (0.0, 0.0)  # US dollars per million tokens, in and out
    window: int = 0  # tokens of context; 0 = as the settings say

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        return urlsplit(self.base_url).netloc

    @property
    def local(self) -> bool:
        return is_local(self.base_url)

    def redact(self, text: str) -> str:
        """`text` without this endpoint's key or anything else that looks like one."""
        if self.key:
            text = text.replace(self.key, "***")
        return _SECRETS.sub("***", text)


_SECRETS = re.compile(r"\b(?:sk|gsk|key|pk|AIza)[-_][\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )[\w.~+/=-]{6,}")


def provider_of(spec: str) -> str:
    """The provider that a spec names, or the host of its address."""
    spec = spec.strip()
    if spec.startswith(("http://", "https://")):
        return urlsplit(spec).netloc.rpartition("@")[2]
    return spec.partition(":")[0].lower()


def resolve(
    spec: str, settings: ModelSettings, env: Mapping[str, str], *, role: str = "", second: bool = False
) -> Endpoint:
    """The endpoint that `provider:model`, `http://host:port/v1:model` or (with `base_url` set) a bare model names.

    Its key is that of the `role` or of the provider in `keys`, else `api_key`, else the provider's variable. What is
    `second` to another provider's model never gets the `api_key` (and address) that is meant for the first.

    Raises:
        UsageError: the provider is unknown, the model is missing, or a key is needed and there is none.
    """
    spec = spec.strip()
    keys = {name.lower(): key.get_secret_value().strip() for name, key in settings.keys.items()}
    own_key = keys.get(role) or keys.get(provider_of(spec)) or ""
    own_key = own_key or ("" if second else settings.api_key.get_secret_value().strip())
    if second:
        settings = settings.model_copy(update={"base_url": ""})
    if spec.startswith(("http://", "https://")):
        found = None if "@" in urlsplit(spec).netloc else _URL.fullmatch(spec)
        if found is None or not found["model"]:
            raise UsageError(
                f"{spec.partition('@')[2] or spec!r} names no model",
                "write http://host:port/v1:model-name; a key goes into MARG_MODELS__API_KEY, not into the address",
            )
        base = found["base"].rstrip("/")
        host = urlsplit(base).netloc
        return Endpoint(provider=host, model=found["model"], base_url=base, key=own_key, price=_price(spec, settings))
    name, _, model = spec.partition(":")
    provider = PROVIDERS.get(name.lower())
    if provider is None:
        if not settings.base_url or not spec:
            known = ", ".join(PROVIDERS)
            raise UsageError(
                f"{spec!r} names no known model provider",
                f"MARG_MODEL is auto, extractive, provider:model (provider one of {known}), or an address and a model",
            )
        base = settings.base_url.rstrip("/")
        host = urlsplit(base).netloc
        return Endpoint(provider=host, model=spec, base_url=base, key=own_key, price=_price(spec, settings))
    name, model = name.lower(), model.strip() or provider.strong
    if not model:
        raise UsageError(f"{spec!r} names no model", f"write {name}:model-name")
    key = own_key or env.get(provider.key, "").strip()
    if provider.key and not key:
        raise UsageError(f"{name} needs a key", f"set {provider.key}, MARG_MODELS__API_KEY or models.keys")
    return Endpoint(
        provider=name,
        model=model,
        base_url=_base(name, provider, settings, env),
        key=key,
        structure=provider.structure,
        price=_price(f"{name}:{model}", settings),
        window=0 if "context_tokens" in settings.model_fields_set else provider.window,
    )


def _base(name: str, provider: Provider, settings: ModelSettings, env: Mapping[str, str]) -> str:
    """The configured address; else that of `OPENAI_BASE_URL`, `OLLAMA_HOST` or `VLLM_BASE_URL`; else the usual one."""
    if settings.base_url:
        return settings.base_url.rstrip("/")
    if name == "ollama" and (host := env.get("OLLAMA_HOST", "").strip()):
        return ollama_base(host)
    variable = {"openai": "OPENAI_BASE_URL", "vllm": "VLLM_BASE_URL"}.get(name, "")
    return (env.get(variable, "").strip() or provider.base_url).rstrip("/")


def ollama_base(host: str) -> str:
    """The OpenAI-compatible address for a value of `OLLAMA_HOST`, which may lack scheme and port."""
    scheme, _, rest = host.rpartition("://")
    rest = rest.rstrip("/").removesuffix("/v1")
    rest = rest.replace("0.0.0.0", "127.0.0.1", 1)  # where it listens is not where one calls
    if rest.startswith(":"):
        rest = f"127.0.0.1{rest}"
    if not re.search(r":\d+$", rest):
        rest += ":11434" if scheme in ("", "http") else ":443"
    return f"{scheme or 'http'}://{rest}/v1"


def is_local(url: str) -> bool:
    """Whether an address is on this machine, by its name alone."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _price(name: str, settings: ModelSettings) -> tuple[float, float]:
    return settings.prices.get(name, (0.0, 0.0))
