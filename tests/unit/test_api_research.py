"""Sessions over HTTP: asked, looked at, decided, steered, stopped; only by their owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from marg_ray.actors.coordinator import Coordinator
from marg_ray.api.app import create_app
from marg_ray.api.asking import request_of
from marg_ray.api.callers import Caller, Scope
from marg_ray.api.schemas import LimitsIn, ResearchIn, SourcesIn
from marg_ray.errors import RuntimeUnavailable, TooBusy, UsageError
from marg_ray.memory.cache import QueryCache
from marg_ray.records import RequestClass
from marg_ray.settings import Settings
from tests.asked import MANY, OVERVIEW, client_of, finished, parts_of, settled
from tests.flow import World

ME = Caller(owner="local")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        yield client


async def test_a_question_is_taken_on_at_once_and_ends_in_a_report(client: httpx.AsyncClient, world: World) -> None:
    reply = await client.post("/v1/research", json=OVERVIEW)
    assert reply.status_code == 202
    taken = reply.json()
    assert not taken["cached"]
    assert reply.headers["location"] == taken["links"]["self"] == f"/v1/research/{taken['id']}"
    await settled(world.coordinator, taken["id"])
    view = (await client.get(taken["links"]["self"])).json()
    assert view["report"]["status"] == view["status"]
    assert (await client.get(taken["links"]["report"])).status_code == 200
    (line,) = (await client.get("/v1/research")).json()["sessions"]
    assert (line["id"], line["status"], line["report"]) == (taken["id"], view["status"], True)


async def test_what_was_asked_before_is_answered_from_its_report(world: World, tmp_path: Path) -> None:
    cache = QueryCache(world.store, Settings(home=tmp_path / "home"), model="canned")
    world.coordinator = Coordinator(world.store, world._dispatch, cache=cache)
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        first = await finished(client, world)
        again = await client.post("/v1/research", json={**OVERVIEW, "question": OVERVIEW["question"].upper()})
        assert (again.status_code, again.json()["id"], again.json()["cached"]) == (200, first, True)
        assert again.json()["status"] == (await client.get(f"/v1/research/{first}")).json()["status"]
        fresh = await client.post("/v1/research", json={**OVERVIEW, "fresh": True})
        assert (fresh.status_code, fresh.json()["cached"]) == (202, False)
        assert fresh.json()["id"] != first
        # a key that comes first with a question that is answered already stands for that answer from then on
        keyed = await client.post("/v1/research", json=OVERVIEW, headers={"Idempotency-Key": "k"})
        other = await client.post("/v1/research", json={**OVERVIEW, "strict": True}, headers={"Idempotency-Key": "k"})
        assert (keyed.json()["id"], other.status_code, other.json()["code"]) == (first, 422, "KeyReused")
        (report,) = world.folder.joinpath("reports").iterdir()
        report.write_text("{}")  # a report that is damaged answers nothing
        assert (await client.post("/v1/research", json=OVERVIEW)).status_code == 202


async def test_whose_session_it_is_follows_from_the_caller_alone(client: httpx.AsyncClient, world: World) -> None:
    refused = await client.post("/v1/research", json={**OVERVIEW, "owner": "somebody"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "body.owner")
    await world.store.create("theirs", owner="somebody", question="secret")
    calls: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("POST", "/decision", {"what": "approve"}),
        ("POST", "/steer", {"action": "add", "query": "more"}),
        *(("POST", f"/{what}", None) for what in ("cancel", "pause", "resume")),
        ("GET", "/report", None),
        ("GET", "/report.md", None),
        ("GET", "/evidence/e1", None),
        ("GET", "/sources/" + "a" * 64, None),
        ("GET", "/charts/1.svg", None),
        ("GET", "/metrics", None),
    ]
    for method, rest, body in calls:
        replies = [
            await client.request(method, f"/v1/research/{name}{rest}", json=body) for name in ("theirs", "nobodys")
        ]
        told = [(r.status_code, r.json()["detail"].replace("theirs", "nobodys")) for r in replies]
        assert told[0] == told[1], rest
        assert told[0][0] == 404, rest
    assert (await client.get("/v1/research")).json() == {"sessions": []}


@pytest.mark.parametrize("name", ["%00", "a%00b", "a b", "%ED%A0%80", "x" * 500, "..", "'; DROP TABLE sessions;--"])
async def test_what_cannot_be_an_id_is_nobodys(client: httpx.AsyncClient, name: str) -> None:
    reply = await client.get(f"/v1/research/{name}")
    assert reply.status_code in (404, 405)
    assert reply.headers["content-type"] == "application/problem+json"


async def test_sessions_are_listed_newest_first_by_status(client: httpx.AsyncClient, world: World) -> None:
    done = await finished(client, world)
    waiting = await finished(client, world, approve_plan=True)
    listed = (await client.get("/v1/research")).json()["sessions"]
    assert [s["id"] for s in listed] == [waiting, done]
    only = (await client.get("/v1/research", params={"status": "waiting", "limit": 1})).json()["sessions"]
    assert [s["id"] for s in only] == [waiting]
    assert (await client.get("/v1/research", params={"status": "lost"})).status_code == 422
    assert (await client.get("/v1/research", params={"limit": 0})).status_code == 422


async def test_a_plan_is_edited_then_approved_and_a_draft_extended(client: httpx.AsyncClient, world: World) -> None:
    session_id = await finished(client, world, approve_plan=True, gate="always", on_timeout="wait")
    at = f"/v1/research/{session_id}"
    view = (await client.get(at)).json()
    assert (view["status"], view["waiting_for"], view["plan"]["revision"]) == ("waiting", "plan", 1)
    outline = [{"title": "Rance", "queries": ["When did Rance open?"]}, {"title": "Sihwa"}]
    edit = await client.post(f"{at}/decision", json={"what": "edit", "on": 1, "outline": outline})
    assert (edit.status_code, edit.json()) == (200, {"id": session_id, "status": "waiting"})
    plan = (await client.get(at)).json()["plan"]
    assert [s["title"] for s in plan["sections"]] == ["Rance", "Sihwa"]
    stale = await client.post(f"{at}/decision", json={"what": "approve", "on": 1})
    assert (stale.status_code, stale.json()["code"], stale.json()["current"]) == (409, "DecisionConflict", 2)
    nonsense = await client.post(f"{at}/decision", json={"what": "extend"})
    assert nonsense.status_code == 422
    assert (await client.post(f"{at}/decision", json={"what": "approve", "on": 2})).status_code == 200
    assert await settled(world.coordinator, session_id) == "waiting"
    view = (await client.get(at)).json()
    assert (view["waiting_for"], view["review"]["round"]) == ("review", 1)
    assert view["review"]["scores"]["accuracy"] > 0
    assert (await client.post(f"{at}/decision", json={"what": "approve"})).status_code == 200
    await settled(world.coordinator, session_id)
    late = await client.post(f"{at}/decision", json={"what": "approve"})
    assert late.status_code == 409
    notes = [n["text"] for n in (await client.get(at)).json()["notes"]]
    assert "plan edited by owner" in notes


async def test_a_session_is_steered(client: httpx.AsyncClient, world: World) -> None:
    session_id = await finished(client, world, approve_plan=True)
    at = f"/v1/research/{session_id}"

    async def steer(**body: Any) -> httpx.Response:
        return await client.post(f"{at}/steer", json=body)

    assert (await steer(action="add", query="What did Sihwa cost?")).json()["status"] == "waiting"
    assert (await steer(action="ban", location="tides.test")).status_code == 200
    assert (await steer(action="pin", url="https://example.org/a.pdf")).status_code == 200
    assert (await steer(action="raise", limits={"cost": 2, "tokens": 10_000})).status_code == 200
    view = (await client.get(at)).json()
    assert view["sections"][-1]["title"] == "What did Sihwa cost?"
    assert (view["limits"]["cost"], view["limits"]["tokens"]) == (2, 10_000)
    faults = [
        {"action": "pin"},
        {"action": "pin", "url": "file:///etc/passwd"},
        {"action": "pin", "url": "//x"},
        {"action": "raise"},
        {"action": "raise", "limits": {}},
        {"action": "drop"},
        {"action": "add"},
        {"action": "ban", "location": " "},
        {"action": "drop", "section": "s99"},
        {"action": "turn"},
    ]
    for fault in faults:
        reply = await client.post(f"{at}/steer", json=fault)
        assert (reply.status_code, bool(reply.json()["detail"])) == (422, True), fault
    await client.post(f"{at}/cancel")
    over = await steer(action="add", query="more")
    assert (over.status_code, over.json()["code"]) == (409, "DecisionConflict")


async def test_pause_resume_and_cancel_say_where_it_stands(client: httpx.AsyncClient, world: World) -> None:
    session_id = await finished(client, world, approve_plan=True)
    at = f"/v1/research/{session_id}"
    stations = [("pause", "paused"), ("pause", "paused"), ("resume", "waiting"), ("cancel", "cancelled")]
    for what, status in [*stations, ("cancel", "cancelled"), ("pause", "cancelled")]:
        assert (await client.post(f"{at}/{what}")).json() == {"id": session_id, "status": status}
    view = (await client.get(at)).json()
    assert (view["status"], view["waiting_for"], view["report"]) == ("cancelled", "", None)


async def test_a_running_session_shows_who_works_on_what(tmp_path: Path) -> None:
    world, going, reached = World(tmp_path), asyncio.Event(), asyncio.Event()
    dispatch = world._dispatch

    async def held(task: Any) -> Any:
        if task.kind == "draft":
            reached.set()
            await going.wait()
        return await dispatch(task)

    world.coordinator = Coordinator(world.store, held)
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        session_id = (await client.post("/v1/research", json=OVERVIEW)).json()["id"]
        async with asyncio.timeout(30):
            await reached.wait()
        view = (await client.get(f"/v1/research/{session_id}")).json()
        assert {"synthesizer"} <= {task["role"] for task in view["running"]}
        assert view["status"] == "running"
        going.set()
        await settled(world.coordinator, session_id)
        assert (await client.get(f"/v1/research/{session_id}")).json()["running"] == []


async def test_a_session_that_ends_while_it_is_looked_at_is_seen_at_one_moment(tmp_path: Path) -> None:
    world, going, reached = World(tmp_path), asyncio.Event(), asyncio.Event()
    dispatch, read = world._dispatch, world.store.read

    async def held(task: Any) -> Any:
        if task.kind == "format":
            reached.set()
            await going.wait()
        return await dispatch(task)

    world.coordinator = Coordinator(world.store, held)
    service = parts_of(world, service=MANY)
    async with client_of(create_app(service)) as client:
        session_id = (await client.post("/v1/research", json=OVERVIEW)).json()["id"]
        async with asyncio.timeout(30):
            await reached.wait()

        async def and_it_ends(*args: Any, **kwargs: Any) -> Any:
            found = await read(*args, **kwargs)
            if not going.is_set():
                going.set()
                await settled(world.coordinator, session_id)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(world.store, "read", and_it_ends)
            view = (await client.get(f"/v1/research/{session_id}")).json()
        assert view["status"] in ("passed", "quality_warning")
        assert view["report"]["status"] == view["status"]


# ---- what a body may ask for


async def test_where_is_searched_follows_from_what_is_named(world: World, tmp_path: Path) -> None:
    folder, shared = tmp_path / "mine", tmp_path / "shared"
    for place in (folder, shared):
        place.mkdir()
    plain, sharing = parts_of(world), replace(parts_of(world), shared=(shared,))

    async def chosen(service: Any = plain, text: tuple[str, ...] = (), **sources: Any) -> tuple[list[str], bool]:
        body = ResearchIn(question="How much?", sources=SourcesIn(**sources), text=text)
        found = (await request_of(service, ME, body)).sources
        return [Path(f).name for f in found.folders], found.web

    assert await chosen() == ([], True)
    assert await chosen(folders=(str(folder),)) == (["mine"], False)
    assert await chosen(folders=(str(folder),), web=True) == (["mine"], True)
    assert await chosen(text=("La Rance has 240 MW.",)) == ([], False)
    assert await chosen(sharing) == (["shared"], False)
    assert await chosen(sharing, web=True, shared=False) == ([], True)
    assert await chosen(sharing, folders=(str(folder), str(shared))) == (["mine", "shared"], False)
    offline = replace(sharing, offline=True)
    assert await chosen(offline) == (["shared"], False)
    for service, sources in ((plain, {"web": False}), (offline, {"shared": False}), (offline, {"web": True})):
        with pytest.raises(UsageError):
            await chosen(service, **sources)


@pytest.mark.parametrize("folder", ["papers", "~/papers", "/no/such/folder", "/" + "x" * 300, "/dev/null"])
async def test_a_folder_that_cannot_be_searched_is_said(world: World, folder: str) -> None:
    body = ResearchIn(question="How much?", sources=SourcesIn(folders=(folder,)))
    with pytest.raises(UsageError):
        await request_of(parts_of(world), ME, body)


async def test_only_who_needs_no_key_names_folders(world: World, tmp_path: Path) -> None:
    body = ResearchIn(question="How much?", sources=SourcesIn(folders=(str(tmp_path),)))
    with pytest.raises(UsageError, match="without a key"):
        await request_of(parts_of(world), Caller(owner="local", key_id="k1", scopes=frozenset(Scope)), body)


async def test_a_request_carries_what_was_asked_for(world: World) -> None:
    service = parts_of(world, budget={"usd": 3.0, "tasks": 500, "writer_share": 0.25})
    body = ResearchIn.model_validate(
        {
            "question": "  Does it work?  ",
            "request_class": "analyze_provided",
            "text": ["La Rance has 240 MW.", "Sihwa has 254 MW."],
            "outline": [{"title": "Power"}],
            "limits": {"cost": 0.5, "deadline": "2999-01-01T00:00:00+02:00"},
            "language": "de",
        }
    )
    request = await request_of(service, Caller(owner="alice"), body)
    assert (request.question, request.owner, request.language) == ("Does it work?", "alice", "de")
    assert request.request_class is RequestClass.ANALYZE_PROVIDED
    texts = [service.places.snapshots.text(name) for name in request.provided]
    assert texts == ["La Rance has 240 MW.", "Sihwa has 254 MW."]
    limits = request.limits
    assert (limits.usd, limits.tasks, limits.writer_share) == (0.5, 500, 0.25)
    assert limits.deadline is not None
    assert limits.deadline.isoformat() == "2998-12-31T22:00:00+00:00"


@pytest.mark.parametrize(
    "fault",
    [
        {"question": ""},
        {"question": "   "},
        {"question": "\x00"},
        {"question": "a\ud800b"},
        {"question": 5},
        {"question": "\u200b?!"},
        {"depth": "abyss"},
        {"language": "German"},
        {"limits": {"cost": -1}},
        {"limits": {"cost": "NaN"}},
        {"limits": {"tokens": 10**30}},
        {"limits": {"deadline": "yesterday"}},
        {"limits": {"deadline": "2001-01-01T00:00:00Z"}},
        {"limits": {"deadline": 1e30}},
        {"gate_timeout_s": 0},
        {"max_iterations": 9},
        {"outline": [{"title": ""}]},
        {"text": [""]},
        {"sources": {"web": False}},
        {"sources": {"folders": ["papers"]}},
        {"sources": {"library": True, "web": False}},
    ],
)
async def test_what_cannot_be_researched_is_said_and_starts_nothing(
    client: httpx.AsyncClient, world: World, fault: dict[str, Any]
) -> None:
    import json

    content = json.dumps({**OVERVIEW, **fault})
    reply = await client.post("/v1/research", content=content, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["detail"]
    assert await world.store.sessions() == []


async def test_a_question_beyond_the_limit_is_too_large(world: World) -> None:
    app = create_app(parts_of(world, service={**MANY, "max_question": 100}))
    async with client_of(app) as client:
        reply = await client.post("/v1/research", json={**OVERVIEW, "question": "Why? " * 21})
        assert (reply.status_code, reply.json()["code"]) == (413, "TooLarge")


@pytest.mark.parametrize(
    ("error", "status"), [(TooBusy(1000, 7.0), 429), (RuntimeUnavailable("", "the coordinator is dead"), 503)]
)
async def test_a_server_that_takes_nothing_in_says_when_to_come_back(
    world: World, error: Exception, status: int
) -> None:
    service = parts_of(world, service=MANY)

    async def refuse(*_: object) -> str:
        raise error

    service.sessions.submit = refuse  # type: ignore[method-assign]
    async with client_of(create_app(service)) as client:
        reply = await client.post("/v1/research", json=OVERVIEW)
        assert (reply.status_code, reply.json()["retryable"]) == (status, True)
        assert status != 429 or reply.headers["retry-after"] == "7"


async def test_no_limits_by_name_are_those_of_the_server() -> None:
    assert LimitsIn().limits().usd is None
    assert LimitsIn(cost=0).limits().usd == 0


# ---- health


async def test_it_lives_and_is_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/health")).json()["status"] == "ok"
    ready = (await client.get("/ready")).json()
    assert (ready["status"], ready["model"]) == ("ok", "canned")


async def test_it_lives_without_its_coordinators_and_is_not_ready(world: World) -> None:
    service = parts_of(world, service=MANY)

    async def gone(*_: object) -> Any:
        raise RuntimeUnavailable("", "the coordinator is dead")

    service.sessions.progress = gone  # type: ignore[method-assign]
    async with client_of(create_app(service)) as client:
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/ready")).status_code == 503
