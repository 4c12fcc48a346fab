"""`marg chat`: talk about your reports and documents in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marg_ray.cli import options as opt


def chat(
    session: Annotated[
        str,
        typer.Argument(help="A finished session (its id, its beginning, or `last`): talk about its report alone."),
    ] = "",
    docs: Annotated[
        list[Path] | None, typer.Option("--docs", "-d", help="A folder (or file) to look into too. Repeatable.")
    ] = None,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Search the web too.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    conversation: Annotated[
        str, typer.Option("--continue", "-c", help="Go on with this conversation (its id), or with the `last` one.")
    ] = "",
    listed: Annotated[bool, typer.Option("--list", help="List your conversations, and end.")] = False,
    model: opt.Model = "",
    as_json: Annotated[bool, typer.Option("--json", help="Answers as JSON, one a line.")] = False,
) -> None:
    """Talk about your reports and documents: answers come from what stands in them, and every sentence is checked.

    A line is a question; where input is no terminal, each line is asked in turn. "remember ..." and "forget ..." change
    what is kept between conversations. Ctrl-C stops an answer, and at the prompt the conversation; Ctrl-D ends it.
    """
    from marg_ray.cli.chat_run import Wanted, list_conversations, run_chat
    from marg_ray.settings import load

    settings = load(model=model or None)
    if listed:
        list_conversations(settings)
        return
    wanted = Wanted(
        session=session,
        docs=tuple(docs or ()),
        web=web and not offline,
        offline=offline,
        conversation=conversation,
        as_json=as_json,
    )
    raise typer.Exit(run_chat(settings, wanted))
