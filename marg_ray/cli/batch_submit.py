"""`marg batch --submit`: the same command as a job on a cluster, followed from here, its figures brought home."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.text import Text

from marg_ray.batch.folder import RESULTS, BatchFolder
from marg_ray.batch.results import RowResult
from marg_ray.batch.submit import AUTO, QUESTIONS, Entry, local_paths, questions_file, variables
from marg_ray.batch.thresholds import AWAY, Summary
from marg_ray.cli.batch_board import closing, line_of
from marg_ray.cli.batch_run import INTERRUPTED, Command, base_of, read_questions, same_command, tell_problems
from marg_ray.errors import UsageError
from marg_ray.files import write_whole
from marg_ray.settings import Settings

if TYPE_CHECKING:
    from marg_ray.actors.deploy.jobs import Jobs, JobState
    from marg_ray.batch.rows import Reading

NOTE = ".marg-batch-job.json"
NAMED = 5  # local paths; of more their number is told


@dataclass(frozen=True)
class Submission:
    """Where to, with which variables (`NAME` or `NAME=VALUE`), and whether to follow."""

    address: str
    env: tuple[str, ...] = ()
    model: str = ""
    wait: bool = True


def submit_batch(settings: Settings, command: Command, submission: Submission) -> int:
    """Submit the batch, or find the job that works on it already; follow it to its end. Returns its exit code.

    Raises:
        UsageError: the file or an option cannot be used.
        RuntimeUnavailable: the cluster's job server does not answer.
    """
    reading = read_questions(command)
    tell_problems(reading.problems, as_json=command.as_json)
    if reading.problems and command.strict:
        raise UsageError(f"{len(reading.problems)} rows are wrong, and nothing was begun", "correct the file")
    env = variables(submission.env, os.environ)
    address = submission.address
    if address == AUTO and settings.runtime.ray_address:
        address = settings.runtime.ray_address
    return asyncio.run(_Submitted(command, submission, reading, address, env).run())


class _Submitted:
    def __init__(
        self, command: Command, submission: Submission, reading: Reading, address: str, env: dict[str, str]
    ) -> None:
        self.command, self.submission, self.reading = command, submission, reading
        self.address, self.env = address, env
        self.out = command.out.expanduser().resolve()
        self.console = Console(stderr=True, quiet=command.quiet or command.as_json)
        self.results: dict[str, RowResult] = {}
        self.end: dict[str, Any] = {}
        self.began = time.monotonic()

    async def run(self) -> int:
        from marg_ray.actors.deploy.jobs import Jobs

        jobs = await Jobs.at(self.address)
        name = await self._at_work(jobs)
        if name:
            typer.echo(f"marg: job {name} works on this batch already", err=True)
        else:
            name = await self._submit(jobs)
        if not self.submission.wait:
            typer.echo(
                f"marg: the same command without --no-wait follows it and fetches the figures: job {name}", err=True
            )
            return 0
        try:
            async for line in jobs.lines(name):
                self._line(line)
        except (KeyboardInterrupt, asyncio.CancelledError):
            typer.echo("marg: the job goes on; the same command follows it again:", err=True)
            typer.echo(f"      {same_command()}", err=True)
            typer.echo(f"      `ray job stop --address {jobs.url} {name}` ends it", err=True)
            return INTERRUPTED
        return await self._finish(name, await jobs.state(name))

    # ---- the job

    async def _at_work(self, jobs: Jobs) -> str:
        """The job that this folder's batch was submitted as, where it is not over."""
        try:
            noted = json.loads((self.out / NOTE).read_text("utf-8"))
            name = str(noted["job"]) if noted["address"] == jobs.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        state = await jobs.state(name) if name else None
        return name if state is not None and not state.over else ""

    async def _submit(self, jobs: Jobs) -> str:
        base, docs = base_of(self.command.questions), self.command.defaults.docs
        name = f"marg-batch-{secrets.token_hex(4)}"
        entry = Entry(self.out, tuple(options_of(self.command, self.submission.model)))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / QUESTIONS).write_bytes(questions_file(self.reading.rows, base, self.reading.problems))
            await jobs.submit(entry.line(), name=name, folder=Path(folder), env=self.env)
        try:
            write_whole(self.out / NOTE, json.dumps({"job": name, "address": jobs.url}).encode())
        except OSError as exc:
            raise UsageError(f"{self.out} cannot be used: {exc.strerror or exc}", "choose another -o") from None
        typer.echo(f"marg: {len(self.reading.rows)} rows submitted to {jobs.url} as job {name}", err=True)
        paths = local_paths(self.reading.rows, base, docs)
        if paths:
            named = ", ".join(map(str, paths[:NAMED])) + (
                f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
            )
            typer.echo(f"marg: the cluster must find these at the same place (shared storage): {named}", err=True)
        return name

    # ---- its output

    def _line(self, line: str) -> None:
        event = _event(line)
        if event is None:
            if not self.command.as_json and line.strip():
                self.console.print(Text(line.rstrip(), style="dim"), soft_wrap=True, highlight=False)
            return
        told = {problem.line for problem in self.reading.problems}
        if event["kind"] == "problem" and event.get("line") in told:
            return
        if self.command.as_json:
            typer.echo(line)
        if event["kind"] == "ended":
            result = RowResult.model_validate(event)
            self.results[result.key] = result
            text = line_of(result, time.monotonic() - self.began, len(self.results), len(self.reading.rows))
            self.console.print(Text(text), soft_wrap=True, highlight=False)
        elif event["kind"] == "problem" and not self.command.as_json:
            typer.echo(f"marg: line {event.get('line')}: {event.get('detail')}", err=True)
        elif event["kind"] == "end":
            self.end = event

    async def _finish(self, name: str, state: JobState | None) -> int:
        status = state.status if state else "gone"
        home = await asyncio.to_thread(self._bring_home)
        if self.end:
            fields = {k: v for k, v in self.end.items() if k in Summary.__dataclass_fields__}
            self.console.print(closing(Summary(**fields)))
        typer.echo(f"marg: job {name}: {status.lower()}", err=True)
        self._tell_where(home)
        if state is not None and state.code is not None and state.code >= 0:
            return state.code
        if status == "SUCCEEDED":
            return 0
        if state is not None and state.message:
            typer.echo(f"      {' '.join(state.message.split())[-500:]}", err=True)
        return INTERRUPTED if status == "STOPPED" else AWAY

    def _bring_home(self) -> bool:
        """Write the figures here, where the job's own folder is not this one. Whether it is."""
        folder = BatchFolder(self.out)
        try:
            shared = all(folder.results.get(k) == r for k, r in self.results.items())
            shared = shared and all((self.out / f).exists() for r in self.results.values() for f in r.files)
            if not shared:
                folder.forget(self.results)
                for result in self.results.values():
                    folder.add(result)
            return shared
        finally:
            folder.close()

    def _tell_where(self, shared: bool) -> None:
        typer.echo(f"{self.out / RESULTS}", err=True)
        if not shared:
            typer.echo(f"marg: the reports are in {self.out} on the head node. To fetch them:", err=True)
            typer.echo(f"      ray rsync-down cluster.yaml {self.out}/ {self.out}/   (or kubectl cp, scp)", err=True)
            typer.echo("      or, with the cluster's store.url and store.files: marg show SESSION -o FILE", err=True)


