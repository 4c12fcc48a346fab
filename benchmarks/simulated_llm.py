"""An OpenAI-compatible server without a model: set speeds, real quotes, valid schemas, and faults on demand.

    python benchmarks/simulated_llm.py --port 0 --ttft 0.3 --tps 60
    export MARG_MODEL=http://127.0.0.1:PORT/v1:simulated

It rebuilds the task from the prompt it is sent (the evidence cards, passages and sections that stand in it) and gives
the plain answer of `marg_ray.models.canned`. What a run costs beyond the model can so be measured: the model's own
time is known for every request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from marg_ray.grounding.snapshots import Document
from marg_ray.models.canned import picks
from marg_ray.models.client import ModelTask
from marg_ray.models.prompting import estimate_tokens
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnswerQuestion,
    ClaimToJudge,
    DraftSection,
    EvidenceCard,
    ExtractClaims,
    FreeText,
    JudgeClaims,
    MakePlan,
    Passage,
    PlanTurn,
    ReviewReport,
    RewriteQuery,
    SectionText,
    SummariseReport,
)
from marg_ray.models.testing import answer as canned_answer
from marg_ray.records import Depth, OutlineEntry

Body = dict[str, Any]
CHUNK = 4  # tokens in one piece of a stream


@dataclass(frozen=True, kw_only=True)
class Canned:
    """An HTTP reply to give instead of an answer. `body` is JSON or text; `delay_s` passes before it."""

    status: int = 200
    body: Any = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0

    @classmethod
    def of(cls, line: Body) -> Canned:
        """From a line of a case file: a whole HTTP reply, or only its body."""
        return cls(
            status=line.get("status", 200),
            body=line["body"],
            content_type=line.get("content_type", "application/json"),
        )


@dataclass(kw_only=True)
class Request:
    """One request as it went. Times are seconds since the epoch; `first` is when the first token was ready."""

    id: int
    task: str
    start: float
    caller: str = ""  # the id of the task that asked
    first: float = 0.0
    end: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    streamed: bool = False
    status: int = 0  # 0: the client went away


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast the model seems to be; 0 is "no limit". `jitter` is the sigma of a log-normal factor on both."""

    ttft_s: float = 0.0
    tokens_per_s: float = 0.0  # of one request
    total_tokens_per_s: float = 0.0  # of all requests together
    jitter: float = 0.0


class SimulatedLLM:
    """The server. `replies` are given first, in order; `rule` may answer any request body in its own way."""

    def __init__(
        self,
        *,
        speed: Speed | None = None,
        seed: int = 0,
        replies: Iterable[Canned] = (),
        rule: Callable[[Body], Canned | None] | None = None,
        log: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        ollama_models: tuple[str, ...] = (),
    ) -> None:
        self.speed = speed or Speed()
        self.replies = deque(replies)
        self.rule = rule
        self.requests: list[Request] = []
        self.bodies: list[Body] = []
        self.started, self.ended = asyncio.Event(), asyncio.Event()  # a first request came, a first one is over
        self._random = random.Random(seed)
        self._log, self._host, self._port = log, host, port
        self._ollama = ollama_models
        self._cursor = 0.0
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    async def __aenter__(self) -> SimulatedLLM:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/api/tags", self._tags)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=4096)
        await site.start()
        port = self._runner.addresses[0][1]
        self.base_url = f"http://{self._host}:{port}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def spec(self) -> str:
        """What `MARG_MODEL` is set to."""
        return f"{self.base_url}:simulated"

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "simulated", "object": "model"}]})

    async def _tags(self, _: web.Request) -> web.Response:
        if not self._ollama:
            raise web.HTTPNotFound
        return web.json_response({"models": [{"name": name, "size": 4_000_000_000} for name in self._ollama]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: Body = await request.json()
        self.bodies.append(body)
        prompt = "\n".join(str(m.get("content") or "") for m in body["messages"])
        record = Request(
            id=len(self.requests),
            task=task_name(body),
            start=time.time(),
            caller=request.headers.get("X-Marg-Task", ""),
            tokens_in=estimate_tokens(prompt),
            streamed=bool(body.get("stream")),
        )
        self.requests.append(record)
        self.started.set()
        try:
            canned = self.replies.popleft() if self.replies else (self.rule(body) if self.rule else None)
            response = await (self._given(canned) if canned else self._answered(request, body, record))
            record.status = response.status
            return response
        finally:
            record.end = time.time()
            self.ended.set()
            self._write(record)

    async def _given(self, canned: Canned) -> web.Response:
        await asyncio.sleep(canned.delay_s)
        text = canned.body if isinstance(canned.body, str) else json.dumps(canned.body)
        return web.Response(status=canned.status, text=text, content_type=canned.content_type, headers=canned.headers)

    def text(self, body: Body, record: Request) -> str:
        """What the model says."""
        return answer(body)

    async def _answered(self, request: web.Request, body: Body, record: Request) -> web.StreamResponse:
        text = self.text(body, record)
        limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or 10**9)
        pieces = _pieces(text)[:limit]
        finish = "stop" if len(pieces) == len(_pieces(text)) else "length"
        record.tokens_out = len(pieces)
        usage = {
            "prompt_tokens": record.tokens_in,
            "completion_tokens": len(pieces),
            "total_tokens": record.tokens_in + len(pieces),
        }
        if not record.streamed:
            async for _ in self._paced(pieces, record):
                pass
            return web.json_response(_completion("".join(pieces), finish, usage))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        async for piece in self._paced(pieces, record):
            await response.write(_event({"choices": [{"index": 0, "delta": {"content": piece}}]}))
        await response.write(_event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        await response.write(_event({"choices": [], "usage": usage}))
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _paced(self, pieces: list[str], record: Request) -> AsyncIterator[str]:
        """The pieces, a few at a time, each when a model of this speed would have it."""
        speed = self.speed
        factor = math.exp(self._random.gauss(0, speed.jitter)) if speed.jitter else 1.0
        due = record.start + speed.ttft_s * factor
        await _until(due)
        record.first = time.time()
        size = CHUNK if record.streamed or speed.total_tokens_per_s else max(1, len(pieces))  # nobody sees it grow
        for at in range(0, len(pieces), size):
            chunk = pieces[at : at + size]
            if speed.tokens_per_s:
                due += len(chunk) * factor / speed.tokens_per_s
            if speed.total_tokens_per_s:
                self._cursor = max(self._cursor, time.time()) + len(chunk) / speed.total_tokens_per_s
                due = max(due, self._cursor)
            await _until(due)
            yield "".join(chunk)

    def _write(self, record: Request) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(record)) + "\n")


