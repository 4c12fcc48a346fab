"""Settings: one small class per area, read once at the edge.

Order of precedence: arguments (flags), `MARG_*` environment variables (`MARG_SEARCH__SEARXNG_URL=...`),
`marg.toml` in the working directory, `config.toml` in `MARG_HOME`, the defaults below. Code below the edge gets
the section it needs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from marg_ray.errors import UsageError
from marg_ray.records import Role

TierPolicy = Literal["fast", "checked", "strong"]
TaskName = Literal[
    "all",
    "make_plan",
    "rewrite_query",
    "extract_claims",
    "draft_section",
    "summarise_report",
    "analyse_evidence",
    "judge_claims",
    "review_report",
    "plan_turn",
    "answer_question",
]


class _Area(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(_Area):
    """How models are called. Which one is `MARG_MODEL`; `fast` and `strong` override it per tier."""

    fast: Annotated[str, Field(description="provider:model of the fast tier; empty = MARG_MODEL")] = ""
    strong: Annotated[str, Field(description="provider:model of the strong tier; empty = MARG_MODEL")] = ""
    base_url: Annotated[str, Field(description="address of an OpenAI-compatible server")] = ""
    api_key: Annotated[SecretStr, Field(description="its key; else the provider's usual variable")] = SecretStr("")
    context_tokens: Annotated[int, Field(ge=1024, description="the model's window")] = 8192
    timeout_s: Annotated[float, Field(gt=0, description="for one answer")] = 180.0
    silence_s: Annotated[
        float, Field(gt=0, description="of a stream that has begun: without a further piece it is given up")
    ] = 60.0
    retries: Annotated[int, Field(ge=0, le=5, description="after the first try, with pauses of 1, 2, 4 s")] = 3
    parse_retries: Annotated[int, Field(ge=0, le=5, description="re-asks when an answer cannot be read")] = 3
    temperature: Annotated[float, Field(ge=0, le=2, description="of the first answer; re-asks use 0")] = 0.2
    concurrency: Annotated[int, Field(ge=1, description="requests under way per worker")] = 64
    roles: Annotated[
        dict[Role, str], Field(description="provider:model of single roles, e.g. {critic: openai:gpt-5}")
    ] = {}
    keys: Annotated[
        dict[str, SecretStr], Field(description="keys of single providers or roles, e.g. {groq: ..., critic: ...}")
    ] = {}
    tiers: Annotated[
        dict[TaskName, TierPolicy],
        Field(
            description="who tries a task, by its name or for all: fast, strong, or checked (fast, then strong where "
            "that failed); by itself checked for the fast tier's tasks, strong for the others"
        ),
    ] = {}
    temperatures: Annotated[dict[Role, float], Field(description="of single roles, e.g. {synthesizer: 0.6}")] = {}
    fallback: Annotated[
        str,
        Field(
            description="provider:model that is asked when the chosen one is unavailable; several, with commas between"
        ),
    ] = ""
    prices: Annotated[
        dict[str, tuple[float, float]],
        Field(description="US dollars per million tokens in and out, by provider:model"),
    ] = {}


class SearchSettings(_Area):
    """Web search."""

    engines: Annotated[tuple[str, ...], Field(description="in order of preference")] = ("searxng", "ddgs")
    searxng_url: Annotated[str, Field(description="a SearXNG instance; empty = not used")] = ""
    results: Annotated[int, Field(ge=1, le=50, description="per query and engine")] = 10
    timeout_s: Annotated[float, Field(gt=0, description="for one request")] = 10.0
    per_minute: Annotated[
        int | None, Field(ge=1, description="requests to one engine, per worker (by itself: 30; SearXNG 1200)")
    ] = None
    at_once: Annotated[
        int | None, Field(ge=1, description="requests to one engine under way, per worker (by itself: 6; SearXNG 64)")
    ] = None
    tries: Annotated[int, Field(ge=1, le=3, description="requests per query and engine")] = 3


class FetchSettings(_Area):
    """Guarded page fetches."""

    max_bytes: Annotated[int, Field(ge=1024, description="of the decoded body")] = 10 * 1024 * 1024
    timeout_s: Annotated[float, Field(gt=0, description="for the whole page")] = 20.0
    redirects: Annotated[int, Field(ge=0, le=10, description="followed at most, each one checked")] = 5
    tries: Annotated[int, Field(ge=1, le=5, description="of a page whose server is busy or down")] = 3
    per_host: Annotated[int, Field(ge=1, description="connections to one host")] = 4


class LibrarySettings(_Area):
    """The index over local folders."""

    passage_words: Annotated[int, Field(ge=30, le=400, description="of one indexed passage, at most")] = 120
    dense_weight: Annotated[float, Field(ge=0, le=1, description="of embeddings against keywords")] = 0.75
    max_file_mb: Annotated[float, Field(gt=0, description="larger files are skipped and named")] = 50.0


class StoreSettings(_Area):
    """Where sessions are kept."""

    url: Annotated[str, Field(description="database, e.g. postgresql+asyncpg://...; empty = a SQLite file in home")] = (
        ""
    )
    files: Annotated[
        str, Field(description="folder or fsspec URL (s3://...) of snapshots and reports; empty = home")
    ] = ""


class BudgetSettings(_Area):
    """Limits of a session that names none of its own; empty = no limit."""

    tokens: Annotated[int | None, Field(ge=0, description="in and out")] = None
    usd: Annotated[float | None, Field(ge=0, description="US dollars")] = None
    seconds: Annotated[float | None, Field(gt=0, description="of work")] = None
    searches: Annotated[int | None, Field(ge=0, description="web searches")] = None
    tasks: Annotated[int | None, Field(ge=1, description="agents' tasks")] = None
    writer_share: Annotated[
        float, Field(ge=0, le=0.9, description="held back for writing, so that a run ends in a report")
    ] = 0.4


class AdmissionSettings(_Area):
    """How many sessions run at once, and who is next."""

    sessions: Annotated[int, Field(ge=1, description="at once; further ones wait")] = 64
    waiting: Annotated[int, Field(ge=0, description="in the queue; further ones are refused")] = 1000
    weights: Annotated[dict[str, float], Field(description="share by owner; 1 where none is given")] = {}


class CacheSettings(_Area):
    """How long answers are kept, in seconds; 0 = not at all."""

    report_s: Annotated[float, Field(ge=0, description="a report, for the same question, settings and sources")] = (
        86_400.0
    )
    search_s: Annotated[float, Field(ge=0, description="a web search's results")] = 21_600.0
    page_s: Annotated[float, Field(ge=0, description="a page")] = 86_400.0
    embedding_s: Annotated[float, Field(ge=0, description="a text's vector")] = 2_592_000.0


class GroundingSettings(_Area):
    """The check of what is written against what it cites."""

    judge: Annotated[
        Literal["auto", "never"],
        Field(
            description="a model reads the sentences that words leave open; auto = where a model is used at all. "
            "Measure yours first: python -m benchmarks.judge"
        ),
    ] = "never"  # how far a model agrees with people is that model's; a tenth to a fifth more tokens
    judge_calls: Annotated[
        int, Field(ge=1, le=10, description="to it for one draft of a section, at most; eight sentences each")
    ] = 1


class ChatSettings(_Area):
    """Conversations over reports and documents; what one may spend is what `budget` says."""

    steps: Annotated[int, Field(ge=1, le=5, description="rounds of searching in one turn")] = 2
    reads: Annotated[int, Field(ge=0, le=10, description="web pages read in one round")] = 3
    core: Annotated[int, Field(ge=0, description="letters of memory that every prompt holds, per user")] = 2000
    archive: Annotated[
        int, Field(ge=0, description="further memories of a user; of more, the oldest that were of no use go")
    ] = 1000


Place = Literal[
    "all",
    "coordinator",
    "ledger",
    "embedder",
    "worker",
    "planner",
    "synthesizer",
    "critic",
    "analyst",
    "formatter",
    "assistant",
]


class RuntimeSettings(_Area):
    """Ray."""

    ray_address: Annotated[str, Field(description="a running Ray to attach to; empty = start one here")] = ""
    workers: Annotated[int, Field(ge=1, le=64, description="asynchronous fan-out workers")] = 2
    coordinators: Annotated[int, Field(ge=1, le=64, description="coordinator actors that share the sessions")] = 1
    lease_s: Annotated[float, Field(gt=0, description="a task without an answer is handed out again")] = 600.0
    beat_s: Annotated[float, Field(gt=0, description="between a coordinator's signs of life")] = 2.0
    probe_s: Annotated[float, Field(gt=0, description="an actor silent for four probes of this is started again")] = (
        10.0
    )
    dead_after_s: Annotated[float, Field(gt=0, description="without a sign of life: its sessions are taken over")] = (
        15.0
    )
    placement: Annotated[
        dict[Place, dict[str, float]],
        Field(description="resources that an actor takes up on its node, e.g. {all = {crew = 0.01}}"),
    ] = {}
    labels: Annotated[
        dict[Place, dict[str, str]],
        Field(description="labels of an actor's node, e.g. {worker = {pool = in(cpu, spot)}}"),
    ] = {}
    spread: Annotated[bool, Field(description="workers over the nodes of a Ray that is attached to")] = True
    autoscaled: Annotated[
        bool, Field(description="nodes start on demand: what no node has yet is waited for, instead of refused")
    ] = False


def _absolute(folder: str) -> str:
    """Every process of a runtime reads the settings, each in a working directory of its own."""
    return str(Path(folder).expanduser().absolute()) if folder else ""


class TapeSettings(_Area):
    """Record and replay: what a run asks of models, searches and pages, kept in a folder and answered from it."""

    record: Annotated[str, AfterValidator(_absolute), Field(description="folder that a run's traffic is kept in")] = ""
    replay: Annotated[
        str, AfterValidator(_absolute), Field(description="folder that a run is answered from: nothing else is asked")
    ] = ""

    @model_validator(mode="after")
    def _one_of_both(self) -> TapeSettings:
        if self.record and self.replay:
            raise ValueError("a run is recorded or replayed, not both")
        return self

    @property
    def used(self) -> bool:
        return bool(self.record or self.replay)


Weights = Annotated[str, Field(min_length=1, description="weights: a Hugging Face id, a folder or a bucket")]
Accelerator = Annotated[str, Field(description="type of GPU as Ray names it; empty = any")]
Gpus = Annotated[int, Field(ge=1, description="GPUs that share every layer")]
Quantization = Annotated[str, Field(description="fp8, awq, gptq, ... as vLLM names it; empty = the weights' own")]
Replicas = Annotated[int, Field(ge=1, description="replicas at most")]


class TierServing(_Area):
    """The fast tier's model on vLLM."""

    model: Weights = "meta-llama/Llama-3.1-8B-Instruct"
    name: Annotated[str, Field(description="under which it is asked for; empty = its id, or the folder's name")] = ""
    accelerator: Accelerator = "L4"
    tensor_parallel: Gpus = 1
    pipeline_parallel: Annotated[int, Field(ge=1, description="groups of GPUs that share out the layers")] = 1
    quantization: Quantization = ""
    min_replicas: Annotated[int, Field(ge=0, description="replicas kept up; 0 = none while nobody asks")] = 1
    max_replicas: Replicas = 4
    requests_per_replica: Annotated[int, Field(ge=1, description="under way, before one more replica starts")] = 32
    max_model_len: Annotated[int, Field(ge=1024, description="tokens of prompt and answer together")] = 16_384
    gpu_memory: Annotated[float, Field(gt=0, le=1, description="share of a GPU's memory that vLLM takes")] = 0.9
    prefix_caching: Annotated[bool, Field(description="keep the beginnings of prompts, which come again")] = True
    prefix_routing: Annotated[bool, Field(description="to the replica that has seen the prompt's beginning")] = True
    lora_path: Annotated[str, Field(description="bucket of LoRA adapters, asked for as name:adapter; empty = none")] = (
        ""
    )
    loras: Annotated[int, Field(ge=1, description="adapters that a replica holds at once")] = 8
    engine: Annotated[dict[str, Any], Field(description="further arguments of vLLM's engine; they win")] = {}


