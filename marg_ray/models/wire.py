"""One request to an OpenAI-compatible endpoint, and what its reply means. No retries and no judgement of content."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from marg_ray.models.connections import Connections, NotSent
from marg_ray.models.endpoints import Endpoint

if TYPE_CHECKING:
    import aiohttp

Deltas = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A reply's content. Token counts are None where the server does not say."""

    text: str
    finish: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    reasoned: bool = False  # reasoning came in a field of its own
    refusal: str = ""  # what the server says of an answer that was refused
    seconds: float = 0.0


class WireError(Exception):
    """A request that gave no answer. `str` is safe to show: it holds no key."""


class Transient(WireError):
    """It may work if asked again. `begun` is set where an answer may have been made, and paid, all the same."""

    def __init__(
        self, reason: str, retry_after: float | None = None, *, busy: bool = False, begun: bool = False
    ) -> None:
        super().__init__(reason)
        self.retry_after, self.busy, self.begun = retry_after, busy, begun


class Refused(WireError):
    """Asking again cannot help: a wrong key, an unknown model, a malformed request."""


class Unsupported(WireError):
    """The endpoint does not know a feature of the request: `feature` is its name in the body."""

    def __init__(self, reason: str, feature: str) -> None:
        super().__init__(reason)
        self.feature = feature


class TooLong(WireError):
    """The prompt does not fit. `limit` is the window and `counted` the prompt, in tokens, 0 where not told."""

    def __init__(self, reason: str, limit: int, counted: int) -> None:
        super().__init__(reason)
        self.limit, self.counted = limit, counted


_OVERFLOW = re.compile(
    r"context.{0,3}(?:length|size|window|limit)|maximum (?:context|prompt)|prompt (?:is )?too (?:long|large)|"
    r"input (?:is )?too (?:long|large)|too many (?:input )?tokens|reduce the (?:length|size)|max_model_len|num_ctx|"
    r"request too large|"
    r"exceed\w* .{0,40}(?:token|context)|(?:token|context).{0,40}exceed|longer than the (?:model|maximum)|"
    r"(?:request|payload) entity too large|tokens.{0,40}must be (?:<=|≤|<|at most|less than)",
    re.I,
)
_NUMBER = r"(\d[\d,_ ]{1,9}\d)(?!\d)"
_LIMITS = [
    re.compile(p, re.I)
    for p in (
        rf"(?:context|window)[^.\d]{{0,60}}?{_NUMBER}",
        rf"(?:>|≤|<=) ?{_NUMBER} (?:tokens )?max",
        rf"(?:must be|tokens) (?:≤|<=|<|at most|less than) ?{_NUMBER}",
        rf"max\w*[^.\d]{{0,60}}?{_NUMBER}",
        rf"limit[^.\d]{{0,40}}?{_NUMBER}",
        rf"{_NUMBER} ?(?:tokens? )?(?:limit|max|context)",
    )
]
_COUNTED = re.compile(
    rf"(?:requested|has|contains?|resulted in|too long:|passed|got|given:?) (?:about |at least )?{_NUMBER}"
    r" ?(?:input |prompt |`inputs` )?tokens",
    re.I,
)
_SPENT = re.compile(r"insufficient_quota|billing|insufficient (?:balance|credits|funds)", re.I)  # waiting does not help
_AGAIN_IN = re.compile(
    r"(?:try again in|retry (?:in|after)|\"retryDelay\":\s*\")\s*(?:(\d+)m(?!s))?(\d+(?:\.\d+)?)?\s*(ms|s)?\b", re.I
)
_FEATURES = {
    "response_format": re.compile(
        r"response_format|json_schema|json_object|json mode|structured|guided|grammar|schema", re.I
    ),
    "max_tokens": re.compile(r"max_tokens.*max_completion_tokens|max_tokens.{0,30}(?:not supported|unsupported)", re.I),
    "stream_options": re.compile(r"stream_options", re.I),
    "temperature": re.compile(r"temperature", re.I),
    "options": re.compile(r"\boptions\b|num_ctx.{0,20}(?:unknown|not)|extra (?:inputs|fields)", re.I),
}


