"""`marg export`: a finished report as files, named after its title."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.cli import options as opt
from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.cli.export import Delivered
    from marg_ray.report.model import Report


def export(
    session: opt.Session,
    formats: Annotated[
        list[opt.Format] | None,
        typer.Option("--format", "-f", help="Repeatable. Default: that of --out's ending, or pdf."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="A file, or a folder for files named after the report. Default: here. A folder is made."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every format.")] = False,
) -> None:
    """Write a session's report as files, and say where they are. Nothing is overwritten but a file that --out names."""
    from marg_ray.cli.export import export as deliver
    from marg_ray.cli.export import tell
    from marg_ray.cli.stored import finished_report
    from marg_ray.report.writers import check_path
    from marg_ray.settings import load

    names = tuple(opt.Format) if everything else tuple(dict.fromkeys(formats or ()))
    file = _file(out, names)
    if file is not None:
        check_path(file)
    report = finished_report(load(), session)
    if file is not None:
        delivered = deliver(report, (file,), otherwise_text=False)
    else:
        delivered = _deliver_to(_reserved(report, out or Path(), names or (opt.Format.PDF,)), report)
    for written in delivered.files:
        typer.echo(os.fsencode(written))
    tell(delivered)
    raise typer.Exit(1 if delivered.nothing else 0)


def _file(out: Path | None, names: tuple[opt.Format, ...]) -> Path | None:
    """The one file that is asked for; None where it is a folder.

    Raises:
        UsageError: a file is named, and other formats besides.
    """
    from marg_ray.report.writers import format_of

    if out is None or out.is_dir() or not out.suffix:
        return None
    named = format_of(out)
    if any(name != named for name in names):
        raise UsageError(f"{out} is a file, and of one format", "name a folder for several")
    return out


def _reserved(report: Report, folder: Path, names: tuple[opt.Format, ...]) -> tuple[Path, ...]:
    """Files of their own, empty yet.

    Raises:
        UsageError: none can be made in the folder.
    """
    from marg_ray.report.filenames import reserve

    try:
        return tuple(reserve(folder, report.title or report.question, f".{name}") for name in names)
    except OSError as exc:
        raise UsageError(
            f"no file can be made in {folder}: {exc.strerror or exc}", "choose another place with -o"
        ) from None


def _deliver_to(paths: tuple[Path, ...], report: Report) -> Delivered:
    """Write to files that are there already; those that could not be written are not left empty."""
    from marg_ray.cli.export import export as deliver

    written: tuple[str, ...] = ()
    try:
        delivered = deliver(report, paths, otherwise_text=False)
        written = delivered.files
    finally:
        for path in paths:
            if str(path.absolute()) not in written and path.exists() and path.stat().st_size == 0:
                path.unlink()
    return delivered
