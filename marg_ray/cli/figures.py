"""A run's figures on the terminal: what each stage used, which tier did it, what raising a task bought."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from marg_ray.cli.words import clean, count, dollars

if TYPE_CHECKING:
    from marg_ray.actors.metrics import RaisedFigures, RunMetrics
    from marg_ray.store.protocol import CallRow, LogEntry


def figures_of(entries: list[LogEntry], calls: list[CallRow]) -> RunMetrics:
    """The figures as the log and the ledger have them now: of a run that still goes on as well."""
    from marg_ray.actors.live import status_word, worked_before
    from marg_ray.actors.metrics import metrics_of

    state, worked = worked_before(entries)
    return metrics_of(state, entries, status_word(state), worked, calls)


def figures_table(metrics: RunMetrics) -> RenderableType:
    """What was spent by stage and by tier; nothing of tiers where there is one model."""
    parts: list[RenderableType] = []
    if metrics.spent:
        rows = [(k, u.calls, u.tokens_in, u.tokens_out, u.cost) for k, u in metrics.spent.items()]
        heads = ("stage", "calls", "tokens in", "tokens out", "cost")
        parts.append(_table(heads, ((k, f"{c:,}", f"{i:,}", f"{o:,}", dollars(d)) for k, c, i, o, d in rows)))
    if len(metrics.tiers) > 1:
        tiers = metrics.tiers.items()
        cells = (
            (k, f"{t.calls:,}", f"{t.share:.0%}", f"{t.useless:,}", f"{t.tokens:,}", dollars(t.usd)) for k, t in tiers
        )
        parts.append(_table(("tier", "calls", "share", "useless", "tokens", "cost"), cells))
        parts.append(Text(raised_text(metrics.raised)))
    return Group(*parts)


def raised_text(raised: RaisedFigures) -> str:
    """What raising tasks to the strong tier bought, in words."""
    if not raised.times:
        return "raised to the strong tier: nothing"
    stages = ", ".join(f"{clean(stage)} {n:,}" for stage, n in raised.stages.items())
    spent = f"{count(raised.tokens, 'token')}, {dollars(raised.usd)}"
    vain = f"{count(raised.vain_tokens, 'token')}, {dollars(raised.vain_usd)} before in vain"
    times = count(raised.times, "time")
    return f"raised to the strong tier: {times} ({stages}), {raised.passed:,} passed; {spent}; {vain}"


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for n, head in enumerate(heads):
        table.add_column(head, justify="right" if n else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(clean(cell)) for cell in row))
    return table
