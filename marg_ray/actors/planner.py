"""The planner: an outline with queries, bounded, before anything is researched."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

from marg_ray.errors import BudgetExceeded, ParseError
from marg_ray.language import detect
from marg_ray.messages import Message, PlanReady
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.extractive.clauses import clauses
from marg_ray.models.extractive.enumerations import items
from marg_ray.models.tasks import MakePlan, PlanIdea, ScoutHit, SectionIdea
from marg_ray.records import Depth, Note, Plan, Request, RequestClass, Role, Section, Usage, Zone
from marg_ray.seams import Embedder, Offload
from marg_ray.sources.queries import search_query
from marg_ray.tasks import PlanTask, Task

SECTIONS = {Depth.OVERVIEW: 3, Depth.STANDARD: 6, Depth.DEEP: 10}
NEAREST_SECTIONS = 1  # where nothing answers directly, the nearest material is one short page
QUERIES = 5
NEEDS_TEXT = frozenset({RequestClass.ANALYZE_PROVIDED, RequestClass.WRITE_ONLY})


@dataclass(frozen=True, kw_only=True)
class Planner:
    model: ModelClient
    light: Offload  # for work of milliseconds
    embedder: Embedder | None = None
    role: ClassVar[Role] = Role.PLANNER

    async def handle(self, task: Task) -> Message:
        assert isinstance(task, PlanTask)
        request = task.request
        spoken: str = await self.light(detect, request.question)
        language = request.language or spoken
        limit = SECTIONS[request.depth]
        if task.answerability.zone is Zone.NEAREST:
            limit = min(limit, await self.light(_things, request.question, tuple(h.title for h in task.scout)))
        ask = MakePlan(
            question="\n".join((request.question, *task.rejections)),
            depth=request.depth,
            language=language,
            max_sections=max(limit, len(request.outline)),
            focus_areas=request.focus_areas,
            outline=request.outline,
            scout=tuple(
                ScoutHit(title=h.title, snippet=h.snippet, headings=h.headings, relevance=h.relevance)
                for h in task.scout
            ),
        )
        notes: tuple[Note, ...] = ()
        usage = Usage()
        try:
            reply = await self.model.run(ask, Call(session_id=task.session_id, task_id=task.id, epoch=task.epoch))
            idea, usage, notes = reply.output, reply.usage, reply.notes
        except (ParseError, BudgetExceeded) as exc:  # the question itself is a plan
            idea = PlanIdea(title=request.question[:300], sections=[_whole(request.question)])
            notes = (Note(kind="plan_failed", text=f"one section, the question itself: {exc}"),)
        plan = make_plan(idea, request, language, max(limit, len(request.outline)))
        await self._prepare(plan)
        return PlanReady(task_id=task.id, plan=plan, usage=usage, notes=notes)

    async def _prepare(self, plan: Plan) -> None:
        """Embed all queries in one go: the searches find their vectors there, at a fifth of what one by one costs."""
        if self.embedder is not None:
            queries = list(dict.fromkeys(q for section in plan.sections for q in section.queries))
            with suppress(Exception):  # then each search does it, or says what is wrong
                await self.embedder.embed(queries)


def _things(question: str, titles: tuple[str, ...]) -> int:
    """How much a question asks in one: no passage speaks of it all at once, and each thing is looked for by itself."""
    found = items(question, titles)
    return max(NEAREST_SECTIONS, len(found.names) if found else len(clauses(question, titles)))


def _whole(question: str) -> SectionIdea:
    return SectionIdea(title=question[:200], queries=[search_query(question)])


def make_plan(idea: PlanIdea, request: Request, language: str, max_sections: int) -> Plan:
    """The idea within its bounds: the caller's outline as it is, weights that sum to 1, no section or query twice."""
    ideas = idea.sections
    if request.outline:
        planned = {s.title.casefold(): s for s in idea.sections}
        ideas = []
        for entry in request.outline:
            known = planned.get(entry.title.casefold())
            queries = list(entry.queries) or (known.queries if known else [entry.title])
            ideas.append(SectionIdea(title=entry.title[:200], queries=queries[:QUERIES]))
    sections = _unique(ideas)[:max_sections] or [_whole(request.question)]
    total = sum(s.weight for s in sections)
    weights = [s.weight / total if total > 0 else 1 / len(sections) for s in sections]
    return Plan(
        title=idea.title.strip() or request.question,
        request_class=_class(idea.request_class, request),
        language=language,
        hypotheses=tuple(h for h in idea.hypotheses if h.strip())[:3],
        sections=tuple(
            Section(id=f"s{n}", title=s.title.strip(), weight=round(w, 6), queries=tuple(s.queries))
            for n, (s, w) in enumerate(zip(sections, weights, strict=True), 1)
        ),
    )


def _unique(ideas: list[SectionIdea]) -> list[SectionIdea]:
    kept: dict[str, SectionIdea] = {}
    for idea in ideas:
        queries = list(dict.fromkeys(q for q in (search_query(q) for q in idea.queries) if q))[:QUERIES]
        title = " ".join(idea.title.split())
        if title:
            fields = {"title": title, "queries": queries or [search_query(title)]}
            kept.setdefault(title.casefold(), idea.model_copy(update=fields))
    return list(kept.values())


def _class(proposed: RequestClass, request: Request) -> RequestClass:
    """The caller's class, else the planner's where it can be carried out."""
    if request.request_class is not None:
        return request.request_class
    if proposed in NEEDS_TEXT and not request.provided:
        return RequestClass.FULL_RESEARCH
    return proposed
