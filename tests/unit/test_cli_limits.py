"""Limits as they are typed and shown."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.cli.limits import limits_from, moment, named
from marg_ray.cli.words import of_limits, ordinal
from marg_ray.errors import UsageError
from marg_ray.records import Limits
from marg_ray.settings import BudgetSettings

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20m", 1200), ("20min", 1200), ("1h30m", 5400), ("90s", 90), ("2h", 7200), ("1d", 86400), ("1.5h", 5400)],
)
def test_a_duration_counts_from_now(text: str, seconds: float) -> None:
    assert moment(text, NOW) == NOW + timedelta(seconds=seconds)


def test_a_time_of_day_is_the_next_one() -> None:
    for text in ("00:00", "7:05", "12:01", "23:59"):
        due = moment(text, NOW)
        assert NOW < due <= NOW + timedelta(hours=25)  # the night the clocks go back has one more
        hour, minute = map(int, text.split(":"))
        assert (due.astimezone().hour, due.astimezone().minute) == (hour, minute)


def test_an_iso_moment_is_taken_as_it_is() -> None:
    assert moment("2026-03-01T15:00:00+02:00", NOW) == datetime(2026, 3, 1, 13, tzinfo=UTC)
    assert moment("2026-03-01T12:30:00Z", NOW) == NOW + timedelta(minutes=30)
    assert moment("2026-03-02 08:00", NOW) == datetime.fromisoformat("2026-03-02 08:00").astimezone(UTC)


@pytest.mark.parametrize(
    "text", ["soon", "25:00", "12:60", "-5m", "m", "20", "2020-01-01", "0m", "1e9d", "99999999999999d", "\x00"]
)
def test_what_is_no_moment_to_come_is_a_mistake(text: str) -> None:
    with pytest.raises(UsageError, match="deadline"):
        moment(text, NOW)


@given(st.text(max_size=12))
def test_any_text_is_a_moment_to_come_or_a_mistake(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert moment(text, NOW) > NOW


def test_what_is_given_counts_more_than_the_settings() -> None:
    budget = BudgetSettings(usd=1.0, tokens=1000, writer_share=0.2)
    assert limits_from(budget, usd=0.5, minutes=2) == Limits(usd=0.5, tokens=1000, seconds=120, writer_share=0.2)
    assert limits_from(BudgetSettings()) == Limits()
    assert limits_from(budget, usd=0).usd == 0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_limit_that_is_no_number_is_a_mistake(value: float) -> None:
    with pytest.raises(UsageError, match="usd"):
        limits_from(BudgetSettings(), usd=value)


def test_only_what_was_given_is_named() -> None:
    nothing = {"usd": None, "tokens": None, "minutes": None, "searches": None, "tasks": None}
    assert named(**nothing, deadline="") == {}  # type: ignore[arg-type]
    assert named(usd=None, tokens=0, minutes=0.5, deadline="", searches=None, tasks=3) == {
        "tokens": 0,
        "seconds": 30,
        "tasks": 3,
    }


def test_limits_are_shown_with_what_is_used() -> None:
    limits = Limits(tokens=50_000, usd=1, seconds=600, searches=10, tasks=40)
    shown = of_limits(limits, tokens=12_345, usd=0.25, searches=3, tasks=12, seconds=75)
    assert shown == [
        "12,345 of 50,000 tokens",
        "$0.25 of $1.00",
        "1:15 of 10:00",
        "3 of 10 web searches",
        "12 of 40 tasks",
    ]
    assert of_limits(Limits(), tokens=5) == []


def test_places_are_said_in_words() -> None:
    assert [ordinal(n) for n in (1, 3, 10, 11, 12, 13, 21, 22, 23, 111, 1002)] == [
        *("first", "third", "tenth", "11th", "12th", "13th", "21st", "22nd", "23rd", "111th", "1,002nd"),
    ]
