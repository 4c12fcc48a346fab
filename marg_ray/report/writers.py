"""Reports into files: the format follows the ending, and a file is whole or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from marg_ray.errors import UsageError
from marg_ray.report.model import Report, to_json


def _markdown(report: Report) -> bytes:
    from marg_ray.report.markdown import to_markdown

    return to_markdown(report).encode()


def _html(report: Report) -> bytes:
    from marg_ray.report.html import to_html

    return to_html(report).encode()


def _json(report: Report) -> bytes:
    return to_json(report).encode()


def _pdf(report: Report) -> bytes:
    from marg_ray.report.pdf import to_pdf

    return to_pdf(report)


def _docx(report: Report) -> bytes:
    from marg_ray.report.docx import to_docx

    return to_docx(report)


def _bibtex(report: Report) -> bytes:
    from marg_ray.report.bibliography import to_bibtex

    return to_bibtex(report).encode()


def _ris(report: Report) -> bytes:
    from marg_ray.report.bibliography import to_ris

    return to_ris(report).encode()


FORMATS: MappingProxyType[str, Callable[[Report], bytes]] = MappingProxyType(
    {"md": _markdown, "html": _html, "json": _json, "pdf": _pdf, "docx": _docx, "bib": _bibtex, "ris": _ris}
)
MEDIA_TYPES = MappingProxyType(
    {
        "md": "text/markdown; charset=utf-8",
        "html": "text/html; charset=utf-8",
        "json": "application/json",
        "pdf": "application/pdf",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "bib": "application/x-bibtex; charset=utf-8",
        "ris": "application/x-research-info-systems; charset=utf-8",
    }
)
TEXTS = ("md", "html", "json", "bib", "ris")
_ALIASES = {"markdown": "md", "htm": "html", "bibtex": "bib"}
DRAFT = ".marg-"  # begins the name of a file that is not in place yet
ABANDONED_S = 60.0  # a draft is written within milliseconds
_ENDINGS = ", ".join(f".{name}" for name in FORMATS)


def format_of(path: Path) -> str:
    """The format that a file's ending names, a key of `FORMATS`.

    Raises:
        UsageError: the name ends in no format.
    """
    if "\0" in str(path):
        raise UsageError("a file name cannot hold NUL", "choose another name with -o")
    ending = path.suffix.lower().removeprefix(".")
    name = _ALIASES.get(ending, ending)
    if name not in FORMATS:
        what = f".{ending} is no report format" if ending else f"{path.name!r} has no ending"
        raise UsageError(f"{what}: {path}", f"name the file with one of {_ENDINGS}")
    return name


def check_path(path: Path) -> None:
    """Find out before a run, not after it, whether its report can be written to `path`. Makes the folder.

    Raises:
        UsageError: the name ends in no format, or no file can be written there.
    """
    format_of(path)
    _folder(path)


def render(report: Report, format: str) -> str:
    """The report as text.

    Raises:
        UsageError: there is no such format, or it is not text.
    """
    if format not in TEXTS:
        raise UsageError(f"{format!r} is no text format of a report", f"choose one of {', '.join(TEXTS)}")
    return FORMATS[format](report).decode()


def write_report(report: Report, path: Path) -> Path:
    """Write the report in the format that the ending of `path` names; return the file's full path.

    An existing file is replaced at once, never seen half-written. What a process that was killed while it wrote has
    left beside it is removed by the next one that writes there.

    Raises:
        UsageError: the name ends in no format, or the file cannot be written.
    """
    content = FORMATS[format_of(path)](report)
    _folder(path)
    target = Path(os.path.realpath(path))
    try:
        _sweep(target.parent)
        _put(content, target)
    except OSError as exc:
        raise _unwritable(path, exc) from None
    return path.absolute()


def _put(content: bytes, target: Path) -> None:
    """Write beside the target, with the rights that any new file gets, and move it into place."""
    draft = target.with_name(f"{DRAFT}{secrets.token_hex(8)}.new")
    try:
        with open(draft, "xb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _sweep(folder: Path) -> None:
    """Remove the drafts that nobody writes any more."""
    for draft in folder.glob(f"{DRAFT}*.new"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > ABANDONED_S:
                draft.unlink()


def _folder(path: Path) -> None:
    """Make sure that a file can be put where `path` says."""
    folder = path.absolute().parent
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "name a file in it")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise _unwritable(path, exc) from None
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{path} cannot be written: no right to write in {folder}", "choose another place with -o")


def _unwritable(path: Path, exc: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {exc.strerror or exc}", "choose another place with -o")
