"""API-03 and API-05: requests that are repeated, and decisions that meet, against a store on disk and real runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.ledger import LedgerBook
from marg_ray.api.app import create_app
from marg_ray.folding import replay
from marg_ray.messages import PlanDecided, PlanEdited
from marg_ray.state import ResearchState
from marg_ray.store.protocol import Store
from marg_ray.store.sql import SqlStore, sqlite_url
from marg_ray.tasks import Task
from tests.asked import LIMIT_S, MANY, QUESTION, client_of, parts_of, settled
from tests.flow import World
from tests.lives import end
from tests.shared import case_file, needs_shared

ROUNDS = 30  # of what happens at the same moment
KEYS = 50


@dataclass
class Disk(World):
    """A world whose log lies in a store that outlives it; tasks of the `held` kinds wait until they are let go."""

    kept: Store | None = None
    held: frozenset[str] = frozenset()
    go: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.kept is not None
        self.store = self.kept  # type: ignore[assignment]
        self.ledger = LedgerBook(self.store)
        self.agents = self._agents()
        self.coordinator = Coordinator(self.store, self._held)

    async def _held(self, task: Task) -> Any:
        if task.kind in self.held:
            self.reached.set()
            await self.go.wait()
        return await self._dispatch(task)


class Server:
    """A server process's life: application, coordinator and store; what it keeps is on disk."""

    def __init__(self, folder: Path, **world: Any) -> None:
        self.folder, self._world = folder, world

    async def start(self) -> None:
        self._before = asyncio.all_tasks()
        self.store = await SqlStore.open(sqlite_url(self.folder / "marg.db"))
        self.world = Disk(self.folder, kept=self.store, **self._world)
        self.client = client_of(create_app(parts_of(self.world, service=MANY)))

    async def stop(self) -> None:
        await self.client.aclose()
        await self.world.coordinator.close()
        await end(asyncio.all_tasks() - self._before)

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def runs(self) -> int:
        return len(await self.store.sessions(limit=100_000))

    async def state(self, session_id: str) -> ResearchState:
        return replay(e.message for e in await self.store.read(session_id))


@contextlib.asynccontextmanager
async def server(folder: Path, **world: Any) -> AsyncIterator[Server]:
    one = Server(folder, **world)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


# ---- API-03


def steps() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(case_file("API-03", "requests.json").read_text("utf-8"))
    return found


async def send(one: Server, body: object, key: str | None = None, *, text: str = "") -> httpx.Response:
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key is not None else {})
    return await one.client.post("/v1/research", content=text or json.dumps(body), headers=headers)


@needs_shared
async def test_api_03_a_request_that_is_repeated_starts_once(tmp_path: Path) -> None:
    case = steps()
    body, other = case["body"], case["other_body"]
    wanted = {step["name"]: step for step in case["steps"]}
    async with server(tmp_path) as one:
        first, second = await asyncio.gather(send(one, body, "k-1"), send(one, body, "k-1"))
        named = {first.json()["id"], second.json()["id"]}
        assert (len(named), await one.runs()) == (1, wanted["two-at-once"]["runs"])
        (run,) = named
        await settled(one.world.coordinator, run)
        before = await one.state(run)

        assert (await send(one, body, "k-1")).json()["id"] == run
        assert await one.runs() == wanted["again-later"]["runs"]
        spaced = "{ " + ", ".join(f'"{k}" : {json.dumps(v)}' for k, v in reversed(body.items())) + " }"
        assert (await send(one, None, "k-1", text=spaced)).json()["id"] == run
        assert await one.runs() == wanted["key-order-and-spaces"]["runs"]

        refused = await send(one, other, "k-1")
        assert refused.status_code in wanted["other-body"]["status"]
        assert refused.json()["code"] == "KeyReused"
        assert (await one.runs(), await one.state(run)) == (wanted["other-body"]["runs"], before)

        await one.restart()
        assert (await send(one, body, "k-1")).json()["id"] == run
        assert await one.runs() == wanted["after-restart"]["runs"]

        assert (await send(one, {}, "k-2")).status_code == 422
        assert (await send(one, body, "k-2")).status_code == 202
        assert await one.runs() == wanted["first-failed-validation"]["runs"]
        ids = {(await send(one, body)).json()["id"] for _ in range(2)}
        assert (len(ids), await one.runs()) == (2, wanted["no-key"]["runs"])

        assert (await send(one, body, "")).status_code in wanted["blank-key"]["status"]
        assert (await send(one, body, "k" * 5000)).status_code in wanted["long-key"]["status"]
        odd = "../../x'; DROP TABLE runs;--"
        replies = [await send(one, body, odd) for _ in range(2)]
        assert {r.status_code for r in replies} <= set(wanted["odd-key"]["status"])
        assert replies[0].json()["id"] == replies[1].json()["id"]
    assert not [path.name for path in tmp_path.rglob("*") if "DROP" in path.name or "k-1" in path.name]  # noqa: ASYNC240


