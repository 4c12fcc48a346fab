"""`marg keys`: who may use the HTTP service."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from marg_ray.errors import UsageError
from marg_ray.kinds import Scope

if TYPE_CHECKING:
    from marg_ray.store.protocol import ApiKey

app = typer.Typer(
    name="keys",
    help="Keys of the HTTP service: list them (without a command), make one, end one.",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Owner = Annotated[str, typer.Option("--owner", help="Only this owner's.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@app.callback()
def keys(context: typer.Context, owner: Owner = "", as_json: Json = False) -> None:
    if context.invoked_subcommand is None:
        list_keys(owner, as_json)


@app.command("list")
def list_keys(owner: Owner = "", as_json: Json = False) -> None:
    """List the keys, oldest first. Of their secrets nothing is kept that could be shown."""
    from marg_ray.cli.local import with_store
    from marg_ray.settings import load

    found = with_store(load(), lambda store: store.api_keys(owner))
    if as_json:
        for key in found:
            typer.echo(key.model_dump_json(exclude={"digest"}))
        return
    if not found:
        typer.echo("no keys yet: make one with `marg keys add --owner NAME`", err=True)
        return
    rows = [_row(key) for key in found]
    if not sys.stdout.isatty():  # whole, for other programs
        for row in rows:
            typer.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("key", "state", "made", "last used", "scopes", "owner", "name"):
        table.add_column(column, no_wrap=column != "name", overflow="ellipsis")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


@app.command()
def add(
    owner: Annotated[
        str, typer.Option("--owner", help="Whose sessions, documents and conversations it reaches; no others.")
    ],
    scope: Annotated[
        list[Scope] | None,
        typer.Option(
            "--scope",
            help="read: sessions and reports; research: ask, decide, cancel; library: add and remove documents; "
            "admin: figures over all owners. Repeatable. Without it: all but admin.",
        ),
    ] = None,
    expires: Annotated[
        str, typer.Option("--expires", metavar="WHEN", help='A duration ("90d", "12h") or an ISO date; else never.')
    ] = "",
    name: Annotated[str, typer.Option("--name", help="What it is for, to know it again in the list.")] = "",
) -> None:
    """Make a key. It goes to standard output, this once: only a hash of it is kept."""
    from marg_ray.api.keys import ALL_BUT_ADMIN, new_key
    from marg_ray.cli.local import with_store
    from marg_ray.settings import load

    text, key = new_key(owner, scope or ALL_BUT_ADMIN, name=name, expires_at=_moment(expires))
    with_store(load(), lambda store: store.put_api_key(key))
    typer.echo(text)
    typer.echo(
        f"this is the key of {key.owner}: {', '.join(key.scopes)}. It is not shown again; `marg keys revoke {key.id}` "
        "ends it.",
        err=True,
    )


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="Its id, as listed (or the key itself).")]) -> None:
    """End a key. Servers that run notice within a few seconds."""
    from marg_ray.cli.local import with_store
    from marg_ray.masking import KEY, masked
    from marg_ray.settings import load

    whole = KEY.fullmatch(key)
    key_id = whole[1] if whole else key
    if not with_store(load(), lambda store: store.revoke_api_key(key_id)):
        raise UsageError(f"there is no key {masked(key_id)!r}", "`marg keys` lists them")
    typer.echo(f"{key_id} is revoked", err=True)


def _moment(text: str) -> datetime | None:
    from marg_ray.cli.limits import moment

    try:
        return moment(text) if text else None
    except UsageError:
        raise UsageError(
            f"--expires {text!r} is no moment to come", 'give a duration ("90d", "12h") or an ISO date'
        ) from None


def _row(key: ApiKey) -> tuple[str, ...]:
    return (key.id, _state(key), _day(key.created_at), _day(key.used_at), ",".join(key.scopes), key.owner, key.name)


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "good"
    return f"until {_day(key.expires_at)}" if datetime.now(UTC) < key.expires_at else "expired"


def _day(at: datetime | None) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else "-"
