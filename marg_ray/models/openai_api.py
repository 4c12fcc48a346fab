"""Models behind an OpenAI-compatible API: renders a task, asks, and reads the answer until it is what was asked for."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, cast

from marg_ray.errors import ContextOverflow, OutputCut, ParseError
from marg_ray.models import replies
from marg_ray.models.client import Call, ModelTask, OutT, Reply
from marg_ray.models.endpoints import Endpoint
from marg_ray.models.estimates import Allowance, carrying, most_tokens
from marg_ray.models.exchange import Ask, Exchange, Message, Sleep
from marg_ray.models.packing import Packed, pack
from marg_ray.models.prices import Price, catalogue_needed, price_of
from marg_ray.models.prompting import estimate_tokens, fewest_tokens
from marg_ray.models.tasks import FreeText
from marg_ray.models.wire import Answer, Deltas, TooLong, Transient
from marg_ray.records import Note, Usage
from marg_ray.settings import ModelSettings

MAX_PACKS = 4  # prompts that are tried, each smaller than the one before
MARGIN = 1.1  # of the token estimate
REASONING_ROOM = 4096  # tokens on top of the answer's for a model that thinks first
DELTA_INTERVAL_S = 0.1
SMALLEST_WINDOW = 512  # tokens: a server that counts fewer does not count the prompt
LEAST_ROOM = 64  # tokens: for fewer, the rest of an answer is not asked for
TURN_TOKENS = 8  # around a turn of a conversation, by the chat template
QUOTES_KEPT = 256  # of calls that wait to be granted
_ECHO = 3000  # letters of a bad answer that are shown to the model again

_RETRY = (
    "This could not be used: {complaint}\nAnswer again with the complete JSON object and nothing else. "
    "Keep what was right."
)
_GO_ON = (
    "Your answer was cut off by a length limit. Write on from exactly the place where it stops: the first thing you "
    "write is the next word (or the rest of the broken word). Repeat nothing, comment on nothing. If nothing is "
    "missing, answer with the single word DONE."
)


class OpenAIModel:
    """A `ModelClient` on one endpoint. `sleep` and `clock` are for tests."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ModelSettings,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.settings = settings
        self.exchange = Exchange(endpoint, settings, sleep=sleep, clock=clock)
        self.window = endpoint.window or settings.context_tokens  # may shrink when the server names a smaller one
        self.reasons = False  # the model was seen to think before it answers
        self.opens_inside = False  # ... in a block whose beginning is not part of the answer
        self.clock = clock
        self.price: Price | None = None
        self._quoted: OrderedDict[int, _Quoted] = OrderedDict()

    @property
    def name(self) -> str:
        return self.endpoint.name

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        """What the first try of `task` uses at most: its cost is a bound, its input tokens are about right."""
        quoted = await self._prepare(task, call)
        self._quoted[id(task)] = quoted  # `run` follows, with the same task: rendered once
        if len(self._quoted) > QUOTES_KEPT:
            self._quoted.popitem(last=False)
        return quoted.most

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """See `ModelClient.run`."""
        quoted = self._quoted.pop(id(task), None) or await self._prepare(task, call)
        packed: Packed[ModelTask[OutT]] = quoted.packed
        allowance, usage = Allowance(quoted.most, call.allow), Usage()
        for _ in range(MAX_PACKS):
            with carrying(usage):
                if not packed.fits:
                    detail = f"{task.template} needs about {packed.prompt.tokens} even when packed as small as it goes"
                    raise ContextOverflow(self.window, detail)
                conversation = _Conversation(self, packed, call, allowance, usage)
            try:
                return await conversation.run()
            except TooLong as exc:
                reason, usage = str(exc), conversation.usage
                packed = pack(task, self._smaller(packed.prompt.tokens, task, exc), section=call.section)
        with carrying(usage):
            raise ContextOverflow(self.window, f"{task.template} was refused {MAX_PACKS} times; lastly: {reason}")

    async def _prepare(self, task: ModelTask[Any], call: Call) -> _Quoted:
        if self.price is None:
            needed = catalogue_needed(self.endpoint)
            self.price = await asyncio.to_thread(price_of, self.endpoint) if needed else price_of(self.endpoint)
        packed = pack(task, self._budget(task), section=call.section)
        return _Quoted(task, packed, self.most(packed.prompt.messages(), self.room(task), task))

    def most(self, messages: list[Message], room: int, task: ModelTask[Any]) -> Usage:
        """What one request may use at most. Of the tokens of its input this is an estimate, of its cost a bound."""
        texts = [m["content"] for m in messages]
        schema = "" if task.output is FreeText else self.exchange.schema(task.template, task.asked_for())
        return Usage(
            calls=1,
            tokens_in=sum(map(estimate_tokens, texts)),
            tokens_out=room,
            cost=self.cost(most_tokens((*texts, schema)), room),
        )

    def cost(self, tokens_in: int, tokens_out: int, said: float | None = None) -> float:
        """US dollars; what the server `said` itself counts where the settings name no price."""
        assert self.price is not None
        if said is not None and self.price.source != "settings":
            return said
        return self.price.of(tokens_in, tokens_out)

    async def aclose(self) -> None:
        await self.exchange.wire.aclose()

    def room(self, task: ModelTask[Any]) -> int:
        """Tokens for the answer: never more than half of the window."""
        wanted = task.max_tokens + (REASONING_ROOM if self.reasons else 0)
        return max(64, min(wanted, self.window // 2))

    def _budget(self, task: ModelTask[Any]) -> int:
        return int((self.window - self.room(task)) / MARGIN)

    def _smaller(self, estimated: int, task: ModelTask[Any], exc: TooLong) -> int:
        """The next budget: what the server's own numbers suggest, and in any case much less than was refused."""
        known = self.window
        if exc.limit >= 512:
            self.window = min(known, exc.limit)
        if self.window < known and 0 < exc.counted <= self.window - self.room(task):
            return estimated  # the prompt fits; the room that was asked for beside it did not
        per_token = estimated / exc.counted if exc.counted > 64 else 1 / MARGIN
        suggested = (self.window - self.room(task)) * per_token
        return int(max(1.0, min(suggested, estimated * 0.6)))


@dataclass(frozen=True)
class _Quoted:
    """A task made ready, and what its first try uses at most."""

    task: ModelTask[Any]  # held, so that its id stays its own
    packed: Packed[Any]
    most: Usage


@dataclass
class _Conversation(Generic[OutT]):
    """One packed prompt, asked until its answer is whole and readable. `usage` is what was spent before it."""

    model: OpenAIModel
    packed: Packed[ModelTask[OutT]]
    call: Call
    allowance: Allowance
    usage: Usage
    trying: Usage | None = None  # what the request under way may use at most
    notes: list[Note] = field(default_factory=list)

    async def run(self) -> Reply[OutT]:
        try:
            output = cast(OutT, await self._prose()) if self.packed.task.output is FreeText else await self._object()
        except TooLong:
            raise
        except BaseException as exc:
            cancelled = not isinstance(exc, Exception)  # what was under way may be paid all the same
            trying = self.trying if cancelled else None
            exc.spent = self.usage + (trying or Usage())  # type: ignore[attr-defined]
            raise
        return Reply(
            output=output,
            usage=self.usage,
            model=self.model.name,
            notes=(*self.packed.notes, *self.notes),
            left_out=self.packed.left_out,
        )

    async def _object(self) -> OutT:
        """JSON: cut once, it gets more room; unreadable, it is asked for again with the complaint."""
        task, room = self.packed.task, self.model.room(self.packed.task)
        messages = self.packed.prompt.messages()
        allowed, tries, cuts, complaint = self.model.settings.parse_retries, 0, 0, ""
        while tries <= allowed:
            answer = await self._ask(messages, room, first=not (tries or cuts))
            try:
                return task.understood(replies.read(answer.text, task.asked_for(), answer.finish, answer.refusal))
            except replies.CutShort:
                cuts += 1
                if cuts > 1 and answer.finish == "length":
                    raise OutputCut(task.template, room) from None
                complaint = "the answer ends before the JSON object is complete"
                room = self._more_room(room)
                tries += answer.finish != "length"
            except replies.Unreadable as exc:
                complaint = str(exc)
                tries += 1
                messages = _corrected(self.packed.prompt.messages(), answer, complaint)
        raise ParseError(task.template, complaint, tries)

    async def _prose(self) -> FreeText:
        """Markdown: cut once, the rest is asked for; cut again, it ends after its last whole sentence, marked."""
        task = self.packed.task
        room, messages = self.model.room(task), self.packed.prompt.messages()
        complaint = ""
        for tries in range(1 + self.model.settings.parse_retries):
            deltas = self._batched(self.call.on_delta)
            answer = await self._ask(messages, room, first=tries == 0, deltas=deltas)
            await deltas.flush()
            try:
                return replies.read(answer.text, FreeText, answer.finish, answer.refusal)
            except replies.Unreadable as exc:
                complaint = str(exc)
            except replies.CutShort as cut:
                if cut.args[0]:
                    return await self._continued(cut.args[0], answer)
                if tries:
                    raise OutputCut(task.template, room) from None
                complaint = "the answer is empty"
                room = self._more_room(room)
        raise ParseError(task.template, complaint, tries + 1)

    async def _continued(self, text: str, cut: Answer) -> FreeText:
        """The text of a `cut` answer with its continuation, where the window has room for one.

        A cut that only we suspect is no fault where nothing follows.
        """
        admitted = cut.finish == "length"
        shown: Message = {"role": "assistant", "content": text}
        messages = [*self.packed.prompt.messages(), shown, {"role": "user", "content": _GO_ON}]
        room = min(self.model.room(self.packed.task), self._left_beside(messages, cut))
        deltas = self._batched(self.call.on_delta if admitted else None)
        try:
            answer = await self._ask(messages, room, first=False, deltas=deltas) if room >= LEAST_ROOM else None
        except TooLong:  # no usage was told, and our estimate was too low
            answer = None
        if answer is None:
            return (
                self._shortened(text, "the context has no room for the rest") if admitted else FreeText(markdown=text)
            )
        await deltas.flush()
        more = replies.answer_text(answer.text)
        if more.strip(" .\n").upper() == "DONE" or (not more and not admitted):
            return FreeText(markdown=text)
        whole = replies.join(text, more, self.packed.prompt.user)
        complete = more and answer.finish != "length" and not replies.ends_mid_sentence(whole)
        if complete:
            return FreeText(markdown=whole)
        return self._shortened(whole, f"the output limit of {room} tokens cut it twice")

    def _left_beside(self, messages: list[Message], cut: Answer) -> int:
        """Tokens that the window has left beside `messages`, which end with a `cut` answer and a word to go on."""
        estimated = sum(estimate_tokens(m["content"]) + TURN_TOKENS for m in messages)
        if cut.tokens_in is not None and cut.tokens_out is not None:
            counted = cut.tokens_in + cut.tokens_out + estimate_tokens(_GO_ON) + 2 * TURN_TOKENS
            return self.model.window - max(counted, estimated)
        return self.model.window - int(estimated * MARGIN)

    def _shortened(self, text: str, why: str) -> FreeText:
        """What was cut, up to its last whole sentence, marked as incomplete."""
        kept = replies.whole_sentences(text)
        if not kept:
            raise OutputCut(self.packed.task.template, self.model.room(self.packed.task))
        said = f"the answer is incomplete: {why}; it ends after its last whole sentence"
        self.notes.append(Note(kind="output_cut", text=said, section=self.call.section))
        return FreeText(markdown=kept, incomplete=True)

    def _batched(self, on_delta: Deltas | None) -> _Batched:
        return _Batched(on_delta, self.model.clock, inside=self.model.opens_inside)

    async def _ask(self, messages: list[Message], room: int, *, first: bool, deltas: _Batched | None = None) -> Answer:
        task, model = self.packed.task, self.model
        ask = Ask(
            messages=messages,
            max_tokens=room,
            temperature=model.settings.temperatures.get(task.role, model.settings.temperature) if first else 0.0,
            name=task.template,
            output=None if task.output is FreeText else task.asked_for(),
            window=model.endpoint.window or model.settings.context_tokens,
            caller=self.call.task_id,
        )
        trying = model.most(messages, room, task)
        await self.allowance.need(self.usage + trying)
        self.trying = trying
        heard = deltas if deltas is not None and deltas.heard else None
        answer = await model.exchange.ask(ask, heard, self._fault)
        self.trying = None
        estimated = sum(estimate_tokens(m["content"]) for m in messages)
        model.opens_inside = model.opens_inside or replies.opens_inside_reasoning(answer.text)
        silent = answer.finish == "length" and not answer.text.strip()  # it thought until there was no room left
        model.reasons = model.reasons or answer.reasoned or silent or "</think>" in answer.text
        self._count(answer, estimated, sum(fewest_tokens(m["content"]) for m in messages))
        return answer

    async def _fault(self, exc: Transient, again: bool) -> None:
        """A try that failed: it may have been paid, and the next one needs room as well."""
        assert self.trying is not None
        self.usage += (self.trying if exc.begun else Usage()) + Usage(throttled=int(exc.busy))
        if again:
            await self.allowance.need(self.usage + self.trying)

    def _count(self, answer: Answer, estimated: int, fewest: int) -> None:
        tokens_in = estimated if answer.tokens_in is None else answer.tokens_in
        tokens_out = estimate_tokens(answer.text) if answer.tokens_out is None else answer.tokens_out
        self.usage += Usage(
            calls=1,
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            cost=self.model.cost(tokens_in, tokens_out, answer.cost),
            seconds=answer.seconds,
        )
        if answer.tokens_in is not None and SMALLEST_WINDOW <= tokens_in < fewest:
            self._warn_shortened(estimated, tokens_in)

    def _warn_shortened(self, estimated: int, counted: int) -> None:
        if any(note.kind == "prompt_shortened" for note in self.notes):
            return
        text = (
            f"the model's server counted {counted} tokens of a prompt of about {estimated}: it seems to have cut the "
            f"prompt without saying so; give it a larger context or set MARG_MODELS__CONTEXT_TOKENS to what it has"
        )
        self.notes.append(Note(kind="prompt_shortened", text=text, section=self.call.section))

    def _more_room(self, room: int) -> int:
        """Twice the room, and space to think for a model that does; what the window leaves at most."""
        wanted = max(2 * room, room + REASONING_ROOM if self.model.reasons else 0)
        free = self.model.window - int(self.packed.prompt.tokens * MARGIN)
        return max(room, min(wanted, free))


def _corrected(messages: list[Message], answer: Answer, complaint: str) -> list[Message]:
    """The bad answer and what was wrong with it, as further turns. An empty answer is no turn: roles must alternate."""
    told = _RETRY.format(complaint=complaint)
    if bad := replies.answer_text(answer.text)[:_ECHO]:
        return [*messages, {"role": "assistant", "content": bad}, {"role": "user", "content": told}]
    *before, last = messages
    return [*before, last | {"content": f"{last['content']}\n\n{told}"}]


class _Batched:
    """Passes a stream on about ten times a second, without the model's reasoning."""

    def __init__(self, on_delta: Deltas | None, clock: Callable[[], float], *, inside: bool) -> None:
        self._on_delta, self._clock = on_delta, clock
        self._visible = replies.VisibleText(inside=inside)
        self._waiting: list[str] = []
        self._sent = clock()

    @property
    def heard(self) -> bool:
        return self._on_delta is not None

    async def __call__(self, piece: str) -> None:
        if shown := self._visible.feed(piece):
            self._waiting.append(shown)
        if self._waiting and self._clock() - self._sent >= DELTA_INTERVAL_S:
            await self._send()

    async def flush(self) -> None:
        if rest := self._visible.rest():
            self._waiting.append(rest)
        if self._waiting:
            await self._send()

    async def _send(self) -> None:
        text, self._waiting, self._sent = "".join(self._waiting), [], self._clock()
        if self._on_delta is not None:
            await self._on_delta(text)
