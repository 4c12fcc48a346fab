"""What a call reserves: a bound for money, what is to be expected for tokens, and more before each further try."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.errors import BudgetExceeded, ModelError
from marg_ray.models.estimates import Allowance, Calibration, carrying, most_tokens
from marg_ray.records import Usage


@given(st.text())
def test_the_bound_is_one_token_a_byte(text: str) -> None:
    assert most_tokens([text]) >= len(text.encode("utf-8", "surrogatepass"))


class TestAllowance:
    async def test_only_what_is_not_reserved_is_asked_for(self) -> None:
        asked: list[Usage] = []

        async def allow(more: Usage) -> None:
            asked.append(more)

        allowance = Allowance(Usage(calls=1, tokens_in=100, tokens_out=50, cost=1.0), allow)
        await allowance.need(Usage(calls=1, tokens_in=100, tokens_out=50, cost=0.5))
        assert asked == []
        await allowance.need(Usage(calls=2, tokens_in=180, tokens_out=40, cost=1.5))
        await allowance.need(Usage(calls=2, tokens_in=180, tokens_out=40, cost=1.5))
        assert asked == [Usage(calls=1, tokens_in=80, cost=0.5)]

    async def test_without_a_ledger_there_is_nothing_to_ask(self) -> None:
        await Allowance(Usage(), None).need(Usage(cost=5.0))

    async def test_what_was_refused_is_not_reserved(self) -> None:
        async def refuse(_: Usage) -> None:
            raise BudgetExceeded("usd", 1, 1)

        allowance = Allowance(Usage(), refuse)
        for _ in range(2):
            with pytest.raises(BudgetExceeded):
                await allowance.need(Usage(cost=1.0))


class TestCalibration:
    MOST = Usage(calls=1, tokens_in=1000, tokens_out=1000, cost=0.5)

    def test_until_enough_was_seen_the_estimate_stands(self) -> None:
        calibration = Calibration()
        for _ in range(Calibration.LEAST - 1):
            calibration.saw("m", "DraftSection", self.MOST, Usage(calls=1, tokens_in=500))
        assert calibration.expected("m", "DraftSection", self.MOST) == self.MOST

    def test_it_follows_what_was_used_and_leaves_the_money_at_its_bound(self) -> None:
        calibration = Calibration()
        for used in range(100, 1100, 100):
            calibration.saw("m", "DraftSection", self.MOST, Usage(calls=1, tokens_in=used))
        expected = calibration.expected("m", "DraftSection", self.MOST)
        assert expected.tokens_in + expected.tokens_out == 1000  # the largest of ten
        assert expected.cost == self.MOST.cost
        assert calibration.expected("m", "ReviewReport", self.MOST) == self.MOST
        assert calibration.expected("n", "DraftSection", self.MOST) == self.MOST

    def test_it_corrects_an_estimate_that_is_too_small_and_counts_tries_apart(self) -> None:
        calibration = Calibration()
        for _ in range(3):
            calibration.saw("m", "k", self.MOST, Usage(calls=2, tokens_in=6000))
        assert calibration.expected("m", "k", self.MOST).tokens_in == 1500

    def test_only_the_last_calls_count(self) -> None:
        calibration = Calibration()
        for used in [2000] * Calibration.KEPT + [200] * Calibration.KEPT:
            calibration.saw("m", "k", self.MOST, Usage(calls=1, tokens_in=used))
        assert calibration.expected("m", "k", self.MOST).tokens_in == 100


def test_an_error_carries_what_was_spent_before() -> None:
    error = ModelError("x")
    error.spent = Usage(calls=1)
    with pytest.raises(ModelError) as raised, carrying(Usage(calls=2, cost=0.5)):
        raise error
    assert raised.value.spent == Usage(calls=3, cost=0.5)
