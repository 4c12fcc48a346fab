"""A finished report to where it was asked for. An export that fails costs itself, never the others or the report."""

from __future__ import annotations

import logging
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from marg_ray.errors import FormatUnavailable, MargError

if TYPE_CHECKING:
    from marg_ray.report.model import Report

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Failure:
    """An export that did not come about: `what` was to be made, `why` it was not, and what to do about it."""

    what: str
    why: str
    todo: str

    def __str__(self) -> str:
        return f"{self.what}: not written: {self.why}; {self.todo}"


@dataclass(frozen=True)
class Delivered:
    """`files` that were written, `text` for standard output, what failed, and what to know of what was written."""

    files: tuple[str, ...] = ()
    text: str = ""
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """The report reached nobody."""
        return bool(self.failures) and not self.files and not self.text


def export(report: Report, files: tuple[Path, ...], *, otherwise_text: bool = True) -> Delivered:
    """Try every file. Where none was asked for, or none could be written, the report goes out as text.

    `otherwise_text`: False where it goes out in another way already.
    """
    written, failures = [], []
    for path in files:
        try:
            written.append(str(_write(report, path)))
        except Exception as exc:
            failures.append(_failure(report, str(path), exc, again=f"-o {shlex.quote(str(path))}"))
    text = ""
    if not written and otherwise_text:
        text, unmade = _as_text(report)
        failures += unmade
    warnings = tuple(line for file in written for line in _warnings(report, file))
    return Delivered(tuple(written), text, tuple(failures), warnings)


def tell(delivered: Delivered) -> None:
    """What failed and what to know, on standard error."""
    import typer

    for line in (*delivered.failures, *delivered.warnings):
        typer.echo(f"marg: {line}", err=True)


def _warnings(report: Report, file: str) -> tuple[str, ...]:
    """Letters of a PDF for which this machine has no font."""
    if not file.lower().endswith(".pdf"):
        return ()
    from marg_ray.report.pdf import lacking_scripts

    try:
        return tuple(f"{file}: {script}" for script in lacking_scripts(report))
    except Exception:
        log.debug("%s: fonts could not be looked at", file, exc_info=True)
        return ()


def _write(report: Report, path: Path) -> Path:
    from marg_ray.report.writers import write_report

    return write_report(report, path)


def _as_text(report: Report) -> tuple[str, list[Failure]]:
    """As Markdown; as JSON where that cannot be made."""
    from marg_ray.report.writers import render

    failures: list[Failure] = []
    for fmt in ("md", "json"):
        try:
            return render(report, fmt), failures
        except Exception as exc:
            failures.append(_failure(report, f"the report as {fmt}", exc, again=f"-f {fmt}"))
    return "", failures


def _failure(report: Report, what: str, exc: Exception, *, again: str) -> Failure:
    if isinstance(exc, MargError):
        why = str(exc).removeprefix(f"{what} ").removeprefix("cannot be written: ")
        if isinstance(exc, FormatUnavailable) and exc.hint:
            why += f"; {exc.hint}"
    else:
        log.info("%s could not be made", what, exc_info=exc)
        why = f"{type(exc).__name__}: {' '.join(str(exc).split())[:200]}"
    return Failure(what, why, f"`marg show {report.session_id} {again}` tries again")
