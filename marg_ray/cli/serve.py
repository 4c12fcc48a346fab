"""`marg serve`: the HTTP service and its page, on this machine or in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from marg_ray.cli import options as opt


def serve(
    host: Annotated[
        str | None,
        typer.Option(help="Where it listens; 0.0.0.0 = wherever this machine is reached. Default: 127.0.0.1."),
    ] = None,
    port: Annotated[int | None, typer.Option("--port", "-p", min=1, max=65_535, help="Default: 8080.")] = None,
    docs: Annotated[
        list[Path] | None,
        typer.Option("--docs", "-d", help="A folder (or file) that everybody may research in. Repeatable."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Let nothing leave this machine.")] = False,
    model: opt.Model = "",
    replicas: Annotated[
        int | None, typer.Option("--replicas", min=1, help="Processes that answer requests. Default: 1.")
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Serve the HTTP API and the web page until Ctrl-C.

    Without a key only this machine is answered; elsewhere every request needs one (`marg keys add`). Sessions that a
    server leaves behind when it ends go on with the next one.
    """
    from marg_ray.cli.serve_run import Wanted, run_service
    from marg_ray.settings import load

    named: dict[str, Any] = {"host": host, "port": port, "replicas": replicas}
    service = {name: value for name, value in named.items() if value is not None}
    settings = load(model=model or None, service=service or None)
    raise typer.Exit(run_service(settings, Wanted(tuple(docs or ()), offline, browser)))