async def _until(due: float) -> None:
    if (left := due - time.time()) > 0.001:
        await asyncio.sleep(left)


def _event(data: Body) -> bytes:
    return b"data: " + json.dumps({"id": "sim", "object": "chat.completion.chunk", **data}).encode() + b"\n\n"


def _completion(text: str, finish: str, usage: Body) -> Body:
    return {
        "id": "sim",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": "simulated",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": usage,
    }


def completion(text: str, finish: str = "stop", **usage: int) -> Canned:
    """A chat completion with this content, to be given as it is."""
    counts = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150} | usage
    return Canned(body=_completion(text, finish, counts))


def _pieces(text: str) -> list[str]:
    """About one piece a token: words, and long words in fours."""
    return re.findall(r"\s*\S{1,5}|\s+$", text)


def task_name(body: Body) -> str:
    """The schema's name, else the line at the head of the system prompt."""
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    system = str(body["messages"][0].get("content") or "")
    found = re.match(r"Task: (\w+)", system)
    return str(schema.get("name") or (found[1] if found else ""))


def answer(body: Body) -> str:
    """The content of a good reply to a request of ours; for others, a sentence."""
    user = next((m["content"] for m in body["messages"] if m["role"] == "user"), "")
    task = read_task(task_name(body), user)
    if task is None:
        return "This server simulates a language model and knows only the prompts of MARG-Ray."
    output = canned_answer(task)
    if isinstance(task, ExtractClaims) and any(map(_LINE.search, (p.text for p in task.passages))):
        lines = [[(int(n), text) for n, text in _LINE.findall(p.text)] for p in task.passages]
        chosen = picks(task, lines)  # sentences by number, not copied
        return chosen.model_dump_json(exclude={"claims": {"__all__": {"quote"}}})
    return output.markdown if isinstance(output, FreeText) else output.model_dump_json()


def read_task(name: str, user: str) -> ModelTask[Any] | None:
    """The task whose prompt `user` is, as far as the prompt shows it."""
    question = _between(user, "<question>", "</question>")
    language = _found(r'[Ll]anguage:? "([\w-]+)"', user, "en")
    words = int(_found(r"about (\d+) words", user, "200"))
    title = _found(r"^Section(?: to write)?: (.+)$", user, "")
    match name:
        case "make_plan":
            outline = re.findall(
                r"^\d+\. (.+?)(?: \(queries given: .*\))?$", user.partition("The user has fixed")[2], re.M
            )
            return MakePlan(
                question=question,
                depth=Depth(_found(r"Depth: (\w+)", user, "standard")),
                language=language,
                max_sections=int(_found(r"At most (\d+) sections", user, "5")),
                outline=tuple(OutlineEntry(title=t) for t in outline),
            )
        case "rewrite_query":
            query = _found(r"^Query that found nothing: (.+)$", user, "query")
            return RewriteQuery(question=question, section_title=title, query=query)
        case "extract_claims":
            return _extract(user, question, title)
        case "draft_section":
            return DraftSection(
                question=question,
                report_title=_found(r"^Report: (.+)$", user, "Report"),
                section_title=title,
                queries=(),
                other_sections=(),
                evidence=_cards(user),
                language=language,
                words=words,
            )
        case "summarise_report":
            return SummariseReport(question=question, language=language, sections=_sections(user), words=words)
        case "analyse_evidence":
            hypotheses = tuple(re.findall(r"^- (.+)$", user.partition("Hypotheses:")[2], re.M))
            return AnalyseEvidence(question=question, language=language, hypotheses=hypotheses, evidence=_cards(user))
        case "judge_claims":
            return _judging(user)
        case "review_report":
            gaps = _found(r"^No sources were found for these sections: (.+)$", user, "")
            return ReviewReport(
                question=question,
                language=language,
                sections=_sections(user),
                gaps=tuple(g for g in gaps.split("; ") if g),
            )
        case "plan_turn":
            tried = tuple(re.findall(r"^- (.+)$", user.partition("Tried already")[2], re.M))
            return PlanTurn(question=question, language=language, tried=tried)
        case "answer_question":
            return AnswerQuestion(question=question, language=language, evidence=_cards(user), words=words)
        case _:
            return None