@needs_shared
async def test_api_03_two_at_once_start_one_run_whatever_the_key(tmp_path: Path) -> None:
    body = steps()["body"]
    async with server(tmp_path, held=frozenset({"search"})) as one:
        for n in range(KEYS):
            replies = await asyncio.gather(*(send(one, body, f"fresh-{n}") for _ in range(2)))
            assert {r.status_code for r in replies} == {202}
            assert len({r.json()["id"] for r in replies}) == 1
        assert await one.runs() == KEYS


@pytest.mark.parametrize(("length", "status"), [(1, 202), (255, 202), (256, 422), (0, 422)])
async def test_a_key_has_1_to_255_letters(tmp_path: Path, length: int, status: int) -> None:
    async with server(tmp_path, held=frozenset({"search"})) as one:
        assert (await send(one, {"question": "Which tidal plants are running?"}, "k" * length)).status_code == status


async def test_a_key_belongs_to_its_owner(tmp_path: Path) -> None:
    async with server(tmp_path, held=frozenset({"search"})) as one:
        body = {"question": "Which tidal plants are running?"}
        mine = (await send(one, body, "k")).json()["id"]
        assert await one.store.claim_key("somebody", "digest", "body", "other") == ("other", "body")
        assert (await send(one, body, "k")).json()["id"] == mine


# ---- API-05

RACE = QUESTION
TWO = [{"title": "Rance"}, {"title": "Sihwa"}]
FIVE = [{"title": f"Plant {n}"} for n in range(1, 6)]


def races() -> dict[str, list[list[Any]]]:
    found = json.loads(case_file("API-05", "races.json").read_text("utf-8"))
    return {race["name"]: race.get("clients") or race["clients_in_turn"] for race in found}


async def waiting(one: Server) -> str:
    """A run at the gate before research."""
    asked = {"question": RACE, "depth": "overview", "approve_plan": True, "on_timeout": "wait"}
    session_id = str((await send(one, asked)).json()["id"])
    assert await settled(one.world.coordinator, session_id) == "waiting"
    return session_id


def decision(what: str, on: int) -> dict[str, Any]:
    if what.startswith("edit"):
        return {"what": "edit", "on": on, "outline": TWO if "2" in what else FIVE}
    return {"what": what, "on": on}


async def decide(one: Server, session_id: str, what: str, on: int) -> httpx.Response:
    return await one.client.post(f"/v1/research/{session_id}/decision", json=decision(what, on))


async def at_once(one: Server, session_id: str, clients: list[list[Any]]) -> list[httpx.Response]:
    return list(await asyncio.gather(*(decide(one, session_id, what, on) for what, on in clients)))


async def decisions(one: Server, session_id: str) -> list[PlanDecided | PlanEdited]:
    entries = await one.store.read(session_id)
    return [e.message for e in entries if isinstance(e.message, PlanDecided | PlanEdited)]


async def asked_of_engine(one: Server, session_id: str, before: int) -> list[str]:
    """What the run asked the search engine for since it had asked `before` queries, the session's end awaited."""
    await settled(one.world.coordinator, session_id)
    (engine,) = one.world.engines
    return engine.asked[before:]


@needs_shared
async def test_api_05_of_approve_and_reject_one_is_stored(tmp_path: Path) -> None:
    clients = races()["approve-and-reject-at-once"]
    async with server(tmp_path) as one:
        winners = set()
        for n in range(ROUNDS):
            session_id = await waiting(one)
            order = clients if n % 2 else clients[::-1]
            before = len(one.world.engines[0].asked)
            replies = await at_once(one, session_id, order)
            (won,) = [what for (what, _), r in zip(order, replies, strict=True) if r.status_code == 200]
            (lost,) = [r for r in replies if r.status_code != 200]
            assert lost.status_code == 409
            assert lost.json()["code"] == "DecisionConflict"
            (stored,) = await decisions(one, session_id)
            assert isinstance(stored, PlanDecided)
            assert stored.approved == (won == "approve")
            if won == "approve":
                assert "approved by owner" in lost.json()["detail"]
            searches = await asked_of_engine(one, session_id, before)
            assert len(searches) == len(set(searches)), "research started twice"
            assert bool(searches) == (won == "approve")
            winners.add(won)
            await one.client.post(f"/v1/research/{session_id}/cancel")
        assert winners == {"approve", "reject"}


