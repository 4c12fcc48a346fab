"""The critic: checks every sentence against what it cites, then judges the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from marg_ray.grounding.drafts import render_draft
from marg_ray.grounding.verify import verify_draft
from marg_ray.messages import DraftGrounded, Message, ReviewDone
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import ReviewReport, SectionText
from marg_ray.quality import judge
from marg_ray.records import Issue, Role, Scores
from marg_ray.seams import Embedder, Offload
from marg_ray.tasks import GroundTask, Judged, ReviewTask, Task


@dataclass(frozen=True, kw_only=True)
class Critic:
    model: ModelClient
    embedder: Embedder | None
    light: Offload  # for work of milliseconds
    role: ClassVar[Role] = Role.CRITIC

    async def handle(self, task: Task) -> Message:
        if isinstance(task, GroundTask):
            return await self._ground(task)
        assert isinstance(task, ReviewTask)
        return await self._review(task)

    async def _ground(self, task: GroundTask) -> DraftGrounded:
        grounding = await verify_draft(
            task.draft, task.evidence, titles=task.titles, embedder=self.embedder, offload=self.light
        )
        return DraftGrounded(task_id=task.id, grounding=grounding)

    async def _review(self, task: ReviewTask) -> ReviewDone:
        numbers = {e: (n,) for n, e in enumerate(task.evidence, 1)}
        ask = ReviewReport(
            question=task.question,
            language=task.language,
            sections=tuple(_text(j, numbers) for j in task.sections if j.draft),
            gaps=tuple(j.section.title for j in task.sections if j.gap),
        )
        reply = await self.model.run(ask, Call(session_id=task.session_id, task_id=task.id, epoch=task.epoch))
        idea = reply.output
        known = {j.section.id: j.section.id for j in task.sections}
        known |= {j.section.title.casefold(): j.section.id for j in task.sections}
        issues = [
            Issue(**{**i.model_dump(), "section": known.get(i.section, known.get(i.section.casefold(), ""))})
            for i in idea.issues
        ]
        review = judge(
            Scores(**idea.scores.model_dump()), issues, task.sections, iteration=task.iteration, cap=task.cap
        )
        return ReviewDone(task_id=task.id, review=review, usage=reply.usage, notes=reply.notes)


def _text(judged: Judged, numbers: Mapping[str, tuple[int, ...]]) -> SectionText:
    assert judged.draft is not None
    counts = Counter(v.verdict for v in judged.grounding.verdicts) if judged.grounding else Counter()
    words = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
    return SectionText(
        id=judged.section.id,
        title=judged.section.title,
        text=render_draft(judged.draft, numbers),
        grounding=words,
    )
