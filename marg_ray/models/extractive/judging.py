"""Judging without a model: what the check by words says, once more. It settles nothing that words left open."""

from __future__ import annotations

from marg_ray.grounding.judging import Opinion
from marg_ray.grounding.verify import check_sentence
from marg_ray.models.tasks import ClaimRuling, ClaimToJudge, JudgeClaims, Judgement
from marg_ray.records import Evidence, Verdict

_OPINIONS: dict[Verdict, Opinion] = {
    Verdict.SUPPORTED: "supported",
    Verdict.NOT_FACTUAL: "supported",
    Verdict.PARTIAL: "partly",
    Verdict.CONTRADICTED: "contradicted",
}


def judge(task: JudgeClaims) -> Judgement:
    """One ruling for each claim, with the sentence that decided."""
    return Judgement(rulings=[_ruling(task, claim) for claim in task.claims][:20])


def _ruling(task: JudgeClaims, claim: ClaimToJudge) -> ClaimRuling:
    shown = [(index, task.shown[index]) for index in claim.passages]
    evidence = [Evidence(id=str(i), source=str(i), quote=p.text, start=0, end=len(p.text)) for i, p in shown]
    check = check_sentence(claim.text, evidence)
    number = 0
    if check.span is not None and check.evidence:
        passage = task.shown[int(check.evidence)]
        number = next((n for n, _ in passage.numbered if _starts(task, int(check.evidence), n, check.span[0])), 0)
    return ClaimRuling(claim=claim.number, verdict=_OPINIONS.get(check.verdict, "not_shown"), sentence=number)


def _starts(task: JudgeClaims, index: int, number: int, at: int) -> bool:
    """Whether the sentence with this number holds the character at `at`."""
    passage = task.shown[index]
    place = passage.place(number)
    return place is not None and place[0] - passage.start <= at < place[1] - passage.start
