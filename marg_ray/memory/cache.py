"""The query cache: the same question with the same settings over the same sources has its report already."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from marg_ray.errors import MargError
from marg_ray.memory.spaces import CacheStore, Space, key_of, version
from marg_ray.messages import (
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    ReportReady,
    ReviewDecided,
    Steered,
    TaskFailed,
)
from marg_ray.records import GateMode, Record, ReportStatus, Request
from marg_ray.seams import Offload, in_thread
from marg_ray.settings import Settings

SPACE = "report"
CHANGES_NO_ANSWER = frozenset({"owner", "priority", "limits", "on_timeout", "gate_timeout_s", "fresh"})
"""Fields of a request that do not change its report. The owner has a part of the key to itself; a report that a limit
cut short is not kept, so that limits make no difference. A new field changes the answer until it stands here."""
KEPT = frozenset({ReportStatus.PASSED, ReportStatus.QUALITY_WARNING})
_TRAILING = re.compile(r"[\s.?!…。？！؟¿¡;:,]+$")


class KeptReport(Record):
    """Where the report of an earlier session is."""

    session_id: str
    artefact: str  # SHA-256 of the report's JSON


@dataclass(frozen=True)
class Asked:
    """A request as the cache knows it; `key` is empty where its answer can be neither found nor kept."""

    key: str
    kept: KeptReport | None = None


def normalised(question: str) -> str:
    """A question without what makes no difference to its answer: case, white space, width, closing punctuation."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", question).casefold())
    return _TRAILING.sub("", " ".join(folded.split()))


def query_key(request: Request, *, model: str, sources: str, settings: str = "") -> str:
    """SHA-256 over everything that changes the answer: request, model, settings, sources, and the package's version."""
    from marg_ray.report.model import SCHEMA_VERSION

    fields = request.model_dump(mode="json", exclude=set(CHANGES_NO_ANSWER))
    fields["question"] = normalised(request.question)
    fields["sources"]["folders"] = sorted(set(request.sources.folders))
    return key_of(request.owner, fields, model, sources, settings, version(), SCHEMA_VERSION)


def answer_settings(settings: Settings) -> str:
    """The settings that change an answer, as JSON; those of time, money and number only change how it comes about."""
    who = {"fast", "strong", "base_url", "roles", "fallback", "tiers"}
    models = {*who, "context_tokens", "temperature", "temperatures"}
    kept = {
        "models": settings.models.model_dump(mode="json", include=models),
        "search": settings.search.model_dump(mode="json", include={"engines", "searxng_url", "results"}),
        "fetch": settings.fetch.model_dump(mode="json", include={"max_bytes"}),
        "library": settings.library.model_dump(mode="json"),
        "grounding": settings.grounding.model_dump(mode="json"),
    }
    if settings.mcp.servers:
        kept["mcp"] = settings.mcp.model_dump(mode="json", include={"servers"})
    return json.dumps(kept, sort_keys=True)


def source_fingerprint(folders: Sequence[str], provided: Sequence[str], *, max_bytes: int, home: Path) -> str:
    """Changes when a file of the folders that would be read changes (by size or time), appears or goes. Blocking.

    Raises:
        UsageError: a folder is not there, or may not be read.
    """
    from marg_ray.sources.library.scan import scan

    found = scan(tuple(map(Path, sorted(set(folders)))), max_bytes, home)
    digest = hashlib.sha256()
    for path in sorted(found.files):
        file = found.files[path]
        digest.update(f"{path}\0{file.size}\0{file.mtime_ns}\n".encode())
    for path, why in sorted(found.failed):
        digest.update(f"{path}\0{why}\n".encode())
    digest.update("\0".join(provided).encode())
    return digest.hexdigest()


def may_answer(request: Request) -> bool:
    """Whether a stored report may answer it: not where its owner wants to decide on the plan or on the delivery."""
    return not request.approve_plan and request.gate is not GateMode.ALWAYS


def worth_keeping(log: Iterable[Message]) -> bool:
    """Whether a session's report is what the same request would get again.

    Only a report that was finished: passed, or with the warning that it bears. Not one that a limit cut short, that
    somebody steered or decided on, or that a failed task has left a gap in: asked again, it may come out better.
    """
    status = None
    for message in log:
        match message:
            case Steered() | PlanEdited() | PlanDecided() | ReviewDecided() | LimitReached() | TaskFailed():
                return False
            case ReportReady():
                status = message.status
            case _:
                pass
    return status in KEPT


class QueryCache:
    """Finished reports by what was asked. Owners never see each other's."""

    def __init__(self, store: CacheStore, settings: Settings, *, model: str, offload: Offload = in_thread) -> None:
        self.space = Space(store, SPACE, settings.cache.report_s)
        self._settings, self._model, self._offload = settings, model, offload
        self._answer_settings = answer_settings(settings)

    async def ask(self, request: Request) -> Asked:
        """The request's key, and the report that it has already; a `fresh` one looks for none."""
        key = await self._key(request)
        if not key or request.fresh:
            return Asked(key)
        return Asked(key, await self.space.read(key, KeptReport.model_validate_json))

    async def keep(self, request: Request, asked: Asked, log: Iterable[Message], report: KeptReport) -> bool:
        """Keep a finished session's report, if it is worth it and its sources are still those that were asked."""
        if not asked.key or not worth_keeping(log) or await self._key(request) != asked.key:
            return False
        await self.space.write(asked.key, report.model_dump_json())
        return True

    async def _key(self, request: Request) -> str:
        if self.space.ttl_s <= 0 or not may_answer(request):
            return ""
        folders, provided = request.sources.folders, request.provided
        max_bytes = int(self._settings.library.max_file_mb * 2**20)
        try:
            sources = await self._offload(
                source_fingerprint, folders, provided, max_bytes=max_bytes, home=self._settings.home
            )
        except (MargError, OSError):  # the run itself says what is wrong with its folders
            return ""
        return query_key(request, model=self._model, sources=sources, settings=self._answer_settings)
