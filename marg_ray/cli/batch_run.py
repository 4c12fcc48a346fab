"""Carries out `marg batch`: reads the rows, works through them, shows how it goes, judges what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from marg_ray.batch.folder import RESULTS, BatchFolder
from marg_ray.batch.plan import Plan, plan
from marg_ray.batch.results import RowResult, of_problem
from marg_ray.batch.rows import Form, Problem, Reading, Row, form_of, located, read_rows
from marg_ray.batch.run import BatchRun, Ended, How
from marg_ray.batch.thresholds import Summary, Thresholds, exit_code, summarise
from marg_ray.cli.batch_board import BatchBoard, closing
from marg_ray.cli.limits import limits_from
from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, Priority
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.batch.asking import Asking
    from marg_ray.records import Request

TOLD = 20  # wrong rows that are named; of more their number is told
INTERRUPTED = 130


@dataclass(frozen=True)
class RowDefaults:
    """What holds for rows that do not say otherwise. `limits` are as they were typed."""

    docs: tuple[Path, ...] = ()
    depth: Depth = Depth.STANDARD
    web: bool | None = None
    offline: bool = False
    language: str = ""
    fresh: bool = False
    owner: str = "local"
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """What was asked for on the command line."""

    questions: str
    out: Path
    form: str = ""
    defaults: RowDefaults = field(default_factory=RowDefaults)
    thresholds: Thresholds = field(default_factory=Thresholds)
    at_once: int = 16
    again: tuple[str, ...] = ()
    strict: bool = False
    total_usd: float | None = None
    formats: tuple[str, ...] = ("md",)
    as_json: bool = False
    quiet: bool = False


def run_batch(settings: Settings, command: Command) -> int:
    """Work through the rows; returns the exit code.

    Raises:
        UsageError: the file or the folder cannot be used, or a row is wrong and `strict` is asked for.
    """
    reading = read_questions(command)
    make = request_maker(settings, command)
    folder = BatchFolder(command.out)
    try:
        return _Batch(settings, command, folder, reading, make).run()
    finally:
        folder.close()


# ---- rows


def read_questions(command: Command) -> Reading:
    """The rows of the file.

    Raises:
        UsageError: it cannot be read, or there is no row in it.
    """
    name = command.questions
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as exc:
        raise UsageError(f"{name}: {exc.strerror or exc}", "check the path") from None
    reading = read_rows(data, Form(command.form) if command.form else form_of(name, data))
    if not reading.rows and not reading.problems:
        raise UsageError(f"there is no question in {name}", "one JSON object, CSV row or question a line")
    return reading


def request_maker(settings: Settings, command: Command) -> Callable[[Row], Request]:
    """Turns rows into requests. Paths in a row are relative to the file that it is in."""
    from marg_ray.client import make_request

    base = base_of(command.questions)

    def make(row: Row) -> Request:
        from marg_ray.cli.local import freeze
        from marg_ray.cli.outline import outline_of

        defaults = command.defaults
        limits = {**defaults.limits, **row.limits.model_dump(exclude_none=True, exclude_defaults=True)}
        return make_request(
            row.question,
            docs=[located(base, d) for d in row.docs] if row.docs is not None else defaults.docs,
            depth=row.depth or defaults.depth,
            web=defaults.web if row.web is None else row.web,
            offline=defaults.offline,
            request_class=row.request_class,
            focus_areas=row.focus,
            outline=outline_of(row.sections),
            language=row.language or defaults.language or None,
            strict=row.strict,
            fresh=defaults.fresh if row.fresh is None else row.fresh,
            provided=tuple(freeze(located(base, path), settings)[0] for path in row.text),
            limits=limits_from(settings.budget, **limits),
            owner=row.owner or defaults.owner,
            priority=Priority.BATCH,
        )

    return make


def base_of(questions: str) -> Path:
    return Path.cwd() if questions == "-" else Path(questions).expanduser().resolve().parent


def tell_problems(problems: Sequence[Problem], *, as_json: bool) -> None:
    """Name the rows that are wrong."""
    for problem in problems if as_json else problems[:TOLD]:
        if as_json:
            event = {"kind": "problem", "line": problem.line, "detail": problem.what, "hint": problem.todo}
            typer.echo(json.dumps(event, ensure_ascii=False))
        else:
            typer.echo(f"marg: {problem}", err=True)
    if len(problems) > TOLD and not as_json:
        typer.echo(f"marg: and {len(problems) - TOLD} more rows are wrong", err=True)


# ---- the batch


class _Batch:
    def __init__(
        self,
        settings: Settings,
        command: Command,
        folder: BatchFolder,
        reading: Reading,
        make: Callable[[Row], Request],
    ) -> None:
        self.settings, self.command, self.folder, self.reading = settings, command, folder, reading
        self.console = Console(stderr=True, quiet=command.quiet or command.as_json)
        self.began = time.monotonic()
        folder.name_files([row.key for row in reading.rows])
        self.plan: Plan = plan(
            reading.rows,
            make,
            folder.results.get,
            again=command.again,
            files=lambda r: folder.paths(r.key, command.formats),
        )
        self.problems = sorted((*reading.problems, *self.plan.problems), key=lambda p: p.line)

    def run(self) -> int:
        tell_problems(self.problems, as_json=self.command.as_json)
        if self.problems and self.command.strict:
            what = "a row is" if len(self.problems) == 1 else f"{len(self.problems)} rows are"
            raise UsageError(f"{what} wrong, and nothing was begun", "correct the file, or leave --strict out")
        for row in self.plan.changed:
            typer.echo(f"marg: line {row.line}: {row.key} asks something else now, and is asked anew", err=True)
        questions = {row.line: row.question for row in self.reading.rows}
        invalid = [of_problem(p, questions.get(p.line, "")) for p in self.problems]
        self.folder.forget([t.row.key for t in self.plan.todo if t.before is None] + [r.key for r in invalid])
        for result in invalid:
            self.folder.add(result)
        ended = asyncio.run(self._work()) if self.plan.todo else Ended()
        self.folder.forget(())
        if ended is None:
            return INTERRUPTED
        return self._finish(ended, invalid)

    async def _work(self) -> Ended | None:
        """Work through the rows in a runtime; None: interrupted."""
        from marg_ray.batch.asking import Here
        from marg_ray.client import Marg

        marg = Marg(self.settings, offline=self.command.defaults.offline)
        rows = len(self.reading.rows) + len(self.problems)
        done = len(self.plan.done) + len(self.problems)
        board = BatchBoard(self.console, rows, done, as_json=self.command.as_json)
        try:
            with _terminated(), board:
                await marg.start()
                return await self.work(Here(marg), board)
        except BaseException as exc:
            task = asyncio.current_task()
            asked_to_end = task is not None and task.cancelling() > 0  # what breaks off then may raise anything
            if not asked_to_end and not isinstance(exc, KeyboardInterrupt | asyncio.CancelledError):
                raise
            self._tell_interrupted()
            return None
        finally:
            with contextlib.suppress(Exception):
                marg.close()

    async def work(self, asking: Asking, board: BatchBoard) -> Ended:
        how = How(self.command.at_once, self.command.formats, self.command.total_usd)
        spent = sum(r.usd for r in self.plan.done)
        return await BatchRun(asking, self.folder, how, board, spent_usd=spent).run(self.plan.todo)

    def _tell_interrupted(self) -> None:
        keys = {row.key for row in self.reading.rows}
        done = sum(r.final for key, r in self.folder.results.items() if key in keys)
        typer.echo(f"marg: interrupted; {done} of {len(keys)} rows are done. To go on:", err=True)
        typer.echo(f"      {same_command()}", err=True)
        if self.settings.runtime.ray_address:
            typer.echo("      rows under way go on on the cluster meanwhile", err=True)

    def _finish(self, ended: Ended, invalid: Sequence[RowResult]) -> int:
        results = [*self.plan.done, *ended.results, *invalid]
        summary = summarise(
            results,
            self.command.thresholds,
            not_begun=len(ended.not_begun),
            repeated=len(self.reading.repeats),
            seconds=time.monotonic() - self.began,
        )
        code = exit_code(summary, results, money_spent=ended.money_spent)
        self._tell(summary, code)
        return code

    def _tell(self, summary: Summary, code: int) -> None:
        path = self.folder.root / RESULTS
        if self.command.as_json:
            end = {"kind": "end", **summary.as_dict(), "results": str(path), "exit_code": code}
            typer.echo(json.dumps(end, ensure_ascii=False))
            return
        self.console.print(closing(summary))
        if summary.repeated:
            typer.echo(f"marg: {summary.repeated} rows ask what a row before them asks", err=True)
        if summary.not_begun:
            typer.echo(f"marg: {summary.not_begun} rows were not begun. To go on:", err=True)
            typer.echo(f"      {same_command()}", err=True)
        if not self.command.quiet:
            typer.echo(f"{path}", err=True)


def same_command() -> str:
    return shlex.join(["marg", *sys.argv[1:]])


@contextlib.contextmanager
def _terminated() -> Any:
    """SIGTERM ends the command as Ctrl-C does."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.remove_signal_handler(signal.SIGTERM)
