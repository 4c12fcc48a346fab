from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.quality import THRESHOLDS, judge
from marg_ray.records import (
    Grounding,
    Issue,
    IssueKind,
    ReviewVerdict,
    Scores,
    Section,
    SentenceVerdict,
    Verdict,
)
from marg_ray.tasks import Judged

PERFECT = Scores(accuracy=1, coverage=1, clarity=1, objectivity=1)


def judged(*verdicts: Verdict, gap: str = "", section: str = "s1", weight: float = 1.0) -> Judged:
    grounding = Grounding(
        section=section, revision=1, verdicts=tuple(SentenceVerdict(verdict=v) for v in verdicts), coverage=1.0
    )
    return Judged(
        section=Section(id=section, title="Costs", weight=weight, queries=("cost",)),
        draft=None,
        grounding=None if gap else grounding,
        evidence=0 if gap else 3,
        sources=0 if gap else 1,
        gap=gap,
    )


def test_a_sound_draft_with_good_scores_passes() -> None:
    review = judge(PERFECT, [], [judged(Verdict.SUPPORTED, Verdict.SUPPORTED)], iteration=1, cap=3)
    assert review.verdict is ReviewVerdict.PASS


@given(st.floats(0, 1), st.lists(st.sampled_from(list(Verdict)), min_size=1, max_size=8))
def test_no_score_raises_a_draft_with_unsupported_sentences(score: float, verdicts: list[Verdict]) -> None:
    proposed = Scores(accuracy=score, coverage=score, clarity=score, objectivity=score)
    review = judge(proposed, [], [judged(*verdicts)], iteration=1, cap=3)
    assert review.scores.accuracy <= score
    if Verdict.UNSUPPORTED in verdicts or Verdict.CONTRADICTED in verdicts:
        assert review.verdict is not ReviewVerdict.PASS
        assert review.scores.accuracy < THRESHOLDS.accuracy


def test_a_missing_section_is_a_retrieval_gap_with_something_to_search_for() -> None:
    sections = [judged(Verdict.SUPPORTED, weight=0.6), judged(gap="nothing found", section="s2", weight=0.4)]
    review = judge(PERFECT, [], sections, iteration=1, cap=3)
    assert review.verdict is ReviewVerdict.RETRIEVAL_GAP
    assert review.sections == ("s2",)
    assert review.issues[0].fix_query == "Costs"
    assert review.scores.coverage == 0.6


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (IssueKind.BIAS, ReviewVerdict.QUALITY_FAIL),
        (IssueKind.LOGIC_ERROR, ReviewVerdict.QUALITY_FAIL),
        (IssueKind.INCOMPLETE, ReviewVerdict.RETRIEVAL_GAP),
        (IssueKind.MISSING_SOURCE, ReviewVerdict.RETRIEVAL_GAP),
        (IssueKind.HALLUCINATION, ReviewVerdict.QUALITY_FAIL),
    ],
)
def test_a_grave_issue_decides_whatever_the_scores_say(kind: IssueKind, verdict: ReviewVerdict) -> None:
    issue = Issue(kind=kind, severity="high", section="s1", detail="bad")
    review = judge(PERFECT, [issue], [judged(Verdict.SUPPORTED)], iteration=1, cap=3)
    assert review.verdict is verdict
    assert review.sections == ("s1",)


def test_from_round_three_a_draft_that_cannot_pass_is_insufficient_evidence() -> None:
    low = Scores(accuracy=0.5, coverage=0.5, clarity=1, objectivity=1)
    rounds = [judge(low, [], [judged(Verdict.SUPPORTED)], iteration=n, cap=3).verdict for n in (1, 2, 3)]
    assert rounds == [ReviewVerdict.RETRIEVAL_GAP] * 2 + [ReviewVerdict.INSUFFICIENT_EVIDENCE]