class StrongServing(TierServing):
    """The strong tier's model on vLLM. Where no node has its GPUs, the fast tier's answers for it, and that is said."""

    model: Weights = "meta-llama/Llama-3.1-70B-Instruct"
    accelerator: Accelerator = "H100"
    tensor_parallel: Gpus = 2
    quantization: Quantization = "fp8"
    max_replicas: Replicas = 2


class ServingSettings(_Area):
    """Models of one's own for both tiers, on vLLM: `serve run marg_ray.models.vllm:app`."""

    fast: TierServing = TierServing()
    strong: StrongServing = StrongServing()
    device: Annotated[Literal["gpu", "cpu"], Field(description="cpu = small models, without any GPU")] = "gpu"
    cpu_cache_gib: Annotated[int, Field(ge=1, description="memory for a model's prompts on device cpu")] = 1
    host: Annotated[str, Field(description="where the API listens; 0.0.0.0 = wherever this machine is reached")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Field(ge=1, le=65_535, description="of the API")] = 8000
    route: Annotated[str, Field(pattern="^/", description="path before /v1")] = "/"


class ServiceSettings(_Area):
    """The HTTP service of `marg serve`."""

    host: Annotated[str, Field(description="where it listens; 0.0.0.0 = wherever this machine is reached")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Field(ge=1, le=65_535, description="of the service")] = 8080
    replicas: Annotated[int, Field(ge=1, description="processes that answer requests")] = 1
    auth: Annotated[
        Literal["auto", "on", "off"],
        Field(description="API keys; auto = not needed on loopback; off is refused anywhere else"),
    ] = "auto"
    per_minute: Annotated[int, Field(ge=1, description="requests of a caller")] = 60
    max_body_mb: Annotated[float, Field(gt=0, description="of a request; documents go by library.max_file_mb")] = 1.0
    max_question: Annotated[int, Field(ge=1, description="letters of a question")] = 4000
    cors: Annotated[
        tuple[str, ...], Field(description="origins whose pages may call the service; none by default")
    ] = ()
    heartbeat_s: Annotated[float, Field(gt=0, le=15, description="between two signs of life on a quiet stream")] = 10.0


