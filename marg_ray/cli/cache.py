"""`marg cache`: what is kept to be answered at once, and how often it was of use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.store.protocol import CacheCount, Store


def cache(
    space: Annotated[str, typer.Argument(help="One kind of what is kept; without it: all.")] = "",
    clear: Annotated[bool, typer.Option("--clear", help="Drop it; what is asked again is fetched again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """List what is kept (reports, searches, pages, embeddings), or clear it. Too old entries are dropped anyway."""
    from marg_ray.cli.local import with_store
    from marg_ray.settings import load

    async def look(store: Store) -> tuple[list[CacheCount], int]:
        await store.cache_drop()
        there = await store.cache_counts()
        known = [c.space for c in there]
        if space and space not in known and not clear:
            raise UsageError(f"nothing is kept under {space!r}", f"there is {', '.join(known) or 'nothing at all'}")
        there = [c for c in there if space in ("", c.space)]
        return there, await store.cache_drop(space, expired=False) if clear else 0

    there, dropped = with_store(load(), look)
    if clear:
        typer.echo(f"{dropped} entries dropped")
        return
    if as_json:
        for row in there:
            typer.echo(row.model_dump_json())
    elif not there:
        typer.echo("nothing is kept", err=True)
    else:
        for row in there:
            typer.echo(f"{row.space:12s} {row.entries:8,d} entries {row.hits:8,d} hits")
