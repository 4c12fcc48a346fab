"""A chat completion in pieces: what the agents do as reasoning, then the report as content."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from marg_ray.api.callers import Caller
from marg_ray.api.following import Happening, follow
from marg_ray.api.openai.answers import Said, Taken, said_by
from marg_ray.api.openai.errors import error_of
from marg_ray.api.problems import of_error, problem
from marg_ray.api.service import Service
from marg_ray.api.sse import BEAT
from marg_ray.api.streams import Hub
from marg_ray.errors import MargError
from marg_ray.records import Usage

log = logging.getLogger(__name__)
DONE = b"data: [DONE]\n\n"
_PIECE = 600  # characters of the report at once, about
_PARAGRAPH = re.compile(r".*?(?:\n\n+|\Z)", re.S)


@dataclass(frozen=True)
class Chunks:
    """Makes the chunks of one completion."""

    id: str
    model: str
    created: int
    usage: bool  # whether a last chunk tells it; then all others say null

    def delta(self, finish: str | None = None, **delta: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._chunk([choice], None)

    def reasoning(self, text: str) -> bytes:
        """Under both names that clients know it by."""
        return self.delta(reasoning_content=text, reasoning=text)

    def spent(self, usage: Usage) -> bytes:
        return self._chunk([], usage_of(usage))

    def _chunk(self, choices: list[dict[str, Any]], usage: Mapping[str, int] | None) -> bytes:
        body: dict[str, Any] = {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        return data(body | ({"usage": usage} if self.usage else {}))


def data(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def usage_of(spent: Usage) -> dict[str, int]:
    total = spent.tokens_in + spent.tokens_out
    return {"prompt_tokens": spent.tokens_in, "completion_tokens": spent.tokens_out, "total_tokens": total}


def line_of(happening: Happening) -> str:
    """A line of reasoning."""
    who = f"{happening.role}: " if happening.role else ""
    return f"{who}{happening.text}\n"


async def answering(
    service: Service, hub: Hub, who: Caller, begun: Said | Taken, chunks: Chunks
) -> AsyncGenerator[bytes]:
    """The whole stream. An error that comes too late for a status is its last event."""
    yield chunks.delta(role="assistant", content="")
    try:
        if isinstance(begun, Taken):
            async with aclosing(_reasoning(service, hub, begun, chunks)) as pieces:
                async for piece in pieces:
                    yield piece
            begun = await said_by(service, who, begun)
        else:
            yield chunks.reasoning(f"from the report of session {begun.session_id}\n")
        for text in in_pieces(begun.content):
            yield chunks.delta(content=text)
        yield chunks.delta(finish="length" if begun.limited else "stop")
        if chunks.usage:
            yield chunks.spent(begun.usage)
    except MargError as exc:
        yield data({"error": error_of(json.loads(bytes(of_error(exc).body)), exc.http_status)})
    except Exception:
        log.exception("the stream of %s broke off", chunks.id)
        told = problem(500, "InternalError", "something went wrong here", "the server's log says more")
        yield data({"error": error_of(json.loads(bytes(told.body)), 500)})
    yield DONE


async def _reasoning(service: Service, hub: Hub, taken: Taken, chunks: Chunks) -> AsyncGenerator[bytes]:
    place = f"session {taken.session_id}: /v1/research/{taken.session_id}"
    yield chunks.reasoning(f"{place}, finished before\n" if taken.cached else f"{place}\n")
    for note in taken.notes:
        yield chunks.reasoning(f"{note}\n")
    if taken.cached:
        return
    async with aclosing(follow(hub, service, taken.session_id)) as happenings:
        async for happening in happenings:
            yield chunks.reasoning(line_of(happening)) if happening.text else BEAT


def in_pieces(text: str) -> Iterator[str]:
    """The text in pieces that join to it, cut between paragraphs where they are short enough."""
    for paragraph in _PARAGRAPH.findall(text):
        yield from (paragraph[i : i + _PIECE] for i in range(0, len(paragraph), _PIECE))