def _event(line: str) -> dict[str, Any] | None:
    """An event that the command printed there; None for other output."""
    try:
        event = json.loads(line) if line.startswith('{"kind"') else None
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("kind"), str) else None


def options_of(command: Command, model: str = "") -> list[str]:
    """The command's options as they are given to the job; folders as absolute paths, a deadline as a moment."""
    from marg_ray.cli.limits import moment

    defaults, thresholds = command.defaults, command.thresholds
    limits = dict(defaults.limits)
    if "deadline" in limits:
        limits["deadline"] = moment(limits["deadline"]).isoformat()
    words: list[str] = []
    for path in defaults.docs:
        words += ["--docs", str(path.expanduser().resolve())]
    words += ["--depth", str(defaults.depth), "--owner", defaults.owner, "--at-once", str(command.at_once)]
    if defaults.web is not None:
        words.append("--web" if defaults.web else "--no-web")
    words += ["--offline"] * defaults.offline + ["--fresh"] * defaults.fresh + ["--strict"] * command.strict
    values = {
        "model": model,
        "language": defaults.language,
        "deadline": limits.pop("deadline", None),
        **{f"max-{name}": value for name, value in limits.items()},
        "total-usd": command.total_usd,
        **{name.replace("_", "-"): value for name, value in vars(thresholds).items()},
    }
    for name, value in values.items():
        if value not in (None, ""):
            words += [f"--{name}", str(value)]
    for status in command.again:
        words += ["--again", status]
    for fmt in command.formats:
        words += ["--format", fmt]
    return words
