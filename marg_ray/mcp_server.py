"""The tools on standard input and output, over a runtime that starts while the client is greeted.

Nothing but the protocol reaches standard output: while the server runs, the SDK keeps the descriptor to itself and has
file descriptor 1 lead to standard error, and Ray and all that it starts come up under that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marg_ray.api.callers import Caller
from marg_ray.errors import MargError
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.api.mcp.tools import Tools
    from marg_ray.client import Marg
    from marg_ray.store.protocol import Store

log = logging.getLogger(__name__)
LOCAL = Caller(owner="local")
_tasks: set[asyncio.Future[None]] = set()  # the loop itself holds none


async def serve(settings: Settings, docs: Sequence[Path] = (), *, offline: bool = False) -> None:
    """Serve until the client closes our standard input, or a signal comes. `docs` can be searched by `rag_search`."""
    from marg_ray.api.mcp.server import build

    local = _Local(settings, tuple(docs), offline=offline)
    server = build(local.tools, lambda _: LOCAL, local.lifespan)
    _heed_signals(local)
    await server.run_stdio_async()


def _heed_signals(local: _Local) -> None:
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(name)
        loop.add_signal_handler(name, _leaving, local, 128 + name)


def _leaving(local: _Local, code: int) -> None:
    async def leave() -> None:
        await local.close()
        os._exit(code)  # a thread that reads standard input can be stopped by nothing else

    _tasks.add(asyncio.ensure_future(leave()))


class _Local:
    """The runtime behind the tools, and the store they look into."""

    def __init__(self, settings: Settings, docs: tuple[Path, ...], *, offline: bool) -> None:
        self._settings, self._docs, self._offline = settings, docs, offline
        self._starting: asyncio.Future[Tools] | None = None
        self._marg: Marg | None = None
        self._store: Store | None = None

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        self._begin()
        try:
            yield
        finally:
            await self.close()

    async def tools(self) -> Tools:
        """The tools, as soon as the runtime is up; one that did not start is tried again."""
        return await asyncio.shield(self._begin())

    def _begin(self) -> asyncio.Future[Tools]:
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            self._starting = asyncio.ensure_future(self._start())
            self._starting.add_done_callback(_heard)
        return self._starting

    async def _start(self) -> Tools:
        from marg_ray.actors.assembly import Places, model_name
        from marg_ray.api.mcp.tools import Tools
        from marg_ray.api.service import Service
        from marg_ray.api.streams import Hub
        from marg_ray.api.views import session_view
        from marg_ray.client import Marg
        from marg_ray.store.sql import SqlStore

        self._marg = self._marg or Marg(self._settings, offline=self._offline)
        await self._marg.start()
        _heed_signals(self)  # Ray has put its own in their place
        runtime, places = self._marg.runtime, Places.of(self._settings)
        self._store = self._store or await SqlStore.open(places.store_url)
        service = Service(
            settings=self._settings,
            sessions=runtime,
            store=self._store,
            places=places,
            embedder=runtime.embedder,
            offload=runtime.offload,
            model_name=model_name(runtime.choice),
            shared=self._docs,
            offline=self._offline,
        )
        tools = Tools(service, Hub(service.sessions, service.store, session_view))
        if self._docs:
            asyncio.ensure_future(tools.prepare(LOCAL)).add_done_callback(_heard)
        return tools

    async def close(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            await asyncio.wait([starting])  # a Ray that is half up cannot be left
        if self._marg is not None:
            await asyncio.to_thread(self._marg.close)
        if self._store is not None:
            await self._store.close()
        self._marg = self._store = None


def _heard(done: asyncio.Future[Any]) -> None:
    """Whoever asks for a tool hears of it again; until then the log does."""
    if not done.cancelled() and (exc := done.exception()) is not None:
        log.warning("%s", exc if isinstance(exc, MargError) else f"{type(exc).__name__}: {exc}")
