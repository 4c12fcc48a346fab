"""The tape: what a run asked of the world and what came back, kept in a folder, and answered from there later.

Each exchange is a file named by the SHA-256 of what was asked. So processes that record at the same time need no lock,
and who asks the same again, in whatever order and process, finds the same answer. An error is an answer too.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from marg_ray import errors
from marg_ray.errors import ModelError, NotRecorded, SourceError, UsageError
from marg_ray.files import write_whole
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply
from marg_ray.models.estimates import Estimate, Quoting, estimate
from marg_ray.models.select import Choice
from marg_ray.models.tasks import FreeText
from marg_ray.models.wrappers import aclose, dump, load
from marg_ray.records import Usage
from marg_ray.settings import TapeSettings

log = logging.getLogger(__name__)

VERSION = 1  # of the files' form
Make = Callable[[], Awaitable[JsonValue]]


@dataclass(frozen=True)
class Tape:
    """A recording in `folder`; with `replays` nothing is written, and what it does not hold is an error."""

    folder: Path
    replays: bool

    @classmethod
    def of(cls, settings: TapeSettings) -> Tape | None:
        """The tape that the settings name, if they do."""
        folder = settings.record or settings.replay
        return cls(Path(folder), bool(settings.replay)) if folder else None

    @property
    def snapshots(self) -> Snapshots:
        """The texts of the documents that searches of a library found."""
        return Snapshots(self.folder / "snapshots")

    async def answer(self, kind: str, asked: JsonValue, make: Make, said: str) -> JsonValue:
        """What came back when `asked` was asked: made and kept, or as it was kept. `said` is `asked` for people.

        Raises:
            NotRecorded: a replay asks for something that was not asked when it was recorded.
        """
        if self.replays:
            kept = await self.get(kind, asked)
            if kept is None:
                raise NotRecorded(
                    f"the recording in {self.folder} holds no answer of a {kind} to {said}",
                    "record the run again with --record, or ask what was asked then",
                )
            if "error" in kept:
                raise _error(kept["error"])
            kept_answer: JsonValue = kept["answer"]
            return kept_answer
        try:
            made = await make()
        except (ModelError, SourceError) as exc:
            if await self.get(kind, asked) is None:  # an answer that came once counts more
                await self.put(kind, asked, {"error": _told(exc)})
            raise
        await self.put(kind, asked, {"answer": made})
        return made

    async def get(self, kind: str, asked: JsonValue) -> dict[str, Any] | None:
        return await asyncio.to_thread(read_json, self._path(kind, asked))

    async def put(self, kind: str, asked: JsonValue, kept: dict[str, JsonValue]) -> None:
        text = json.dumps({"asked": asked, **kept}, indent=1)
        await asyncio.to_thread(self.write, self._path(kind, asked), text.encode())

    def write(self, path: Path, data: bytes) -> None:
        """Write a file; a full disk costs the recording, not the run whose answers are paid for."""
        try:
            write_whole(path, data)
        except OSError as exc:
            log.warning("the recording in %s has a hole: %s", self.folder, exc)

    def _path(self, kind: str, asked: JsonValue) -> Path:
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return self.folder / kind / digest[:2] / f"{digest}.json"


def read_json(path: Path) -> dict[str, Any] | None:
    """A file of the tape; None where there is none.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return dict(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise UsageError(f"the recording is damaged: {path}: {exc}", "record the run again") from None


def _told(exc: ModelError | SourceError) -> dict[str, JsonValue]:
    spent = getattr(exc, "spent", None)
    told: dict[str, JsonValue] = {"type": type(exc).__name__, "args": list(exc.args)}
    return {**told, "spent": spent.model_dump() if spent else None, "told": getattr(exc, "told", "")}


def _error(told: dict[str, Any]) -> Exception:
    kind = getattr(errors, told["type"], None)
    if not (isinstance(kind, type) and issubclass(kind, ModelError | SourceError)):
        raise UsageError(f"the recording is damaged: it holds an error {told['type']!r}", "record the run again")
    error: Exception = kind(*told["args"])
    if told["spent"]:
        error.spent = Usage.model_validate(told["spent"])  # type: ignore[attr-defined]
    if told.get("told"):
        error.told = told["told"]  # type: ignore[attr-defined]
    return error


# ---- the models behind a recording


def begin(tape: Tape, choice: Choice) -> None:
    """Note on the tape which models it is recorded with.

    Raises:
        UsageError: it holds a recording that was made with others, or cannot be written.
    """
    path = tape.folder / "tape.json"
    known = read_json(path)
    noted = {"version": VERSION, "fast": choice.spec_fast, "strong": choice.spec_strong}
    if known is not None and known != noted:
        raise UsageError(f"{tape.folder} holds a recording made with {known.get('strong')}", "record into a new folder")
    try:
        write_whole(path, json.dumps(noted).encode())
    except OSError as exc:
        raise UsageError(f"nothing can be recorded in {tape.folder}: {exc.strerror}", "name another folder") from None


def choice_of(folder: Path) -> Choice:
    """The models that a recording was made with.

    Raises:
        UsageError: there is no recording, or one of another version.
    """
    known = read_json(folder / "tape.json")
    if known is None:
        raise UsageError(f"there is no recording in {folder}", "make one with `marg research ... --record DIR`")
    if known.get("version") != VERSION:
        raise UsageError(f"the recording in {folder} has another form than this version reads", "record it again")
    return Choice(known["fast"], known["strong"], f"the recording in {folder} was made with it")


class TapedModel:
    """Keeps what `model` answers, or answers for it (then `model` is None) under the `name` that it had.

    The key is the task with everything in it but numbers with a fraction: those of a ranking differ in their last
    digit from machine to machine.
    """

    def __init__(
        self, tape: Tape, model: ModelClient | None, *, name: str = "", otherwise: Estimate = estimate
    ) -> None:
        assert tape.replays or model is not None
        self._tape, self._model, self._name, self._otherwise = tape, model, name, otherwise

    @property
    def name(self) -> str:
        return self._model.name if self._model is not None else self._name

    async def aclose(self) -> None:
        if self._model is not None:
            await aclose(self._model)

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        """As it was quoted: a replay reserves what the run did."""
        asked = asked_of(task)
        if self._model is None:
            kept = await self._tape.get("quote", asked)
            return Usage.model_validate(kept["answer"]) if kept is not None else self._otherwise(task)
        if not isinstance(self._model, Quoting):
            return self._otherwise(task)
        quoted = await self._model.quote(task, call)
        await self._tape.put("quote", asked, {"answer": quoted.model_dump()})
        return quoted

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`. A recorded text is passed to `on_delta` in one piece.

        Raises:
            NotRecorded: the task was not asked when the run was recorded.
        """
        made: list[Reply[OutT]] = []

        async def make() -> JsonValue:
            assert self._model is not None
            made.append(await self._model.run(task, call))
            answer: JsonValue = json.loads(dump(made[0]))
            return answer

        kept = await self._tape.answer("model", asked_of(task), make, _in_words(task))
        if made:
            return made[0]
        reply = load(task, json.dumps(kept))
        if call.on_delta is not None and isinstance(reply.output, FreeText):
            await call.on_delta(reply.output.markdown)
        return reply


def asked_of(task: ModelTask[Any]) -> JsonValue:
    """A task as JSON: its fields without fractions; a document is named by its source id."""
    documents = {name for name in type(task).model_fields if isinstance(getattr(task, name), Document)}
    fields = _without_fractions(task.model_dump(mode="json", exclude=documents))
    assert isinstance(fields, dict)
    return {"task": type(task).__name__, **fields, **{name: getattr(task, name).source_id for name in documents}}


def _without_fractions(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            return {k: _without_fractions(v) for k, v in value.items() if not isinstance(v, float)}
        case list():
            return [_without_fractions(v) for v in value]
        case _:
            return value


def _in_words(task: ModelTask[Any]) -> str:
    about = getattr(task, "section_title", "") or getattr(task, "question", "")
    return f"{task.template} for {about!r}"
