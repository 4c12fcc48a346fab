"""The synthesizer: writes sections (on the workers) and the summary of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from marg_ray.actors.cleaning import as_data
from marg_ray.actors.researcher import Workers
from marg_ray.grounding.drafts import parse_draft, render_draft
from marg_ray.messages import SUMMARY, DraftReady, Message
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import SectionText, SummariseReport
from marg_ray.records import Draft, Role, Verdict
from marg_ray.seams import Offload
from marg_ray.tasks import DraftTask, SummariseTask, Task

USABLE = (Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.NOT_CHECKED, None)


@dataclass(frozen=True, kw_only=True)
class Synthesizer:
    workers: Workers
    model: ModelClient
    light: Offload  # for work of milliseconds
    role: ClassVar[Role] = Role.SYNTHESIZER

    async def handle(self, task: Task) -> Message:
        if isinstance(task, DraftTask):
            return await self.workers.draft(task)
        assert isinstance(task, SummariseTask)
        return await self._summarise(task)

    async def _summarise(self, task: SummariseTask) -> DraftReady:
        cited = dict.fromkeys(c for d in task.drafts.values() for s in d.sentences for c in s.citations)
        numbers = {e: (n,) for n, e in enumerate(cited, 1)}
        titles = {s.id: s.title for s in task.plan.sections}
        sections = tuple(
            SectionText(id=key, title=titles.get(key, key), text=render_draft(usable(draft), numbers))
            for key, draft in task.drafts.items()
        )
        ask = SummariseReport(question=task.question, language=task.language, sections=sections)
        reply = await self.model.run(
            ask, Call(session_id=task.session_id, task_id=task.id, epoch=task.epoch, section=SUMMARY)
        )
        markdown, notes = await self.light(as_data, reply.output.markdown, SUMMARY)
        draft = await self.light(
            parse_draft,
            markdown,
            {n: e for e, (n,) in numbers.items()},
            section=SUMMARY,
            section_title="",
            revision=task.revision,
            prompted=tuple(cited),
            incomplete=reply.output.incomplete,
        )
        return DraftReady(task_id=task.id, draft=draft, usage=reply.usage, notes=(*reply.notes, *notes))


def usable(draft: Draft) -> Draft:
    """The draft without sentences that failed their check: nothing is summarised that does not hold."""
    blocks = []
    for block in draft.blocks:
        kept = tuple(s for s in block.sentences if s.verdict in USABLE)
        if kept or not block.sentences:
            blocks.append(block.model_copy(update={"sentences": kept}))
    return draft.model_copy(update={"blocks": tuple(blocks)})
