"""What the API stands on: the sessions wherever they run, the store, and the files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from marg_ray.actors.assembly import Places
from marg_ray.actors.live import Progress
from marg_ray.actors.owner import Decision
from marg_ray.memory.cache import KeptReport
from marg_ray.messages import Steered
from marg_ray.records import Record, Request
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.settings import Settings
from marg_ray.store.protocol import Store


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


class Turn(Record):
    """One side's words in a conversation."""

    role: str  # "user" or "assistant"
    text: str


class Cited(Record):
    """A sentence of an answer, the evidence ids it rests on, and the check's verdict on it."""

    text: str
    citations: tuple[str, ...] = ()
    verdict: str = ""
    reason: str = ""


class Answer(Record):
    """An answer from evidence that is there; `known` is False where the evidence does not answer, and says so."""

    sentences: tuple[Cited, ...]
    known: bool = True

    @property
    def text(self) -> str:
        return " ".join(s.text for s in self.sentences)


class Assistant(Protocol):
    """Answers questions about finished reports from their evidence alone."""

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer: ...

    def stream(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()
    ) -> AsyncIterator[Cited]: ...


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
