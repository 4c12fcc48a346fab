"""`marg doctor`: what this machine has, what would be used, and why."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marg_ray.models.endpoints import Endpoint
    from marg_ray.settings import Settings


ANSWERS_WITHIN_S = 3.0
PROBED_WITHIN_S = 60.0  # a local server may have to load the model first


@dataclass(frozen=True)
class Finding:
    name: str
    fine: bool
    detail: str


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="As it would be with --offline.")] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask each model again what it can do; otherwise once a week.")
    ] = False,
) -> None:
    """Show which model and sources would be used, and why; exit 1 where something is broken."""
    import asyncio

    from marg_ray.settings import load

    findings = asyncio.run(_examine(offline, load(), probe))
    for finding in findings:
        if as_json:
            typer.echo(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            typer.echo(f"{'ok ' if finding.fine else 'NO '} {finding.name:10s} {finding.detail}")
    raise typer.Exit(0 if all(f.fine for f in findings) else 1)


async def _examine(offline: bool, settings: Settings, probe: bool = False) -> list[Finding]:
    import platform

    return [
        Finding("python", True, f"{platform.python_version()} on {platform.system()}, {os.cpu_count()} cores"),
        _home(settings),
        *await _store(settings),
        _files(settings),
        _ray(settings),
        *await _model(settings, offline, probe),
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


async def _store(settings: Settings) -> list[Finding]:
    """Where sessions are kept, whether it answers, and what is in its cache. A file that is missing is not made."""
    from marg_ray.actors.assembly import Places
    from marg_ray.cli.words import count
    from marg_ray.errors import MargError
    from marg_ray.store.sql import SqlStore

    places = Places.of(settings)
    where = f"SQLite {places.database}"
    if not places.database_url and not places.database.exists():
        return [Finding("store", True, f"{where}, made by the first session")]
    try:
        where = _address(places.store_url)
        store = await SqlStore.open(places.store_url, retry_s=ANSWERS_WITHIN_S)
        try:
            sessions = len(await store.sessions(limit=100_000))
            kept = await store.cache_counts()
        finally:
            await store.close()
    except MargError as exc:
        return [Finding("store", False, f"{where}: {exc}; {exc.hint}")]
    cached = "; ".join(f"{c.space} {c.entries:,} ({c.hits:,} hits)" for c in kept)
    return [
        Finding("store", True, f"{where}, {count(sessions, 'session')}"),
        Finding("cache", True, cached or "nothing is kept yet"),
    ]


def _address(url: str) -> str:
    """A store's address without its password."""
    import sqlalchemy as sa

    try:
        where = sa.make_url(url)
    except sa.exc.ArgumentError:
        return "store.url"
    if where.get_backend_name() == "sqlite":
        return f"SQLite {where.database}"
    return f"PostgreSQL {where.host or 'on this machine'}/{where.database or ''}"


def _files(settings: Settings) -> Finding:
    from marg_ray.actors.assembly import Places
    from marg_ray.errors import MargError, SessionNotFound

    where = settings.store.files or str(settings.home)
    try:
        Places.of(settings).artefacts.get("0" * 64)
    except SessionNotFound:  # it answers that there is no such file
        pass
    except MargError as exc:
        return Finding("files", False, f"{where}: {exc}; {exc.hint}")
    except Exception as exc:  # each kind of bucket has errors of its own
        return Finding("files", False, f"{where}: {type(exc).__name__}: {' '.join(str(exc).split())[:200]}")
    return Finding("files", True, f"sources and reports in {where}")


def _ray(settings: Settings) -> Finding:
    import importlib.metadata

    address = settings.runtime.ray_address
    where = f"attaches to {address}" if address else "starts on this machine"
    return Finding("ray", True, f"{importlib.metadata.version('ray')}, {where}")


async def _model(settings: Settings, offline: bool, probe: bool) -> list[Finding]:
    """Which models a run would use, and what each endpoint can do."""
    import asyncio

    from marg_ray.actors.assembly import model_name
    from marg_ray.errors import MargError
    from marg_ray.models.select import choose, endpoints_of

    try:
        choice = await choose(settings, offline=offline)
        chosen = Finding("model", True, f"{model_name(choice)}: {choice.why}")
        endpoints = [] if settings.tape.replay else endpoints_of(choice, settings, os.environ)
    except MargError as exc:
        return [Finding("model", False, f"{exc}; {exc.hint}")]
    return [chosen, *await asyncio.gather(*(_endpoint(settings, e, probe) for e in endpoints))]


async def _endpoint(settings: Settings, endpoint: Endpoint, again: bool) -> Finding:
    """What an endpoint can do: as it is remembered, else as it answers now."""
    import asyncio

    from marg_ray.errors import MargError
    from marg_ray.models.prices import price_of
    from marg_ray.models.probe import probe, remember, remembered

    named = f"{endpoint.name} at {endpoint.host}"
    found = None if again else remembered(settings.home, endpoint)
    if found is None:
        quick = settings.models.model_copy(update={"timeout_s": min(settings.models.timeout_s, PROBED_WITHIN_S)})
        try:
            found = await probe(endpoint, quick)
            remember(settings.home, endpoint, found)
        except MargError as exc:
            return Finding("endpoint", False, str(exc))
        except OSError as exc:
            return Finding("endpoint", False, f"{named}: {exc.strerror}")
    price = await asyncio.to_thread(price_of, endpoint)
    costs = {"unknown": "price not known", "local": "on this machine"}.get(price.source, "price known")
    key = "with a key" if endpoint.key else "without a key"
    return Finding("endpoint", True, f"{named}, {key}: {found.in_words()}; {costs}")


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
