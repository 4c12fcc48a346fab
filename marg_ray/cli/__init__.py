"""The `marg` command: a table of contents. Each command has a file of its own; what is heavy loads when it runs."""

from __future__ import annotations

import sys

import typer

from marg_ray.cli.batch import EPILOG as BATCH_EPILOG
from marg_ray.cli.batch import WithAddress, batch
from marg_ray.cli.cache import cache
from marg_ray.cli.chat import chat
from marg_ray.cli.decide import decide
from marg_ray.cli.doctor import doctor
from marg_ray.cli.export_command import export
from marg_ray.cli.grouped import Grouped
from marg_ray.cli.keys import app as keys
from marg_ray.cli.mcp import mcp
from marg_ray.cli.research import research
from marg_ray.cli.resume import resume
from marg_ray.cli.runs import runs
from marg_ray.cli.serve import serve
from marg_ray.cli.show import show
from marg_ray.cli.steer import steer
from marg_ray.cli.stop import cancel, pause
from marg_ray.errors import MargError

EPILOG = (
    "Exit codes: 0 passed, 2 usage, 3 delivered with a quality warning, 4 insufficient evidence (no report), "
    "5 model or search unavailable, 6 stopped by its budget (with a report or without), "
    "7 no end yet: it waits for a decision or is paused, 130 cancelled or interrupted."
)

app = typer.Typer(
    name="marg",
    help="Research reports whose every sentence can be checked.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (research, chat, serve, mcp, show, export, runs, decide, steer, pause, resume, cancel, cache, doctor):
    app.command(cls=Grouped, epilog=EPILOG if command in (research, resume) else None)(command)
app.command(cls=WithAddress, epilog=BATCH_EPILOG)(batch)
app.add_typer(keys)


def main() -> None:
    """Run a command; every error of ours becomes one line on standard error and its exit code."""
    for stream in (sys.stdout, sys.stderr):  # whatever the locale says, text leaves as UTF-8
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        app()
    except MargError as exc:
        typer.echo(f"marg: {exc}", err=True)
        if exc.hint:
            typer.echo(f"      {exc.hint}", err=True)
        sys.exit(exc.exit_code)
    except KeyboardInterrupt:
        typer.echo("marg: interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output left
        sys.stderr.close()
        sys.exit(0)
