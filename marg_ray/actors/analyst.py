"""The analyst: what the evidence says across sources, where they disagree, and what stays unknown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from marg_ray.actors.fanout import evidence_cards
from marg_ray.grounding.contradictions import find_contradictions
from marg_ray.messages import AnalysisReady, Message
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import AnalyseEvidence
from marg_ray.records import Analysis, Finding, Role
from marg_ray.seams import Offload
from marg_ray.tasks import AnalyseTask, Task


@dataclass(frozen=True, kw_only=True)
class Analyst:
    model: ModelClient
    offload: Offload
    role: ClassVar[Role] = Role.ANALYST

    async def handle(self, task: Task) -> Message:
        assert isinstance(task, AnalyseTask)
        cards = evidence_cards(task.evidence, task.sources)
        ids = {card.number: e.id for card, e in zip(cards, task.evidence, strict=True)}
        ask = AnalyseEvidence(
            question=task.question, language=task.language, hypotheses=task.hypotheses, evidence=cards
        )
        call = Call(session_id=task.session_id, task_id=task.id, epoch=task.epoch)
        finding = asyncio.ensure_future(self.offload(find_contradictions, task.evidence, task.sources))
        try:  # neither needs the other
            reply = await self.model.run(ask, call)
            contradictions = await finding
        finally:
            finding.cancel()
        findings = tuple(
            Finding(text=f.text, evidence=tuple(dict.fromkeys(ids[n] for n in f.evidence if n in ids)))
            for f in reply.output.findings
        )
        analysis = Analysis(
            findings=tuple(f for f in findings if f.evidence),  # a finding that names no evidence is none
            contradictions=contradictions,
            unknowns=tuple(u for u in reply.output.unknowns if u.strip()),
        )
        return AnalysisReady(task_id=task.id, analysis=analysis, usage=reply.usage, notes=reply.notes)
