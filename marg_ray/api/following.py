"""A session followed to its end by the service itself, and what came of it: for answers that wait for the report."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from marg_ray.actors.neighbours import SETTLED
from marg_ray.api.finished import refuses
from marg_ray.api.refusals import NoReport, NotReady
from marg_ray.api.service import Service
from marg_ray.api.streams import Hub
from marg_ray.client import error_of
from marg_ray.errors import InsufficientEvidence
from marg_ray.folding import replay
from marg_ray.records import Usage
from marg_ray.report.markdown import to_markdown
from marg_ray.report.model import Report, from_json
from marg_ray.seams import in_thread
from marg_ray.store.protocol import SessionRow

CLOSING_S = 60.0  # a reader that is sent away so soon stands before a server that closes
STOPPED = frozenset({"halted", "paused"})  # nothing comes of it unless its owner acts


@dataclass(frozen=True)
class Happening:
    """Something that happened, in words. Without words: a sign of life."""

    seq: int = 0
    role: str = ""
    text: str = ""


@dataclass(frozen=True)
class Outcome:
    """A session that is over, with its report. `refused`: the report says why there is none."""

    row: SessionRow
    report: Report
    markdown: str
    refused: bool
    spent: Usage


async def follow(hub: Hub, service: Service, session_id: str) -> AsyncGenerator[Happening]:
    """Everything that happens until the session is over, or stops, with signs of life between.

    Who stops listening stops nothing.
    """
    after, clock = 0, asyncio.get_running_loop().time
    while True:
        row, began = await service.store.session(session_id), clock()
        with hub.reading(row, after, boards=False) as reader:
            while piece := await reader.next():
                for name, data in _frames(piece):
                    if name == "end":
                        return
                    if "seq" in data:
                        after = int(str(data["seq"]))
                        yield Happening(after, str(data.get("role", "")), str(data.get("text", "")))
                    if name == "session_paused":
                        return
                yield Happening()
        row = await service.store.session(session_id)
        if row.status in SETTLED | STOPPED or clock() - began < CLOSING_S:
            return


async def wait(hub: Hub, service: Service, session_id: str) -> None:
    """Until the session is over, or stops."""
    async with aclosing(follow(hub, service, session_id)) as happenings:
        async for _ in happenings:
            pass


async def outcome_of(service: Service, session_id: str) -> Outcome:
    """What came of a session.

    Raises:
        NotReady: it is still at work, or waits.
        SessionHalted: something that it needs was away.
        NoReport: it was cancelled.
    """
    row = await service.store.session(session_id)
    if not row.artefact:
        if row.status not in SETTLED | STOPPED:
            raise NotReady(row.id, row.status)
        entries = await service.store.read(row.id)
        error = error_of(await in_thread(replay, [e.message for e in entries]), row.id)
        if error is not None and not isinstance(error, InsufficientEvidence) and row.status == "halted":
            raise error
        raise NoReport(row.id, row.status) if row.status in SETTLED else NotReady(row.id, row.status)
    report = await in_thread(from_json, await in_thread(service.places.artefacts.get, row.artefact))
    account = await service.store.account(row.id)
    return Outcome(
        row=row,
        report=report,
        markdown=await in_thread(to_markdown, report),
        refused=refuses(report),
        spent=account.spent + account.lost,
    )


def _frames(piece: bytes) -> list[tuple[str, dict[str, object]]]:
    """The named events in a piece of a stream, as `api/sse.py` writes them."""
    found = []
    for frame in piece.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if ": " in line)
        if "event" in fields and "data" in fields:
            data = json.loads(fields["data"])
            found.append((fields["event"], data if isinstance(data, dict) else {}))
    return found
