"""DUR-01: a run over four sections is killed at six moments, and a store that is away. On a real database file."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors import coordinator as coordinator_module
from marg_ray.actors import handing as handing_module
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.faults import Faults
from marg_ray.actors.holder import this_process
from marg_ray.errors import SessionMoved, StaleEpoch, StoreUnavailable
from marg_ray.folding import replay
from marg_ray.models.canned import with_mark
from marg_ray.models.client import Call
from marg_ray.models.tasks import ClaimIdea, ClaimIdeas, DraftSection, ExtractClaims, FreeText, ReviewReport
from marg_ray.records import Request
from marg_ray.report.markdown import to_markdown
from marg_ray.report.model import Report, from_json, to_json
from marg_ray.report.writers import write_report
from marg_ray.routing import waiting_for
from marg_ray.state import ResearchState
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.flow import LIMIT_S, engine_over, page
from tests.lives import SESSION, Life, Server, whole_log
from tests.report_sample import inputs
from tests.shared import ROOT

SECTIONS = ("Sites", "Cost", "Birds", "Outlook")
TEXTS = {
    f"https://tides.test/{n}": (
        title,
        f"Tidal power stations and their {title.lower()} are described here. "
        f"The line SECTION-{n}-TEXT stands in the report on the {title.lower()} of tidal power stations.",
    )
    for n, title in enumerate(SECTIONS, 1)
}


class Scenario(Server):
    """Counts calls for each task; section n answers with the line SECTION-n-TEXT."""

    def __init__(self) -> None:
        super().__init__({ExtractClaims: _own_line, DraftSection: _the_line, ReviewReport: lambda task, good: good})
        self.asked_for: Counter[str] = Counter()
        self.at_call: dict[str, Callable[[], None]] = {}  # what happens while a task's call is open, once

    async def run(self, task: Any, call: Call) -> Any:
        self.asked_for[call.task_id] += 1
        if (happens := self.at_call.pop(call.task_id, None)) is not None:
            happens()
        return await super().run(task, call)


def _own_line(task: ExtractClaims, good: ClaimIdeas) -> ClaimIdeas:
    line = f"SECTION-{SECTIONS.index(task.section_title) + 1}-TEXT"
    found = [s for p in task.passages for s in p.text.split(". ") if line in s]
    return ClaimIdeas(claims=[ClaimIdea(claim=s, quote=s) for s in found]) if found else good


def _the_line(task: DraftSection, good: FreeText) -> FreeText:
    line = f"SECTION-{SECTIONS.index(task.section_title) + 1}-TEXT"
    return FreeText(markdown="\n\n".join(with_mark(c.quote, c.number) for c in task.evidence if line in c.quote))


def request(**fields: object) -> Request:
    outline = [{"title": title} for title in SECTIONS]
    asked = {"question": "How do tidal power stations stand?", "outline": outline, "on_timeout": "wait"}
    return Request.model_validate(asked | fields)


async def follow(coordinator: Coordinator, asked: Request) -> str:
    """To the end, or to a gate; returns the status."""
    await coordinator.submit(SESSION, asked)
    async with asyncio.timeout(LIMIT_S):
        after = 0
        while True:
            try:
                progress = await coordinator.progress(SESSION, after)
            except StoreUnavailable:
                continue
            after += len(progress.entries)
            if progress.status != "running":
                return progress.status


class Place:
    """The database file and the folder; each life opens the store anew."""

    def __init__(self, folder: Path, server: Scenario) -> None:
        self.folder, self.server = folder, server

    async def life(
        self, faults: Faults | None = None, asked: Request | None = None, dies_in_call: str = ""
    ) -> ResearchState:
        """One process, from its start to its end or death; returns what is on disk then."""
        async with self.store() as disk:
            pages = {url: page(*text) for url, text in TEXTS.items()}
            life = Life(self.folder, self.server, pages, (engine_over(TEXTS),), disk=disk, faults=faults or Faults())
            if dies_in_call:
                self.server.at_call[dies_in_call] = life.kill

            async def drive(coordinator: Coordinator) -> None:
                await follow(coordinator, asked or request())

            self.died = await life.live(drive)
            self.artefacts = life.artefacts
            self.settled = {row.call.task_id for row in await disk.calls(SESSION) if row.status == "settled"}
            return replay(e.message for e in await whole_log(disk))

    @asynccontextmanager
    async def store(self) -> AsyncIterator[SqlStore]:
        store = await SqlStore.open(sqlite_url(self.folder / "marg.db"))
        try:
            yield store
        finally:
            await store.close()

    def report(self, state: ResearchState) -> Report:
        assert state.report is not None
        return from_json(self.artefacts.get(state.report.artefact))


def check_lines(report: Report) -> None:
    """The four sections, once each, in order, with their lines."""
    assert [part.title for part in report.sections] == list(SECTIONS)
    for n, part in enumerate(report.sections, 1):
        text = " ".join(s.text for s in part.sentences)
        assert [m for m in range(1, 5) if f"SECTION-{m}-TEXT" in text] == [n]


DRAFT = f"{SESSION}/s{{}}/draft/1"
KILLS = {
    "between-sections": {"faults": Faults(script=[(f"store/append@{DRAFT.format(2)}.crash_after", 1)])},
    "inside-a-call": {"dies_in_call": DRAFT.format(3)},
    "before-the-call-is-settled": {"faults": Faults(script=[(f"store/settle_call@{DRAFT.format(3)}.crash_before", 1)])},
    "before-the-checkpoint": {"faults": Faults(script=[(f"store/append@{DRAFT.format(3)}.crash_before", 1)])},
}


@pytest.mark.parametrize("name", KILLS)
async def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, name: str) -> None:
    place = Place(tmp_path, Scenario())
    before = await place.life(**KILLS[name])
    assert place.died
    written = {t for t in before.answered if "/draft/" in t}
    settled, asked = place.settled, Counter(place.server.asked_for)
    after = await place.life()
    assert not place.died
    check_lines(place.report(after))
    again = {task for task, n in place.server.asked_for.items() if n > 1}
    assert all(n <= 2 for n in place.server.asked_for.values())
    assert not again & (written | settled), "what was on disk was asked for again"
    assert again <= asked.keys() - settled, "only what was under way is asked for again"
    if name in ("between-sections", "before-the-checkpoint"):
        assert DRAFT.format(3 if name == "before-the-checkpoint" else 2) not in again


async def test_a_half_written_entry_is_done_again_and_the_rest_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place(tmp_path, Scenario())
    before = await place.life(Faults(script=[(f"store/append@{DRAFT.format(3)}.crash_after", 1)]))
    asked = Counter(place.server.asked_for)
    with sqlite3.connect(tmp_path / "marg.db") as db:
        seq, body = db.execute("select seq, body from log order by seq desc limit 1").fetchone()
        db.execute("update log set body = ? where seq = ?", (body[: len(body) // 2], seq))
    after = await place.life()
    check_lines(place.report(after))
    assert before.answered <= after.answered
    again = place.server.asked_for[DRAFT.format(3)] - asked[DRAFT.format(3)]
    assert again == 0, "its call was settled"
    assert any(SESSION in r.getMessage() and str(seq) in r.getMessage() for r in caplog.records), "nobody is told"


async def test_a_run_that_waits_for_approval_waits_on_with_the_same_plan(tmp_path: Path) -> None:
    place, asked = Place(tmp_path, Scenario()), request(approve_plan=True)
    before = await place.life(asked=asked)
    assert waiting_for(before) == "plan"
    after = await place.life(asked=asked)
    assert waiting_for(after) == "plan"
    assert (after.plan, after.plan_revision) == (before.plan, before.plan_revision)
    assert place.server.asked_for[f"{SESSION}/plan/0"] == 1


async def test_of_two_that_resume_at_once_one_works(tmp_path: Path) -> None:
    place = Place(tmp_path, Scenario())
    await place.life(dies_in_call=DRAFT.format(3))
    settled = place.settled
    async with place.store() as one, place.store() as two:
        pages = {url: page(*text) for url, text in TEXTS.items()}
        lives = [Life(tmp_path, place.server, pages, (engine_over(TEXTS),), disk=disk) for disk in (one, two)]
        coordinators = [
            Coordinator(life.store, life.dispatch, holder=this_process(namespace=str(n)))
            for n, life in enumerate(lives)
        ]

        async def resume(coordinator: Coordinator) -> str:
            try:
                await coordinator.resume(SESSION)
                return await follow(coordinator, request())
            except (SessionMoved, StaleEpoch) as exc:
                return type(exc).__name__

        ends = await asyncio.gather(*map(resume, coordinators))
        for coordinator in coordinators:
            for session in list(coordinator._live):
                coordinator._drop(session)
        entries = await whole_log(one)
        assert sum(end in ("passed", "quality_warning") for end in ends) >= 1
        epochs = [e.epoch for e in await one.read(SESSION)]
        assert epochs == sorted(epochs), "an older coordinator wrote after a newer one"
        state = replay(e.message for e in entries)
    assert state.report is not None
    check_lines(from_json(lives[0].artefacts.get(state.report.artefact)))
    again = {task for task, n in place.server.asked_for.items() if n > 1}
    assert not again & settled


KILL_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from marg_ray.report.model import from_json
from marg_ray.report.writers import write_report
report = from_json(Path(sys.argv[1]).read_text())
write_report(report, Path(sys.argv[2]))  # whole
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
write_report(report, Path(sys.argv[3]))  # killed inside
"""


