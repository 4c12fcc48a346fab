"""Nobody reaches anything of another owner's, by any route. A route that this file does not know makes it fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from marg_ray.api.app import create_app
from marg_ray.api.guards import PROBES, is_part_of_the_page
from marg_ray.api.keys import new_key
from marg_ray.api.library import folder_of
from marg_ray.api.service import Service
from marg_ray.kinds import Scope
from tests.flow import World, page
from tests.served import service_of
from tests.unit.test_isolation import SECRETS, TEXTS, ByWord

ANN, BOB, READER, EVE = "ann", "bob", "reader", "eve"  # a reader of bob's, and more of ann's
pytestmark = pytest.mark.asyncio(loop_scope="module")
LIMIT_S = 60
ANY = ("GET", "POST", "DELETE")  # of a route that names no methods
MISSING = {  # ids that nobody has, of the same form
    "session_id": "20200101-000000-000000",
    "evidence_id": "e0000000000",
    "source_id": "0" * 64,
    "chart_id": "7",
    "doc_id": "0" * 16,
    "conversation_id": "c-20200202-111111-222222",
}

# ---- what the routes are: each stands in one of these, or the first test fails

PUBLIC = PROBES | {"/openapi.json"}  # nobody's: open to all
ASSETS = {"path": "page.js", "rest": "x"}
ANYBODY = {  # the same for every caller
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
    ("GET", "/metrics"),
}
LISTS = {  # a caller's own, without an id
    ("GET", "/v1/research"),
    ("GET", "/v1/knowledge"),
    ("GET", "/v1/knowledge/search"),
    ("GET", "/v1/chat"),
}
QUERIES = {"/v1/knowledge/search": {"q": "heron"}}
STARTS = {  # something new of the caller's; what of others a body could name is tried below
    ("POST", "/v1/research"),
    ("POST", "/v1/knowledge"),
    ("POST", "/v1/chat"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
}
BODIES: dict[tuple[str, str], Any] = {  # of routes with ids
    ("POST", "/v1/research/{session_id}/decision"): {"what": "approve"},
    ("POST", "/v1/research/{session_id}/steer"): {"action": "add", "query": "What else?"},
    ("POST", "/v1/research/{session_id}/questions"): {"question": "How much power?"},
}
OWN = {"format": "md", "model": "marg-research"}  # parts of addresses that are nobody's


@dataclass
class Owned:
    """What an owner has, by the names that routes give it."""

    key: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Two:
    """A service with two owners who have asked the same."""

    app: FastAPI
    service: Service
    owners: dict[str, Owned]

    async def ask(self, owner: str, method: str, path: str, **fields: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.owners[owner].key}", **fields.pop("headers", {})} if owner else {}
        transport = httpx.ASGITransport(self.app, client=("203.0.113.7", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://marg.example") as http:
            async with asyncio.timeout(LIMIT_S):
                return await http.request(method, path, headers=headers, **fields)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    world = World(
        tmp_path_factory.mktemp("two"),
        pages={url: page(*text) for url, text in TEXTS.items()},
        engines=(ByWord(),),  # type: ignore[arg-type]
    )
    service = service_of(world, service={"auth": "on", "per_minute": 10_000})
    made = Two(create_app(service), service, {})
    for name, owner, scopes in ((ANN, ANN, list(Scope)), (BOB, BOB, list(Scope)), (READER, BOB, [Scope.READ])):
        text, key = new_key(owner, scopes)
        await service.store.put_api_key(key)
        made.owners[name] = Owned(text)
    await asyncio.gather(_furnish(made, ANN), _furnish(made, BOB))
    assert set(made.owners[BOB].ids) == set(MISSING)
    assert _only(made, BOB) == set(made.owners[BOB].ids.values()) - {"1"}
    return made


async def _furnish(two: Two, name: str) -> None:
    """Give an owner one of everything."""
    words = f"The heron of {name} nests by the tidal power station of {name}. It eats {len(name) + 40} fish a day."
    body = {"question": question(name), "depth": "overview", "fresh": True}
    started = await two.ask(name, "POST", "/v1/research", json=body)
    assert started.status_code == 202, started.text
    ids = two.owners[name].ids
    ids["session_id"] = started.json()["id"]
    events = await two.ask(name, "GET", f"/v1/research/{ids['session_id']}/events?board=0")
    assert "event: end" in events.text
    answer = await two.ask(name, "GET", f"/v1/research/{ids['session_id']}/report")
    assert answer.status_code == 200, answer.text
    report = answer.json()
    ids["evidence_id"], ids["source_id"] = report["evidence"][0]["id"], report["evidence"][0]["source"]
    ids["chart_id"] = "1"
    uploaded = await two.ask(name, "POST", "/v1/knowledge", files={"file": (f"{name}.txt", words)})
    assert uploaded.status_code == 201, uploaded.text
    ids["doc_id"] = uploaded.json()["id"]
    ids["conversation_id"] = f"c-20261130-120000-{name}"
    owner = ANN if name == EVE else name
    await two.service.store.talk.open(owner, ids["conversation_id"], f"Of {name}")


def question(name: str) -> str:
    """About what the other does not ask: so their sources, and passages, are not the same ones."""
    return f"How much power does the {SECRETS[name == BOB]} tidal station produce?"


# ---- the routes


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route, also of those that the document does not show."""
    found = [(route.methods, route.path) for route in iter_route_contexts(app.router.routes)]
    assert all(path for _, path in found), "a kind of route that this test cannot read"
    return sorted({(method, str(path)) for methods, path in found for method in methods or ANY if method != "HEAD"})


