"""Limits that know what is used of them, and what may still be done."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.budget import Budget, Granted, Limit, Refused, Wait, bounded, measured
from marg_ray.records import Limits, Role, Usage

WRITERS = [Role.PLANNER, Role.SYNTHESIZER, Role.CRITIC, Role.FORMATTER, Role.ASSISTANT]
RESEARCHERS = [Role.RESEARCHER, Role.ANALYST]


def tokens(n: int) -> Usage:
    return Usage(calls=1, tokens_in=n - n // 3, tokens_out=n // 3)


class TestLimit:
    def test_it_knows_used_left_and_exceeded(self) -> None:
        limit = Limit("tokens", 100, spent=60, reserved=30)
        assert (limit.used, limit.left, limit.exceeded) == (90, 10, False)
        over = Limit("usd", 1.0, spent=1.5)
        assert (over.left, over.exceeded) == (0, True)


class TestAdmission:
    def test_without_limits_everything_is_granted(self) -> None:
        assert Budget().admit(tokens(10**9), Role.RESEARCHER) == Granted()
        assert not bounded(Limits(tasks=3, seconds=1.0))
        assert bounded(Limits(searches=0))

    @pytest.mark.parametrize("role", RESEARCHERS)
    def test_research_leaves_the_writers_share(self, role: Role) -> None:
        budget = Budget(Limits(tokens=1000, writer_share=0.4))
        assert budget.admit(tokens(600), role) == Granted()
        assert budget.admit(tokens(601), role) == Refused(Limit("research tokens", 600))

    @pytest.mark.parametrize("role", WRITERS)
    def test_writing_may_use_all_of_it(self, role: Role) -> None:
        budget = Budget(Limits(tokens=1000)).settle(Usage(), tokens(600), Role.RESEARCHER)
        assert budget.admit(tokens(400), role) == Granted()
        assert isinstance(budget.admit(tokens(401), role), Refused)

    def test_what_writing_has_used_does_not_narrow_researchs_part(self) -> None:
        budget = Budget(Limits(usd=1.0)).settle(Usage(), Usage(cost=0.3), Role.SYNTHESIZER)
        assert budget.admit(Usage(cost=0.6), Role.RESEARCHER) == Granted()
        assert isinstance(budget.admit(Usage(cost=0.7), Role.RESEARCHER), Refused)

    def test_only_reservations_in_the_way_are_waited_for(self) -> None:
        budget = Budget(Limits(tokens=1000)).reserve(tokens(500), Role.SYNTHESIZER)
        budget = budget.settle(Usage(), tokens(200), Role.SYNTHESIZER)
        assert isinstance(budget.admit(tokens(800), Role.CRITIC), Wait)
        assert isinstance(budget.admit(tokens(801), Role.CRITIC), Refused)
        assert budget.settle(tokens(500), Usage(), Role.SYNTHESIZER).admit(tokens(800), Role.CRITIC) == Granted()

    def test_what_a_call_does_not_use_is_no_limit_of_it(self) -> None:
        spent = Budget(Limits(tokens=10, usd=0.0, searches=2)).settle(Usage(), tokens(50), Role.RESEARCHER)
        assert spent.admit(Usage(searches=2), Role.RESEARCHER) == Granted()
        assert spent.admit(Usage(fetches=1), Role.RESEARCHER) == Granted()
        assert isinstance(spent.admit(Usage(searches=3), Role.RESEARCHER), Refused)
        assert spent.admit(Usage(cost=1e-9), Role.PLANNER) == Refused(Limit("usd", 0.0))

    def test_the_state_of_all_limits_can_be_shown(self) -> None:
        budget = Budget(Limits(tokens=100, usd=2.0)).settle(Usage(), Usage(tokens_in=7, cost=0.5), Role.ANALYST)
        assert budget.state() == (Limit("tokens", 100, 7.0), Limit("usd", 2.0, 0.5))


calls = st.lists(
    st.tuples(
        st.sampled_from(list(Role)), st.integers(0, 400), st.integers(0, 400), st.floats(0, 0.4), st.floats(0, 0.4)
    ),
    max_size=40,
)


@given(calls, st.integers(0, 2000), st.floats(0, 2), st.floats(0, 0.9), st.data())
def test_whatever_comes_no_limit_is_passed_while_calls_keep_to_their_estimates(
    asked: list[tuple[Role, int, int, float, float]], most: int, usd: float, share: float, data: st.DataObject
) -> None:
    budget = Budget(Limits(tokens=most, usd=usd, writer_share=share))
    open_calls: list[tuple[Usage, Usage, Role]] = []
    for role, a, b, c, d in asked:
        estimate, used = Usage(tokens_in=max(a, b), cost=max(c, d)), Usage(tokens_in=min(a, b), cost=min(c, d))
        if budget.admit(estimate, role) == Granted():
            budget = budget.reserve(estimate, role)
            open_calls.append((estimate, used, role))
        one_ends = data.draw(st.booleans())
        if open_calls and one_ends:
            budget = budget.settle(*open_calls.pop(data.draw(st.integers(0, len(open_calls) - 1))))
        research, total = budget.research.spent, budget.research.spent + budget.writing.spent
        for limit, all_of_it, part in (
            (most, measured(total, "tokens"), measured(research, "tokens")),
            (usd, measured(total, "usd"), measured(research, "usd")),
        ):
            assert all_of_it <= limit * (1 + 1e-9)
            assert part <= limit * (1 - share) * (1 + 1e-9) + 1e-12
    for call in open_calls:
        budget = budget.settle(*call)
    assert budget.idle().research.reserved == Usage()
