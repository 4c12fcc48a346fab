"""The judge of one draft: a model that reads the few sentences which words leave open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from marg_ray.errors import BudgetExceeded, ModelError, NotRecorded
from marg_ray.grounding.judging import Asked, Ruling
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.prompting import estimate_tokens
from marg_ray.models.tasks import ClaimRuling, ClaimToJudge, JudgeClaims, Judgement, Passage
from marg_ray.records import Note, Usage

AT_ONCE = 8  # claims in one call
TOKENS = 2_400  # of claims and passages in one call, at most


@dataclass(kw_only=True)
class ModelJudge:
    """Puts the most doubtful sentences to the fast tier, `calls` times at most; see `grounding.judging.Judge`.

    What it cost is in `usage`, what a reader should know in `notes`. Where the model gives no answer, or there is no
    room for one in the session's limits, the verdicts stay as the words have them.
    """

    model: ModelClient
    calls: int
    call: Call
    usage: Usage = field(default_factory=Usage)
    notes: tuple[Note, ...] = ()

    async def __call__(self, asked: Sequence[Asked]) -> Mapping[int, Ruling]:
        found: dict[int, Ruling] = {}
        for batch in list(batches(asked))[: self.calls]:
            task, sources = posed(batch)
            try:
                reply = await self.model.run(task, self.call)
            except (ModelError, BudgetExceeded, NotRecorded) as exc:  # not recorded: before there was a judge
                self.usage += getattr(exc, "spent", None) or Usage()
                text = f"no model read the sentences that words leave open: {exc}"
                self.notes += (Note(kind="judge_failed", text=text, section=self.call.section),)
                break
            self.usage += reply.usage
            self.notes += reply.notes
            ruled = understood(task, sources, reply.output)
            found |= {one.number: ruled[n] for n, one in enumerate(batch, 1) if n in ruled}
        return found


def batches(asked: Sequence[Asked]) -> Iterator[tuple[Asked, ...]]:
    """The sentences in their order, as many in a call as there is room for."""
    batch: list[Asked] = []
    shown: dict[str, int] = {}
    for one in asked:
        own = {s.text: estimate_tokens(s.text) + 8 for s in one.stretches}
        words = estimate_tokens(one.text) + 12
        more = words + sum(n for text, n in own.items() if text not in shown)
        if batch and (len(batch) == AT_ONCE or sum(shown.values()) + more > TOKENS):
            yield tuple(batch)
            batch, shown = [], {}
        batch.append(one)
        shown |= {**own, f"{len(batch)} {one.text}": words}
    if batch:
        yield tuple(batch)


def posed(batch: Sequence[Asked]) -> tuple[JudgeClaims, tuple[str, ...]]:
    """The task, and the evidence that each of its passages is cut from. A passage is shown once."""
    stretches = list(dict.fromkeys(s for one in batch for s in one.stretches))
    place = {stretch: n for n, stretch in enumerate(stretches)}
    task = JudgeClaims(
        shown=tuple(Passage(text=s.text, start=s.start, end=s.end, heading=s.heading) for s in stretches),
        claims=tuple(
            ClaimToJudge(number=n, text=one.text, passages=tuple(place[s] for s in one.stretches))
            for n, one in enumerate(batch, 1)
        ),
    )
    return task, tuple(s.evidence for s in stretches)


def understood(task: JudgeClaims, sources: Sequence[str], judgement: Judgement) -> dict[int, Ruling]:
    """By the claim's number, what the judge said; not where it names what it was not shown, or contradicts itself."""
    claims = {claim.number: claim for claim in task.claims}
    said: dict[int, set[str]] = {}
    found: dict[int, Ruling] = {}
    for one in judgement.rulings:
        said.setdefault(one.claim, set()).add(one.verdict)
        claim = claims.get(one.claim)
        ruling = _ruling(task, claim, sources, one) if claim else None
        if ruling is not None:
            found[one.claim] = ruling
    return {number: ruling for number, ruling in found.items() if len(said[number]) == 1}


def _ruling(task: JudgeClaims, claim: ClaimToJudge, sources: Sequence[str], one: ClaimRuling) -> Ruling | None:
    if not one.sentence:
        return Ruling(one.verdict) if one.verdict == "not_shown" else None  # what is said is said somewhere
    place = task.place(claim, one.sentence)
    if place is None:
        return None
    index, start, end = place
    return Ruling(one.verdict, sources[index], (start, end))