class TelemetrySettings(_Area):
    """What the runtime says of itself, beside the sessions' logs."""

    log_format: Annotated[Literal["text", "json"], Field(description="of log lines")] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="from which lines are kept")
    ] = "warning"
    log_file: Annotated[
        str, AfterValidator(_absolute), Field(description="that lines of agents are kept in; empty = Ray's own logs")
    ] = ""
    otlp_endpoint: Annotated[str, Field(description="OpenTelemetry collector that spans go to; empty = none")] = ""


class McpServer(_Area):
    """A server whose tools are asked as sources: a `command` that is started, or a `url`."""

    command: Annotated[tuple[str, ...], Field(description="program and arguments, for stdio")] = ()
    url: Annotated[str, Field(description="of a streamable HTTP server")] = ""
    env: Annotated[dict[str, str], Field(description="variables for the program")] = {}
    headers: Annotated[dict[str, SecretStr], Field(description="for the URL, such as a key")] = {}
    tool: Annotated[str, Field(description="the one that searches; empty = the first that takes a text")] = ""
    timeout_s: Annotated[float, Field(gt=0, description="for one call")] = 20.0


class McpSettings(_Area):
    """The Model Context Protocol: our tools for others, and others' tools as sources."""

    servers: Annotated[dict[str, McpServer], Field(description="by name; asked beside the web and the library")] = {}
    cache_s: Annotated[float, Field(ge=0, description="how long our tools' answers are kept; 0 = not at all")] = 3600.0


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="MARG_", env_nested_delimiter="__", frozen=True, extra="ignore", toml_file="marg.toml"
    )

    home: Annotated[Path, Field(description="where sessions, snapshots and indexes live")] = Path(
        platformdirs.user_data_dir("marg-ray")
    )
    model: Annotated[str, Field(description="auto, extractive, or provider:model")] = "auto"
    models: ModelSettings = ModelSettings()
    search: SearchSettings = SearchSettings()
    fetch: FetchSettings = FetchSettings()
    library: LibrarySettings = LibrarySettings()
    store: StoreSettings = StoreSettings()
    budget: BudgetSettings = BudgetSettings()
    admission: AdmissionSettings = AdmissionSettings()
    cache: CacheSettings = CacheSettings()
    grounding: GroundingSettings = GroundingSettings()
    chat: ChatSettings = ChatSettings()
    tape: TapeSettings = TapeSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    serving: ServingSettings = ServingSettings()
    service: ServiceSettings = ServiceSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    mcp: McpSettings = McpSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        home = Path(os.environ.get("MARG_HOME") or platformdirs.user_data_dir("marg-ray"))
        files = [TomlConfigSettingsSource(settings_cls, path) for path in (Path("marg.toml"), home / "config.toml")]
        return (init_settings, env_settings, *files)


def load(**overrides: Any) -> Settings:
    """Read the settings once.

    Raises:
        UsageError: a file or variable holds something that is not a setting or has a wrong value.
    """
    try:
        return Settings(**{k: v for k, v in overrides.items() if v is not None})
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(p) for p in first["loc"])
        raise UsageError(f"setting {where}: {first['msg']}", "see docs/settings.md for every setting") from None
    except ValueError as exc:  # a TOML file that cannot be read
        raise UsageError(f"the settings cannot be read: {exc}", "check marg.toml and MARG_* variables") from None
