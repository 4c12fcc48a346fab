"""The figures of every process of a runtime, asked for side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import ray

from marg_ray.actors.deploy.handles import Named
from marg_ray.telemetry.figures import Taken

WITHIN_S = 2.0  # one that is busy for longer is left out: who scrapes does not wait for it


class Counters:
    """Asks the actors of a namespace (of this process's, without one); remembers how to reach them."""

    def __init__(self, namespace: str = "") -> None:
        self._namespace = namespace
        self._known: dict[str, Named] = {}

    async def __call__(self) -> Mapping[str, Taken | None]:
        """By the actor's name; None where it did not answer within two seconds."""
        names = sorted(await asyncio.to_thread(self._names))
        self._known = {name: self._known.get(name) or Named(name, self._namespace) for name in names}
        taken = await asyncio.gather(*(self._of(named) for named in self._known.values()))
        return dict(zip(self._known, taken, strict=True))

    def _names(self) -> list[str]:
        if not self._namespace:
            return list(ray.util.list_named_actors())
        there = ray.util.list_named_actors(all_namespaces=True)
        return [actor["name"] for actor in there if actor["namespace"] == self._namespace]

    async def _of(self, named: Named) -> Taken | None:
        try:
            async with asyncio.timeout(WITHIN_S):
                taken: Taken = await named.call("figures")
                return taken
        except Exception:  # it is starting, stuck or dead, or is no actor of ours
            return None
