"""What an agent is, how work reaches it, and who says when a session may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from marg_ray.messages import Message
from marg_ray.records import Priority, Role
from marg_ray.tasks import Task


class Agent(Protocol):
    """One task in, one message out. An agent holds no run state and talks to no other agent."""

    role: ClassVar[Role]

    async def handle(self, task: Task) -> Message:
        """Carry out `task`.

        Raises:
            MargError: it could not be done; the coordinator records that and decides what follows.
        """


class Dispatch(Protocol):
    """Takes a task to an agent of its role and brings back what it said."""

    async def __call__(self, task: Task) -> Message:
        """Carry out `task`; a second call with the same task avoids the worker that did not answer the first.

        Raises:
            RuntimeUnavailable: whoever had it died; the task may be handed out again.
        """


class Admission(Protocol):
    """How many sessions run at once, and who is next."""

    async def enter(self, session_id: str, owner: str, priority: Priority) -> None:
        """Return when the session may run.

        Raises:
            TooBusy: too many wait already.
        """

    async def leave(self, session_id: str) -> None:
        """The session needs its place no longer, or waits no longer."""

    async def renew(self, owners: Mapping[str, str]) -> None:
        """These sessions run, and keep their places: session to owner."""

    async def position(self, session_id: str) -> int | None:
        """0: it runs; n: n-th in the queue; None: not known."""
