"""The account of a session: what came of it, what it may spend and has spent, who decided what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from marg_ray.cli.words import NARROW, clean, count, dollars, duration, of_limits
from marg_ray.records import Scores, Usage

if TYPE_CHECKING:
    from marg_ray.report.model import Report
    from marg_ray.state import ResearchState
    from marg_ray.store.protocol import LogEntry


@dataclass(frozen=True)
class Closing:
    """The account of a session. `files` are the reports written; `budget` is what was used of each limit."""

    session_id: str
    status: str
    model: str
    elapsed: float
    iterations: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    by_role: Mapping[str, Usage] = field(default_factory=dict)
    scores: Scores | None = None
    citations: str = ""  # how well the report is cited, in words
    files: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()
    stopped: str = ""  # by which limit, if so
    decisions: tuple[str, ...] = ()


def account_of(
    state: ResearchState,
    entries: Sequence[LogEntry],
    *,
    status: str,
    elapsed: float,
    model: str = "",
    files: tuple[str, ...] = (),
    lost: Usage | None = None,
    citations: str = "",
) -> Closing:
    """The account of a session from its log. `lost` is what was reserved for calls that died with their process."""
    from marg_ray.actors.live import worked_before

    spent = total(state)
    counted = spent + (lost or Usage())
    budget = of_limits(
        state.limits,
        tokens=counted.tokens_in + counted.tokens_out,
        usd=counted.cost,
        searches=counted.searches,
        tasks=state.tasks_done,
        seconds=worked_before(list(entries))[1],
    )
    return Closing(
        session_id=state.session_id,
        status=status,
        model=model,
        elapsed=elapsed,
        iterations=state.iteration,
        counts=counts(state),
        usage=spent,
        by_role={str(k): v for k, v in state.usage.items()},
        scores=state.reviews[-1].scores if state.reviews else None,
        citations=citations,
        files=files,
        budget=tuple(budget),
        stopped=stopped_by(state),
        decisions=tuple(n.text for n in state.notes if n.kind in ("gate", "steering")),
    )


def cited_in(report: Report | None) -> str:
    """How well a report is cited, in words; empty where there is none."""
    from marg_ray.report.wording import citation_text

    return citation_text(report).partition(": ")[2] if report is not None else ""


def stopped_by(state: ResearchState) -> str:
    """What a spent limit has stopped, and which, in words; empty where none is spent."""
    told = [n.text for n in state.notes if n.kind == "budget"]
    if not state.budget_stopped or not told:
        return ""
    what, _, why = told[-1].partition(": ")
    return f"{what} by its budget: {why}"


def counts(state: ResearchState) -> dict[str, int]:
    """How much work was done."""
    sections = state.sections.values()
    sentences = [s for x in sections if x.draft for s in x.draft.sentences if s.verdict]
    return {
        "searches": sum(slot.done for x in sections for slot in x.searches) + int(state.scouted),
        "sources": len(state.sources),
        "passages": len(state.evidence),
        "sections": sum(x.draft is not None for x in sections),
        "sentences checked": len(sentences),
    }


def total(state: ResearchState) -> Usage:
    return sum(state.usage.values(), Usage())


def closing_stats(stats: Closing, width: int = 80) -> RenderableType:
    """The account of a run: outcome and totals, then what each role spent."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("status", Text(stats.status, style="green" if stats.status == "passed" else "yellow"))
    facts.add_row("session", Text(clean(stats.session_id)))
    if stats.model:
        facts.add_row("model", Text(clean(stats.model)))
    iterations = f", {count(stats.iterations, 'iteration')}" if stats.iterations else ""
    facts.add_row("time", duration(stats.elapsed) + iterations)
    if stats.counts:
        facts.add_row("work", Text(" · ".join(f"{v:,} {clean(k)}" for k, v in stats.counts.items())))
    if stats.budget or stats.stopped:
        facts.add_row("budget", Text(" · ".join(stats.budget)))
    if stats.stopped:
        facts.add_row("", Text(clean(stats.stopped), style="yellow"))
    for n, line in enumerate(stats.decisions):
        facts.add_row("decided" if n == 0 else "", Text(clean(line)))
    if stats.usage.reused:
        facts.add_row("reused", f"{count(stats.usage.reused, 'call')} answered from the ledger")
    if stats.scores is not None:
        scores = [f"{name} {value:.2f}" for name, value in stats.scores.model_dump().items()]
        facts.add_row("scores", " · ".join(scores))
    if stats.citations:
        facts.add_row("citations", Text(stats.citations))
    for n, path in enumerate(stats.files):
        facts.add_row("report" if n == 0 else "", Text(clean(path)))
    return Group(facts, _spent(stats, width)) if stats.by_role else facts


def _spent(stats: Closing, width: int) -> Table:
    wide = width >= NARROW
    table = Table(
        box=None, padding=(0, 2 if wide else 1, 0, 0), header_style="dim", footer_style="bold", show_footer=True
    )
    table.add_column("role", footer="all", no_wrap=True)
    columns: list[tuple[str, Callable[[Usage], str]]] = [("calls", lambda u: f"{u.calls:,}")]
    if wide:
        columns += [("searches", lambda u: f"{u.searches:,}"), ("pages", lambda u: f"{u.fetches:,}")]
        columns += [("tokens in", lambda u: f"{u.tokens_in:,}"), ("tokens out", lambda u: f"{u.tokens_out:,}")]
    else:
        columns += [("tokens", lambda u: f"{u.tokens_in + u.tokens_out:,}")]
    columns += [("cost", lambda u: dollars(u.cost))]
    if wide:
        columns += [("seconds", lambda u: f"{u.seconds:,.1f}")]
    for name, value in columns:
        table.add_column(name, footer=value(stats.usage), justify="right", no_wrap=True)
    for role, usage in stats.by_role.items():
        table.add_row(Text(clean(str(role))), *(value(usage) for _, value in columns))
    return table
