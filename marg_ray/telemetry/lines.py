"""Log lines: one per event, with named fields, as text (logfmt) or JSON. structlog over the standard library's logging.

`say` is the only way in for fields; modules that log plain sentences go through the same handler, with the same time,
level and mask. Until `configure` is called, and wherever it is not, both go where Python's logging sends them.
structlog is loaded when the first line is written: a process that writes none does not pay for it.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from marg_ray.telemetry.masking import Mask

INFO, DEBUG = logging.INFO, logging.DEBUG
PACKAGE = logging.getLogger("marg_ray")
LINES = logging.getLogger("marg_ray.agents")
LOOK_EVERY_S = 1.0  # whether the file was moved away
FIRST = ("time", "level", "actor", "event", "session", "task", "role", "section")


class How(Protocol):
    """The part of the settings that lines need (`TelemetrySettings`)."""

    @property
    def log_format(self) -> str: ...

    @property
    def log_level(self) -> str: ...

    @property
    def log_file(self) -> str: ...


def configure(how: How, *, actor: str = "", secrets: Iterable[str] = ()) -> None:
    """Send this process's lines where the settings say; `actor` names the process in each of them.

    May be called again: the last call counts. A file that cannot be written is not worth a run: the lines go to
    standard error then, and the first says so.
    """
    formatter = _Formatter(how.log_format, actor, Mask(secrets))
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    trouble = ""
    if how.log_file:
        try:
            handler = FileLines(Path(how.log_file))
        except OSError as exc:
            trouble = f"{how.log_file} cannot be written: {exc.strerror or exc}"
    handler.setFormatter(formatter)
    reset()
    PACKAGE.addHandler(handler)
    PACKAGE.setLevel(how.log_level.upper())
    PACKAGE.propagate = False
    if trouble:
        PACKAGE.warning("%s", trouble)


def reset() -> None:
    """Undo `configure`."""
    for handler in [h for h in PACKAGE.handlers if isinstance(h.formatter, _Formatter)]:
        PACKAGE.removeHandler(handler)
        handler.close()
    PACKAGE.setLevel(logging.NOTSET)
    PACKAGE.propagate = True


def on(level: int = INFO) -> bool:
    """Whether lines of this level are kept: ask before anything is built for one."""
    return LINES.isEnabledFor(level)


def say(event: str, level: int = INFO, **fields: Any) -> None:
    """Write a line; fields that are None or empty are left out."""
    if LINES.isEnabledFor(level):
        told = {name: value for name, value in fields.items() if value is not None and value != "" and value != ()}
        _structlog().log(level, event, **told)


@cache
def _structlog() -> Any:
    import structlog

    wrapped = [structlog.stdlib.ProcessorFormatter.wrap_for_formatter]
    return structlog.wrap_logger(LINES, processors=wrapped, wrapper_class=structlog.stdlib.BoundLogger)


class FileLines(logging.Handler):
    """Appends each line to a file in a single write, so that many processes may share it; follows a rotated file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._look_at = path, 0.0
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open()

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o640)
        found = os.fstat(self._fd)
        self._file = (found.st_dev, found.st_ino)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "backslashreplace")
            self._follow()
            os.write(self._fd, line)
        except Exception:
            self.handleError(record)

    def _follow(self) -> None:
        if (now := time.monotonic()) < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        try:
            found = os.stat(self._path)
            if (found.st_dev, found.st_ino) == self._file:
                return
        except FileNotFoundError:
            pass
        os.close(self._fd)
        self._open()

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._fd)
        super().close()


class _Formatter(logging.Formatter):
    """structlog's formatter, made when it is first needed."""

    def __init__(self, log_format: str, actor: str, mask: Mask) -> None:
        super().__init__()
        self._how = log_format, actor, mask
        self._made: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._made is None:
            self._made = _made(*self._how)
        return self._made.format(record)


Fields: TypeAlias = MutableMapping[str, Any]  # as structlog hands them on


def _made(log_format: str, actor: str, mask: Mask) -> logging.Formatter:
    import structlog

    def named(_: Any, __: str, fields: Fields) -> Fields:
        """Time, level and process come first; a logger's name stands for the plain sentences of modules."""
        record: logging.LogRecord = fields["_record"]
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        first = {"time": at, "level": record.levelname.lower(), "actor": actor or str(os.getpid())}
        if not fields["_from_structlog"]:
            first["logger"] = record.name
        return {**first, **fields}

    def masked(_: Any, __: str, fields: Fields) -> Fields:
        return {name: mask.value(value, name) for name, value in fields.items()}

    render: Callable[..., Any] = structlog.processors.JSONRenderer(ensure_ascii=False)
    if log_format == "text":
        render = structlog.processors.LogfmtRenderer(key_order=FIRST, drop_missing=True)
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            named,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            masked,
            *([_flat] if log_format == "text" else []),
            render,
        ]
    )


_CONTROLS = {n: " " for n in (*range(32), *range(127, 160)) if n != 10}  # nothing in a line moves a terminal's cursor


def _flat(_: Any, __: str, fields: Fields) -> Fields:
    """Collections as logfmt can show them."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{inner}".replace(" ", "_"): worth for inner, worth in value.items()}
        elif isinstance(value, (list, tuple)):
            flat[name] = ",".join(map(str, value)).translate(_CONTROLS)
        else:
            flat[name] = value.translate(_CONTROLS) if isinstance(value, str) else value
    return flat
