"""What a batch comes to, and its exit code."""

from __future__ import annotations

import pytest

from marg_ray.batch.results import RowError, RowResult
from marg_ray.batch.thresholds import AWAY, MISSED, STOPPED, Thresholds, exit_code, summarise


def passed(supported: int = 9, partial: int = 1, quality: float = 0.9, status: str = "passed") -> RowResult:
    verdicts = {"supported": supported, "partial": partial, "not_factual": 5}
    total = sum(verdicts.values())
    return RowResult(
        key="k", status=status, sentences=total, verdicts=verdicts, quality=quality, words=100, tokens=10, usd=0.25
    )


REFUSED = RowResult(key="r", status="insufficient_evidence")
HALTED = RowResult(key="h", status="halted")
AWAY_ERROR = RowResult(key="e", status="error", error=RowError(type="X", detail="x", retryable=True))
BROKEN = RowResult(key="b", status="error", error=RowError(type="X", detail="x"))
CANCELLED = RowResult(key="c", status="cancelled")
NOTHING_SPENT = RowResult(key="s", status="budget_stopped")


def test_the_figures_of_all_rows() -> None:
    summary = summarise([passed(), passed(1, 9, 0.7), REFUSED, HALTED, NOTHING_SPENT], Thresholds(), not_begun=2)
    assert (summary.rows, summary.delivered, summary.refused, summary.failed) == (7, 2, 2, 1)
    assert summary.supported == 0.5
    assert summary.quality == 0.8
    assert (summary.words, summary.tokens, summary.usd) == (200, 20, 0.5)
    assert summary.statuses["passed"] == 2


@pytest.mark.parametrize(
    ("results", "thresholds", "rest", "code"),
    [
        ([], Thresholds(), {}, 0),
        ([passed()], Thresholds(), {}, 0),
        ([passed(), REFUSED], Thresholds(), {}, 0),
        ([passed(status="quality_warning")], Thresholds(), {}, 0),
        ([passed(), REFUSED], Thresholds(max_refused=0), {}, MISSED),
        ([passed(), HALTED], Thresholds(), {}, AWAY),
        ([passed(), AWAY_ERROR], Thresholds(), {}, AWAY),
        ([passed(), HALTED], Thresholds(max_failed=1), {}, 0),
        ([passed(), BROKEN], Thresholds(), {}, MISSED),
        ([passed(), BROKEN, HALTED], Thresholds(), {}, MISSED),
        ([passed(), CANCELLED], Thresholds(), {}, MISSED),
        ([passed(), HALTED], Thresholds(min_quality=0.95), {}, MISSED),
        ([passed()], Thresholds(min_supported=0.9), {}, 0),
        ([passed()], Thresholds(min_supported=0.91), {}, MISSED),
        ([passed()], Thresholds(min_quality=0.9), {}, 0),
        ([REFUSED], Thresholds(min_quality=0.1), {}, MISSED),
        ([passed(), REFUSED], Thresholds(min_passed=0.5), {}, 0),
        ([passed(), REFUSED], Thresholds(min_passed=0.6), {}, MISSED),
        ([passed()], Thresholds(), {"not_begun": 3}, AWAY),
        ([passed()], Thresholds(), {"not_begun": 3, "money_spent": True}, STOPPED),
        ([passed()], Thresholds(min_quality=0.95), {"not_begun": 3, "money_spent": True}, MISSED),
    ],
)
def test_exit_codes(results: list[RowResult], thresholds: Thresholds, rest: dict[str, int], code: int) -> None:
    summary = summarise(results, thresholds, not_begun=rest.get("not_begun", 0))
    assert exit_code(summary, results, money_spent=bool(rest.get("money_spent"))) == code
    assert bool(summary.missed) == (code in (MISSED, AWAY) and not (rest and code == AWAY))


def test_a_result_survives_its_line_and_ignores_what_it_does_not_know() -> None:
    result = passed()
    assert RowResult.model_validate_json(result.model_dump_json()) == result
    assert RowResult.model_validate_json('{"key": "a", "status": "passed", "new": 1}').key == "a"
