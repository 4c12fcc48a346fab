"""The service on a real port, in a thread of this process: real agents, coordinator and routes; a model that answers
from its input, which tests hold and let go."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvicorn

from marg_ray.api.app import create_app
from marg_ray.grounding.snapshots import Document, Part
from marg_ray.messages import ReportReady, SessionStarted
from marg_ray.models.testing import CannedModel
from marg_ray.report.assemble import build_report
from marg_ray.report.model import ChartSeries, Report, ReportChart, to_json
from tests import report_sample
from tests.flow import TIDES, World, engine_over, page
from tests.served import service_of

T = TypeVar("T")
START_S = 30
PAGES = {
    **TIDES,
    "https://tides.test/review": (
        "Review of tidal power",
        "In a review of 2019 the Rance station delivered close to 480 gigawatt hours of electricity in an average "
        "year. Its concrete caissons and 24 turbines were overhauled between 1996 and 2006. The price of a kilowatt "
        "hour was lower than that of nuclear power once the construction was paid for.",
    ),
    "https://tides.test/fish": (
        "Fish and turbines",
        "Fish passed the turbines of the barrage with a mortality of 4 to 10 percent. Counts of wading birds on the "
        "mud flats fell by 11 percent in five years, because the flats were covered for longer.",
    ),
}
CHART = ReportChart(
    id="capacity",
    section="s1",
    kind="bar",
    title="Capacity of tidal plants",
    x="Plant",
    y="Capacity (MW)",
    labels=("Rance", "Sihwa Lake", "Annapolis Royal"),
    series=(ChartSeries(name="Capacity", values=(240, 254, 20)),),
    numbers=(2,),
)


@dataclass
class Hold:
    """Calls of some kinds of tasks wait here until they are let go. Used in the server's loop."""

    kinds: set[str] = field(default_factory=set)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def before(self, task: Any, _: Any) -> None:
        if type(task).__name__ in self.kinds:
            await self.free.wait()


class Host:
    """One server. Methods are called from the test's thread."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder, self._settings = folder, {"service": {"per_minute": 100_000}, **settings}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread.start()
        self.run(self._start())

    def run(self, work: Coroutine[Any, Any, T], timeout: float = 60) -> T:
        """Do something in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    async def _start(self) -> None:
        self._hold = Hold()
        self.world = World(
            self.folder,
            model=CannedModel(before=self._hold.before),
            pages={url: page(*text) for url, text in PAGES.items()},
            engines=(engine_over(PAGES),),
        )
        self.service = service_of(self.world, **self._settings)
        app = create_app(self.service)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        self._serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        async with asyncio.timeout(START_S):
            while not self._server.started:  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # it has no event to wait for
        await self.world.ask()  # what the first run imports, no test waits for

    def stop(self) -> None:
        async def end() -> None:
            self._hold.free.set()
            self._server.should_exit = True
            await asyncio.wait([self._serving], timeout=5)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

        self.run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    # ---- what the model does

    def hold(self, *kinds: str) -> None:
        """Calls for tasks of these names wait from now on."""

        async def change() -> None:
            self._hold.kinds, self._hold.free = set(kinds), asyncio.Event()

        self.let_go()
        self.run(change())

    def let_go(self) -> None:
        async def change() -> None:
            self._hold.free.set()
            self._hold.kinds = set()

        self.run(change())

    # ---- a finished report with every kind of content

    def plant(self, session_id: str, **changes: object) -> Report:
        """Put the sample report there as if a session had ended with it; `changes` to what it is made from."""
        made = report_sample.inputs(session_id=session_id, **changes)
        report = build_report(made).model_copy(update={"charts": (CHART,)})

        async def write() -> None:
            store = self.world.store
            request = made.request
            await store.create(session_id, owner="local", question=request.question)
            epoch = await store.take_over(session_id)
            artefact = self.world.artefacts.put(to_json(report))
            for text in report_sample.TEXTS.values():
                self.world.snapshots.put(_document(text))
            for seq, message in enumerate(_log(session_id, made, report, artefact)):
                status = str(report.status)
                await store.append(session_id, message, expected_seq=seq, epoch=epoch, status=status)

        self.run(write())
        return report


def _document(text: str) -> Document:
    parts, at = [], 0
    for piece in text.split("\n\n"):
        parts.append(Part(kind="paragraph", start=at, end=at + len(piece)))
        at += len(piece) + 2
    return Document(title="", text=text, parts=tuple(parts))


def _log(session_id: str, made: Any, report: Report, artefact: str) -> Iterable[Any]:
    from marg_ray.messages import PlanReady, SourceRead

    started = report_sample.NOW.isoformat()
    yield SessionStarted(task_id=f"{session_id}/start", session_id=session_id, request=made.request, started_at=started)
    yield PlanReady(task_id=f"{session_id}/plan/0", plan=made.plan)
    for n, source in enumerate(made.sources.values()):
        evidence = tuple(e for e in made.evidence.values() if e.source == source.id)
        yield SourceRead(
            task_id=f"{session_id}/s1/read/{n}",
            section="s1",
            location=source.location,
            status="read",
            source=source,
            evidence=evidence,
        )
    yield ReportReady(task_id=f"{session_id}/format", artefact=artefact, status=report.status, words=300)


class Proxy:
    """A TCP connection between browser and server that can be cut."""

    def __init__(self, host: Host) -> None:
        self._host, self._ends = host, set[asyncio.StreamWriter]()
        self.connections = 0
        host.run(self._listen())

    async def _listen(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self._host.port)
        self._ends |= {writer, back}
        await asyncio.gather(_pump(reader, back), _pump(there, writer))
        self._ends -= {writer, back}

    def cut(self, *, stay_away: bool = False) -> None:
        """Break every connection; with `stay_away`, take no new ones until `again`."""

        async def change() -> None:
            if stay_away:
                self._server.close()
            for end in list(self._ends):
                end.transport.abort()

        self._host.run(change())

    def again(self) -> None:
        self._host.run(self._listen(self.port))

    def close(self) -> None:
        self.cut(stay_away=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
