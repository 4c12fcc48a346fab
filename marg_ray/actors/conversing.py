"""One turn of a conversation: understand it, look where it may be answered, answer from what was found, remember."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from marg_ray.actors.answering import Question, Writer
from marg_ray.actors.assistant import Assistant, Reports, recent
from marg_ray.actors.looking import Finder
from marg_ray.actors.material import Material, ranked
from marg_ray.actors.researcher import Workers
from marg_ray.errors import BudgetExceeded, ModelError
from marg_ray.grounding.snapshots import Snapshots
from marg_ray.language import detect
from marg_ray.memory import chat
from marg_ray.memory.chat import Answer, Cited, Looked, Order, Said, Turn
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import PlanTurn, TurnIdea
from marg_ray.records import Usage, Verdict, Zone
from marg_ray.seams import Embedder, Offload
from marg_ray.settings import BudgetSettings, ChatSettings, Settings
from marg_ray.sources.queries import clean_question
from marg_ray.store.artefacts import Artefacts
from marg_ray.store.protocol import Store
from marg_ray.store.talk import MemoryRow, TurnRow

Part = Looked | Cited | Answer
GREETED = "Ask me about your reports and documents: I answer from what stands in them, and say where."
NOTHING_TO_SEARCH = "There is nothing to look in: no report of yours, no documents, and the web is not allowed."


def account_of(owner: str, conversation: str) -> str:
    """The session under which a conversation's calls are paid: another owner's cannot have it."""
    blob = f"{owner}\0{conversation}".encode("utf-8", "surrogatepass")
    return f"chat-{hashlib.sha256(blob).hexdigest()[:24]}"


@dataclass(frozen=True, kw_only=True)
class Conversing:
    """Talks with users. Nothing of a conversation is kept here: any process goes on where another one was."""

    assistant: Assistant
    finder: Finder
    settings: ChatSettings = field(default_factory=ChatSettings)
    budget: BudgetSettings = field(default_factory=BudgetSettings)
    clock: Callable[[], float] = time.time

    async def converse(self, owner: str, said: Said) -> AsyncGenerator[Part, None]:
        """One turn; what was looked at, the sentences as they pass their check, and last the whole answer.

        Raises:
            SessionNotFound: the owner has no such conversation, or not the report it is to be about.
            UsageError: nothing is said.
        """
        text = clean_question(said.text)
        store = await self.assistant.open_store()
        before = await store.talk.turns(owner, said.conversation, limit=20)
        said = said.model_copy(update={"text": text})
        mine = TurnRow(id=f"u{said.turn}", role="user", text=text, at=self.clock())
        await store.talk.say(owner, said.conversation, mine)
        turn = _Turn(self, store, owner, said, await store.talk.memories(owner), _turns(before))
        async with aclosing(turn.parts()) as parts:
            async for part in parts:
                if isinstance(part, Answer):
                    await self._keep(store, owner, said, part)
                yield part

    async def answer(self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()) -> Answer:
        """See `Assistant.answer`."""
        return await self.assistant.answer(owner, session_id, question, history)

    def stream(
        self, owner: str, session_id: str, question: str, history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Cited | Answer, None]:
        """See `Assistant.stream`."""
        return self.assistant.stream(owner, session_id, question, history)

    async def _keep(self, store: Store, owner: str, said: Said, answer: Answer) -> None:
        row = TurnRow(
            id=f"a{said.turn}",
            role="assistant",
            text=answer.text,
            body=answer.model_dump_json(),
            at=self.clock(),
        )
        await store.talk.say(owner, said.conversation, row)


def _turns(rows: Sequence[TurnRow]) -> tuple[Turn, ...]:
    return recent([Turn(role=row.role, text=row.text) for row in rows])


@dataclass
class _Turn:
    """A turn on its way."""

    talk: Conversing
    store: Store
    owner: str
    said: Said
    memories: list[MemoryRow]
    history: tuple[Turn, ...]

    def __post_init__(self) -> None:
        self.account = account_of(self.owner, self.said.conversation)
        self.call = Call(session_id=self.account, task_id=f"{self.account}/{self.said.turn}")
        self.writer: Writer = self.talk.assistant.writer
        self.looked: list[Looked] = []
        self.notes: list[str] = []
        self.new: list[str] = []  # in the core memory

    async def parts(self) -> AsyncGenerator[Part, None]:
        text = self.said.text
        if (order := chat.order_of(text)) is not None:
            for part in _told(*await self._ordered(order), remembered=self.new):
                yield part
            return
        if chat.is_greeting(text):
            for part in _told(GREETED):
                yield part
            return
        await self._within_budget()
        language = await self.writer.light(detect, text)
        idea = await self._understood(language, ())
        await self._learn(idea.facts)
        if chat.tells(text):
            await self._archive(text, None)
            for part in _told(*([f"Noted: {fact}" for fact in self.new] or ["Noted."]), remembered=self.new):
                yield part
            return
        material = Material()
        async with aclosing(self._found(language, idea)) as finds:
            async for found in finds:
                if isinstance(found, Looked):
                    self.looked.append(found)
                    yield found
                else:
                    material = found
        asked = Question(idea.question, language, self.history, self._core())
        async with aclosing(self.writer.write(asked, material, self.call)) as parts:
            async for part in parts:
                yield await self._completed(part, idea.question) if isinstance(part, Answer) else part

    async def _completed(self, answer: Answer, question: str) -> Answer:
        notes = [*self.notes, *answer.notes]
        if not any(one.found for one in self.looked) and not self._places():
            notes.append(NOTHING_TO_SEARCH)
        await self._archive(question, answer)
        return answer.model_copy(
            update={"looked": tuple(self.looked), "remembered": tuple(self.new), "notes": tuple(dict.fromkeys(notes))}
        )

    # ---- plan

    async def _within_budget(self) -> None:
        """A conversation that has spent what it may goes on in quotations."""
        budget = self.talk.budget
        if budget.tokens is None and budget.usd is None:
            return
        spent = sum((row.usage + row.lost for row in await self.store.calls(self.account)), Usage())
        used = {"tokens": float(spent.tokens_in + spent.tokens_out), "usd": spent.cost}
        for name, limit in (("tokens", budget.tokens), ("usd", budget.usd)):
            if limit is not None and used[name] >= limit:
                self.notes.append(f"answered in quotations: {BudgetExceeded(name, limit, used[name])}")
                self.writer = replace(self.writer, model=self.writer.plain)
                return

    async def _understood(self, language: str, tried: tuple[str, ...]) -> TurnIdea:
        ask = PlanTurn(
            question=self.said.text,
            language=language,
            history=self.history,
            remembered=self._core(),
            places=self._places(),
            tried=tried,
        )
        try:
            return (await self.writer.model.run(ask, self.call)).output
        except (ModelError, BudgetExceeded) as exc:
            if not tried:
                self.notes.append(f"understood without a model: {exc}")
            return (await self.writer.plain.run(ask, self.call)).output

    def _places(self) -> tuple[str, ...]:
        if self.said.report:
            return ("one report",)
        there = {"reports": self.said.reports, "library": bool(self.said.folders), "web": self.said.web}
        return tuple(name for name, allowed in there.items() if allowed)

    # ---- act, and look at what came of it

    async def _found(self, language: str, idea: TurnIdea) -> AsyncGenerator[Looked | Material, None]:
        """Rounds of searching, until what was found answers or nothing else comes to mind; the material comes last."""
        finder, tried = self.talk.finder, list[str]()
        everything, of_memory = await finder.in_memory(idea.question, self.memories)
        if everything.found:
            yield everything
        material, best = of_memory, Material()
        queries = list(dict.fromkeys(q for q in (idea.question, *idea.queries) if q.strip()))[:3]
        for _ in range(self.talk.settings.steps):
            for query in queries:
                tried.append(query)
                async for looked, found in finder.search(self.owner, self.account, self.said, idea.question, query):
                    material = material + found
                    yield looked
            best = await ranked(idea.question, material, self.writer.embedder, light=self.writer.light)
            if best.answerability.zone is Zone.ANSWER or not self._places() or self.said.report:
                break
            again = await self._understood(language, tuple(tried))
            queries = [q for q in dict.fromkeys(again.queries) if q.strip() and q not in tried][:2]
            if not queries:
                break
        used = [e.id for e in best.evidence if e.source == "memory"]
        await self.store.talk.used(self.owner, used, self.talk.clock())
        yield best

    # ---- remember

    def _core(self) -> tuple[str, ...]:
        core = chat.core_of(self.memories, self.talk.settings.core)
        return tuple(text for m in core if (text := chat.fit_to_keep(m.text)))

    async def _learn(self, facts: Sequence[str]) -> None:
        """What the assistant keeps by itself: what the message says, and nothing that only a model says."""
        for fact in facts:
            text = chat.fit_to_keep(fact)
            if text and chat.said_by(text, self.said.text):
                await self._into_core(self._memory(text, by_user=False))

    def _memory(self, text: str, *, by_user: bool, archival: bool = False) -> MemoryRow:
        return chat.memory_of(
            text,
            kind="archival" if archival else "core",
            by="user" if by_user else "assistant",
            conversation=self.said.conversation,
            at=self.talk.clock(),
        )

    async def _into_core(self, row: MemoryRow) -> bool:
        known = next((m for m in self.memories if m.id == row.id and m.kind == "core"), None)
        if known is not None and (known.by == "user" or row.by == "assistant"):
            return True
        changes = chat.with_core(self.memories, row, self.talk.settings.core)
        if changes is None:
            return False
        await self.store.talk.remember(self.owner, changes, self.talk.settings.archive)
        self.memories = await self.store.talk.memories(self.owner)
        self.new.append(row.text)
        return True

    async def _archive(self, question: str, answer: Answer | None) -> None:
        """What was said goes to the archive: the user's statements as such, a question with its answer."""
        core = {m.id for m in self.memories if m.kind == "core"}
        rows = []
        if answer is None and (text := chat.fit_to_keep(question)):
            rows.append(self._memory(text, by_user=True, archival=True))
        elif answer is not None and answer.known and (text := chat.fit_to_keep(f"{question} {answer.text}")):
            rows.append(self._memory(text, by_user=False, archival=True))
        await self.store.talk.remember(self.owner, [r for r in rows if r.id not in core], self.talk.settings.archive)

    async def _ordered(self, order: Order) -> list[str]:
        """Carry out what the user orders of the memory, and say what was done."""
        match order.kind:
            case "remember":
                text = chat.fit_to_keep(order.text)
                if not text:
                    return ["That is an order to a model rather than something to remember: it is not kept."]
                if await self._into_core(self._memory(text, by_user=True)):
                    return [f"I will remember: {text}"]
                return ["My memory for such things is full: have me forget something first, or say it shorter."]
            case "forget":
                gone = None if not order.text else [m.id for m in chat.holding(self.memories, order.text)]
                many = await self.store.talk.forget(self.owner, ids=gone)
                self.memories = await self.store.talk.memories(self.owner)
                return [
                    f"Forgotten: {many} {'memory' if many == 1 else 'memories'}."
                    if many
                    else "I remember no such thing."
                ]
            case "recite":
                core = [m.text for m in self.memories if m.kind == "core"]
                rest = sum(m.kind == "archival" for m in self.memories)
                said = [f"{n}. {text}" for n, text in enumerate(core, 1)] or ["I was not told anything to remember."]
                return [*said, f"Beside that I can look up {rest} things that were said."] if rest else said