def _extract(user: str, question: str, title: str) -> ExtractClaims:
    texts = re.findall(r"^<passage[^\n]*>\n(.*?)\n</passage>$", user, re.S | re.M)
    return ExtractClaims(
        question=question,
        section_title=title,
        queries=(),
        source_title=_found(r"^Document: (.+)$", user, ""),
        passages=tuple(Passage(text=t, start=0, end=len(t), first=1) for t in texts),  # they come numbered
        document=Document(title="", text="", parts=()),
        max_claims=int(_found(r"^Pick at most (\d+)", user, "6")),
    )


def _judging(user: str) -> JudgeClaims:
    """Each numbered sentence is a passage by itself."""
    lines = [(int(n), text) for n, text in _LINE.findall(user.partition("<claim ")[0])]
    claims = []
    for number, spans, text in re.findall(
        r'^<claim n="(\d+)" sentences="([^"]*)">\n(.*?)\n</claim>$', user, re.S | re.M
    ):
        ranges = [(int(a), int(b)) for a, b in re.findall(r"(\d+) to (\d+)", spans)]
        rests_on = tuple(i for i, (n, _) in enumerate(lines) if any(a <= n <= b for a, b in ranges))
        claims.append(ClaimToJudge(number=int(number), text=text, passages=rests_on))
    shown = tuple(Passage(text=text, start=0, end=len(text), first=n) for n, text in lines)
    return JudgeClaims(shown=shown, claims=tuple(claims))


_LINE = re.compile(r"^(\d+)\| (.+)$", re.MULTILINE)  # a numbered sentence
_CARD = re.compile(
    r'^<source title="(?P<title>[^"]*)"[^\n]*>$'
    r'|^<card n="(?P<n>\d+)"(?: source="(?P<own>[^"]*)")?[^\n]*>\n(?P<quote>.*?)\n</card>$',
    re.S | re.M,
)


def _cards(user: str) -> tuple[EvidenceCard, ...]:
    found, title = [], ""
    for tag in _CARD.finditer(user):
        if tag["n"] is None:
            title = tag["title"]
            continue
        source, quote = tag["own"] or title, tag["quote"]
        found.append(
            EvidenceCard(
                number=int(tag["n"]), quote=quote, source_title=source, source_id=source, start=0, end=len(quote)
            )
        )
    return tuple(found)


def _sections(user: str) -> tuple[SectionText, ...]:
    found = re.findall(r'^<section id="([^"]*)" title="([^"]*)"[^\n]*>\n(.*?)\n</section>$', user, re.S | re.M)
    return tuple(SectionText(id=i, title=t, text=text) for i, t, text in found)


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0].strip()


def _found(pattern: str, text: str, default: str) -> str:
    found = re.search(pattern, text, re.M)
    return found[1].strip() if found else default


async def serve(args: argparse.Namespace) -> None:
    speed = Speed(ttft_s=args.ttft, tokens_per_s=args.tps, total_tokens_per_s=args.total_tps, jitter=args.jitter)
    lines = [line for path in args.replay for line in path.read_text("utf-8").splitlines() if line.strip()]
    async with SimulatedLLM(
        speed=speed,
        seed=args.seed,
        replies=[Canned.of(json.loads(line)) for line in lines],
        log=args.log,
        host=args.host,
        port=args.port,
    ) as server:
        print(server.spec, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free one; it is printed")
    parser.add_argument("--ttft", type=float, default=0.0, help="seconds to the first token")
    parser.add_argument("--tps", type=float, default=0.0, help="tokens a second of one request; 0 = no limit")
    parser.add_argument("--total-tps", type=float, default=0.0, help="tokens a second of all together")
    parser.add_argument("--jitter", type=float, default=0.0, help="sigma of a log-normal factor on the times")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="a JSON line for each request")
    parser.add_argument("--replay", type=Path, action="append", default=[], help="replies to give first (JSON lines)")
    try:
        asyncio.run(serve(parser.parse_args()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