def parameters(path: str) -> list[str]:
    return re.findall(r"{(\w+)(?::\w+)?}", path)


def filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r"{(\w+)(?::\w+)?}", lambda m: {**OWN, **ASSETS, **ids}[m[1]], path)


def about_something_owned(app: FastAPI) -> list[tuple[str, str]]:
    return [(m, p) for m, p in routes(app) if set(parameters(p)) & set(MISSING)]


async def test_every_route_is_known_here(two: Two) -> None:
    documented = {(method.upper(), path) for path, methods in two.app.openapi()["paths"].items() for method in methods}
    assert documented <= set(routes(two.app))
    owned = set(about_something_owned(two.app))
    for method, path in routes(two.app):
        place = filled(path, MISSING)
        is_open = method == "GET" and (path in PUBLIC or is_part_of_the_page(place))
        groups = [is_open, (method, path) in ANYBODY | LISTS | STARTS, (method, path) in owned]
        assert groups.count(True) == 1, f"say in this file whose {method} {path} is"
        assert set(parameters(path)) <= set(MISSING) | set(OWN) | (set(ASSETS) if is_open else set()), path


async def test_nothing_but_the_page_is_open(two: Two) -> None:
    for method, path in routes(two.app):
        answer = await two.ask("", method, filled(path, two.owners[BOB].ids), json=BODIES.get((method, path)))
        if path in PUBLIC or (method == "GET" and is_part_of_the_page(filled(path, {**MISSING}))):
            assert answer.status_code != 401, path
        else:
            assert answer.status_code == 401, (method, path)


# ---- what is another's


async def test_another_s_things_are_not_there(two: Two) -> None:
    """Not even to be refused: the answer is the one that an id which nobody has gets."""
    theirs, mine = two.owners[BOB].ids, two.owners[ANN].ids
    before = await _state(two, BOB)
    for method, path in about_something_owned(two.app):
        body = BODIES.get((method, path))
        named = set(parameters(path)) & set(MISSING)
        for foreign in _subsets(named):
            ids = {**mine, **{name: theirs[name] for name in foreign if theirs[name] != mine[name]}}
            if ids == mine:
                continue
            answer = await two.ask(ANN, method, filled(path, ids), json=body)
            assert answer.status_code == 404, (method, path, foreign, answer.text[:500])
            nowhere = await two.ask(
                ANN, method, filled(path, {**mine, **{name: MISSING[name] for name in foreign}}), json=body
            )
            assert _plain(answer, ids) == _plain(nowhere, MISSING), (method, path)
    assert await _state(two, BOB) == before


async def test_one_s_own_things_are_there_by_the_same_routes(two: Two) -> None:
    two.owners[EVE] = Owned(two.owners[ANN].key)
    await _furnish(two, EVE)
    for method, path in sorted(about_something_owned(two.app), key=_harm):
        own = await two.ask(EVE, method, filled(path, two.owners[EVE].ids), json=BODIES.get((method, path)))
        assert own.status_code != 404 or "chart" in path, f"{method} {path}: {own.text}"


def _harm(route: tuple[str, str]) -> tuple[int, int]:
    """What is read comes first, and what is deleted last: a whole after its parts."""
    method, path = route
    return ("GET", "POST", "DELETE").index(method), -len(path)


def _subsets(names: set[str]) -> list[set[str]]:
    """All of them foreign; and the session one's own, with another's things asked of it."""
    return [names] + ([names - {"session_id"}] if names - {"session_id"} else [])


def _plain(answer: httpx.Response, ids: dict[str, str]) -> tuple[int, str]:
    text = answer.text
    for value in ids.values():
        text = text.replace(value, "ID") if len(value) > 8 else text
    return answer.status_code, text


