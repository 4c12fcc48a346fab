"""The ledger's calls of one task as spans: tries of models, web searches, pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from marg_ray.models.client import Try
from marg_ray.models.wrappers import ONLY, tries_of
from marg_ray.records import Usage
from marg_ray.store.protocol import CallRow
from marg_ray.telemetry import spans as names
from marg_ray.telemetry.spans import Span, Value, span_id

OURS = "marg-ray"  # the provider of what answers without a model
_PROVIDERS = {"gemini": "gcp.gemini", "mistral": "mistral_ai", "xai": "x_ai"}  # as the conventions call them
_NAME = re.compile(r"(?P<host>\[[^\]]+\]|[^:]+)(?::(?P<port>\d+)(?=:))?:(?P<model>.+)")


@dataclass(frozen=True)
class Interval:
    start: datetime
    end: datetime

    def within(self, begun: datetime | None, seconds: float) -> Interval:
        """So many seconds from `begun` on; moved as little as needed, so that they lie in this interval.

        The clocks of two machines differ, and of a call that was begun twice only the first beginning is known.
        """
        length = min(timedelta(seconds=max(0.0, seconds)), self.end - self.start)
        start = begun if begun is not None else self.end - length
        start = max(self.start, min(start, self.end - length))
        return Interval(start, start + length)


def call_spans(task: Span, rows: Sequence[CallRow], within: Interval) -> list[Span]:
    """A span for each call, or try of a model, that was settled or died. One given back has cost nothing: none."""
    return [span for row in rows for span in _spans(task, row, within)]


def _spans(task: Span, row: CallRow, within: Interval) -> Iterator[Span]:
    if row.status == "released" and row.lost == Usage():
        return
    begun = row.begun_at if row.begun == 1 else None
    match row.call.kind:
        case "model":
            yield from _tries(task, row, within, begun)
        case kind:
            yield _tool(task, row, kind, within.within(begun, row.usage.seconds))


def _tries(task: Span, row: CallRow, within: Interval, begun: datetime | None) -> Iterator[Span]:
    """The tries of a call follow each other."""
    told = _told(row)
    tries: list[Try | None] = [*tries_of(row.result)] or [None]
    first = within.within(begun, row.usage.seconds).start
    for number, made in enumerate(tries):
        usage = made.usage if made is not None else row.usage
        place = within.within(first, usage.seconds)
        first = place.end
        yield _model(task, row, made, str(told.get("model", "")), usage, place, number)


def _model(task: Span, row: CallRow, made: Try | None, model: str, usage: Usage, at: Interval, number: int) -> Span:
    short, whose = _named(made.model if made is not None else model)
    fault = made.fault if made is not None else ""
    attributes: dict[str, Value] = {
        names.OPERATION: "chat",
        **whose,
        names.INPUT_TOKENS: usage.tokens_in,
        names.OUTPUT_TOKENS: usage.tokens_out,
        names.CONVERSATION: row.call.session_id,
        names.AGENT: row.call.role.value,
        "marg.tier": made.tier if made is not None else ONLY,
        "marg.requests": usage.calls,
        **_rest(row),
    }
    if usage.cost:
        attributes["marg.cost_usd"] = round(usage.cost, 8)
    if made is not None and made.raised:
        attributes["marg.raised"] = True
    error = "useless" if fault else _failed(row)
    if error:
        attributes[names.ERROR] = error
    return Span(
        id=span_id(row.call.session_id, "call", row.call.key, number),
        parent=task.id,
        name=f"chat {short}".strip(),
        kind="model",
        start=at.start,
        end=at.end,
        status="unset" if row.status == "begun" else "error" if error else "ok",
        error=error,
        attributes=attributes,
        said=fault,
        critical=task.critical,
    )


def _failed(row: CallRow) -> str:
    """Why a call without tries has no answer; empty where it has one, or is under way."""
    if row.status == "released":
        return "lost"
    return "failed" if row.status == "settled" and not row.result.startswith('{"output"') else ""


def _named(name: str) -> tuple[str, dict[str, Value]]:
    """A model's own name, and the attributes that say whose it is; `name` is `provider:model` or `host:port:model`."""
    found = _NAME.fullmatch(name)
    if found is None:
        return name, {names.PROVIDER: OURS, **_asked(name)}
    host, port, model = found["host"], found["port"], found["model"]
    if port or "." in host or host == "localhost":  # an address of one's own: it speaks OpenAI's protocol
        where: dict[str, Value] = {names.ADDRESS: host, **({names.PORT: int(port)} if port else {})}
        return model, {names.PROVIDER: "openai", **where, **_asked(model)}
    return model, {names.PROVIDER: _PROVIDERS.get(host, host), **_asked(model)}


def _asked(model: str) -> dict[str, Value]:
    return {names.REQUEST_MODEL: model, names.RESPONSE_MODEL: model} if model else {}


def _tool(task: Span, row: CallRow, kind: str, at: Interval) -> Span:
    told = _told(row)
    tool = {"search": "web_search"}.get(kind, kind)
    attributes: dict[str, Value] = {
        names.OPERATION: "execute_tool",
        names.TOOL_NAME: tool,
        names.TOOL_TYPE: "extension",
        names.TOOL_CALL: row.call.key[:16],
        names.CONVERSATION: row.call.session_id,
        **_rest(row),
    }
    if kind == "search" and "hits" in told:
        attributes["marg.hits"] = len(told["hits"])
        engines = tuple(dict.fromkeys(str(hit.get("engine", "")) for hit in told["hits"] if hit.get("engine")))
        attributes |= {"marg.engines": engines} if engines else {}
    if kind == "fetch" and (source := told.get("source")):
        attributes["marg.chars"] = int(source.get("chars", 0))
        host = urlsplit(str(source.get("location", ""))).hostname
        attributes |= {names.ADDRESS: host} if host else {}
    if row.usage.reused:
        attributes["marg.reused"] = True
    return Span(
        id=span_id(row.call.session_id, "call", row.call.key, 0),
        parent=task.id,
        name=f"execute_tool {tool}",
        kind="search" if kind == "search" else "fetch",
        start=at.start,
        end=at.end,
        status="unset" if row.status == "begun" else "ok",
        attributes=attributes,
        about=task.about,
        critical=task.critical,
    )


def _rest(row: CallRow) -> dict[str, Value]:
    """What is rare: a process that died in the call, and what it may have cost."""
    rest: dict[str, Value] = {}
    if row.begun > 1:
        rest["marg.begun"] = row.begun
    if row.status == "begun":
        rest["marg.unfinished"] = True
    if row.lost.cost:
        rest["marg.lost_usd"] = round(row.lost.cost, 8)
    return rest


def _told(row: CallRow) -> dict[str, Any]:
    try:
        told = json.loads(row.result) if row.result else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
