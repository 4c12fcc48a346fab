"""A finished session's report, from the store; or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marg_ray.errors import MargError

if TYPE_CHECKING:
    from marg_ray.report.model import Report
    from marg_ray.settings import Settings
    from marg_ray.state import ResearchState
    from marg_ray.store.protocol import LogEntry, Store


def finished_report(settings: Settings, session: str) -> Report:
    """The report of a session, named by its id, its beginning, or `last`.

    Raises:
        MargError: there is none: no such session, it goes on, or how it ended.
    """
    from marg_ray.cli.local import find_session, with_store
    from marg_ray.client import error_of
    from marg_ray.folding import replay

    async def read(store: Store) -> tuple[str, list[LogEntry]]:
        found = await find_session(store, session)
        return found, await store.read(found)

    session_id, entries = with_store(settings, read)
    state = replay(e.message for e in entries)
    report = stored(settings, state)
    if (error := error_of(state, session_id)) is not None:
        raise error
    if report is None:
        raise Unfinished(session_id, stands(state))
    return report


def stored(settings: Settings, state: ResearchState) -> Report | None:
    from marg_ray.actors.assembly import Places
    from marg_ray.report.model import from_json

    if state.report is None:
        return None
    return from_json(Places.of(settings).artefacts.get(state.report.artefact))


def stands(state: ResearchState) -> str:
    from marg_ray.routing import waiting_for

    if state.paused:
        return "it is paused"
    waits = {"plan": "its plan waits for a decision", "review": "its draft waits for a decision"}
    return waits.get(waiting_for(state), "")


class Unfinished(MargError):
    exit_code = 2

    def __init__(self, session_id: str, stands: str = "") -> None:
        super().__init__(session_id, stands)
        self.session_id, self.stands = session_id, stands

    def __str__(self) -> str:
        return f"session {self.session_id} has no report yet" + (f": {self.stands}" if self.stands else "")

    @property
    def hint(self) -> str:
        decide = f"`marg decide {self.session_id} approve` decides, " if "decision" in self.stands else ""
        return f"{decide}`marg resume {self.session_id}` goes on with it"
