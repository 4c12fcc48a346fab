"""What a batch needs of a runtime, and a started `Marg` as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from marg_ray.client import Marg, Step
    from marg_ray.records import Request
    from marg_ray.report.model import Report
    from marg_ray.sources.library.refresh import Progress as IndexProgress


class Asking(Protocol):
    async def known(self, request: Request) -> Report | None:
        """The report that the same request has had already."""

    async def submit(self, session_id: str, request: Request, key: str) -> str:
        """Start a session, or go on with it; its id.

        Raises:
            KeyReused: the idempotency `key` came with another request before.
            TooBusy: too many sessions wait already.
        """

    async def resume(self, session_id: str) -> str:
        """Go on with a session that stopped; its status."""

    def follow(self, session_id: str, beside: asyncio.Future[None] | None = None) -> AsyncIterator[Step]:
        """Every step of a session to its end; if `beside` fails the session is cancelled, and its error raised."""

    async def index(self, folders: Sequence[str], on_progress: Callable[[IndexProgress], None] | None = None) -> None:
        """Bring the library over `folders` up to date."""

    async def report(self, artefact: str) -> Report:
        """A stored report.

        Raises:
            MargError: it is gone.
        """


@dataclass(frozen=True)
class Here:
    """A `Marg` that is started."""

    marg: Marg

    async def known(self, request: Request) -> Report | None:
        return await self.marg.known(request)

    async def submit(self, session_id: str, request: Request, key: str) -> str:
        return await self.marg.runtime.submit(session_id, request, key)

    async def resume(self, session_id: str) -> str:
        return await self.marg.resume(session_id)

    def follow(self, session_id: str, beside: asyncio.Future[None] | None = None) -> AsyncIterator[Step]:
        return self.marg.follow(session_id, beside)

    async def index(self, folders: Sequence[str], on_progress: Callable[[IndexProgress], None] | None = None) -> None:
        await self.marg.index(folders, on_progress)

    async def report(self, artefact: str) -> Report:
        from marg_ray.report.model import from_json

        return from_json(await asyncio.to_thread(self.marg.runtime.places.artefacts.get, artefact))
