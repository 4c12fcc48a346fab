"""A batch as a job on a cluster: what is run there, with which files and variables. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marg_ray.batch.rows import HINT, LINE, WRONG, Problem, Row, located
from marg_ray.errors import UsageError

QUESTIONS = "questions.jsonl"
AUTO = "auto"
_ADDRESS = re.compile(r"auto|[a-z][a-z0-9+.-]*://\S+|[\w.-]+:\d+|\[[0-9a-f:]+\]:\d+")
_NAME = re.compile(r"[A-Za-z_]\w*")


def with_address(args: Sequence[str]) -> list[str]:
    """Arguments in which `--submit` is followed by an address; `auto` where it stood alone."""
    whole: list[str] = []
    for n, arg in enumerate(args):
        whole.append(arg)
        if arg == "--":
            return [*whole, *args[n + 1 :]]
        if arg == "--submit" and not (n + 1 < len(args) and _ADDRESS.fullmatch(args[n + 1])):
            whole.append(AUTO)
    return whole


@dataclass(frozen=True)
class Entry:
    """What a job runs: `options` of `marg batch`, `out` as an absolute path there."""

    out: Path
    options: tuple[str, ...] = ()

    def line(self) -> str:
        """The job's shell command. It joins the cluster it runs on."""
        words = ["marg", "batch", QUESTIONS, "-o", str(self.out), "--json", *self.options]
        return f'MARG_RUNTIME__RAY_ADDRESS="$RAY_ADDRESS" exec {shlex.join(words)}'


def questions_file(rows: Sequence[Row], base: Path, wrong: Sequence[Problem] = ()) -> bytes:
    """The rows as a job reads them: with their keys, the lines they had here, and absolute paths.

    Those that are `wrong` go along, so that they count there as they do here.
    """
    lines = [json.dumps({LINE: p.line, WRONG: p.what, HINT: p.todo, "key": p.key}) for p in wrong]
    for row in rows:
        fields = row.model_dump(mode="json", exclude_defaults=True, exclude={"line", "meta"})
        for name in ("docs", "text"):
            if fields.get(name):
                fields[name] = [str(located(base, path)) for path in fields[name]]
        own = {"meta": row.meta} if row.meta else {}
        lines.append(json.dumps({LINE: row.line, **fields, **own}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def local_paths(rows: Sequence[Row], base: Path, docs: Sequence[Path]) -> list[Path]:
    """Every file and folder that the rows name: the cluster must find them at the same place."""
    named = [located(base, path) for row in rows for path in (*(row.docs or ()), *row.text)]
    shared = list(docs) if any(row.docs is None for row in rows) else []
    return list(dict.fromkeys(path.expanduser().resolve() for path in [*shared, *named]))


def variables(wanted: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` with the value it has here.

    Raises:
        UsageError: there is no such variable, or it is no name.
    """
    found = {}
    for text in wanted:
        name, given, value = text.partition("=")
        if not _NAME.fullmatch(name):
            raise UsageError(f"--env {text!r} names no variable", "NAME, or NAME=VALUE")
        if not given and name not in environ:
            raise UsageError(f"--env {name}: it is not set here", "give NAME=VALUE")
        found[name] = value if given else environ[name]
    return found
