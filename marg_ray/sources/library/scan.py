"""Which files of some folders can be documents."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from marg_ray.errors import Unreadable, UsageError
from marg_ray.sources.parse.sniff import media_type_of


@dataclass(frozen=True)
class File:
    path: str  # absolute
    size: int
    mtime_ns: int


@dataclass
class Scan:
    """What was found in the folders. Counts are of files, a hidden folder counting as one."""

    files: dict[str, File] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)  # path, why
    hidden: int = 0
    unsupported: int = 0


def check_folders(folders: tuple[Path, ...]) -> None:
    """See that every folder (or single file) can be read.

    Raises:
        UsageError: one is missing, is neither file nor folder, or may not be read.
    """
    for folder in folders:
        if not folder.exists():
            raise UsageError(f"there is no folder {str(folder)!r}", "check the path given with --docs")
        if not (folder.is_dir() or folder.is_file()):
            raise UsageError(f"{str(folder)!r} is no folder", "give a folder with documents, or a document")
        if not os.access(folder, os.R_OK | (os.X_OK if folder.is_dir() else 0)):
            raise UsageError(f"{str(folder)!r} may not be read", "change its permissions, or give another folder")


def scan(folders: tuple[Path, ...], max_bytes: int, home: Path) -> Scan:
    """All files under `folders` with an ending that is read, symbolic links followed once; `home` is left out."""
    check_folders(folders)
    found = Scan()
    seen: set[tuple[int, int]] = set()
    if home.is_dir():
        seen.add(_identity(home.stat()))
    for folder in folders:
        if folder.is_file():
            _take(found, str(folder), folder.stat(), max_bytes)
        else:
            _walk(found, str(folder), max_bytes, seen)
    return found


def _walk(found: Scan, folder: str, max_bytes: int, seen: set[tuple[int, int]]) -> None:
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            identity = _identity(os.stat(here))
            if identity in seen:
                continue
            seen.add(identity)
            with os.scandir(here) as entries:
                inside = sorted(entries, key=lambda e: e.name)
        except OSError as exc:
            found.failed.append((_printable(here), _why(exc)))
            continue
        for entry in inside:
            if entry.name.startswith("."):
                found.hidden += 1
                continue
            try:
                status = entry.stat()
            except OSError as exc:  # a link to nowhere, or in a circle
                if media_type_of(entry.name):
                    found.failed.append((_printable(entry.path), _why(exc)))
                else:
                    found.unsupported += 1
                continue
            if stat.S_ISDIR(status.st_mode):
                waiting.append(entry.path)
            else:
                _take(found, entry.path, status, max_bytes)


def _take(found: Scan, path: str, status: os.stat_result, max_bytes: int) -> None:
    if not stat.S_ISREG(status.st_mode) or not media_type_of(os.path.basename(path)):
        found.unsupported += 1
    elif path != _printable(path):
        found.failed.append((_printable(path), "its name is not valid text"))
    elif status.st_size > max_bytes:
        found.failed.append((path, f"larger than {max_bytes / 2**20:g} MB"))
    else:
        found.files[path] = File(path, status.st_size, status.st_mtime_ns)


def read(path: str, max_bytes: int) -> bytes:
    """A file's bytes.

    Raises:
        Unreadable: it cannot be read, or has grown beyond `max_bytes`.
    """
    try:
        with open(path, "rb") as file:
            body = file.read(max_bytes + 1)
    except OSError as exc:
        raise Unreadable(path, _why(exc)) from None
    if len(body) > max_bytes:
        raise Unreadable(path, f"larger than {max_bytes / 2**20:g} MB")
    return body


def under(path: str, folders: tuple[Path, ...]) -> bool:
    """Whether `path` is one of `folders` or below one; everything is where there are none."""
    return not folders or any(path == p or path.startswith(p.rstrip(os.sep) + os.sep) for p in map(str, folders))


def quick_lines(failed: list[tuple[str, str]], limit: int = 5) -> Iterator[str]:
    for path, why in failed[:limit]:
        yield f"{path}: {why}"
    if len(failed) > limit:
        yield f"and {len(failed) - limit} more"


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _printable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _why(exc: BaseException) -> str:
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror.lower()
    return str(exc) or type(exc).__name__
