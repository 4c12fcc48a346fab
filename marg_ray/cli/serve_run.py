"""Carries out `marg serve`: starts Ray, the actors and the service, says where it is, ends all of it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from marg_ray.client import Marg
from marg_ray.errors import MargError, UsageError
from marg_ray.files import write_whole
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.sources.library.refresh import Progress as IndexProgress

INTERRUPTED = 130
NOTE = "service.json"  # in home: the runtimes that earlier servers were
REMEMBERED = 5


@dataclass(frozen=True)
class Wanted:
    """What was asked for on the command line, besides settings."""

    docs: tuple[Path, ...] = ()
    offline: bool = False
    browser: bool = True


def run_service(settings: Settings, wanted: Wanted) -> int:
    """Serve until interrupted; returns the exit code.

    Raises:
        UsageError: a folder is missing, the port is taken, or keys are switched off where others can reach it.
        RuntimeUnavailable: Ray or the service did not start.
    """
    from marg_ray.api.guards import check
    from marg_ray.sources.library.scan import check_folders

    check(settings)
    shared = tuple(dict.fromkeys(folder.expanduser().resolve() for folder in wanted.docs))
    check_folders(shared)
    check_free(settings.service.host, settings.service.port)
    return asyncio.run(_Serving(settings, shared, wanted).run())


def check_free(host: str, port: int) -> None:
    """See that one can listen there, before anything is started.

    Raises:
        UsageError: somebody does already, or this machine has no such address.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # of a server that has just ended
            probe.bind(address)
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise UsageError(f"port {port} is taken on {host}", "choose another with --port") from None
        why = exc.strerror or str(exc)
        raise UsageError(f"{host}:{port} cannot be listened on: {why}", "choose another --host or --port") from None


class _Serving:
    def __init__(self, settings: Settings, shared: tuple[Path, ...], wanted: Wanted) -> None:
        self.settings, self.shared, self.wanted = settings, shared, wanted
        self.marg = Marg(settings, offline=wanted.offline)
        self.answers = False
        self.ray: asyncio.Future[None] | None = None  # its start

    async def run(self) -> int:
        try:
            with terminated() as listen:
                await self._start(listen)
                indexing = asyncio.ensure_future(self._index())
                try:
                    await asyncio.Event().wait()
                finally:
                    indexing.cancel()
        except (KeyboardInterrupt, asyncio.CancelledError):
            if not self.answers:
                _say("interrupted while it was starting")
                await self._leave()
            await self._say_what_stays()
        finally:
            with contextlib.suppress(Exception):
                await asyncio.to_thread(self._close)
        return 0

    async def _leave(self) -> NoReturn:
        """End at once, with what was started: Serve, which a thread may be waiting for, cannot be interrupted."""
        if self.ray is not None:
            await asyncio.wait({self.ray})
        with contextlib.suppress(Exception):
            await asyncio.to_thread(self._close)
        os._exit(INTERRUPTED)

    async def _start(self, listen: Callable[[], None]) -> None:
        from marg_ray.serve_app import Setup, address_of, start  # before Ray starts: it says how patient Serve is

        _say("starting Ray and the agents" if not self.settings.runtime.ray_address else "attaching to Ray")
        self.ray = asyncio.ensure_future(self.marg.start())
        await asyncio.shield(self.ray)
        listen()
        _say("starting the service")
        _ = self.marg.runtime.assistant  # replicas ask for it by its name
        setup = Setup(self.settings, self.marg.runtime.choice, self.shared, self.wanted.offline)
        await asyncio.to_thread(start, setup)
        await self._take_up()
        self.answers = True
        address = address_of(self.settings.service)
        typer.echo(f"MARG-Ray answers at {address} (Ctrl-C ends it)")
        sys.stdout.flush()
        if self.wanted.browser:
            await asyncio.to_thread(_open, address)

    async def _take_up(self) -> None:
        """Go on with what earlier servers of this home have left behind."""
        from marg_ray.cli.local import open_store

        note = self.settings.home / NOTE
        before, now = earlier_holders(note), self.marg.runtime.holder
        store = await open_store(self.settings)
        taken = 0
        try:
            for holder in before:
                for status in ("running", "waiting") if holder != now else ():
                    for row in await store.sessions(status=status, holder=holder, limit=100_000):
                        with contextlib.suppress(MargError):  # another was quicker
                            await self.marg.runtime.progress(row.id, row.seq, 0.0)
                            taken += 1
        finally:
            await store.close()
        with contextlib.suppress(OSError):
            holders = [now, *(h for h in before if h != now)][:REMEMBERED]
            write_whole(note, json.dumps({"holders": holders}).encode())
        if taken:
            _say(f"going on with {_sessions(taken)} of the server before")

    async def _index(self) -> None:
        """Bring the index over the shared folders up to date while questions may come already."""
        if not self.shared:
            return
        told: set[str] = set()

        def on_progress(progress: IndexProgress) -> None:
            if progress.total and progress.done < progress.total and progress.stage not in told:
                told.add(progress.stage)
                _say(
                    f"reading {progress.total} files"
                    if progress.stage == "read"
                    else f"indexing {progress.total} passages"
                )

        try:
            await self.marg.index(tuple(map(str, self.shared)), on_progress)
        except MargError as exc:
            _say(f"the documents are not indexed: {exc}")
        else:
            _say("the documents are indexed")

    async def _say_what_stays(self) -> None:
        from marg_ray.cli.local import open_store

        with contextlib.suppress(Exception):
            store = await open_store(self.settings)
            rows = await store.sessions(status="running", holder=self.marg.runtime.holder, limit=100_000)
            await store.close()
            if self.settings.runtime.ray_address:
                _say("the service ends; the agents stay on the cluster")
            elif rows:
                _say(f"{_sessions(len(rows))} under way; the next `marg serve` goes on with them")

    def _close(self) -> None:
        if self.settings.runtime.ray_address and self.answers:
            from marg_ray.serve_app import stop

            stop()
        self.marg.close()


def earlier_holders(note: Path) -> list[str]:
    """The names of the runtimes that served here before, the last one first."""
    try:
        holders = json.loads(note.read_text("utf-8"))["holders"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [h for h in holders if isinstance(h, str)] if isinstance(holders, list) else []


@contextlib.contextmanager
def terminated() -> Iterator[Callable[[], None]]:
    """Meanwhile SIGTERM ends the command as Ctrl-C does.

    Gives what is to be called when Ray has started: it puts a handler of its own in place, which ends the process three
    seconds after the signal, whatever it is still doing.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def listen() -> None:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.add_signal_handler(signal.SIGTERM, task.cancel)

    listen()
    try:
        yield listen
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.remove_signal_handler(signal.SIGTERM)


def _open(address: str) -> None:
    """Show the page, where there is a screen."""
    import webbrowser

    screen = (
        os.name == "nt" or sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if screen and sys.stdout.isatty():
        with contextlib.suppress(Exception):
            webbrowser.open(address)


def _sessions(count: int) -> str:
    return f"{count} session{'' if count == 1 else 's'}"


def _say(text: str) -> None:
    typer.echo(f"marg: {text}", err=True)