def test_a_process_killed_while_it_exports_leaves_no_half_of_a_file(tmp_path: Path) -> None:
    from marg_ray.report.assemble import build_report

    report = build_report(inputs())
    source, first, second = (tmp_path / name for name in ("report.json", "out/report.md", "out/report.html"))
    source.write_text(to_json(report))
    command = [sys.executable, "-c", KILL_WHILE_WRITING, *map(str, (source, first, second))]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert first.read_text() == to_markdown(report)
    assert not second.exists()
    write_report(report, second)
    assert second.read_text().rstrip().endswith("</html>")
    assert sorted(p.name for p in second.parent.glob("[!.]*")) == ["report.html", "report.md"]


# ---- the store is away


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(coordinator_module, "STORE_AWAY_S", (0.001,) * 50)


@pytest.mark.parametrize("kind", ["lost_before", "lost_after", "away"])
@pytest.mark.parametrize("operation", ["append", "begin_call", "settle_call"])
async def test_a_store_that_is_away_for_a_while_costs_no_part_of_the_report(
    tmp_path: Path, operation: str, kind: str
) -> None:
    place = Place(tmp_path, Scenario())
    state = await place.life(Faults(script=[(f"store/{operation}@{DRAFT.format(2)}.{kind}", 1)]))
    check_lines(place.report(state))
    assert not [n for n in state.notes if n.kind.endswith("_failed")]
