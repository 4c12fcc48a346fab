"""The usual way to build this, as a yardstick: five agents in a LangGraph, one process, no checks.

    pip install langgraph      # needed for this benchmark only
    python benchmarks/throughput.py

planner -> researcher (5 sections of 3 sub-queries) -> [reader] -> synthesizer -> critic -> the sections that the critic
sent back -> critic -> formatter with a summary.

- `sequential`: one search, one section at a time, as such designs are described.
- `parallel`: searches, reads and sections fan out (`Send`) over one event loop with a bare aiohttp client: about the
  least a Python program can spend on these calls. Each step waits for all of the step before.
- `scoring`: every snippet is scored with MiniLM against its query, one text at a time, and the best five are kept.
- `reading`: the best pages of each section are read, and their claims extracted by the model, as MARG-Ray does.
  Without it, sections are written from search snippets.

Prompts are in the form that `simulated_llm.py` understands, so that answers have the length that ours have.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import operator
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rounds import Ran, serve
from benchmarks.throughput_case import CASES, READS, SECTIONS, WORDS

if TYPE_CHECKING:
    import aiohttp

KEPT = 5  # results of one sub-query
ROUNDS = 3  # of the critic, at most

Scorer = Callable[[str, list[str]], list[float]]


class Section(TypedDict):
    id: str
    title: str
    queries: list[str]


class Source(TypedDict):
    section: str
    url: str
    title: str
    text: str
    relevance: float


class State(TypedDict, total=False):
    session: str
    case: int  # number of the case
    outline: list[Section]
    found: Annotated[list[Source], operator.add]  # snippets
    read: Annotated[list[Source], operator.add]  # claims
    drafts: Annotated[dict[str, str], operator.or_]
    feedback: dict[str, str]
    rounds: int
    report: str


@dataclass
class Tools:
    """The outside: a model, a search, perhaps a scorer. Keeps which tasks ran."""

    http: aiohttp.ClientSession
    model_url: str
    search_url: str
    scorer: Scorer | None
    tasks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    async def ask(self, session: str, task: str, name: str, user: str, max_tokens: int = 1600) -> str:
        """One chat completion."""
        messages = [{"role": "system", "content": f"Task: {name}"}, {"role": "user", "content": user}]
        body = {"model": "simulated", "messages": messages, "max_tokens": max_tokens}
        task_id = self._note(session, task)
        async with self.http.post(
            f"{self.model_url}/chat/completions", json=body, headers={"X-Marg-Task": task_id}
        ) as reply:
            reply.raise_for_status()
            answer = await reply.json()
        return str(answer["choices"][0]["message"]["content"])

    async def search(self, session: str, task: str, section: str, query: str) -> list[Source]:
        """The results of one query, the best first where they are scored."""
        task_id = self._note(session, task, query)
        params, headers = {"q": query, "format": "json"}, {"X-Marg-Task": task_id}
        async with self.http.get(f"{self.search_url}/search", params=params, headers=headers) as reply:
            results = (await reply.json())["results"]
        scores = [1.0] * len(results)
        if self.scorer is not None:
            scores = await asyncio.to_thread(self.scorer, query, [r["content"] for r in results])
        found = [
            Source(section=section, url=r["url"], title=r["title"], text=r["content"], relevance=s)
            for r, s in zip(results, scores, strict=True)
        ]
        return sorted(found, key=lambda f: -f["relevance"])[:KEPT]

    async def page(self, url: str) -> str:
        async with self.http.get(f"{self.search_url}/page/{url.rpartition('/')[2]}") as reply:
            return await reply.text()

    def _note(self, session: str, task: str, query: str = "") -> str:
        self.tasks.setdefault(session, []).append((f"{session}/{task}", query))
        return f"{session}/{task}"


# ---- prompts


def cards(sources: Sequence[Source]) -> str:
    return "\n".join(f'<card n="{n}" source="{s["title"]}">\n{s["text"]}\n</card>' for n, s in enumerate(sources, 1))


def sections_text(state: State) -> str:
    return "\n".join(
        f'<section id="{s["id"]}" title="{s["title"]}">\n{state["drafts"][s["id"]]}\n</section>'
        for s in state["outline"]
    )


def asked(state: State) -> str:
    return f"<question>\n{CASES[state['case']].question}\n</question>"


# ---- steps


@dataclass(frozen=True)
class Steps:
    """The work of each agent, one unit at a time; the graphs differ in how they call it."""

    tools: Tools

    async def plan(self, state: State) -> dict[str, Any]:
        titles = "\n".join(f"{n}. {title}" for n, title in enumerate(SECTIONS, 1))
        user = f"{asked(state)}\nDepth: standard. At most 5 sections.\nThe user has fixed the sections:\n{titles}\n"
        idea = json.loads(await self.tools.ask(state["session"], "plan/0", "make_plan", user))
        outline = [
            Section(id=f"s{n}", title=s["title"], queries=list(CASES[state["case"]].queries(s["title"])))
            for n, s in enumerate(idea["sections"], 1)
        ]
        return {"outline": outline, "rounds": 0, "feedback": {}, "drafts": {}}

    async def search(self, state: State, section: Section, n: int) -> list[Source]:
        task = f"{section['id']}/search/1.{n}"
        return await self.tools.search(state["session"], task, section["id"], section["queries"][n])

    async def read(self, state: State, section: Section, source: Source) -> list[Source]:
        text = await self.tools.page(source["url"])
        user = (
            f"Document: {source['title']}\n<passage>\n{text}\n</passage>\n\n{asked(state)}\n"
            f"Section: {section['title']}\nPick at most 6.\n"
        )
        task = f"{section['id']}/read/{zlib.crc32(source['url'].encode()):08x}"
        claims = json.loads(await self.tools.ask(state["session"], task, "extract_claims", user))["claims"]
        return [Source(**{**source, "text": claim["quote"]}) for claim in claims if claim["quote"] in text]

    def to_read(self, state: State, section: Section) -> list[Source]:
        """The best results of a section, each page once."""
        mine = {s["url"]: s for s in reversed(state["found"]) if s["section"] == section["id"]}
        return sorted(mine.values(), key=lambda s: -s["relevance"])[:READS]

    async def draft(self, state: State, section: Section) -> dict[str, str]:
        mine = [s for s in state.get("read") or state["found"] if s["section"] == section["id"]]
        user = (
            f"<evidence>\n{cards(mine)}\n</evidence>\n\n{asked(state)}\nReport: {CASES[state['case']].topic}\n"
            f"Section to write: {section['title']}\nLength: about {WORDS} words.\n"
        )
        if remark := state["feedback"].get(section["id"]):
            user += f"Your previous version:\n{state['drafts'][section['id']]}\nCorrect:\n- {remark}\n"
        task = f"{section['id']}/draft/{state['rounds'] + 1}"
        return {section["id"]: await self.tools.ask(state["session"], task, "draft_section", user)}

    async def critic(self, state: State) -> dict[str, Any]:
        rounds = state["rounds"] + 1
        user = f"<report>\n{sections_text(state)}\n</report>\n\n{asked(state)}\n"
        review = json.loads(await self.tools.ask(state["session"], f"review/{rounds}", "review_report", user))
        feedback = {i["section"]: i["instruction"] for i in review["issues"]}
        return {"rounds": rounds, "feedback": feedback if rounds < ROUNDS else {}}

    async def format(self, state: State) -> dict[str, Any]:
        user = f"<report>\n{sections_text(state)}\n</report>\n\n{asked(state)}\nLength: about 150 words.\n"
        summary = await self.tools.ask(state["session"], "summary/draft/1", "summarise_report", user)
        contents = "\n".join(f"- {s['title']}" for s in state["outline"])
        bodies = "\n\n".join(f"## {s['title']}\n\n{state['drafts'][s['id']]}" for s in state["outline"])
        urls = dict.fromkeys(s["url"] for s in state["found"])
        references = "\n".join(f"{n}. {url}" for n, url in enumerate(urls, 1))
        return {"report": f"# {CASES[state['case']].topic}\n\n{summary}\n\n{contents}\n\n{bodies}\n\n{references}\n"}


# ---- graphs


def _langgraph() -> Any:
    try:
        import langgraph.graph
    except ImportError:
        raise SystemExit("this benchmark compares with LangGraph: pip install langgraph") from None
    return langgraph.graph


def _compile(graph: Any) -> Any:
    from langgraph.checkpoint.memory import InMemorySaver

    return graph.compile(checkpointer=InMemorySaver())


def sequential(tools: Tools, *, reading: bool) -> Any:
    """One call after the other."""
    lang, do = _langgraph(), Steps(tools)

    async def researcher(state: State) -> dict[str, Any]:
        found: list[Source] = []
        for section in state["outline"]:
            for n in range(len(section["queries"])):
                found += await do.search(state, section, n)
        return {"found": found}

    async def reader(state: State) -> dict[str, Any]:
        claims: list[Source] = []
        for section in state["outline"]:
            for source in do.to_read(state, section):
                claims += await do.read(state, section, source)
        return {"read": claims}

    async def synthesizer(state: State) -> dict[str, Any]:
        drafts: dict[str, str] = {}
        for section in _to_write(state):
            drafts |= await do.draft(state, section)
        return {"drafts": drafts}

    graph = lang.StateGraph(State)
    nodes = {"planner": do.plan, "researcher": researcher, "synthesizer": synthesizer, "critic": do.critic}
    for name, node in {**nodes, "formatter": do.format}.items():
        graph.add_node(name, node)
    graph.add_edge(lang.START, "planner")
    graph.add_edge("planner", "researcher")
    if reading:
        graph.add_node("reader", reader)
        graph.add_edge("researcher", "reader")
    graph.add_edge("reader" if reading else "researcher", "synthesizer")
    graph.add_edge("synthesizer", "critic")
    after = {"synthesizer": "synthesizer", "formatter": "formatter"}
    graph.add_conditional_edges("critic", lambda s: "synthesizer" if s["feedback"] else "formatter", after)
    graph.add_edge("formatter", lang.END)
    return _compile(graph)


def parallel(tools: Tools, *, reading: bool) -> Any:
    """Every step fans out; the next one begins when all of it has come back."""
    from langgraph.types import Send

    lang, do = _langgraph(), Steps(tools)

    async def search(unit: dict[str, Any]) -> dict[str, Any]:
        return {"found": await do.search(unit["state"], unit["section"], unit["n"])}

    async def read(unit: dict[str, Any]) -> dict[str, Any]:
        return {"read": await do.read(unit["state"], unit["section"], unit["source"])}

    async def draft(unit: dict[str, Any]) -> dict[str, Any]:
        return {"drafts": await do.draft(unit["state"], unit["section"])}

    async def together(_: State) -> dict[str, Any]:
        return {}

    def searches(state: State) -> list[Any]:
        return [
            Send("search", {"state": state, "section": s, "n": n})
            for s in state["outline"]
            for n in range(len(s["queries"]))
        ]

    def reads(state: State) -> list[Any]:
        return [
            Send("read", {"state": _small(state), "section": s, "source": source})
            for s in state["outline"]
            for source in do.to_read(state, s)
        ]

    def drafts(state: State) -> list[Any] | str:
        return [Send("draft", {"state": state, "section": s}) for s in _to_write(state)]

    def judged(state: State) -> list[Any] | str:
        return drafts(state) if state["feedback"] else "formatter"

    graph = lang.StateGraph(State)
    nodes = {"planner": do.plan, "search": search, "researcher": together, "draft": draft, "critic": do.critic}
    for name, node in {**nodes, "formatter": do.format}.items():
        graph.add_node(name, node)
    graph.add_edge(lang.START, "planner")
    graph.add_conditional_edges("planner", searches, ["search"])
    graph.add_edge("search", "researcher")
    if reading:
        graph.add_node("read", read)
        graph.add_node("reader", together)
        graph.add_conditional_edges("researcher", reads, ["read"])
        graph.add_edge("read", "reader")
    graph.add_conditional_edges("reader" if reading else "researcher", drafts, ["draft"])
    graph.add_edge("draft", "critic")
    graph.add_conditional_edges("critic", judged, ["draft", "formatter"])
    graph.add_edge("formatter", lang.END)
    return _compile(graph)


def _to_write(state: State) -> list[Section]:
    """All sections at first, then those that were sent back."""
    return [s for s in state["outline"] if not state["feedback"] or s["id"] in state["feedback"]]


def _small(state: State) -> State:
    return State(session=state["session"], case=state["case"])


def minilm() -> Scorer:
    """Cosine of each snippet with its query, each text encoded by itself."""
    import os

    os.environ["HF_HUB_OFFLINE"] = "1"
    import numpy as np
    from sentence_transformers import SentenceTransformer

    from marg_ray.models.embeddings import weights

    model = SentenceTransformer(str(weights()), device="cpu", local_files_only=True)

    def score(query: str, snippets: list[str]) -> list[float]:
        asked_for = model.encode(query, show_progress_bar=False)
        texts = [model.encode(s, show_progress_bar=False) for s in snippets]
        return [float(np.dot(asked_for, t) / (np.linalg.norm(asked_for) * np.linalg.norm(t) + 1e-9)) for t in texts]

    score("ready", ["ready"])
    return score


async def run(args: argparse.Namespace) -> None:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as http:
        tools = Tools(http, args.model, args.search, minilm() if args.scoring else None)
        build = {"sequential": sequential, "parallel": parallel}[args.mode]
        app = build(tools, reading=args.reading)

        async def session(number: int) -> Ran:
            name = f"{args.name}{number}"
            start = State(session=name, case=number, found=[], read=[])
            config = {"configurable": {"thread_id": name}, "recursion_limit": 50}
            state = await app.ainvoke(start, config)
            app.checkpointer.delete_thread(name)
            return Ran(session_id=name, words=len(state["report"].split()), tasks=tools.tasks.pop(name))

        await serve(session)


def main() -> None:
    parser = argparse.ArgumentParser(description="The LangGraph baseline; started by throughput.py.")
    parser.add_argument("mode", choices=["sequential", "parallel"])
    parser.add_argument("--name", default="lg", help="prefix of its session ids")
    parser.add_argument("--model", required=True, help="address of the model server, with /v1")
    parser.add_argument("--search", required=True, help="address of the search server")
    parser.add_argument("--scoring", action="store_true")
    parser.add_argument("--reading", action="store_true")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
