"""Numbers, times and texts as the terminal shows them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from marg_ray.records import Limits

NARROW = 60
"""Cells; below this width columns are dropped."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def clean(text: str) -> str:
    """One line without control or direction characters: what came from a page cannot move the cursor."""
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") else c for c in text)
    return " ".join(kept.split())


def duration(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(int(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def dollars(cost: float) -> str:
    """US dollars; amounts too small to matter are said to be small rather than zero."""
    if cost <= 0:
        return "$0"
    return "<$0.01" if cost < 0.01 else f"${cost:,.2f}"


def fit(text: str, width: int) -> str:
    """Cut to `width` cells, wide characters counted as two."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def ordinal(number: int) -> str:
    """`third`, `21st`."""
    if 0 < number <= len(_ORDINALS):
        return _ORDINALS[number - 1]
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number:,}{last}"


def of_limits(
    limits: Limits,
    *,
    tokens: int = 0,
    usd: float = 0.0,
    searches: int = 0,
    tasks: int = 0,
    seconds: float = 0.0,
) -> list[str]:
    """What is used of every limit there is: `1,200 of 50,000 tokens`, `$0.31 of $1.00`, `0:40 of 5:00`."""
    used = []
    if limits.tokens is not None:
        used.append(f"{tokens:,} of {limits.tokens:,} tokens")
    if limits.usd is not None:
        used.append(f"{dollars(usd)} of {dollars(limits.usd)}")
    if limits.seconds is not None:
        used.append(f"{duration(seconds)} of {duration(limits.seconds)}")
    if limits.deadline is not None:
        used.append(f"due {limits.deadline.astimezone():%Y-%m-%d %H:%M}")
    if limits.searches is not None:
        used.append(f"{searches:,} of {limits.searches:,} web searches")
    if limits.tasks is not None:
        used.append(f"{tasks:,} of {limits.tasks:,} tasks")
    return used
