"""What the API stands on: the sessions wherever they run, the store, and the files."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from marg_ray.actors.assembly import Places
from marg_ray.actors.live import Progress
from marg_ray.actors.owner import Decision
from marg_ray.memory.cache import KeptReport
from marg_ray.memory.chat import Answer as Answer
from marg_ray.memory.chat import Cited as Cited
from marg_ray.memory.chat import Looked, Said
from marg_ray.memory.chat import Turn as Turn
from marg_ray.messages import Steered
from marg_ray.records import Request
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.settings import Settings
from marg_ray.store.protocol import Store
from marg_ray.telemetry.figures import Taken

if TYPE_CHECKING:
    from marg_ray.actors.shelves import LocalShelves


class Sessions(Protocol):
    """The coordinators, as `actors.deploy.Control` reaches them. Statuses come back as words."""

    async def submit(self, session_id: str, request: Request, key: str = "") -> str: ...

    async def known(self, request: Request) -> KeptReport | None: ...

    async def resume(self, session_id: str, by: str = "owner") -> str: ...

    async def pause(self, session_id: str, by: str = "owner") -> str: ...

    async def cancel(self, session_id: str, by: str = "owner") -> str: ...

    async def decide(self, session_id: str, decision: Decision) -> str: ...

    async def steer(self, session_id: str, steered: Steered) -> str: ...

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress: ...

    async def figures(self) -> Mapping[str, Taken | None]:
        """What each of its processes has counted, by name; None of one that does not answer."""


class Assistant(Protocol):
    """Answers questions about finished reports from their evidence alone, and talks over what an owner has."""

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer: ...

    def stream(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Cited | Answer, None]:
        """Each sentence as it passes its check; the whole answer comes last."""

    def converse(self, owner: str, said: Said) -> AsyncGenerator[Looked | Cited | Answer, None]:
        """One turn of a conversation: where it looked, each sentence, and last the whole answer."""


@dataclass(frozen=True)
class Service:
    """One server's parts. Nothing in it belongs to one client: any replica serves any request."""

    settings: Settings
    sessions: Sessions
    store: Store
    places: Places
    embedder: Embedder
    assistant: Assistant | None = None
    offload: Offload = in_thread
    model_name: str = ""  # as it stands on reports
    shared: tuple[Path, ...] = ()  # folders that every caller may search, by `marg serve --docs`
    offline: bool = False  # nothing leaves this machine, whatever a caller asks for

    @cached_property
    def shelves(self) -> LocalShelves:
        """The libraries over folders, as this process has them open."""
        from marg_ray.actors.shelves import LocalShelves

        s = self.settings
        return LocalShelves(s.home, s.library, self.embedder, self.places.snapshots, self.offload)
