"""From a body to a session under way, or to the report that the same question has had already."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from marg_ray.actors.coordinator import new_session_id
from marg_ray.actors.keys import digests
from marg_ray.api.callers import Caller
from marg_ray.api.refusals import TooLarge
from marg_ray.api.schemas import Links, ResearchIn, ResearchOut
from marg_ray.api.service import Service
from marg_ray.errors import KeyReused, MargError, UsageError
from marg_ray.records import Limits, Request, SourceChoice
from marg_ray.seams import in_thread
from marg_ray.sources.library.scan import check_folders
from marg_ray.sources.queries import clean_question

EVERYBODYS = ("knowledge", "snapshots", "reports")  # folders in home, with what belongs to any owner


async def ask(service: Service, who: Caller, body: ResearchIn, key: str = "") -> ResearchOut:
    """Take a question on; one that has its report already starts nothing.

    `key` is an idempotency key: the same body with it gives the same session, also after a restart.

    Raises:
        UsageError: it cannot be researched as it was asked.
        TooLarge: the question is longer than the service takes.
        KeyReused: the key came with another body before.
        TooBusy: too many sessions wait already.
    """
    request = await request_of(service, who, body)
    kept = await _kept(service, request)
    if kept:
        session_id = await _tied(service, request, key, kept)
    else:
        session_id = await service.sessions.submit(new_session_id(), request, key)
    row = await service.store.session(session_id)
    return ResearchOut(id=session_id, status=row.status, cached=session_id == kept, links=Links.of(session_id))


async def request_of(service: Service, who: Caller, body: ResearchIn) -> Request:
    """The body as the runtime takes it. Whose it is follows from the caller alone."""
    longest = service.settings.service.max_question
    if len(body.question) > longest:
        raise TooLarge("the question", f"{longest:,} letters")
    question = clean_question(body.question)
    limits = body.limits.limits(_own_limits(service))
    if limits.deadline is not None and limits.deadline <= datetime.now(UTC):
        raise UsageError("limits.deadline is past", "give a moment to come")
    sources = await _sources(service, who, body)
    same = body.model_dump(exclude={"question", "sources", "text", "outline", "limits"})
    return Request(
        **same,
        question=question,
        outline=tuple(section.entry() for section in body.outline),
        sources=sources,
        provided=tuple([await _frozen(service, n, text) for n, text in enumerate(body.text, 1)]),
        limits=limits,
        owner=who.owner,
    )


def _own_limits(service: Service) -> Limits:
    """What a session may spend that names no limits."""
    return Limits(**{name: value for name, value in service.settings.budget if value is not None})


async def _sources(service: Service, who: Caller, body: ResearchIn) -> SourceChoice:
    wanted = body.sources
    if wanted.web and service.offline:
        raise UsageError("this server is offline: it searches no web", "leave sources.web out")
    folders = await _named(service, who, wanted.folders)
    if wanted.shared:
        folders += [str(folder) for folder in service.shared if str(folder) not in folders]
    if wanted.library:
        folders += await _library(service, who, otherwise=bool(folders or body.text))
    elsewhere = bool(folders or body.text)
    web = (not elsewhere if wanted.web is None else wanted.web) and not service.offline
    others = bool(service.settings.mcp.servers) and wanted.mcp and not service.offline
    if not web and not elsewhere and not others:
        raise UsageError(
            "there is nothing to search: no documents, and no web", "upload documents, hand in a text, or allow the web"
        )
    return SourceChoice(folders=tuple(folders), web=web, offline=service.offline, mcp=wanted.mcp)


async def _named(service: Service, who: Caller, folders: Sequence[str]) -> list[str]:
    """Folders that the caller names: only who works on this machine may, else anybody could read its files."""
    if folders and who.key_id:
        raise UsageError(
            "sources.folders can be named only without a key, on the server's own machine",
            "upload the documents, and ask with sources.library",
        )
    relative = [folder for folder in folders if not Path(folder).is_absolute()]
    if relative:
        raise UsageError(f"the folder {relative[0]!r} is no full path", "begin it with a slash")
    return await in_thread(_checked, folders, service.settings.home)


def _checked(folders: Sequence[str], home: Path) -> list[str]:
    try:
        resolved = tuple(Path(folder).resolve() for folder in folders)
        for folder in resolved:
            if any(folder.is_relative_to(home.resolve() / place) for place in EVERYBODYS):
                raise UsageError(f"the folder {str(folder)!r} is the server's own", "name one of your documents")
        check_folders(resolved)
    except (OSError, RuntimeError, ValueError) as exc:  # a name that is too long, a link to itself
        raise UsageError(f"a folder cannot be read: {exc}", "check the paths") from None
    return list(dict.fromkeys(map(str, resolved)))


async def _library(service: Service, who: Caller, *, otherwise: bool) -> list[str]:
    """The folder of the caller's documents, where there are any."""
    from marg_ray.api.library import folder_of

    folder = folder_of(service, who.owner)
    if await in_thread(_holds_something, folder):
        return [str(folder)]
    if otherwise:
        return []
    raise UsageError("your library is empty", "upload documents to /v1/knowledge first")


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


async def _frozen(service: Service, number: int, text: str) -> str:
    """The id of a text that was handed in, kept as a snapshot."""
    from marg_ray.grounding.injection import cut_injections
    from marg_ray.sources.parse import parse

    document = await service.offload(parse, text.encode(), name=f"text {number}.txt")
    return await in_thread(service.places.snapshots.put, await in_thread(cut_injections, document))


async def _kept(service: Service, request: Request) -> str:
    """The session whose report answers the request; empty where there is none, or its report is not whole."""
    kept = None if request.fresh else await service.sessions.known(request)
    if kept is None:
        return ""
    try:
        await in_thread(service.places.artefacts.get, kept.artefact)
        row = await service.store.session(kept.session_id)
    except MargError:  # it is gone, or damaged: research again
        return ""
    return row.id if row.owner == request.owner else ""


async def _tied(service: Service, request: Request, key: str, kept: str) -> str:
    """The session that the key stands for: an earlier one, or from now on the one whose report is there."""
    if not key:
        return kept
    name, body = digests(key, request)
    session_id, first = await service.store.claim_key(request.owner, name, body, kept)
    if first != body:
        raise KeyReused(session_id)
    return session_id
