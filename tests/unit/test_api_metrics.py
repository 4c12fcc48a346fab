"""The figures of the service as Prometheus reads them, and a session's trace for its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from prometheus_client.parser import text_string_to_metric_families

from marg_ray.actors.trace import trace_of
from marg_ray.api.app import create_app
from marg_ray.api.callers import Caller, Scope, caller
from marg_ray.errors import StoreUnavailable
from marg_ray.telemetry.figures import FIGURES, METRICS
from tests.asked import MANY, client_of, finished
from tests.flow import World
from tests.served import service_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def app(world: World) -> FastAPI:
    return create_app(service_of(world, service=MANY))


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def scraped(client: httpx.AsyncClient) -> dict[str, list[Any]]:
    """The samples of each family, as Prometheus' own parser sees them."""
    reply = await client.get("/metrics")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {family.name: family.samples for family in text_string_to_metric_families(reply.text)}


async def test_metrics_are_prometheus_text_of_all_processes(client: httpx.AsyncClient, world: World) -> None:
    await finished(client, world)
    found = await scraped(client)
    names = {name.removesuffix("_total") for name in METRICS}
    assert set(found) <= names
    assert {(s.labels["actor"], s.labels["status"]): s.value for s in found["marg_sessions"]} == {
        ("store", "passed"): 1
    }
    actors = {s.labels["actor"] for s in found["marg_tasks"]}
    assert "coordinator:0" in actors
    assert [s.value for s in found["marg_actor_up"]] == [1]
    for samples in found.values():
        labels = [frozenset(s.labels.items()) | {("", s.name)} for s in samples]
        assert len(set(labels)) == len(labels), "a series stands there twice"


async def test_requests_are_counted_by_route_and_status(client: httpx.AsyncClient, world: World) -> None:
    def seen(route: str, status: str, method: str = "GET") -> float:
        return FIGURES.get("marg_http_requests_total", method, route, status)

    session = await finished(client, world)
    before = [
        seen("/v1/research/{session_id}", "200"),
        seen("/v1/research/{session_id}", "404"),
        seen("none", "404"),
        seen("/health", "200"),
    ]
    for path in (f"/v1/research/{session}", "/v1/research/20200101-000000-000000", "/no/such/%00/place", "/health"):
        await client.get(path)
    after = [
        seen("/v1/research/{session_id}", "200"),
        seen("/v1/research/{session_id}", "404"),
        seen("none", "404"),
        seen("/health", "200"),
    ]
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 1, 1]
    routes = {k[1] for (name, k) in FIGURES.taken().values if name == "marg_http_requests_total"}
    assert not any(session in route or "such" in route for route in routes)


async def test_what_a_guard_refuses_is_counted_too(world: World) -> None:
    app = create_app(service_of(world, service={"auth": "on"}))
    before = FIGURES.get("marg_http_requests_total", "GET", "none", "401")
    async with client_of(app) as client:
        assert (await client.get("/metrics")).status_code == 401
    assert FIGURES.get("marg_http_requests_total", "GET", "none", "401") == before + 1


async def test_an_event_stream_counts_while_it_is_read(app: FastAPI) -> None:
    during: list[float] = []

    @app.get("/stream")
    async def stream(request: Request) -> StreamingResponse:
        async def body() -> AsyncIterator[str]:
            during.append(FIGURES.get("marg_http_streams", "/stream"))
            yield "data: 1\n\n"

        return StreamingResponse(body(), media_type="text/event-stream")

    async with client_of(app) as client:
        assert (await client.get("/stream")).text == "data: 1\n\n"
    assert during == [1]
    assert FIGURES.get("marg_http_streams", "/stream") == 0
    assert FIGURES.get("marg_http_request_seconds", "/stream") == 0  # how long somebody watches is no latency


async def test_metrics_need_the_scope_admin(app: FastAPI, client: httpx.AsyncClient) -> None:
    app.dependency_overrides[caller] = lambda: Caller(owner="ann", key_id="k", scopes=frozenset(Scope) - {Scope.ADMIN})
    reply = await client.get("/metrics")
    assert (reply.status_code, reply.json()["code"]) == (403, "Forbidden")


async def test_figures_are_there_while_the_store_is_away(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away() -> dict[str, int]:
        raise StoreUnavailable("the connection is lost")

    monkeypatch.setattr(world.store, "session_counts", away)
    found = await scraped(client)
    assert "marg_sessions" not in found
    assert "marg_actor_up" in found


async def test_a_process_that_does_not_answer_is_down(world: World) -> None:
    service = service_of(world, service=MANY)

    class Silent:
        async def figures(self) -> dict[str, None]:
            return {"worker:1": None}

    app = create_app(service.__class__(**{**vars(service), "sessions": Silent()}))
    async with client_of(app) as client:
        found = await scraped(client)
    assert {s.labels["actor"]: s.value for s in found["marg_actor_up"]} == {"worker:1": 0}


async def test_the_owner_gets_the_trace_as_spans(client: httpx.AsyncClient, world: World) -> None:
    session = await finished(client, world)
    reply = await client.get(f"/v1/research/{session}/trace")
    assert reply.status_code == 200, reply.text
    found = reply.json()
    trace = trace_of(session, await world.store.read(session), await world.store.calls(session))
    assert (found["id"], found["session"], found["status"]) == (trace.id, session, "passed")
    assert [span["id"] for span in found["spans"]] == [span.id for span in trace.spans]
    assert found["spans"][0]["seconds"] == pytest.approx(trace.root.seconds, abs=1e-6)
    assert sum(span["critical"] for span in found["spans"]) > 3


async def test_a_trace_is_its_owners_alone(app: FastAPI, client: httpx.AsyncClient, world: World) -> None:
    session = await finished(client, world)
    app.dependency_overrides[caller] = lambda: Caller(owner="bob")
    reply = await client.get(f"/v1/research/{session}/trace")
    assert (reply.status_code, reply.json()["code"]) == (404, "SessionNotFound")


async def test_a_session_in_which_nothing_has_happened_has_no_trace_yet(
    client: httpx.AsyncClient, world: World
) -> None:
    await world.store.create("S", owner="local", question="?")
    reply = await client.get("/v1/research/S/trace")
    assert (reply.status_code, reply.json()["code"]) == (409, "NotReady")
