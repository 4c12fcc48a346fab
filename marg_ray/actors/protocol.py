"""What an agent is, and how work reaches it."""

from __future__ import annotations

from typing import ClassVar, Protocol

from marg_ray.messages import Message
from marg_ray.records import Role
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

    async def __call__(self, task: Task) -> Message: ...
