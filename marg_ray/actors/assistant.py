"""The assistant: answers questions about finished reports from their evidence, and talks over them (`conversing`)."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from marg_ray.actors.answering import Question, Writer
from marg_ray.actors.material import Material, index_of, of_report, ranked
from marg_ray.errors import BudgetExceeded, ModelError, SessionNotFound, Unreadable, UsageError
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.language import detect
from marg_ray.memory.chat import Answer, Cited, Turn
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import PlanTurn
from marg_ray.report.model import Report, from_json
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.sources.library.index import Index
from marg_ray.sources.queries import clean_question
from marg_ray.store.artefacts import Artefacts
from marg_ray.store.protocol import Store
from marg_ray.text import clean_text

KEPT_REPORTS = 32  # whose evidence stays ready
HISTORY = 8  # turns of a conversation that are shown
LONGEST_TURN = 2000  # characters of one
REFERRING = 14  # words; a longer question is taken to stand by itself


@dataclass(frozen=True)
class Ready:
    """A report, what it rests on, and the index over that."""

    report: Report
    material: Material
    index: Index


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Reports with their evidence, by their content's hash: the same report is read and embedded once."""

    artefacts: Artefacts
    snapshots: Snapshots
    embedder: Embedder
    light: Offload = in_thread
    _ready: OrderedDict[str, asyncio.Task[Ready]] = field(default_factory=OrderedDict)

    async def get(self, artefact: str) -> Ready:
        """A report by its artefact.

        Raises:
            SessionNotFound: its file is gone.
            Unreadable: its file is damaged.
        """
        task = self._ready.get(artefact)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._ready[artefact] = asyncio.ensure_future(self._read(artefact))
        self._ready.move_to_end(artefact)
        while len(self._ready) > KEPT_REPORTS:
            self._ready.popitem(last=False)
        return await asyncio.shield(task)

    async def _read(self, artefact: str) -> Ready:
        report = await self.light(self._report, artefact)
        material = of_report(report, await self.light(self._texts, report))
        return Ready(report, material, await index_of(material, self.embedder, self.light))

    def _report(self, artefact: str) -> Report:
        try:
            return from_json(self.artefacts.get(artefact))
        except ValidationError:
            raise Unreadable(f"{artefact}.json", "not a report that this version reads") from None

    def _texts(self, report: Report) -> dict[str, str]:
        texts = {}
        for source in {e.source for e in report.evidence}:
            with suppress(SessionNotFound, Unreadable):  # the quotation stands in the report all the same
                texts[source] = self.snapshots.text(source)
        return texts


@dataclass(frozen=True, kw_only=True)
class Assistant:
    """Answers from what is there: nothing is searched for, and nothing is said that a passage does not carry."""

    writer: Writer
    reports: Reports
    open_store: Callable[[], Awaitable[Store]]

    @property
    def model(self) -> ModelClient:
        return self.writer.model

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer:
        """A question about a finished report of `owner`, answered from the report's evidence alone.

        Raises:
            SessionNotFound: there is no such session of this owner.
            UsageError: the session has no report, or nothing is asked.
        """
        async with aclosing(self._answered(owner, session_id, question, history)) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    return part
        raise AssertionError("an answer has an end")

    async def stream(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Cited | Answer, None]:
        """The same sentence by sentence; the whole answer comes last. Raises as `answer` does."""
        async with aclosing(self._answered(owner, session_id, question, history)) as parts:
            async for part in parts:
                yield part

    async def _answered(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn]
    ) -> AsyncGenerator[Cited | Answer, None]:
        asked = clean_question(question)
        ready = await self._report_of(owner, session_id)
        said = recent(history)
        call = Call(session_id=session_id, task_id=task_id(session_id, asked, said))
        whole = await self.understood(asked, said, call)
        material = await ranked(whole, ready.material, self.writer.embedder, light=self.writer.light, index=ready.index)
        language = await self.writer.light(detect, asked, ready.report.language or "en")
        async with aclosing(self.writer.write(Question(whole, language, said), material, call)) as parts:
            async for part in parts:
                yield part

    async def _report_of(self, owner: str, session_id: str) -> Ready:
        store = await self.open_store()
        row = await store.session(session_id)
        if row.owner != owner:
            raise SessionNotFound(session_id)
        if not row.artefact:
            raise UsageError(f"session {session_id} has no report yet: it is {row.status}", "wait until it is over")
        return await self.reports.get(row.artefact)

    async def understood(self, question: str, history: Sequence[Turn], call: Call) -> str:
        """The question as it is understood without what was said before."""
        if not history or len(question.split()) > REFERRING:
            return question
        ask = PlanTurn(question=question, language="", history=tuple(history))
        quiet = replace(call, on_delta=None)
        try:
            return (await self.model.run(ask, quiet)).output.question
        except (ModelError, BudgetExceeded):
            return (await self.writer.plain.run(ask, quiet)).output.question


def recent(history: Sequence[Turn]) -> tuple[Turn, ...]:
    """The last turns, none longer than a prompt bears."""
    return tuple(t.model_copy(update={"text": clean_text(t.text)[:LONGEST_TURN]}) for t in history[-HISTORY:])


def task_id(session_id: str, question: str, history: Sequence[Turn]) -> str:
    """Derives from what is asked: the same question after the same words is paid once."""
    said = "\0".join([question, *(f"{t.role}:{t.text}" for t in history)])
    return f"{session_id}/question/{hashlib.sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"
