"""The critic: checks every sentence against what it cites, then judges the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from marg_ray.actors.judging import ModelJudge
from marg_ray.grounding.canon import dropped, without
from marg_ray.grounding.critique.signals import measured
from marg_ray.grounding.drafts import render_draft
from marg_ray.grounding.verify import verify_draft
from marg_ray.messages import DraftGrounded, Message, ReviewDone
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import ReviewReport, SectionText
from marg_ray.quality import judge
from marg_ray.records import Block, Grounding, Issue, Role, Scores
from marg_ray.seams import Embedder, Offload
from marg_ray.tasks import GroundTask, Judged, ReviewTask, Task


@dataclass(frozen=True, kw_only=True)
class Critic:
    model: ModelClient
    embedder: Embedder | None
    light: Offload  # for work of milliseconds
    judge_calls: int = 0  # to the model, about the sentences of one draft that words leave open
    role: ClassVar[Role] = Role.CRITIC

    async def handle(self, task: Task) -> Message:
        if isinstance(task, GroundTask):
            return await self._ground(task)
        assert isinstance(task, ReviewTask)
        return await self._review(task)

    async def _ground(self, task: GroundTask) -> DraftGrounded:
        call = Call(session_id=task.session_id, task_id=task.id, section=task.section, epoch=task.epoch)
        model = ModelJudge(model=self.model, calls=self.judge_calls, call=call)
        grounding = await verify_draft(
            task.draft,
            task.evidence,
            titles=task.titles,
            embedder=self.embedder,
            offload=self.light,
            judge=model if self.judge_calls else None,
        )
        pared = await self._pared(task, grounding)
        return DraftGrounded(task_id=task.id, grounding=pared, usage=model.usage, notes=model.notes)

    async def _pared(self, task: GroundTask, grounding: Grounding) -> Grounding:
        """The grounding without the citations that the draft does not need; none goes that would turn a verdict."""
        verdicts = list(grounding.verdicts)
        gone = await self.light(
            dropped,
            task.draft.sentences,
            [v.verdict for v in verdicts],
            task.evidence,
            titles=task.titles,
            sources=task.sources,
        )
        concerned = sorted({d.sentence for d in gone})
        if not concerned:
            return grounding
        sentences = without(task.draft, gone).sentences
        block = Block(kind="paragraph", sentences=tuple(sentences[n] for n in concerned))
        again = await verify_draft(
            task.draft.model_copy(update={"blocks": (block,)}),
            task.evidence,
            titles=task.titles,
            embedder=self.embedder,
            offload=self.light,
        )
        stand = {n: v for n, v in zip(concerned, again.verdicts, strict=True) if v.verdict is verdicts[n].verdict}
        for n, verdict in stand.items():
            verdicts[n] = verdict
        kept = tuple(d for d in gone if d.sentence in stand)
        return grounding.model_copy(update={"verdicts": tuple(verdicts), "dropped": kept})

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
        found = await self.light(measured, task.sections, task.evidence, question=task.question, language=task.language)
        review = judge(
            Scores(**idea.scores.model_dump()),
            issues,
            task.sections,
            iteration=task.iteration,
            cap=task.cap,
            measured=found,
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
