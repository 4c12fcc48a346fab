"""The questions of a batch, from JSON lines, CSV or plain text. A row that is wrong is named; the others stay. Pure."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from marg_ray.errors import UsageError
from marg_ray.kinds import Depth, RequestClass


class Form(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"
    TEXT = "text"


ENDINGS = {"jsonl": Form.JSONL, "ndjson": Form.JSONL, "json": Form.JSONL, "csv": Form.CSV, "tsv": Form.CSV}
SAME = {"id": "key", "lang": "language", "class": "request_class", "section": "sections"}
"""Other names of a row's fields."""
LIMITS = ("usd", "tokens", "minutes", "deadline", "searches", "tasks")
FLAT_LIMITS = {**{f"max_{name}": name for name in LIMITS if name != "deadline"}, "deadline": "deadline"}
SEPARATOR = ";"  # between the values of one CSV cell
MANY = frozenset({"docs", "focus", "sections", "text"})
LONGEST_KEY = 200
LINE, WRONG, HINT = "@line", "@wrong", "@hint"  # a row that was sent on: the line it had, and why it is wrong
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_WORD = re.compile(r"[^\W_]+")
_SURROGATE = re.compile("[\ud800-\udfff]")  # stands for a byte that is no UTF-8


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _text_of_number(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_several)]


class RowLimits(BaseModel):
    """What a row's session may spend, as on the command line; `deadline` is a moment or a duration in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    usd: float | None = None
    tokens: int | None = None
    minutes: float | None = None
    deadline: str = ""
    searches: int | None = None
    tasks: int | None = None


class Row(BaseModel):
    """A question and what is said beside it; None (or nothing) where the command's options hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    key: Annotated[str, BeforeValidator(_text_of_number), Field(max_length=LONGEST_KEY)] = ""
    docs: Texts | None = None
    web: bool | None = None
    depth: Depth | None = None
    request_class: RequestClass | None = None
    focus: Texts = ()
    sections: Texts = ()
    text: Texts = ()
    language: str = ""
    strict: bool = False
    fresh: bool | None = None
    owner: str = ""
    limits: RowLimits = RowLimits()
    meta: dict[str, JsonValue] = {}
    line: int = 0


@dataclass(frozen=True)
class Problem:
    """Why a row of the file cannot be asked."""

    line: int
    what: str
    todo: str = ""
    key: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}" + (f" ({self.todo})" if self.todo else "")


@dataclass(frozen=True)
class Reading:
    """The rows that can be asked, each with a key of its own; those that cannot; and rows that were there before."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()
    repeats: tuple[Problem, ...] = ()


def form_of(name: str, data: bytes) -> Form:
    """What the file holds: by its ending, else by its first letter."""
    ending = name.rpartition(".")[2].lower()
    if ending in ENDINGS:
        return ENDINGS[ending]
    return Form.JSONL if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" else Form.TEXT


def read_rows(data: bytes, form: Form) -> Reading:
    """The rows of a file.

    Raises:
        UsageError: the file as a whole cannot be read in this form.
    """
    text = _decoded(data)
    parts = {Form.JSONL: _json_lines, Form.CSV: _csv_lines, Form.TEXT: _text_lines}[form](text)
    rows: list[Row] = []
    problems: list[Problem] = []
    repeats: list[Problem] = []
    lines: dict[str, int] = {}
    for line, found in parts:
        row = found if isinstance(found, Problem) else _row(line, found)
        if isinstance(row, Problem):
            problems.append(row)
            continue
        keyed = row if row.key else row.model_copy(update={"key": key_of(row)})
        before = lines.setdefault(keyed.key, line)
        if before == line:
            rows.append(keyed)
        elif row.key:
            problems.append(Problem(line, f"the key {row.key!r} is on line {before} already"))
        else:
            repeats.append(Problem(line, f"asks what line {before} asks", key=keyed.key))
    taken = {row.key for row in rows}  # a row that is wrong never stands in the place of one that is not
    named = tuple(replace(p, key="") if p.key in taken else p for p in problems)
    return Reading(tuple(rows), named, tuple(repeats))


def located(base: Path, path: str) -> Path:
    """A path of a row, relative to the folder of its file."""
    return base / Path(path).expanduser()


def key_of(row: Row) -> str:
    """A key for a row that brings none: the question's first words and a digest of everything that is asked."""
    asked = row.model_dump(mode="json", exclude={"key", "line", "owner", "limits", "meta", "fresh"})
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:8]
    words = "-".join(_WORD.findall(row.question.casefold()))[:40].strip("-")
    return f"{words}-{digest}" if words else digest


