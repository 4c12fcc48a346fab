"""Follows one session in the terminal: timeline, questions to its owner, report, closing account, exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from marg_ray.cli.account import Closing, account_of, cited_in, closing_stats, stopped_by
from marg_ray.cli.board import board_of, line_of
from marg_ray.cli.export import Delivered, export, tell
from marg_ray.cli.timeline import Board, Timeline
from marg_ray.cli.words import duration
from marg_ray.client import ENDED, Marg, Step, error_of
from marg_ray.errors import BudgetStopped, DecisionConflict, MargError, UsageError
from marg_ray.folding import apply, replay
from marg_ray.narration import describe
from marg_ray.records import OnTimeout, ReportStatus, Request
from marg_ray.routing import waiting_for
from marg_ray.settings import Settings
from marg_ray.state import ResearchState
from marg_ray.store.protocol import LogEntry

if TYPE_CHECKING:
    from rich.console import Console

    from marg_ray.actors.deploy import Control
    from marg_ray.models.select import Choice
    from marg_ray.report.model import Report
    from marg_ray.sources.library.refresh import Progress as IndexProgress

EXIT_CODES = {
    ReportStatus.PASSED: 0,
    ReportStatus.QUALITY_WARNING: 3,
    ReportStatus.INSUFFICIENT_EVIDENCE: 4,
    ReportStatus.BUDGET_STOPPED: 6,
    ReportStatus.CANCELLED: 130,
}
UNFINISHED = 7  # it waits for a decision, or is paused
LOOK_S = 5.0  # how long one look for a decision from elsewhere waits
AGAIN_S = 1.0  # before the next, where it was not answered


@dataclass(frozen=True)
class Output:
    """Where the report and the events go."""

    files: tuple[Path, ...] = ()
    as_json: bool = False
    quiet: bool = False


def run(settings: Settings, request: Request, output: Output, session_id: str = "", holder: str = "") -> int:
    """Start a session (or go on with `session_id`), show it, write its report. Returns the exit code.

    `holder` names the runtime that works on the session already, where one does.
    """
    from marg_ray.actors.coordinator import new_session_id

    watch = Watch(settings, request, output, session_id or new_session_id(), resumed=bool(session_id))
    return asyncio.run(watch.run(holder))


class Watch:
    def __init__(self, settings: Settings, request: Request, output: Output, session_id: str, *, resumed: bool) -> None:
        from rich.console import Console

        from marg_ray.actors.assembly import Places
        from marg_ray.cli.gate import Keyboard, can_ask

        self.settings, self.request, self.output = settings, request, output
        self.session_id, self.resumed, self.places = session_id, resumed, Places.of(settings)
        console = Console(stderr=True, quiet=output.quiet or output.as_json)
        self.timeline, self.width = Timeline(console, request.question, request.depth), console.width
        self.terminal = Console(stderr=True) if can_ask() and not output.as_json else None
        self.keyboard = Keyboard()
        self.began, self.waited = time.monotonic(), 0.0  # `waited` seconds for the owner
        self.index_line = ""
        self.state, self.entries = ResearchState(), list[LogEntry]()
        self.control: Control | None = None
        self.elsewhere = False  # another process works on the session
        self.kept = False  # it was answered before; nothing was spent now

    async def run(self, holder: str) -> int:
        try:
            if not self.resumed and await self._known():
                return await self._finish()
            with self.timeline:
                self.timeline.update(None, Board(running=(("runtime", "starting Ray"),)))
                steps = await self._begin(holder)
                async for step in steps:
                    self._step(step)
                while (gate := self._gate()) and await self._decided(gate):
                    async for step in self._steps():
                        self._step(step)
            return await self._finish()
        except (KeyboardInterrupt, asyncio.CancelledError):
            after = (
                "it goes on where it runs" if self.elsewhere else f"`marg resume {self.session_id}` goes on from here"
            )
            typer.echo(f"marg: interrupted; {after}", err=True)
            return 130
        finally:
            with contextlib.suppress(Exception):
                if self.control is not None:
                    self.control.close()

    async def _known(self) -> bool:
        """Take the report that the same question has had already, if there is one."""
        from marg_ray.cli.kept import kept

        self.entries = await kept(self.settings, self.request)
        if not self.entries:
            return False
        self.kept, self.state = True, replay(e.message for e in self.entries)
        self.session_id = self.state.session_id
        at = f"{self.entries[-1].at.astimezone():%Y-%m-%d %H:%M}"
        typer.echo(f"marg: the same was researched at {at}; `--fresh` researches it anew", err=True)
        return True

    async def _begin(self, holder: str) -> AsyncIterator[Step]:
        """Reach the runtime that has the session, or start one; the steps from the first entry."""
        if holder:
            from marg_ray.actors.deploy import Control

            self.control, self.elsewhere = await asyncio.to_thread(Control.attach, holder), True
        else:
            marg = Marg(self.settings, offline=self.request.sources.offline)
            await marg.start()
            self.control = marg.runtime
            if self.request.limits.usd is not None and not self.settings.tape.replay:
                await self._warn_of_unknown_prices(marg.runtime.choice)
            if not self.resumed:
                return marg.run(self.session_id, self.request, self._indexed)
        await self.control.resume(self.session_id)
        return self._steps()

    async def _warn_of_unknown_prices(self, choice: Choice) -> None:
        """A limit in dollars holds only models whose price is known."""
        from marg_ray.models.prices import unpriced

        specs = (choice.spec_fast, choice.spec_strong)
        for spec in await asyncio.to_thread(unpriced, specs, self.settings.models, os.environ):
            typer.echo(f"marg: no price is known for {spec}: a limit in dollars cannot hold it", err=True)
            typer.echo("      set models.prices, or give --max-tokens", err=True)

    async def _steps(self) -> AsyncIterator[Step]:
        """Every step after the entries that are here, to the next end."""
        assert self.control is not None
        state, after = self.state, len(self.entries)
        while True:
            progress = await self.control.progress(self.session_id, after, 1.0)
            after += len(progress.entries)
            for entry in progress.entries:
                state = apply(state, entry.message)
            yield Step(progress=progress, state=state)
            if progress.status in ENDED:
                return

    # ---- while it runs

    def _indexed(self, progress: IndexProgress) -> None:
        what = "indexing: reading files" if progress.stage == "read" else "indexing: embedding passages"
        self.index_line = f"{what} {progress.done}/{progress.total}" if progress.done < progress.total else ""

    def _step(self, step: Step) -> None:
        self.state = step.state
        elapsed = time.monotonic() - self.began
        board = board_of(step, elapsed=elapsed, waited=self.waited, index_line=self.index_line)
        for entry in step.progress.entries:
            self.entries.append(entry)
            line = line_of(entry, elapsed)
            self.timeline.update(line, board)
            if self.output.as_json:
                event = {"session": self.session_id, "seq": line.seq, "role": line.role, "kind": line.kind}
                typer.echo(json.dumps({**event, "text": line.text}, ensure_ascii=False))
        self.timeline.update(None, board)

    # ---- when it waits for its owner

    def _gate(self) -> str:
        """`plan` or `review` where the session waits for its owner; one that is paused waits for nothing else."""
        return "" if self.state.paused else waiting_for(self.state)

    async def _decided(self, gate: str) -> bool:
        """See the session through a gate: ask here, or wait for others. False: it is left waiting."""
        self.timeline.aside()
        began = time.monotonic()
        try:
            if self.terminal is not None:
                return await self._ask(gate, self.terminal)
            if self.request.on_timeout is OnTimeout.WAIT:
                return False
            typer.echo(f"marg: {self._how_to_decide(gate)}; otherwise {self._until()}", err=True)
            await self._gone_on(gate)
            return True
        finally:
            self.waited += time.monotonic() - began

    async def _ask(self, gate: str, terminal: Console) -> bool:
        from marg_ray.cli.gate import Elsewhere, Prompt

        assert self.control is not None
        prompt = Prompt(terminal, self.keyboard, self.state, lambda: self._gone_on(gate))
        try:
            decision = await prompt.ask(gate, self._until())
            if decision is None:
                await self.control.cancel(self.session_id)
            else:
                await self.control.decide(self.session_id, decision)
        except Elsewhere:
            terminal.print("meanwhile, from elsewhere:", style="yellow", highlight=False)
        except (DecisionConflict, UsageError) as exc:
            typer.echo(f"marg: {exc}", err=True)
        except (KeyboardInterrupt, asyncio.CancelledError, EOFError):
            terminal.print()
            return False
        return True

    async def _gone_on(self, gate: str) -> None:
        """Come back when the session does not stand as it did at this gate."""
        assert self.control is not None
        while True:
            try:
                progress = await self.control.progress(self.session_id, len(self.entries), LOOK_S)
                if progress.entries or progress.waiting_for != gate or progress.status != "waiting":
                    return
            except MargError as exc:
                if not exc.retryable:
                    raise
                await asyncio.sleep(AGAIN_S)

    def _until(self) -> str:
        """What happens, and when, if nobody decides."""
        if self.request.on_timeout is OnTimeout.WAIT or not self.entries:
            return ""
        due = self.entries[-1].at + timedelta(seconds=self.request.gate_timeout_s)
        what = "approved" if self.request.on_timeout is OnTimeout.APPROVE else "cancelled"
        left = duration((due - datetime.now(UTC)).total_seconds())
        return f"{what} by rule in {left}, at {due.astimezone():%H:%M:%S}"

    def _how_to_decide(self, gate: str) -> str:
        what, others = ("plan", "edit or reject") if gate == "plan" else ("draft", "reject or extend")
        return f"the {what} waits for a decision: `marg decide {self.session_id} approve` (or {others})"

    # ---- when it is over

    async def _finish(self) -> int:
        error = error_of(self.state, self.session_id)
        report = self._report()
        delivered = Delivered()
        if report is not None and error is None:
            otherwise_text = not self.output.as_json
            delivered = await asyncio.to_thread(export, report, self.output.files, otherwise_text=otherwise_text)
        if delivered.text:
            typer.echo(delivered.text, nl=False)
        status = self._status()
        elapsed, model = time.monotonic() - self.began, report.model if report else ""
        account = account_of(
            self.state,
            self.entries,
            status=status,
            elapsed=elapsed,
            model=model,
            files=delivered.files,
            citations=cited_in(report),
        )
        if self.kept:
            account = Closing(self.session_id, status, model, elapsed, files=delivered.files)
        self.timeline.finish(closing_stats(account, self.width))
        tell(delivered)
        if self.output.as_json:
            self._print_json_end(status, report, error, delivered)
        if error is not None:
            if not self.output.as_json:
                self._print_error(error, report)
            return self.state.halt.exit_code if self.state.halt else error.exit_code
        if self.state.report is None:
            typer.echo(f"marg: {self._unfinished()}", err=True)
            return UNFINISHED
        return 1 if delivered.nothing and not self.output.as_json else EXIT_CODES[self.state.report.status]

    def _status(self) -> str:
        from marg_ray.actors.live import status_word

        return status_word(self.state)

    def _unfinished(self) -> str:
        gate = self._gate()
        again = f"`marg resume {self.session_id}` goes on"
        return (
            f"{self._how_to_decide(gate)}; then {again}" if gate else f"{describe(self.entries[-1].message)}; {again}"
        )

    def _report(self) -> Report | None:
        from marg_ray.report.model import from_json

        if self.state.report is None:
            return None
        return from_json(self.places.artefacts.get(self.state.report.artefact))

    def _print_json_end(
        self, status: str, report: Report | None, error: MargError | None, delivered: Delivered
    ) -> None:
        end: dict[str, object] = {"session": self.session_id, "kind": "end", "status": status}
        if gate := self._gate():
            end["waiting_for"] = gate
        if self.kept:
            end["kept"] = True
        if error is not None:
            end["error"] = {"type": error.code, "detail": str(error), "hint": error.hint}
        if delivered.failures:
            end["not_written"] = [{"file": f.what, "why": f.why} for f in delivered.failures]
        if report is not None:
            end["report"] = json.loads(report.model_dump_json())
        typer.echo(json.dumps(end, ensure_ascii=False))

    def _print_error(self, error: MargError, report: Report | None) -> None:
        why = stopped_by(self.state) if isinstance(error, BudgetStopped) else ""
        if report is not None:  # a refusal says why, what is missing and what comes nearest
            from marg_ray.report.refusal import refusal_text

            typer.echo(refusal_text(report.question, why or str(error), report.answerability), err=True)
            return
        typer.echo(f"marg: {why or error}", err=True)
        if error.hint:
            typer.echo(f"      {error.hint}", err=True)
