"""The model that is none: every task answered with the sources' own words, chosen and ordered by rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from marg_ray.models.client import Call, ModelTask, OutT, Reply
from marg_ray.models.extractive import (
    analysing,
    answering,
    drafting,
    judging,
    planning,
    reading,
    reviewing,
    rewriting,
    summarising,
    talking,
)
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnswerQuestion,
    DraftSection,
    ExtractClaims,
    JudgeClaims,
    MakePlan,
    Output,
    PlanTurn,
    ReviewReport,
    RewriteQuery,
    SummariseReport,
)  # fmt: skip
from marg_ray.records import Usage
from marg_ray.seams import Embedder, Offload, Vectors


class ExtractiveModel:
    """A `ModelClient` without a model: quotes, never writes. Every sentence it prints is in a source, word for word.

    Each task takes two steps of pure CPU work around one embedding call: ranking by words says which few sentences are
    worth a vector, and the vectors decide among them.
    """

    def __init__(self, embedder: Embedder, offload: Offload) -> None:
        self._embedder = embedder
        self._offload = offload

    @property
    def name(self) -> str:
        return "extractive"

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """Carry out `task`. The output depends on the task alone; `call.on_delta` gets a text in one piece."""
        output = await self._answer(task)
        if call.on_delta is not None and (text := getattr(output, "markdown", "")):
            await call.on_delta(text)
        return Reply(output=cast(OutT, output), usage=Usage(calls=1), model=self.name)

    async def _answer(self, task: ModelTask[Any]) -> Output:
        match task:
            case MakePlan():
                plan = await self._offload(planning.prepare, task)
                return await self._offload(planning.finish, plan, await self._embed(plan.texts))
            case RewriteQuery():
                return rewriting.rewrite(task)
            case ExtractClaims():
                read = await self._offload(reading.prepare, task)
                return await self._offload(reading.finish, read, await self._embed(read.texts))
            case DraftSection():
                draft = await self._offload(drafting.prepare, task)
                return await self._offload(drafting.compose, draft, await self._embed(draft.texts))
            case SummariseReport():
                summary = await self._offload(summarising.prepare, task)
                return await self._offload(summarising.compose, summary, await self._embed(summary.texts))
            case AnalyseEvidence():
                analysis = await self._offload(analysing.prepare, task)
                return await self._offload(analysing.finish, analysis, await self._embed(analysis.texts))
            case JudgeClaims():
                return await self._offload(judging.judge, task)
            case ReviewReport():
                return await self._offload(reviewing.review, task)
            case PlanTurn():
                return talking.plan(task)
            case AnswerQuestion():
                asked = await self._offload(answering.prepare, task)
                return await self._offload(answering.compose, asked, await self._embed(asked.texts))
        raise TypeError(f"no rule for {type(task).__name__}")

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        return await self._embedder.embed(texts)
