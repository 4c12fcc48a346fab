"""The APIs that models are reached by, on the points where they differ: paths, keys, errors, schemas, usage."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.simulated_llm import answer
from tests.loopback import Seen, Server, message, serve

KEY = "sk-live-0123456789abcdefghijklmnop"
Body = dict[str, Any]
Reply = tuple[int, Any, dict[str, str]]  # status, JSON, headers


def say(body: Body) -> str:
    """A good answer to whatever the client asks, its questions about the server included."""
    asked = str(body["messages"][-1]["content"])
    if "capital of France" in asked:
        return '{"city": "Paris", "letters": 5}'
    if "Count from one to ten" in asked:
        return "One, two, three, four, five, six, seven, eight, nine, ten. That is all of them."
    return answer(body)


@dataclass(frozen=True, kw_only=True)
class Api:
    """One provider's behaviour. `refuses` looks at a body and gives an error, or None."""

    path: str
    needs_key: bool = True
    refuses: Callable[[Body], Reply | None] = lambda body: None
    no_key: Body = field(default_factory=lambda: {"error": {"message": "Incorrect API key provided", "code": None}})
    answers: Callable[[Body], str] = say
    usage: Body = field(default_factory=dict)  # beside the counts
    usage_in_stream: bool = True
    comments: bool = False  # lines to keep the connection alive
    reasons: bool = False  # in a field of its own


def openai_refuses(body: Body) -> Reply | None:
    if "max_tokens" in body:
        said = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return 400, {"error": {"message": said, "type": "invalid_request_error", "code": "unsupported_parameter"}}, {}
    if body.get("temperature", 1) != 1:
        said = (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) is supported."
        )
        return 400, {"error": {"message": said, "param": "temperature", "code": "unsupported_value"}}, {}
    return strict(body)


def strict(body: Body) -> Reply | None:
    """A schema that leaves a property optional, or lets others in, is none."""

    def check(node: Any) -> bool:
        if isinstance(node, list):
            return all(map(check, node))
        if not isinstance(node, dict):
            return True
        if isinstance(node.get("properties"), dict):
            closed = node.get("additionalProperties") is False
            if not closed or sorted(node.get("required", [])) != sorted(node["properties"]):
                return False
        return all(map(check, node.values()))

    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    if schema is None or check(schema):
        return None
    return 400, {"error": {"message": "Invalid schema for response_format", "code": "invalid_json_schema"}}, {}


def gemini_refuses(body: Body) -> Reply | None:
    """Errors come in a list, and its schemas know fewer words."""
    if "additionalProperties" in json.dumps(body.get("response_format", "")):
        said = 'Invalid JSON payload received. Unknown name "additionalProperties" at generation_config.response_schema'
        return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}], {}
    return None


def deepseek_refuses(body: Body) -> Reply | None:
    kind = (body.get("response_format") or {}).get("type")
    if kind == "json_schema":
        return 400, {"error": {"message": "This response_format type is unavailable now"}}, {}
    if kind == "json_object" and "json" not in json.dumps(body["messages"]).lower():
        return 400, {"error": {"message": "Prompt must contain the word 'json'"}}, {}
    return None


def groq_refuses(body: Body) -> Reply | None:
    if (body.get("response_format") or {}).get("type") == "json_schema":
        said = "This model does not support response format `json_schema`."
        return 400, {"error": {"message": said, "type": "invalid_request_error"}}, {}
    return None


def fenced(body: Body) -> str:
    """Anthropic's address takes `response_format` and pays no heed to it."""
    text = say(body)
    return f"Here is the JSON:\n\n```json\n{text}\n```" if text.startswith("{") else text


APIS = {
    "openai": Api(path="/v1", refuses=openai_refuses),
    "anthropic": Api(
        path="/v1",
        answers=fenced,
        no_key={"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}},
    ),
    "gemini": Api(path="/v1beta/openai", refuses=gemini_refuses),
    "groq": Api(path="/openai/v1", refuses=groq_refuses),
    "deepseek": Api(path="/v1", refuses=deepseek_refuses, reasons=True),
    "openrouter": Api(path="/api/v1", usage={"cost": 0.00012}, comments=True),
    "ollama": Api(path="/v1", needs_key=False, usage_in_stream=False),
    "vllm": Api(path="/v1", needs_key=False, refuses=strict),
}


@asynccontextmanager
async def provider(name: str) -> AsyncIterator[Server]:
    """A server on the loopback that behaves like the provider's."""
    api = APIS[name]

    async def reply(seen: Seen, writer: asyncio.StreamWriter) -> None:
        given = _reply(api, seen)
        if isinstance(given, tuple):
            status, said, headers = given
            writer.write(message(status, json.dumps(said), Content_Type="application/json", **headers))
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for line in given:
            writer.write(line.encode() + b"\n\n")
            await writer.drain()
        writer.close()

    async with serve(reply) as server:
        yield server


def _reply(api: Api, seen: Seen) -> Reply | list[str]:
    if seen.target != f"{api.path}/chat/completions":
        return 404, {"error": {"message": f"no route {seen.target}"}}, {}
    if api.needs_key and seen.headers.get("authorization") != f"Bearer {KEY}":
        return 401, api.no_key, {}
    body = json.loads(seen.body)
    if (refused := api.refuses(body)) is not None:
        return refused
    text, thought = api.answers(body), {"reasoning_content": "Let me see. {}"} if api.reasons else {}
    usage = {"prompt_tokens": 321, "completion_tokens": 45, "total_tokens": 366, **api.usage}
    if not body.get("stream"):
        said = {"role": "assistant", "content": text, **thought}
        return 200, {"choices": [{"index": 0, "message": said, "finish_reason": "stop"}], "usage": usage}, {}
    events: list[Body] = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
    if thought:
        events.append({"choices": [{"delta": thought}]})
    events += [{"choices": [{"delta": {"content": text[n : n + 30]}}]} for n in range(0, len(text), 30)]
    events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    if api.usage_in_stream and (body.get("stream_options") or {}).get("include_usage"):
        events.append({"choices": [], "usage": usage})
    comment = [": PROCESSING"] if api.comments else []
    return [*comment, *(f"data: {json.dumps(e)}" for e in events), *comment, "data: [DONE]"]
