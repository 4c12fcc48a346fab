"""`marg doctor`: what this machine has, what would be used, and why."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marg_ray.settings import Settings


@dataclass(frozen=True)
class Finding:
    name: str
    fine: bool
    detail: str


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="As it would be with --offline.")] = False,
) -> None:
    """Show which model and sources would be used, and why; exit 1 where something is broken."""
    import asyncio

    from marg_ray.settings import load

    findings = asyncio.run(_examine(offline, load()))
    for finding in findings:
        if as_json:
            typer.echo(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            typer.echo(f"{'ok ' if finding.fine else 'NO '} {finding.name:10s} {finding.detail}")
    raise typer.Exit(0 if all(f.fine for f in findings) else 1)


async def _examine(offline: bool, settings: Settings) -> list[Finding]:
    import platform

    return [
        Finding("python", True, f"{platform.python_version()} on {platform.system()}, {os.cpu_count()} cores"),
        _home(settings),
        _ray(settings),
        await _model(settings, offline),
        _embeddings(),
        await _search(settings, offline),
    ]


def _home(settings: Settings) -> Finding:
    home = settings.home
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe = home / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as exc:
        return Finding("home", False, f"{home}: {exc.strerror}; set MARG_HOME to a folder you may write to")
    return Finding("home", True, str(home))


def _ray(settings: Settings) -> Finding:
    import importlib.metadata

    address = settings.runtime.ray_address
    where = f"attaches to {address}" if address else "starts on this machine"
    return Finding("ray", True, f"{importlib.metadata.version('ray')}, {where}")


async def _model(settings: Settings, offline: bool) -> Finding:
    from marg_ray.actors.assembly import model_name
    from marg_ray.errors import MargError
    from marg_ray.models.select import choose

    try:
        choice = await choose(settings, offline=offline)
    except MargError as exc:
        return Finding("model", False, f"{exc}; {exc.hint}")
    return Finding("model", True, f"{model_name(choice)}: {choice.why}")


def _embeddings() -> Finding:
    from marg_ray.models.embeddings import weights

    try:
        folder = weights()
    except ImportError as exc:
        return Finding("embeddings", False, f"the package with the MiniLM weights is missing: {exc}")
    return Finding("embeddings", folder.is_dir(), f"all-MiniLM-L6-v2 from {folder}")


async def _search(settings: Settings, offline: bool) -> Finding:
    from marg_ray.sources.web.network import network_reachable

    if offline:
        return Finding("web", True, "not used: offline")
    engines = [e for e in settings.search.engines if e != "searxng" or settings.search.searxng_url]
    if await network_reachable():
        return Finding("web", True, f"the network answers; engines: {', '.join(engines)}")
    return Finding("web", True, "no network: only documents (--docs) can be researched")