async def _state(two: Two, owner: str) -> dict[str, Any]:
    ids = two.owners[owner].ids
    row = await two.service.store.session(ids["session_id"])
    return {
        "session": row.model_dump(),
        "log": len(await two.service.store.read(row.id)),
        "documents": (await two.ask(owner, "GET", f"/v1/knowledge/{ids['doc_id']}")).json()["id"],
        "conversations": await two.service.store.talk.conversations(owner),
    }


async def test_lists_hold_only_what_is_the_caller_s(two: Two) -> None:
    for method, path in sorted(LISTS):
        mine = (await two.ask(ANN, method, path, params=QUERIES.get(path))).text
        assert any(value in mine for value in two.owners[ANN].ids.values()), path
        assert not any(value in mine for value in _only(two, BOB)), path


def _only(two: Two, owner: str) -> set[str]:
    """Ids that the other has not got as well (frozen texts are named by what they hold)."""
    other = ANN if owner == BOB else BOB
    return set(two.owners[owner].ids.values()) - set(two.owners[other].ids.values())


async def test_a_key_that_may_read_changes_nothing(two: Two) -> None:
    before = await _state(two, BOB)
    for method, path in routes(two.app):
        if method == "GET" or path == "/mcp":
            continue
        answer = await two.ask(READER, method, filled(path, two.owners[BOB].ids), json=BODIES.get((method, path)))
        assert answer.status_code in (403, 422), (method, path, answer.status_code)
        if BODIES.get((method, path)) is not None:
            assert answer.status_code == 403, (method, path)
    assert await _state(two, BOB) == before


# ---- ids in bodies and headers


async def test_an_idempotency_key_is_its_owner_s(two: Two) -> None:
    body, headers = {"question": question(ANN), "fresh": True}, {"Idempotency-Key": "the same"}
    started = [await two.ask(owner, "POST", "/v1/research", json=body, headers=headers) for owner in (ANN, BOB, ANN)]
    ids = [answer.json()["id"] for answer in started]
    assert ids[0] == ids[2]
    assert ids[0] != ids[1]


async def test_who_needs_no_key_names_no_folder_of_others_either(two: Two) -> None:
    open_to_all = service_of(World(two.service.settings.home))
    transport = httpx.ASGITransport(create_app(open_to_all))
    theirs = folder_of(open_to_all, BOB)
    assert theirs.is_dir()
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        for folder in (theirs, theirs.parent, theirs / ".." / ".." / "reports"):
            body = {"question": question(BOB), "sources": {"folders": [str(folder)]}}
            answer = await http.post("/v1/research", json=body)
            assert (answer.status_code, "server's own" in answer.text) == (422, True), answer.text


@pytest.mark.parametrize("owner", [ANN, BOB])
async def test_folders_of_the_server_are_no_caller_s(two: Two, owner: str) -> None:
    for folder in ("/etc", str(two.service.settings.home / "knowledge"), "/"):
        answer = await two.ask(
            owner, "POST", "/v1/research", json={"question": question(owner), "sources": {"folders": [folder]}}
        )
        assert answer.status_code == 422, folder


BY_BODY: dict[str, Callable[[dict[str, str]], tuple[str, str, Any]]] = {
    "a conversation about a report": lambda ids: (
        "POST",
        "/v1/chat/completions",
        {"model": "marg-research", "messages": [{"role": "user", "content": "?"}], "session_id": ids["session_id"]},
    ),
    "the same, by metadata": lambda ids: (
        "POST",
        "/v1/chat/completions",
        {
            "model": "marg-research",
            "messages": [{"role": "user", "content": "How much?"}],
            "metadata": {"session_id": ids["session_id"]},
        },
    ),
    "a message about a report": lambda ids: ("POST", "/v1/chat", {"message": "How much?", "report": ids["session_id"]}),
    "a message in a conversation": lambda ids: (
        "POST",
        "/v1/chat",
        {"message": "How much?", "conversation": ids["conversation_id"]},
    ),
    "a tool": lambda ids: (
        "POST",
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "research_status", "arguments": {"session_id": ids["session_id"], "wait_s": 0}},
        },
    ),
}


@pytest.mark.parametrize("way", BY_BODY)
async def test_what_a_body_names_is_another_s_as_well(two: Two, way: str) -> None:
    headers = {"Accept": "application/json, text/event-stream"}
    method, path, body = BY_BODY[way](two.owners[BOB].ids)
    told = await two.ask(ANN, method, path, json=body, headers=headers)
    method, path, body = BY_BODY[way](MISSING)
    nothing = await two.ask(ANN, method, path, json=body, headers=headers)
    assert _plain(told, two.owners[BOB].ids) == _plain(nothing, MISSING)
    assert SECRETS[1] not in told.text