class Wire:
    """One endpoint, asked over a pool of connections of its own."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float, connections: int, silence_s: float = 60.0) -> None:
        self.endpoint = endpoint
        self._timeout_s, self._silence_s = timeout_s, silence_s
        self._connections = Connections(endpoint, limit=connections)

    async def send(self, body: dict[str, Any], on_delta: Deltas | None = None, *, caller: str = "") -> Answer:
        """Send one chat completion; streamed when somebody listens. `caller` goes along to a server on this machine.

        Raises:
            WireError: one of its kinds.
        """
        started = time.monotonic()
        try:
            await self._connections.ready()
            async with asyncio.timeout(self._timeout_s):
                sent = body if on_delta is None else body | {"stream": True}
                async with self._connections.post(sent, caller=caller) as response:
                    answer = await self._read(response, body, on_delta)
        except TimeoutError:
            raise Transient(f"no answer within {self._timeout_s:g} s", begun=True) from None
        except WireError:
            raise
        except NotSent as exc:
            raise Transient(self._safe(f"no connection to {self.endpoint.host}: {exc}")) from None
        except Exception as exc:
            raise self._broken_off(exc) from None
        return replace(answer, seconds=time.monotonic() - started)

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def _read(self, response: aiohttp.ClientResponse, body: dict[str, Any], on_delta: Deltas | None) -> Answer:
        chunks, kind = self._chunks(response), response.headers.get("content-type", "")
        if 200 <= response.status < 300 and "event-stream" in kind:
            return await self._from_events(_lines(chunks), on_delta or _unheard)
        text = b"".join([chunk async for chunk in chunks]).decode("utf-8", "replace")
        if 200 <= response.status < 300:
            return self._whole(text, kind)
        error = _error(text)
        if _dict(error).get("code") == "json_validate_failed":  # Groq checks JSON itself, and has kept what it was
            return _answer(str(error.get("failed_generation") or ""), "stop", {}, False)
        raise self._error_in_reply(error, response.status, body, _retry_after(response.headers, text))

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body as it comes. The first piece may take as long as an answer; after it, a long silence is a fault."""
        async for chunk in _watched(response.content.iter_any(), self._silence_s):
            yield chunk

    async def _from_events(self, lines: AsyncIterator[str], on_delta: Deltas) -> Answer:
        texts: list[str] = []
        refused: list[str] = []
        finish, reasoned, seen = "", False, False
        usage: dict[str, Any] = {}
        async for event in _events(lines):
            if error := event.get("error"):
                raise self._error_in_reply(error, 200)
            usage = _dict(event.get("usage")) or usage
            for choice in map(_dict, _list(event.get("choices"))):
                seen = True
                delta = _dict(choice.get("delta"))
                finish = str(choice.get("finish_reason") or finish)
                reasoned = reasoned or bool(delta.get("reasoning_content") or delta.get("reasoning"))
                refused.append(_text(delta.get("refusal")))
                if piece := _text(delta.get("content")):
                    texts.append(piece)
                    await on_delta(piece)
        if not seen:
            raise Transient("the reply held no choices", begun=True)
        if not finish and not usage:
            raise Transient("the stream broke off", begun=True)
        if finish == "error":
            raise Transient("the provider gave up in the middle of the answer", begun=True)
        return _answer("".join(texts), finish, usage, reasoned, "".join(refused))

    def _whole(self, text: str, content_type: str) -> Answer:
        try:
            reply = json.loads(text)
        except ValueError:
            what = "a web page" if "<html" in text[:2000].lower() or "html" in content_type else "something else"
            raise Transient(f"the reply of {self.endpoint.host} was not JSON but {what}", begun=True) from None
        if not isinstance(reply, dict):
            raise Transient(f"the reply of {self.endpoint.host} was JSON, but no chat completion", begun=True)
        if error := reply.get("error"):
            raise self._error_in_reply(error, 200)
        choice = next(iter(map(_dict, _list(reply.get("choices")))), {})
        if not choice:
            raise Transient(f"the reply of {self.endpoint.host} held no choices", begun=True)
        message = _dict(choice.get("message"))
        reasoned = bool(message.get("reasoning_content") or message.get("reasoning"))
        finish = str(choice.get("finish_reason") or "stop")
        if error := choice.get("error"):  # OpenRouter's, of the provider behind it
            raise self._error_in_reply(error, 200)
        usage = _dict(reply.get("usage"))
        return _answer(_text(message.get("content")), finish, usage, reasoned, _text(message.get("refusal")))

    def _broken_off(self, exc: Exception) -> Transient:
        import aiohttp

        said = str(exc) or type(exc).__name__
        if isinstance(exc, aiohttp.ClientError | OSError):
            return Transient(self._safe(f"the connection to {self.endpoint.host} broke off: {said}"), begun=True)
        return Transient(self._safe(f"{type(exc).__name__}: {exc}"), begun=True)

    def _error_in_reply(
        self,
        error: Any,
        status: int,
        body: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> WireError:
        """What an error object means, whether it came with a status of its own or inside a 200."""
        fields = _dict(error.get("error", error)) if isinstance(error, dict) else {}
        said = str(fields.get("message") or fields.get("detail") or error)
        if status == 200 and str(fields.get("code", "")).isdigit():
            status = int(fields["code"])
        reason = self._safe(f"{said[:300]}" + (f" (HTTP {status})" if status != 200 else ""))
        searched = f"{fields.get('code', '')} {said}"
        if status in (200, 400, 413, 422, 500) and _OVERFLOW.search(searched):
            return TooLong(reason, *_sizes(fields, said))
        if status == 429 and _SPENT.search(searched):
            return Refused(reason)
        if status in (400, 404, 422, 501) and body is not None:
            for feature, pattern in _FEATURES.items():
                if feature in body and pattern.search(said):
                    return Unsupported(reason, feature)
        if status == 200 or status in (408, 409, 425, 429) or status >= 500:
            return Transient(reason, retry_after, busy=status == 429)
        if status in (401, 403):
            return Refused(f"it refused the key: {reason}")
        return Refused(reason)

    def _safe(self, text: str) -> str:
        return self.endpoint.redact(" ".join(text.split()))[:400]


def _error(text: str) -> Any:
    """The error object in the body of a reply that failed; its text where there is none."""
    try:
        told = json.loads(text)
    except ValueError:
        return text[:2000].strip()
    if isinstance(told, list) and told:  # Gemini's
        told = told[0]
    return told.get("error", told) if isinstance(told, dict) else text[:2000].strip()


def _answer(text: str, finish: str, usage: dict[str, Any], reasoned: bool, refusal: str = "") -> Answer:
    cost = usage.get("cost")
    thought = bool(_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return Answer(
        text=text,
        finish={"max_tokens": "length", "MAX_TOKENS": "length"}.get(finish, finish or "stop"),
        tokens_in=_count(usage.get("prompt_tokens")),
        tokens_out=_count(usage.get("completion_tokens")),
        cost=float(cost) if isinstance(cost, int | float) else None,
        reasoned=reasoned or thought,
        refusal="" if text.strip() else refusal.strip()[:300],
    )


def _text(content: Any) -> str:
    """A message's text: a string, or the text parts of a list."""
    if isinstance(content, list):
        parts = [p.get("text") for p in content if isinstance(p, dict) and p.get("type", "text") == "text"]
        return "".join(p for p in parts if isinstance(p, str))
    return content if isinstance(content, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None


async def _unheard(_: str) -> None:
    """For a server that streams although nobody asked it to."""


async def _watched(chunks: AsyncIterator[bytes], silence_s: float) -> AsyncIterator[bytes]:
    begun = False
    while True:
        try:
            async with asyncio.timeout(silence_s if begun else None):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise Transient(f"it fell silent for {silence_s:g} s in the middle of its answer", begun=True) from None
        if chunk is None:
            return
        begun = True
        yield chunk


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Whole lines, however they were cut on their way and however long they are."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).splitlines(keepends=True) or [b""]
        if rest.endswith((b"\n", b"\r")):
            lines, rest = [*lines, rest], b""
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if not data or data == "[DONE]":
            continue
        try:
            event = json.loads(data)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _sizes(fields: dict[str, Any], said: str) -> tuple[int, int]:
    limit = next((_int(m[1]) for p in _LIMITS if (m := p.search(said))), 0)
    counted = _int(m[1]) if (m := _COUNTED.search(said)) else 0
    return _count(fields.get("n_ctx")) or limit, _count(fields.get("n_prompt_tokens")) or counted


def _int(digits: str) -> int:
    return int(re.sub(r"\D", "", digits))


def _retry_after(headers: Any, text: str = "") -> float | None:
    """Seconds from `Retry-After` (a number or a date) or `retry-after-ms`; else what the reply's text says."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    if (ms := headers.get("retry-after-ms", "")).isdigit():
        return int(ms) / 1000
    value = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return _told_in(text)


def _told_in(text: str) -> float | None:
    """Seconds, as in "try again in 1m7.5s" (Groq, OpenAI) and "retryDelay": "37s" (Gemini)."""
    found = _AGAIN_IN.search(text[:4000])
    if found is None or not (found[1] or found[2]):
        return None
    seconds = float(found[2] or 0) / (1000 if (found[3] or "").lower() == "ms" else 1)
    return 60.0 * int(found[1] or 0) + seconds