# ---- from text to fields


def _decoded(data: bytes) -> str:
    """Bytes that are not UTF-8 stay as lone surrogates, so that their row can be named."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "surrogateescape")


def _json_lines(text: str) -> Iterator[tuple[int, Any]]:
    if text.lstrip().startswith("["):
        raise UsageError("the file is one JSON list, not one object a line", "`jq -c '.[]' FILE` makes lines of it")
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as exc:
            reason = exc.msg if isinstance(exc, json.JSONDecodeError) else str(exc)
            yield number, Problem(number, f"is no JSON: {reason}")
            continue
        yield number, {"question": found} if isinstance(found, str) else found


def _csv_lines(text: str) -> Iterator[tuple[int, Any]]:
    head = text.lstrip("\r\n").partition("\n")[0]
    delimiter = next((d for d in ",;\t|" if "question" in _names(head, d)), "")
    if not delimiter:
        raise UsageError("the CSV file has no column `question`", "its first line names the columns")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    begins = 1
    while True:
        try:
            cells = next(rows, None)
        except csv.Error as exc:
            yield begins, Problem(begins, f"is no CSV: {exc}")
            cells = []
        if cells is None:
            return
        line, begins = begins, rows.line_num + 1
        if not any(c.strip() for c in cells):
            continue
        if not names:
            names = [c.strip().casefold() for c in cells]
        elif len(cells) > len(names):
            yield line, Problem(line, f"has {len(cells)} cells, and there are {len(names)} columns", "quote commas")
        else:
            yield line, {n: _cell(n, c) for n, c in zip(names, cells, strict=False) if c.strip() and n}


def _names(head: str, delimiter: str) -> list[str]:
    try:
        return [c.strip().casefold() for c in next(csv.reader([head], delimiter=delimiter), [])]
    except csv.Error:
        return []


def _cell(name: str, text: str) -> object:
    name, text = SAME.get(name, name), text.strip()
    if name in MANY:
        return [part.strip() for part in text.split(SEPARATOR) if part.strip()]
    if name in ("web", "strict", "fresh"):
        return _BOOLS.get(text.casefold(), text)
    return text


def _text_lines(text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, {"question": line.strip()}


# ---- from fields to a row


def _row(line: int, found: Any) -> Row | Problem:
    if not isinstance(found, dict):
        return Problem(line, "is no object with a `question`")
    if _SURROGATE.search(json.dumps(found, ensure_ascii=False)):
        return Problem(line, "is not UTF-8", "save the file as UTF-8")
    line = found[LINE] if isinstance(found.get(LINE), int) else line
    key = found.get("key", found.get("id", ""))
    key = key if isinstance(key, str) else ""
    if isinstance(found.get(WRONG), str):
        return Problem(line, found[WRONG], str(found.get(HINT, "")), key=key)
    try:
        fields = _fields(found)
        row = Row.model_validate({**fields, "line": line})
    except ValidationError as exc:
        return Problem(line, _complaint(exc), key=key)
    except UsageError as exc:
        return Problem(line, str(exc), exc.hint, key=key)
    return row


def _fields(found: dict[str, Any]) -> dict[str, Any]:
    """A row's own fields; those that are nobody's are kept as `meta`, unless they look like a slip of the pen.

    Raises:
        UsageError: a field is given twice, is nearly the name of one, or belongs to the command.
    """
    fields: dict[str, Any] = {}
    meta = dict(found["meta"]) if isinstance(found.get("meta"), dict) else {}
    limits = dict(found["limits"]) if isinstance(found.get("limits"), dict) else {}
    for given, value in found.items():
        name = SAME.get(given, given)
        if value is None or name in ("line", LINE):
            continue
        if name in FLAT_LIMITS:
            limits[FLAT_LIMITS[name]] = value
        elif name in ("model", "offline"):
            raise UsageError(f"{name} is one for all rows", f"give --{name} to the command")
        elif name in Row.model_fields:
            if name in fields:
                raise UsageError(f"gives {name} twice")
            fields[name] = value
        elif near := difflib.get_close_matches(given.casefold(), _known(), 1, 0.8):
            raise UsageError(f"there is no field {given!r}", f"is {near[0]} meant?")
        else:
            meta[given] = value
    return {**fields, "meta": meta} | ({"limits": limits} if limits else {})


def _known() -> list[str]:
    return [*Row.model_fields, *SAME, *FLAT_LIMITS]


def _complaint(exc: ValidationError) -> str:
    first = exc.errors(include_input=False, include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"has no {where}"
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
