"""`marg mcp`: the tools for a client of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer

from marg_ray.cli import options as opt


def mcp(
    docs: Annotated[
        list[Path] | None, typer.Option("--docs", "-d", help="A folder whose documents can be searched. Repeatable.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    model: opt.Model = "",
) -> None:
    """Offer research, document search and web search to a client of the Model Context Protocol.

    The client starts this command and speaks on its standard input and output; see docs/integrations.md.
    """
    from marg_ray.settings import load
    from marg_ray.sources.library.scan import check_folders

    folders = tuple(folder.expanduser().resolve() for folder in docs or ())
    check_folders(folders)
    settings = load(model=model or None)
    if sys.stdin.isatty():
        typer.echo("marg: waiting for a client on standard input; Ctrl-C ends", err=True)
    from marg_ray.mcp_server import serve

    asyncio.run(serve(settings, folders, offline=offline))
