"""A search engine that follows a script, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from marg_ray.sources.web.engine import PUBLIC, EngineFailed, EngineReply, Pace


@dataclass
class ScriptedEngine:
    """Answers with `script` in order, then with its last step again; keeps what it was asked."""

    script: Sequence[EngineReply | EngineFailed | Exception]
    name: str = "scripted"
    pace: Pace = PUBLIC
    asked: list[str] = field(default_factory=list)
    closed: bool = False

    async def search(self, query: str, limit: int) -> EngineReply:
        step = self.script[min(len(self.asked), len(self.script) - 1)]
        self.asked.append(query)
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self) -> None:
        self.closed = True