def _told(*texts: str, remembered: Sequence[str] = ()) -> list[Cited | Answer]:
    """What code says by itself."""
    sentences = tuple(Cited(text=text, verdict=Verdict.NOT_FACTUAL) for text in texts)
    return [*sentences, Answer(sentences=sentences, remembered=tuple(remembered))]


def assistant_over(
    settings: Settings,
    *,
    model: ModelClient,
    embedder: Embedder,
    light: Offload,
    artefacts: Artefacts,
    snapshots: Snapshots,
    workers: Workers | None,
    open_store: Callable[[], Awaitable[Store]],
) -> Conversing:
    """An assistant over what a process has."""
    from marg_ray.models.extractive import ExtractiveModel

    reports = Reports(artefacts=artefacts, snapshots=snapshots, embedder=embedder, light=light)
    writer = Writer(model=model, plain=ExtractiveModel(embedder, light), embedder=embedder, light=light)
    finder = Finder(
        reports=reports,
        workers=workers,
        open_store=open_store,
        snapshots=snapshots,
        embedder=embedder,
        light=light,
        settings=settings.chat,
    )
    assistant = Assistant(writer=writer, reports=reports, open_store=open_store)
    return Conversing(assistant=assistant, finder=finder, settings=settings.chat, budget=settings.budget)
