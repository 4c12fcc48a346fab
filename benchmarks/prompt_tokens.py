"""What each stage of a run is given to read, against giving everybody everything; and what a prefix cache saves.

    python benchmarks/prompt_tokens.py [--folder examples/library] [--question Q ...] [--depth standard]

Whole runs in one process: real agents, real library search, a model that answers plainly from its prompt and a critic
that sends two sections back once. Tokens are estimated (four bytes of UTF-8 each) from the prompts as they would be
sent, instructions and all.

`everything`: the same calls by agents with one blackboard. Each is given all evidence found and all sections written
up to then, on top of its own instructions and of what only it has (a document's passages, search results). `+ whole
documents`: an agent that reads gets the document instead of its best passages as well. `ratio` is ours to theirs.

`prefix`: the part of the prompts that an earlier prompt of the same run began with as well, as a prefix cache sees it
(whole blocks of 16 tokens); what an engine does not have to read again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from marg_ray.actors.assembly import Assembly
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.ledger import LedgerBook
from marg_ray.actors.protocol import Agent
from marg_ray.messages import Message
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply
from marg_ray.models.embeddings import HashingEmbedder, MiniLM
from marg_ray.models.packing import pack
from marg_ray.models.prompting import Prompt, estimate_tokens
from marg_ray.models.select import Choice
from marg_ray.models.tasks import (
    ClaimIdeas,
    DraftSection,
    ExtractClaims,
    FreeText,
    IssueIdea,
    ReviewIdea,
    ReviewReport,
    SectionText,
)
from marg_ray.models.testing import answer
from marg_ray.models.wrappers import MeteredModel
from marg_ray.records import Depth, IssueKind, Request, Role, SourceChoice, Usage
from marg_ray.seams import in_thread
from marg_ray.settings import Settings
from marg_ray.store.memory import MemoryStore
from marg_ray.tasks import Task

LIMIT_S = 600
BLOCK_TOKENS = 16  # of a prefix cache
CARD_TOKENS = 24  # of the tag around a piece of evidence or a section
STAGES = {
    "make_plan": "plan",
    "rewrite_query": "rewriting",
    "extract_claims": "extraction",
    "draft_section": "draft",
    "judge_claims": "judging",
    "analyse_evidence": "analysis",
    "review_report": "review",
    "summarise_report": "summary",
}
QUESTIONS = (Path(__file__).resolve().parents[1] / "examples" / "questions.txt").read_text("utf-8").splitlines()[1:2]


# ---- the model


@dataclass(frozen=True)
class Asked:
    """One call as it was made: its prompt, and what stood on the blackboard then, in tokens."""

    task: ModelTask[Any]
    prompt: Prompt
    evidence: int
    texts: int

    @property
    def stage(self) -> str:
        again = isinstance(self.task, DraftSection) and self.task.feedback
        return "redraft" if again else STAGES[self.task.template]

    @property
    def everything(self) -> int:
        """Tokens of the prompt of an agent that gets all there is."""
        own = _tokens(c.quote for c in getattr(self.task, "evidence", ()))
        own += _tokens(s.text for s in getattr(self.task, "sections", ()))
        return self.prompt.tokens - own + self.evidence + self.texts

    @property
    def whole_document(self) -> int:
        """What the document has on top of the passages that are shown of it."""
        if not isinstance(self.task, ExtractClaims):
            return 0
        shown = sum(estimate_tokens(p.text) for p in self.task.passages)
        return max(0, estimate_tokens(self.task.document.text) - shown)


@dataclass
class Reader:
    """Answers plainly, keeps every prompt, and sends `revise` sections back once."""

    window: int
    revise: int = 2
    name: str = "reader"
    asked: list[Asked] = field(default_factory=list)
    _quotes: dict[str, None] = field(default_factory=dict)
    _texts: dict[str, str] = field(default_factory=dict)
    _reviewed: bool = False

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        packed = pack(task, int((self.window - task.max_tokens) / 1.1), section=call.section)
        self.asked.append(Asked(packed.task, packed.prompt, _tokens(self._quotes), _tokens(self._texts.values())))
        output = self._answer(packed.task)
        if isinstance(output, ClaimIdeas):
            self._quotes |= dict.fromkeys(c.quote for c in output.claims)
        elif isinstance(output, FreeText) and isinstance(task, DraftSection):
            self._texts[task.section_title] = output.markdown
        used = Usage(calls=1, tokens_in=packed.prompt.tokens, tokens_out=estimate_tokens(output.model_dump_json()))
        return Reply(
            output=cast(OutT, output), usage=used, model=self.name, notes=packed.notes, left_out=packed.left_out
        )

    def _answer(self, task: ModelTask[Any]) -> Any:
        good = answer(task)
        if isinstance(task, DraftSection) and task.feedback and isinstance(good, FreeText):
            return FreeText(markdown="\n\n".join(reversed(good.markdown.split("\n\n"))))
        if isinstance(task, ReviewReport) and isinstance(good, ReviewIdea) and not self._reviewed:
            self._reviewed = True
            return _sent_back(good, task.sections[: self.revise])
        return good


def _sent_back(good: ReviewIdea, sections: Iterable[SectionText]) -> ReviewIdea:
    faults = [
        IssueIdea(
            kind=IssueKind.LOGIC_ERROR,
            severity="high",
            section=section.id,
            detail="The second paragraph does not follow from the first.",
            instruction="Say how the second paragraph follows from the first, or part them.",
        )
        for section in sections
    ]
    scores = good.scores.model_copy(update={"clarity": 0.5})
    return good.model_copy(update={"scores": scores, "issues": [*good.issues, *faults]})


def _tokens(texts: Iterable[str]) -> int:
    return sum(CARD_TOKENS + estimate_tokens(text) for text in texts)


# ---- the run


@dataclass(frozen=True)
class Counted(Assembly):
    """The parts of a process, with a model of our own."""

    reader: ModelClient = field(default_factory=lambda: Reader(8192))

    @property
    def model(self) -> ModelClient:
        return MeteredModel(self.reader, self.ledger)


async def one_run(question: str, folder: Path, depth: Depth, window: int, home: Path, fast: bool) -> list[Asked]:
    """The calls of one session over a folder, in the order in which they were made."""
    store, reader = MemoryStore(), Reader(window)
    parts = Counted(
        settings=Settings(home=home),
        choice=Choice("reader", "reader", "it counts"),
        embedder=HashingEmbedder() if fast else MiniLM(),
        ledger=LedgerBook(store),
        offload=in_thread,
        reader=reader,
    )

    async def open_store() -> MemoryStore:
        return store

    units = parts.units()
    agents: dict[Role, Agent] = {r: parts.agent(r, units, open_store) for r in Role if r is not Role.ASSISTANT}

    async def dispatch(task: Task) -> Message:
        return await agents[task.role].handle(task)

    coordinator = Coordinator(store, dispatch)
    sources = SourceChoice(folders=(str(folder),), web=False)
    await coordinator.submit("S", Request(question=question, depth=depth, sources=sources))
    async with asyncio.timeout(LIMIT_S):
        after, status = 0, "running"
        while status in ("running", "queued"):
            progress = await coordinator.progress("S", after)
            after, status = after + len(progress.entries), progress.status
    print(f"{question[:90]}: {status}, {len(reader.asked)} calls", flush=True)
    return reader.asked


# ---- the figures


def shared_prefixes(prompts: Sequence[Prompt]) -> list[int]:
    """For each prompt the tokens, in whole blocks, of the longest beginning that one before it has as well."""
    seen: list[str] = []
    found = []
    for prompt in prompts:
        text = f"{prompt.system}\n{prompt.user}"
        longest = max((_common(text, other) for other in seen), default=0)
        found.append(estimate_tokens(text[:longest]) // BLOCK_TOKENS * BLOCK_TOKENS)
        seen.append(text)
    return found


def _common(a: str, b: str) -> int:
    """Characters that two texts begin with alike, by halving: slices compare fast."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass
