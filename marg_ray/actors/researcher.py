"""The researcher: puts queries to the sources and reads what they found. Its work fans out to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from marg_ray.messages import DraftReady, Message, SearchDone, SourceRead
from marg_ray.records import Role
from marg_ray.tasks import DraftTask, ReadTask, SearchTask, Task


class Workers(Protocol):
    """Where units of work run: in this process, or spread over a pool."""

    async def search(self, task: SearchTask) -> SearchDone: ...
    async def read(self, task: ReadTask) -> SourceRead: ...
    async def draft(self, task: DraftTask) -> DraftReady: ...


@dataclass(frozen=True, kw_only=True)
class Researcher:
    workers: Workers
    role: ClassVar[Role] = Role.RESEARCHER

    async def handle(self, task: Task) -> Message:
        if isinstance(task, SearchTask):
            return await self.workers.search(task)
        assert isinstance(task, ReadTask)
        return await self.workers.read(task)
