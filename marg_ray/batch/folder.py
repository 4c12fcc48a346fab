"""The folder of a batch: one line of figures for each row, a report for each, and which session belongs to which row.

`results.jsonl` has at most one line for a key. `.marg-batch.jsonl` says which session a row was given, before that
session is started; so a command that was killed finds its sessions again. A last line that was torn is dropped.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from marg_ray.batch.results import RowResult
from marg_ray.errors import UsageError
from marg_ray.report.writers import DRAFT

if TYPE_CHECKING:
    from filelock import FileLock

Line = TypeVar("Line", bound=BaseModel)
RESULTS, BEGUN, LOCK = "results.jsonl", ".marg-batch.jsonl", ".marg-batch.lock"


class Begun(BaseModel):
    """A row's session. Empty: the one it had is of no use any more."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    batch: str = ""  # on the first line: the batch's name
    key: str = ""
    asked: str = ""
    session: str = ""


class BatchFolder:
    """One command at a time works in a folder; blocking, and quick.

    Raises:
        UsageError: another command works in it, or it cannot be written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = _locked(root)
        try:
            self.results = {r.key: r for r in _lines(root / RESULTS, RowResult)}
            journal = _lines(root / BEGUN, Begun)
            self.batch = next((b.batch for b in journal if b.batch), "")
            self._begun = [b for b in journal if b.key]
            if not self.batch:
                self.batch = secrets.token_hex(6)
                _append(root / BEGUN, Begun(batch=self.batch).model_dump_json(include={"batch"}))
        except OSError as exc:
            self._lock.release()
            raise _unusable(root, exc) from None
        self._names: dict[str, str] = {}

    def close(self) -> None:
        self._lock.release()

    def forget(self, keys: Iterable[str]) -> None:
        """Drop the lines of rows that are worked on again; also what is torn, and what a later line replaces."""
        gone = set(keys)
        self.results = {k: r for k, r in self.results.items() if k not in gone}
        self._rewrite()

    def _rewrite(self) -> None:
        kept = "".join(f"{r.model_dump_json()}\n" for r in self.results.values()).encode()
        path = self.root / RESULTS
        if (path.read_bytes() if path.exists() else b"") != kept:
            new = path.with_name(f"{DRAFT}{secrets.token_hex(8)}.new")
            new.write_bytes(kept)
            os.replace(new, path)

    def add(self, result: RowResult) -> None:
        """Write a row's line; it is on disk when this returns.

        Raises:
            UsageError: it cannot be written.
        """
        before = self.results.pop(result.key, None)
        self.results[result.key] = result
        try:
            if before is None:
                _append(self.root / RESULTS, result.model_dump_json())
            else:
                self._rewrite()
        except OSError as exc:
            raise _unusable(self.root, exc) from None

    # ---- sessions

    def session(self, key: str, asked: str) -> str:
        """The session that works, or worked, on a row; empty where there is none."""
        return next((b.session for b in reversed(self._begun) if (b.key, b.asked) == (key, asked)), "")

    def begin(self, key: str, asked: str, session: str) -> None:
        """Note a row's session, before it is started."""
        begun = Begun(key=key, asked=asked, session=session)
        self._begun.append(begun)
        _append(self.root / BEGUN, begun.model_dump_json(exclude={"batch"}))

    def request_key(self, key: str, asked: str) -> str:
        """The idempotency key of the row's session."""
        times = sum((b.key, b.asked) == (key, asked) and bool(b.session) for b in self._begun)
        return f"batch/{self.batch}/{key}/{asked}/{times}"

    # ---- reports

    def name_files(self, keys: Sequence[str]) -> None:
        """Give every key a file name: the key itself, where that is one, and no two that a file system confuses."""
        from marg_ray.report.filenames import safe_name

        self._names = {}
        taken: set[str] = set()
        for key in keys:
            name = safe_name(key, "")
            if name != key or name.casefold() in taken:
                name = safe_name(key, "", "-" + hashlib.sha256(key.encode()).hexdigest()[:8])
            taken.add(name.casefold())
            self._names[key] = name

    def paths(self, key: str, formats: Sequence[str]) -> tuple[Path, ...]:
        return tuple(self.root / f"{self._names[key]}.{fmt}" for fmt in formats)


def _lines(path: Path, kind: type[Line]) -> list[Line]:
    """The lines that can be read."""
    found: list[Line] = []
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            found.append(kind.model_validate_json(line))
        except ValidationError:
            continue
    return found


def _append(path: Path, line: str) -> None:
    """One write; after a torn line a new one begins."""
    data = line.encode("utf-8", "surrogatepass") + b"\n"
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            data = data if file.read(1) == b"\n" else b"\n" + data
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _locked(root: Path) -> FileLock:
    from filelock import FileLock, Timeout

    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / LOCK)
        lock.acquire(timeout=0)
    except Timeout:
        raise UsageError(
            f"another `marg batch` works in {root}", "wait for it, or give another folder with -o"
        ) from None
    except OSError as exc:
        raise _unusable(root, exc) from None
    return lock


def _unusable(root: Path, exc: OSError) -> UsageError:
    return UsageError(f"{root} cannot be used: {exc.strerror or exc}", "give another folder with -o")