class Stage:
    calls: int = 0
    ours: int = 0
    everything: int = 0
    documents: int = 0
    prefix: int = 0

    def add(self, asked: Asked, prefix: int) -> None:
        self.calls += 1
        self.ours += asked.prompt.tokens
        self.everything += asked.everything
        self.documents += asked.everything + asked.whole_document
        self.prefix += prefix

    def row(self, name: str) -> str:
        return (
            f"{name:<12}{self.calls:>6}{self.ours // max(1, self.calls):>9,}{self.ours:>10,}"
            f"{self.everything:>12,}{self.ours / max(1, self.everything):>8.2f}"
            f"{self.documents:>18,}{self.ours / max(1, self.documents):>8.2f}"
            f"{self.prefix / max(1, self.ours):>9.0%}"
        )


def table(runs: Sequence[Sequence[Asked]]) -> str:
    """A row for each stage, and one for all. The runs' prefixes are counted apart."""
    stages: dict[str, Stage] = defaultdict(Stage)
    for run in runs:
        for asked, prefix in zip(run, shared_prefixes([a.prompt for a in run]), strict=True):
            stages[asked.stage].add(asked, prefix)
            stages["all"].add(asked, prefix)
    order = [*dict.fromkeys([*STAGES.values()][:4]), "redraft", *[*STAGES.values()][4:], "all"]
    head = f"{'stage':<12}{'calls':>6}{'per call':>9}{'tokens':>10}{'everything':>12}{'ratio':>8}"
    head += f"{'+ whole documents':>18}{'ratio':>8}{'prefix':>9}"
    return "\n".join([head, *(stages[name].row(name) for name in order if name in stages)])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("examples/library"))
    parser.add_argument("--question", nargs="+", default=QUESTIONS)
    parser.add_argument("--depth", type=Depth, default=Depth.STANDARD)
    parser.add_argument("--window", type=int, default=32_768, help="tokens of context")
    parser.add_argument("--fast", action="store_true", help="hashed words instead of MiniLM")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        runs = [
            await one_run(q, args.folder.resolve(), args.depth, args.window, Path(home), args.fast)
            for q in args.question
            if q
        ]
    print(table(runs))


if __name__ == "__main__":
    asyncio.run(main())
