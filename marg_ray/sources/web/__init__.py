"""Web search engines behind one `Searcher`. Engines import their libraries when they are first asked."""

from marg_ray.sources.web.engine import Engine, EngineFailed, EngineReply
from marg_ray.sources.web.network import network_reachable
from marg_ray.sources.web.results import dedupe, normalise
from marg_ray.sources.web.search import WebSearch, build_web_search

__all__ = [
    "Engine",
    "EngineFailed",
    "EngineReply",
    "WebSearch",
    "build_web_search",
    "dedupe",
    "network_reachable",
    "normalise",
]
