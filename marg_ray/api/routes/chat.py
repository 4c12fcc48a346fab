"""Questions about finished reports, and what is remembered of conversations."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated, Literal
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from marg_ray.api import library, problems
from marg_ray.api.app import service_of
from marg_ray.api.callers import Caller, Scope, needs
from marg_ray.api.refusals import NotReady, TooLarge
from marg_ray.api.schemas import Body, Out
from marg_ray.api.service import Assistant, Service
from marg_ray.api.sessions import session_of
from marg_ray.api.spoken import streamed
from marg_ray.api.sse import MEDIA_TYPE
from marg_ray.errors import RuntimeUnavailable, SessionNotFound, UsageError
from marg_ray.memory import chat
from marg_ray.memory.chat import Answer, Cited, Looked, Said, Turn
from marg_ray.sources.queries import clean_question
from marg_ray.store.talk import ConversationRow, MemoryRow, TurnRow

router = APIRouter(tags=["chat"])

Reads = Annotated[Caller, Depends(needs(Scope.READ))]
Asks = Annotated[Caller, Depends(needs(Scope.RESEARCH))]
Parts = Annotated[Service, Depends(service_of)]
SessionId = Annotated[str, Path(description="the session's id", examples=["20261130-120000-ab12cd"])]
ConversationId = Annotated[str, Path(description="the conversation's id", examples=["c-20261130-120000-9f86d0"])]
Words = Annotated[str, Field(min_length=1, max_length=20_000)]  # controls in it are taken out
TITLE = 120  # letters of a conversation's


# ---- what goes in and out


class TurnIn(Body):
    role: Literal["user", "assistant"]
    text: Annotated[str, Field(max_length=20_000)]


class QuestionIn(Body):
    """A question about a report."""

    question: Annotated[Words, Field(examples=["What did the barrage do to the fish?"])]
    history: Annotated[tuple[TurnIn, ...], Field(max_length=100, description="what was said before")] = ()
    stream: Annotated[bool, Field(description="sentence by sentence, as server-sent events")] = False


class ChatIn(Body):
    """A message in a conversation; without `conversation` a new one begins."""

    message: Annotated[Words, Field(examples=["What do my documents say about tidal power?"])]
    conversation: Annotated[str, Field(max_length=64, pattern=r"^[\w.-]*$", description="its id")] = ""
    report: Annotated[
        str, Field(max_length=200, pattern=r"^[\w.-]*$", description="a session's id: answer from its report alone")
    ] = ""
    reports: Annotated[bool, Field(description="look into your reports")] = True
    library: Annotated[bool, Field(description="look into your documents")] = True
    shared: Annotated[bool, Field(description="and into the folders that the server shares")] = True
    web: Annotated[bool, Field(description="search the web too")] = False
    stream: Annotated[bool, Field(description="as server-sent events")] = False


class ChatOut(Out):
    conversation: str
    turn: str
    answer: Answer


class ConversationOut(Out):
    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    turns: int

    @classmethod
    def of(cls, row: ConversationRow) -> ConversationOut:
        return cls(**row.model_dump(exclude={"owner"}))


class ConversationsOut(Out):
    conversations: tuple[ConversationOut, ...]


class TurnOut(Out):
    role: Literal["user", "assistant"]
    text: str
    at: datetime
    answer: Annotated[Answer | None, Field(description="of the assistant: sentences, what they cite, where it looked")]

    @classmethod
    def of(cls, row: TurnRow) -> TurnOut:
        at = datetime.fromtimestamp(row.at, UTC)
        return cls(role=row.role, text=row.text, at=at, answer=chat.answer_in(row.body))


class TalkOut(ConversationOut):
    said: tuple[TurnOut, ...]


class MemoryOut(Out):
    """Something remembered. `by`: the user wished it, or the assistant kept it by itself."""

    id: str
    text: str
    by: Literal["user", "assistant"]
    conversation: str
    at: datetime
    uses: int

    @classmethod
    def of(cls, row: MemoryRow) -> MemoryOut:
        at = datetime.fromtimestamp(row.at, UTC)
        return cls(id=row.id, text=row.text, by=row.by, conversation=row.conversation, at=at, uses=row.uses)


class MemoriesOut(Out):
    """`core` is before the assistant in every turn, `archival` is searched for when a turn needs it."""

    conversation: str
    core: tuple[MemoryOut, ...]
    archival: tuple[MemoryOut, ...]
    core_used: int
    core_room: int
    archive_room: int


class ForgottenOut(Out):
    memories: int
    turns: int = 0


# ---- questions about a report


@router.post(
    "/v1/research/{session_id}/questions",
    summary="Ask about a finished report",
    response_model=Answer,
    responses=problems.responses(404, 409, 413)
    | {
        200: {
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            "description": "The answer; with `stream`, events",
        }
    },
)
async def question(service: Parts, who: Asks, session_id: SessionId, body: QuestionIn) -> Answer | StreamingResponse:
    """Answered from the passages that the report rests on, and from nothing else. Each sentence is checked against
    what it cites; what does not hold is left out and named in `dropped`. Where the passages do not answer, `known` is
    false and the answer says so.

    With `stream`: an event `sentence` for each sentence that passes, then `end` with the whole answer, or `error`."""
    row = await session_of(service, who, session_id)
    if not row.artefact:
        raise NotReady(row.id, row.status)
    asked = _within(service, body.question)
    history = tuple(Turn(role=t.role, text=t.text) for t in body.history)
    assistant = _assistant(service)
    if body.stream:
        return streamed(assistant.stream(who.owner, row.id, asked, history), service.settings.service.heartbeat_s)
    return await assistant.answer(who.owner, row.id, asked, history)


# ---- conversations


@router.post(
    "/v1/chat",
    summary="Say something in a conversation",
    response_model=ChatOut,
    responses=problems.responses(404, 413)
    | {
        200: {
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
            "description": "The answer; with `stream`, events",
        }
    },
)
async def say(service: Parts, who: Asks, body: ChatIn) -> ChatOut | StreamingResponse:
    """The assistant looks into your reports and documents (and the web, where you allow it), and answers from what it
    found, with the same checks as a report. It remembers what you ask it to remember.

    With `stream`: `begin` with the ids, an event `looked` for each place, `sentence` for each sentence, then `end` with
    the whole answer, or `error`."""
    asked = _within(service, body.message)
    assistant = _assistant(service)
    if body.report:
        row = await session_of(service, who, body.report)
        if not row.artefact:
            raise NotReady(row.id, row.status)
    said = Said(
        conversation=await _conversation(service, who, body.conversation, asked),
        turn=uuid4().hex[:16],
        text=asked,
        report=body.report,
        reports=body.reports,
        folders=await _folders(service, who, body),
        web=_web(service, body),
    )
    parts = assistant.converse(who.owner, said)
    if body.stream:
        begin = {"conversation": said.conversation, "turn": said.turn}
        return streamed(parts, service.settings.service.heartbeat_s, begin)
    return ChatOut(conversation=said.conversation, turn=said.turn, answer=await _last(parts))


@router.get("/v1/chat", summary="List your conversations", responses=problems.responses())
async def conversations(
    service: Parts, who: Reads, limit: Annotated[int, Query(ge=1, le=500, description="at most so many")] = 50
) -> ConversationsOut:
    rows = await service.store.talk.conversations(who.owner, limit)
    return ConversationsOut(conversations=tuple(ConversationOut.of(row) for row in rows))


@router.get("/v1/chat/{conversation_id}", summary="Read a conversation", responses=problems.responses(404))
async def conversation(service: Parts, who: Reads, conversation_id: ConversationId) -> TalkOut:
    row = await _own(service, who, conversation_id)
    turns = await service.store.talk.turns(who.owner, row.id)
    return TalkOut(**ConversationOut.of(row).model_dump(), said=tuple(TurnOut.of(turn) for turn in turns))


@router.delete("/v1/chat/{conversation_id}", summary="Delete a conversation", responses=problems.responses(404))
async def end(service: Parts, who: Asks, conversation_id: ConversationId) -> ForgottenOut:
    """With all that is remembered of it."""
    row = await _own(service, who, conversation_id)
    memories = await service.store.talk.forget(who.owner, conversation=row.id)
    return ForgottenOut(memories=memories, turns=await service.store.talk.end(who.owner, row.id))


# ---- memory


@router.get(
    "/v1/sessions/{conversation_id}/memory", summary="See what is remembered", responses=problems.responses(404)
)
async def memory(
    service: Parts,
    who: Reads,
    conversation_id: ConversationId,
    q: Annotated[
        str | None, Query(max_length=1000, description="only what has these words, or else is near them in meaning")
    ] = None,
) -> MemoriesOut:
    """All that is remembered of you: `conversation` says in which conversation each was said."""
    row = await _own(service, who, conversation_id)
    rows = await service.store.talk.memories(who.owner)
    found = rows if q is None else await _searched(service, rows, q)
    core = [m for m in rows if m.kind == "core"]
    return MemoriesOut(
        conversation=row.id,
        core=tuple(MemoryOut.of(m) for m in found if m.kind == "core"),
        archival=tuple(MemoryOut.of(m) for m in found if m.kind == "archival"),
        core_used=sum(len(m.text) for m in core),
        core_room=service.settings.chat.core,
        archive_room=service.settings.chat.archive,
    )


@router.delete("/v1/sessions/{conversation_id}/memory", summary="Forget", responses=problems.responses(404))
async def forget(
    service: Parts,
    who: Asks,
    conversation_id: ConversationId,
    item: Annotated[
        str | None, Query(max_length=64, description="one memory's id; without it: all that this conversation left")
    ] = None,
    everything: Annotated[bool, Query(description="all that is remembered of you, from every conversation")] = False,
) -> ForgottenOut:
    """Forgets what was said in this conversation, its turns included; or one memory; or everything."""
    row = await _own(service, who, conversation_id)
    talk = service.store.talk
    if item is not None:
        many = await talk.forget(who.owner, ids=[item])
        if not many:
            raise SessionNotFound(item)
        return ForgottenOut(memories=many)
    memories = await talk.forget(who.owner, conversation="" if everything else row.id)
    return ForgottenOut(memories=memories, turns=await talk.end(who.owner, row.id, keep=True))


async def _searched(service: Service, rows: list[MemoryRow], query: str) -> list[MemoryRow]:
    """What holds all the words; where nothing does, what is near in meaning. Signs alone find nothing."""
    if found := chat.holding(rows, query):
        return found
    if not rows or not chat.says_something(query):
        return []
    vectors = await service.embedder.embed([query, *(m.text for m in rows)])
    return chat.recalled(rows, query, vectors[0], vectors[1:], 20)


# ---- inside


def _assistant(service: Service) -> Assistant:
    if service.assistant is None:
        raise RuntimeUnavailable("", "this server runs without an assistant")
    return service.assistant


def _within(service: Service, text: str) -> str:
    longest = service.settings.service.max_question
    if len(text) > longest:
        raise TooLarge("the question", f"{longest:,} letters")
    return clean_question(text)


async def _own(service: Service, who: Caller, conversation_id: str) -> ConversationRow:
    """The caller's conversation; another's is not told apart from none."""
    return await service.store.talk.conversation(who.owner, conversation_id)


async def _conversation(service: Service, who: Caller, conversation: str, message: str) -> str:
    if conversation:
        return (await _own(service, who, conversation)).id
    fresh = f"c-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:6]}"
    await service.store.talk.open(who.owner, fresh, " ".join(message.split())[:TITLE])
    return fresh


async def _folders(service: Service, who: Caller, body: ChatIn) -> tuple[str, ...]:
    """The folders that a message may be answered from: those with something in them."""
    folders = [str(folder) for folder in service.shared] if body.shared else []
    if body.library and any(d.state != "failed" for d in await library.documents(service, who.owner)):
        folders.append(str(library.folder_of(service, who.owner)))
    return tuple(folders)


def _web(service: Service, body: ChatIn) -> bool:
    if body.web and service.offline:
        raise UsageError("this server is offline: it searches no web", "leave `web` out")
    return body.web


async def _last(parts: AsyncGenerator[Looked | Cited | Answer, None]) -> Answer:
    last: Answer | None = None
    async for part in parts:
        if isinstance(part, Answer):
            last = part
    assert last is not None, "an answer has an end"
    return last
