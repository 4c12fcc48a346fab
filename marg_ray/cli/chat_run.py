"""A conversation in the terminal: lines in, checked sentences out."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import typer

from marg_ray.cli.gate import Keyboard
from marg_ray.cli.local import find_session, open_store, with_store
from marg_ray.cli.words import clean, count
from marg_ray.errors import MargError, UsageError
from marg_ray.memory.chat import Answer, Cited, Looked, Said
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from rich.console import Console

    from marg_ray.store.protocol import Store

OWNER = "local"
INTERRUPTED = 130
DOUBTFUL = {"partial": "partly supported"}


@dataclass(frozen=True)
class Wanted:
    session: str = ""
    docs: tuple[Path, ...] = ()
    web: bool = False
    offline: bool = False
    conversation: str = ""
    as_json: bool = False


class Talker(Protocol):
    """The assistant, as far as a conversation needs it."""

    def converse(self, owner: str, said: Said) -> AsyncGenerator[Looked | Cited | Answer, None]: ...


def run_chat(settings: Settings, wanted: Wanted) -> int:
    """Talk until there is nothing more to say. Returns the exit code."""
    return asyncio.run(_started(settings, wanted))


async def _started(settings: Settings, wanted: Wanted) -> int:
    from rich.console import Console

    from marg_ray.client import Marg
    from marg_ray.sources.library.scan import check_folders

    folders = tuple(folder.expanduser().resolve() for folder in wanted.docs)
    check_folders(folders)
    store = await open_store(settings)
    marg = Marg(settings, offline=wanted.offline)
    try:
        about = await _report(store, wanted.session)
        conversation = await _conversation(store, wanted.conversation)
        console = Console(stderr=True)
        with console.status("starting Ray") if sys.stdin.isatty() else contextlib.nullcontext():
            await marg.start()
        talk = Terminal(store, marg.runtime.assistant, wanted, tuple(map(str, folders)), about, console)
        return await talk.run(conversation)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    finally:
        with contextlib.suppress(Exception):
            marg.close()
        await store.close()


async def _report(store: Store, session: str) -> str:
    """The session that is to be talked about; it has a report."""
    if not session:
        return ""
    row = await store.session(await find_session(store, session))
    if not row.artefact:
        raise UsageError(f"session {row.id} has no report yet: it is {row.status}", f"`marg resume {row.id}` goes on")
    return row.id


async def _conversation(store: Store, name: str) -> str:
    if name == "last":
        rows = await store.talk.conversations(OWNER, 1)
        return rows[0].id if rows else ""
    return (await store.talk.conversation(OWNER, name)).id if name else ""


@dataclass
class Terminal:
    """One conversation at a terminal, or over lines that are piped in."""

    store: Store
    assistant: Talker
    wanted: Wanted
    folders: tuple[str, ...]
    about: str
    console: Console
    keyboard: Keyboard = field(default_factory=Keyboard)
    _answering: asyncio.Task[None] | None = None
    _stopped: bool = False

    async def run(self, conversation: str = "") -> int:
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()

        def interrupted() -> None:
            if self._answering is not None and not self._answering.done():
                self._answering.cancel()
            elif me is not None:
                self._stopped = True
                me.cancel()

        loop.add_signal_handler(signal.SIGINT, interrupted)
        try:
            while (line := await self._line()) is not None:
                if line:
                    conversation = conversation or await self._begun(line)
                    await self._turn(conversation, line)
        except asyncio.CancelledError:
            if not self._stopped:
                raise
            self.console.print()
            return INTERRUPTED
        finally:
            loop.remove_signal_handler(signal.SIGINT)
        return 0

    @property
    def at_terminal(self) -> bool:
        return sys.stdin.isatty() and not self.wanted.as_json

    async def _line(self) -> str | None:
        if self.at_terminal:
            self.console.print("› ", style="bold", end="")
        try:
            return await self.keyboard.line() if self.at_terminal else await _piped(self.keyboard)
        except EOFError:
            if self.at_terminal:
                self.console.print()
            return None

    async def _begun(self, line: str) -> str:
        fresh = f"c-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"
        await self.store.talk.open(OWNER, fresh, clean(line)[:120])
        return fresh

    async def _turn(self, conversation: str, line: str) -> None:
        said = Said(
            conversation=conversation,
            turn=uuid4().hex[:16],
            text=line,
            report=self.about,
            folders=self.folders,
            web=self.wanted.web,
        )
        self._answering = asyncio.ensure_future(self._answer(said))
        try:
            await self._answering
        except asyncio.CancelledError:
            if not self._answering.cancelled():
                raise
            self.console.print("\n(stopped)", style="dim")
        except MargError as exc:
            if isinstance(exc, UsageError):
                self.console.print(f"{clean(str(exc))}. {clean(exc.hint)}", style="yellow", markup=False)
            else:
                raise
        finally:
            self._answering = None

    async def _answer(self, said: Said) -> None:
        numbers: dict[str, int] = {}
        async with aclosing(self.assistant.converse(OWNER, said)) as parts:
            async for part in parts:
                match part:
                    case Looked():
                        if not self.wanted.as_json:
                            line = f"  {part.where}: {clean(part.text)}"
                            self.console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
                    case Cited():
                        if not self.wanted.as_json:
                            typer.echo(_printed(part, numbers))
                    case Answer():
                        self._ended(said, part, numbers)

    def _ended(self, said: Said, answer: Answer, numbers: dict[str, int]) -> None:
        if self.wanted.as_json:
            typer.echo(answer.model_dump_json())
            return
        passages = {p.id: p for p in answer.passages}
        for cited, number in numbers.items():
            if (p := passages.get(cited)) is not None:
                where = clean(p.title) or clean(p.location)
                location = f" ({clean(p.location)})" if p.location and p.location != p.title else ""
                self.console.print(
                    f"  [{number}] {where}{location}", style="dim", markup=False, highlight=False, soft_wrap=True
                )
        if answer.dropped:
            told = f"  {count(len(answer.dropped), 'sentence')} failed the check and was left out"
            self.console.print(told.replace("was", "were") if len(answer.dropped) > 1 else told, style="dim")
        for note in answer.notes:
            self.console.print(f"  {clean(note)}", style="yellow", markup=False)


def _printed(sentence: Cited, numbers: dict[str, int]) -> str:
    """A sentence with its marks; numbers are given in the order of first citation."""
    marks = "".join(f"[{numbers.setdefault(c, len(numbers) + 1)}]" for c in sentence.citations)
    doubt = f" ({DOUBTFUL[sentence.verdict]})" if sentence.verdict in DOUBTFUL else ""
    return f"{clean(sentence.text)}{' ' + marks if marks else ''}{doubt}"


async def _piped(keyboard: Keyboard) -> str:
    """A line of a pipe or a file; the last one may have no end."""
    try:
        return await keyboard.line()
    except EOFError:
        if rest := keyboard.rest():
            return rest
        raise
    except (PermissionError, NotImplementedError):  # a file is always ready: the loop does not watch it
        line: str = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            raise EOFError from None
        return line.strip()


def list_conversations(settings: Settings) -> None:
    rows = with_store(settings, lambda store: store.talk.conversations(OWNER, 50))
    for row in rows:
        typer.echo(f"{row.id}  {row.updated_at:%Y-%m-%d %H:%M}  {count(row.turns, 'turn'):>9}  {clean(row.title)}")
    if not rows:
        typer.echo("there are no conversations yet", err=True)
