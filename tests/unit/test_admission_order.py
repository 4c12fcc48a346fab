from __future__ import annotations

from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.actors.turns import BATCH_EVERY, Turns, Waiting
from marg_ray.records import Priority

NOW, BATCH = Priority.INTERACTIVE, Priority.BATCH


def filled(*sessions: tuple[str, Priority], weights: dict[str, float] | None = None) -> Turns:
    """One session each, named owner + number of arrival."""
    turns = Turns(weights)
    for n, (owner, priority) in enumerate(sessions, 1):
        turns.add(Waiting(f"{owner}{n}", owner, priority, n))
    return turns


def take(turns: Turns) -> str:
    taken = turns.take()
    assert taken is not None
    return taken.session_id


def taker(turns: Turns) -> str:
    taken = turns.take()
    assert taken is not None
    return taken.owner


def one_at_a_time(turns: Turns, rounds: int) -> list[str]:
    """The owners of the sessions that run one after the other."""
    served = []
    for _ in range(rounds):
        taken = turns.take()
        assert taken is not None
        served.append(taken.owner)
        turns.ended(taken.owner)
    return served


def test_an_owners_own_sessions_keep_their_order() -> None:
    turns = filled(*[("a", NOW)] * 4)
    assert [take(turns) for _ in range(4)] == ["a1", "a2", "a3", "a4"]
    assert turns.take() is None


def test_one_session_does_not_wait_for_another_owners_five_hundred() -> None:
    turns = filled(*[("a", NOW)] * 500)
    running = [take(turns) for _ in range(64)]
    turns.add(Waiting("b1", "b", NOW, 501))
    turns.ended("a")
    assert len(running) == 64
    assert take(turns) == "b1"


@pytest.mark.parametrize("late", [1, 10, 100])
def test_nor_where_only_one_session_runs_at_a_time(late: int) -> None:
    turns = filled(*[("a", NOW)] * 500)
    one_at_a_time(turns, late)
    turns.add(Waiting("b1", "b", NOW, 501))
    assert "b" in one_at_a_time(turns, 2)


def test_running_places_follow_the_weights() -> None:
    turns = filled(*[("a", NOW), ("b", NOW), ("c", NOW)] * 40, weights={"a": 4.0, "b": 2.0})
    assert Counter(take(turns)[0] for _ in range(28)) == {"a": 16, "b": 8, "c": 4}


def test_turns_follow_the_weights_where_one_runs_at_a_time() -> None:
    turns = filled(*[("a", NOW), ("b", NOW)] * 60, weights={"a": 3.0})
    served = Counter(one_at_a_time(turns, 40))
    assert abs(served["a"] - 30) <= 2


def test_interactive_goes_first_and_batch_gets_every_eighth() -> None:
    turns = filled(*[("batch", BATCH)] * 10, *[("a", NOW)] * 40)
    served = [take(turns)[0] for _ in range(50)]
    assert [i for i, owner in enumerate(served, 1) if owner == "b"][:5] == [8, 16, 24, 32, 40]
    assert BATCH_EVERY == 8


def test_the_share_of_batch_is_not_saved_up_while_none_waits() -> None:
    turns = filled(*[("a", NOW)] * 60)
    one_at_a_time(turns, 50)
    turns.add(Waiting("batch", "b", BATCH, 99))
    assert one_at_a_time(turns, 3) == ["a", "a", "a"]


def test_an_owner_who_comes_anew_has_no_credit_from_before() -> None:
    turns = filled(("b", NOW), *[("a", NOW)] * 100)
    one_at_a_time(turns, 50)  # b ran once, then asked for nothing
    for n in range(200, 250):
        turns.add(Waiting(f"b{n}", "b", NOW, n))
    served = Counter(one_at_a_time(turns, 20))
    assert abs(served["a"] - served["b"]) <= 2


def test_an_endless_row_of_new_owners_does_not_keep_one_from_its_turn() -> None:
    turns, arrivals = filled(("a", NOW), ("a", NOW)), count(10)
    served = one_at_a_time(turns, 1)
    for _ in range(12):  # always two owners who never came before
        n = next(arrivals)
        turns.add(Waiting(f"x{n}", f"owner {n}", NOW, n))
        if n % 2:
            served += one_at_a_time(turns, 1)
    assert served.count("a") == 2


arrival = st.tuples(st.sampled_from("abcd"), st.sampled_from([NOW, NOW, BATCH]))
weights = st.dictionaries(st.sampled_from("abcd"), st.floats(0.01, 100.0))


@given(st.lists(arrival, max_size=40), weights)
def test_the_order_that_is_shown_is_the_order_of_admission(
    sessions: list[tuple[str, Priority]], w: dict[str, float]
) -> None:
    turns = filled(*sessions, weights=w)
    shown = turns.order()
    assert sorted(shown) == sorted(f"{owner}{n}" for n, (owner, _) in enumerate(sessions, 1))
    assert [take(turns) for _ in sessions] == shown
    assert len(turns) == 0


@given(st.lists(arrival, min_size=1, max_size=40), st.integers(1, 5), weights, st.randoms(use_true_random=False))
def test_everyone_is_admitted_in_the_end(
    sessions: list[tuple[str, Priority]], limit: int, w: dict[str, float], dice: object
) -> None:
    turns, running, admitted = filled(*sessions, weights=w), [], []
    while len(turns) or running:
        while len(running) < limit and (taken := turns.take()) is not None:
            running.append(taken)
            admitted.append(taken.session_id)
        turns.ended(running.pop(dice.randrange(len(running))).owner)  # type: ignore[attr-defined]
    assert sorted(admitted) == sorted(f"{owner}{n}" for n, (owner, _) in enumerate(sessions, 1))


@given(st.integers(1, 8), st.integers(2, 5), st.lists(st.integers(0, 4), max_size=60))
def test_owners_of_one_weight_who_all_wait_run_equally_many(limit: int, owners: int, endings: list[int]) -> None:
    names = "abcde"[:owners]
    turns = filled(*[(o, NOW) for o in names for _ in range(80)])
    running: Counter[str] = Counter()
    for end in [-1] * limit + endings:
        ending = names[end % owners]
        if end >= 0:
            if not running[ending]:
                continue
            running[ending] -= 1
            turns.ended(ending)
            least = min(running[o] for o in names)
            owner = taker(turns)
            assert running[owner] == least
            running[owner] += 1
        else:
            running[taker(turns)] += 1
            assert max(running[o] for o in names) - min(running[o] for o in names) <= 1