@needs_shared
@pytest.mark.parametrize("race", ["approve-twice-at-once", "approve-with-20-clients"])
async def test_api_05_the_same_decision_is_stored_once(tmp_path: Path, race: str) -> None:
    clients = races()[race]
    async with server(tmp_path) as one:
        for _ in range(ROUNDS if len(clients) == 2 else 3):
            session_id = await waiting(one)
            before = len(one.world.engines[0].asked)
            replies = await at_once(one, session_id, clients)
            assert {r.status_code for r in replies} <= {200, 409}
            assert len({r.text for r in replies if r.status_code == 200}) == 1
            assert len(await decisions(one, session_id)) == 1
            searches = await asked_of_engine(one, session_id, before)
            assert len(searches) == len(set(searches)) > 0


@needs_shared
async def test_api_05_a_plan_that_was_edited_meanwhile_is_not_approved_unseen(tmp_path: Path) -> None:
    async with server(tmp_path) as one:
        session_id = await waiting(one)
        assert (await decide(one, session_id, "edit to 2 steps", 1)).status_code == 200
        before = len(one.world.engines[0].asked)
        (reply,) = await at_once(one, session_id, races()["approve-after-edit"])
        assert (reply.status_code, reply.json()["current"]) == (409, 2)
        assert "revision 2" in reply.json()["detail"]
        assert await asked_of_engine(one, session_id, before) == []
        assert (await one.state(session_id)).plan_revision == 2


@needs_shared
async def test_api_05_two_edits_do_not_mix(tmp_path: Path) -> None:
    clients = races()["two-edits-at-once"]
    async with server(tmp_path) as one:
        for n in range(ROUNDS):
            session_id = await waiting(one)
            replies = await at_once(one, session_id, clients if n % 2 else clients[::-1])
            assert sorted(r.status_code for r in replies) == [200, 409]
            state = await one.state(session_id)
            assert state.plan is not None
            titles = [s.title for s in state.plan.sections]
            assert titles in ([e["title"] for e in TWO], [e["title"] for e in FIVE])
            assert state.plan_revision == 2


async def _cancelled(one: Server) -> str:
    session_id = await waiting(one)
    await one.client.post(f"/v1/research/{session_id}/cancel")
    return session_id


async def _planning(one: Server) -> str:
    one.world.held = frozenset({"plan"})
    session_id = str((await send(one, {"question": RACE, "approve_plan": True})).json()["id"])
    async with asyncio.timeout(LIMIT_S):
        await one.world.reached.wait()
    return session_id


@needs_shared
@pytest.mark.parametrize(
    ("race", "bring"), [("approve-after-cancel", _cancelled), ("approve-while-planning", _planning)]
)
async def test_api_05_where_nothing_waits_nothing_changes(
    tmp_path: Path, race: str, bring: Callable[[Server], Any]
) -> None:
    async with server(tmp_path) as one:
        session_id = await bring(one)
        before = await one.state(session_id)
        (reply,) = await at_once(one, session_id, races()[race])
        assert reply.status_code == 409
        assert await one.state(session_id) == before


@needs_shared
async def test_api_05_what_was_rejected_is_not_approved_after(tmp_path: Path) -> None:
    async with server(tmp_path) as one:
        session_id = await waiting(one)
        one.world.held, (first, second) = frozenset({"plan"}), races()["reject-then-approve"]
        assert (await decide(one, session_id, *first)).status_code == 200
        before = await one.state(session_id)
        late = await decide(one, session_id, *second)
        assert late.status_code == 409
        assert "rejected by owner" in late.json()["detail"]
        assert await one.state(session_id) == before
        one.world.go.set()  # the planner has another plan
        assert await settled(one.world.coordinator, session_id) == "waiting"
        assert (await decide(one, session_id, *second)).status_code == 409, "it was said of the first plan"
        assert (await decide(one, session_id, "approve", 2)).status_code == 200


@needs_shared
async def test_api_05_a_run_waits_on_after_a_restart(tmp_path: Path) -> None:
    async with server(tmp_path) as one:
        session_id = await waiting(one)
        await one.restart()
        view = (await one.client.get(f"/v1/research/{session_id}")).json()
        assert (view["status"], view["waiting_for"], view["plan"]["revision"]) == ("waiting", "plan", 1)
        (reply,) = await at_once(one, session_id, races()["restart-between"])
        assert reply.status_code == 200
        assert await settled(one.world.coordinator, session_id) in ("passed", "quality_warning")
        assert (await one.client.get(f"/v1/research/{session_id}/report")).status_code == 200
