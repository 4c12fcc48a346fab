"""A runtime's actors, created from a process that works in another namespace: a replica of Serve.

Actors find each other in the namespace of the job that created them, so a job of its own creates them: this module,
run as a program. It ends when they are all there; they stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import ray

from marg_ray.actors.deploy.machines import stays_together
from marg_ray.actors.deploy.placement import Lookout, nodes_here
from marg_ray.actors.deploy.runtime import Runtime, actor_names, namespace_of
from marg_ray.errors import MargError, RuntimeUnavailable
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.models.select import Choice


async def see_to_actors(settings: Settings, choice: Choice) -> None:
    """Create what is missing of a runtime's actors in the Ray that this process is part of.

    Raises:
        RuntimeUnavailable: it could not be done; says why.
    """
    missing = await asyncio.to_thread(missing_actors, settings, choice)
    if not missing:
        return
    env = {**os.environ, "RAY_ADDRESS": str(ray.get_runtime_context().gcs_address)}
    job = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__), env=env, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, told = await job.communicate(pickle.dumps((settings, choice)))
    if job.returncode:
        lines = told.decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
        raise RuntimeUnavailable("", f"the actors could not be created: {lines[-1][-300:]}")


def missing_actors(settings: Settings, choice: Choice) -> list[str]:
    """The names of the actors that are not there yet."""
    namespace = namespace_of(settings, choice)
    there = {n["name"] for n in ray.util.list_named_actors(all_namespaces=True) if n["namespace"] == namespace}
    return [name for name in actor_names(settings.runtime) if name not in there]


@contextlib.asynccontextmanager
async def watched(settings: Settings, choice: Choice) -> AsyncIterator[None]:
    """Meanwhile, actors on a node that is cordoned are started again elsewhere."""
    left = threading.Event()
    if not await asyncio.to_thread(lambda: stays_together(settings, nodes_here())):
        watch = Lookout(settings.runtime).watch
        threading.Thread(
            target=watch, args=(namespace_of(settings, choice), left), daemon=True, name="marg-places"
        ).start()
    try:
        yield
    finally:
        left.set()


def main() -> None:
    settings, choice = pickle.loads(sys.stdin.buffer.read())  # from the process that started this one
    try:
        runtime = Runtime.start(settings, choice)
        runtime.wait_until_whole()
        runtime.close()
    except MargError as exc:
        sys.stderr.write(f"{exc}\n")
        sys.exit(exc.exit_code)


if __name__ == "__main__":
    main()
