"""Follows one session in the terminal: timeline, report, closing account, exit code."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from marg_ray.cli.timeline import Board, Closing, LogLine, Timeline
from marg_ray.client import Marg, Step, error_of
from marg_ray.errors import MargError
from marg_ray.narration import describe
from marg_ray.records import ReportStatus, Request, Usage
from marg_ray.settings import Settings
from marg_ray.state import ResearchState, teller_of

if TYPE_CHECKING:
    from marg_ray.report.model import Report
    from marg_ray.sources.library.refresh import Progress as IndexProgress

EXIT_CODES = {
    ReportStatus.PASSED: 0,
    ReportStatus.QUALITY_WARNING: 3,
    ReportStatus.INSUFFICIENT_EVIDENCE: 4,
    ReportStatus.BUDGET_STOPPED: 6,
    ReportStatus.CANCELLED: 130,
}
VERBS = {
    "plan": "planning",
    "search": "searching",
    "read": "reading",
    "draft": "writing",
    "ground": "checking",
    "analyse": "comparing the evidence",
    "review": "reviewing the draft",
    "summarise": "summarising",
    "format": "putting the report together",
}


@dataclass(frozen=True)
class Output:
    """Where the report and the events go."""

    files: tuple[Path, ...] = ()
    as_json: bool = False
    quiet: bool = False


def run(settings: Settings, request: Request, output: Output, session_id: str = "") -> int:
    """Start a session (or go on with `session_id`), show it, write its report. Returns the exit code."""
    from marg_ray.actors.coordinator import new_session_id

    watch = _Watch(request, output, session_id or new_session_id(), resumed=bool(session_id))
    return asyncio.run(watch.run(settings))


class _Watch:
    def __init__(self, request: Request, output: Output, session_id: str, *, resumed: bool) -> None:
        from rich.console import Console

        self.request, self.output, self.session_id, self.resumed = request, output, session_id, resumed
        self.console = Console(stderr=True, quiet=output.quiet or output.as_json)
        self.timeline = Timeline(self.console, request.question, request.depth)
        self.began = time.monotonic()
        self.index_line = ""
        self.state = ResearchState()

    async def run(self, settings: Settings) -> int:
        marg = Marg(settings, offline=self.request.sources.offline)
        try:
            with self.timeline:
                self.timeline.update(None, Board(running=(("runtime", "starting Ray"),)))
                await marg.start()
                if self.resumed:
                    await marg.resume(self.session_id)
                    steps = marg.follow(self.session_id)
                else:
                    steps = marg.run(self.session_id, self.request, self._indexed)
                async for step in steps:
                    self._step(step)
            return self._finish(marg)
        except (KeyboardInterrupt, asyncio.CancelledError):
            typer.echo(f"marg: interrupted; `marg resume {self.session_id}` goes on from here", err=True)
            return 130
        finally:
            with contextlib.suppress(Exception):
                marg.close()

    # ---- while it runs

    def _indexed(self, progress: IndexProgress) -> None:
        what = "indexing: reading files" if progress.stage == "read" else "indexing: embedding passages"
        self.index_line = f"{what} {progress.done}/{progress.total}" if progress.done < progress.total else ""

    def _step(self, step: Step) -> None:
        self.state = step.state
        board = self._board(step)
        for entry in step.progress.entries:
            line = LogLine(
                seq=entry.seq,
                at=time.monotonic() - self.began,
                role=teller_of(entry.message),
                kind=entry.message.kind,
                text=describe(entry.message),
                section=getattr(entry.message, "section", ""),
            )
            self.timeline.update(line, board)
            if self.output.as_json:
                event = {"session": self.session_id, "seq": line.seq, "role": line.role, "kind": line.kind}
                typer.echo(json.dumps({**event, "text": line.text}, ensure_ascii=False))
        self.timeline.update(None, board)

    def _board(self, step: Step) -> Board:
        running = [(r.role, _doing(r.kind, r.section, r.target, self.state)) for r in step.progress.running]
        if self.index_line:
            running.insert(0, ("library", self.index_line))
        spent = _total(self.state)
        return Board(
            running=tuple(running),
            counts=_counts(self.state),
            tokens=spent.tokens_in + spent.tokens_out,
            cost=spent.cost,
            elapsed=time.monotonic() - self.began,
        )

    # ---- when it is over

    def _finish(self, marg: Marg) -> int:
        error = error_of(self.state, self.session_id)
        report = self._report(marg)
        written = self._write(report) if report is not None and error is None else ()
        status = str(self.state.report.status) if self.state.report else "halted" if self.state.halt else "cancelled"
        self.timeline.finish(self._closing(status, report, written))
        if self.output.as_json:
            self._print_json_end(status, report, error)
        if error is None and self.state.report is None:
            typer.echo(f"marg: session {self.session_id} waits for a decision", err=True)
            return 0
        if error is None:
            assert self.state.report is not None
            return EXIT_CODES[self.state.report.status]
        if not self.output.as_json:
            self._print_error(error, report)
        return self.state.halt.exit_code if self.state.halt else error.exit_code

    def _report(self, marg: Marg) -> Report | None:
        from marg_ray.report.model import from_json

        if self.state.report is None:
            return None
        return from_json(marg.runtime.places.artefacts.get(self.state.report.artefact))

    def _write(self, report: Report) -> tuple[str, ...]:
        from marg_ray.report.writers import render, write_report

        if not self.output.files and not self.output.as_json:
            typer.echo(render(report, "md"), nl=False)
        return tuple(str(write_report(report, path)) for path in self.output.files)

    def _print_json_end(self, status: str, report: Report | None, error: MargError | None) -> None:
        end: dict[str, object] = {"session": self.session_id, "kind": "end", "status": status}
        if error is not None:
            end["error"] = {"type": error.code, "detail": str(error), "hint": error.hint}
        if report is not None:
            end["report"] = json.loads(report.model_dump_json())
        typer.echo(json.dumps(end, ensure_ascii=False))

    def _print_error(self, error: MargError, report: Report | None) -> None:
        if report is not None:  # a refusal says why, what is missing and what comes nearest
            from marg_ray.report.refusal import refusal_text

            typer.echo(refusal_text(report.question, str(error), report.answerability), err=True)
            return
        typer.echo(f"marg: {error}", err=True)
        if error.hint:
            typer.echo(f"      {error.hint}", err=True)

    def _closing(self, status: str, report: Report | None, files: tuple[str, ...]) -> Closing:
        reviews = self.state.reviews
        return Closing(
            session_id=self.session_id,
            status=status,
            model=report.model if report else "",
            elapsed=time.monotonic() - self.began,
            iterations=self.state.iteration,
            counts=_counts(self.state),
            usage=_total(self.state),
            by_role={str(k): v for k, v in self.state.usage.items()},
            scores=reviews[-1].scores if reviews else None,
            files=files,
        )


def _doing(kind: str, section: str, target: str, state: ResearchState) -> str:
    titles = {key: s.section.title for key, s in state.sections.items()}
    what = target or titles.get(section, "the summary" if section == "summary" else "")
    return f"{VERBS.get(kind, kind)} {what}".strip()


def _counts(state: ResearchState) -> dict[str, int]:
    sections = state.sections.values()
    sentences = [s for x in sections if x.draft for s in x.draft.sentences if s.verdict]
    return {
        "searches": sum(slot.done for x in sections for slot in x.searches) + int(state.scouted),
        "sources": len(state.sources),
        "passages": len(state.evidence),
        "sections": sum(x.draft is not None for x in sections),
        "sentences checked": len(sentences),
    }


def _total(state: ResearchState) -> Usage:
    return sum(state.usage.values(), Usage())
