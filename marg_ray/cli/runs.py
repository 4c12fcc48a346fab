"""`marg runs`: the sessions there are."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from marg_ray.settings import Settings
    from marg_ray.store.protocol import SessionRow, ShardRow, Store


def runs(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List the sessions, newest first.

    waiting: for a decision; queued: for a place; interrupted: nobody works on it. These and paused or halted ones
    go on with `marg resume`.
    """
    from marg_ray.cli.local import with_store
    from marg_ray.settings import load

    settings = load()

    async def read(store: Store) -> list[SessionRow]:
        rows = await store.sessions(limit=limit)
        if all(row.status != "running" for row in rows):
            return rows
        under_way = await store.sessions(status="running", limit=100_000)
        return shown(rows, under_way, await store.shards(), settings)

    rows = with_store(settings, read)
    if as_json:
        for row in rows:
            typer.echo(row.model_dump_json(exclude={"holder"}))
        return
    if not rows:
        typer.echo("no sessions yet: ask something with `marg research`", err=True)
        return
    if not sys.stdout.isatty():  # whole, for other programs
        for row in rows:
            question = " ".join(row.question.split())
            typer.echo(f"{row.id}\t{row.created_at.astimezone():%Y-%m-%d %H:%M}\t{row.status}\t{question}")
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("session", "when", "status"):
        table.add_column(column, no_wrap=True)
    table.add_column("question", overflow="ellipsis", no_wrap=True)
    for row in rows:
        when = f"{row.created_at.astimezone():%Y-%m-%d %H:%M}"
        table.add_row(row.id, when, row.status, Text(" ".join(row.question.split())))
    Console().print(table)


def shown(
    rows: Sequence[SessionRow], under_way: Sequence[SessionRow], shards: Sequence[ShardRow], settings: Settings
) -> list[SessionRow]:
    """Sessions with the status that holds now, whatever was written last.

    One whose runtime is gone is interrupted. Where a runtime has more sessions than run at once, those that have
    done nothing yet are queued. `under_way` are all with the status "running".
    """
    from marg_ray.cli.local import in_hands

    def status_of(row: SessionRow) -> str:
        if row.status != "running":
            return row.status
        if not in_hands(row, shards, settings.runtime.dead_after_s):
            return "interrupted"
        full = sum(other.holder == row.holder for other in under_way) > settings.admission.sessions
        return "queued" if full and row.seq <= 1 else "running"

    return [row.model_copy(update={"status": status_of(row)}) for row in rows]
