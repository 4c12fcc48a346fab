"""Limits as they are typed, and as they are shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.records import Limits
    from marg_ray.settings import BudgetSettings

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_FORMS = 'give a time ("17:30"), a duration ("20m", "1h30m"), or an ISO date and time'


def limits_from(
    defaults: BudgetSettings,
    *,
    usd: float | None = None,
    tokens: int | None = None,
    minutes: float | None = None,
    deadline: str = "",
    searches: int | None = None,
    tasks: int | None = None,
) -> Limits:
    """A session's limits: what was asked for, else what the settings say.

    Raises:
        UsageError: a limit is no number, or the deadline is no moment to come.
    """
    given = named(usd=usd, tokens=tokens, minutes=minutes, deadline=deadline, searches=searches, tasks=tasks)
    return limits(**{**defaults.model_dump(), **given})


def named(
    *,
    usd: float | None,
    tokens: int | None,
    minutes: float | None,
    deadline: str,
    searches: int | None,
    tasks: int | None,
) -> dict[str, Any]:
    """The limits that were given, under the names of `Limits`."""
    seconds = None if minutes is None else minutes * 60
    given: dict[str, Any] = {"usd": usd, "tokens": tokens, "seconds": seconds, "searches": searches, "tasks": tasks}
    if deadline:
        given["deadline"] = moment(deadline)
    return {k: v for k, v in given.items() if v is not None}


def limits(**values: Any) -> Limits:
    """Checked limits.

    Raises:
        UsageError: a value is no number, or out of its range.
    """
    from pydantic import ValidationError

    from marg_ray.records import Limits

    endless = [k for k, v in values.items() if isinstance(v, float) and not abs(v) < float("inf")]
    if endless:
        raise UsageError(f"the limit {endless[0]} is no number", "leave it out for no limit")
    try:
        return Limits(**values)
    except ValidationError as exc:
        first = exc.errors(include_input=False, include_url=False)[0]
        raise UsageError(f"the limit {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def moment(text: str, now: datetime | None = None) -> datetime:
    """A moment to come, in UTC, from a time of day (the next one), a duration, or an ISO date and time.

    Without a zone it is one of this machine's clock.

    Raises:
        UsageError: it is none of these, or past.
    """
    now = (now or datetime.now(UTC)).astimezone()
    due = _moment(text.strip().casefold(), now)
    if due is None:
        raise UsageError(f"{text!r} is no deadline", _FORMS)
    if due <= now:
        raise UsageError(f"the deadline {text!r} is past", _FORMS)
    return due.astimezone(UTC)


def _moment(text: str, now: datetime) -> datetime | None:
    if clock := _CLOCK.fullmatch(text):
        today = now.replace(tzinfo=None, hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        due = today.astimezone()  # of the local zone, summer time or not
        return due if due > now else (today + timedelta(days=1)).astimezone()
    try:
        if text and (span := _DURATION.fullmatch(text)) and any(span.groups()):
            days, hours, minutes, seconds = (float(part or 0) for part in span.groups())
            return now + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        return datetime.fromisoformat(text.upper()).astimezone()
    except (ValueError, OverflowError):
        return None
