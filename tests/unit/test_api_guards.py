"""What the service lets in: who, from where, how often, how much."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Request, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Message

from marg_ray.api import bodies, guards, keys, problems
from marg_ray.api.callers import Called, Caller, Scope, needs
from marg_ray.api.guards import check
from marg_ray.api.headers import add as add_headers
from marg_ray.errors import UsageError
from marg_ray.settings import Settings
from tests.flow import World
from tests.served import app_of, service_of

HERE = "http://127.0.0.1:8080"
FAR = ("203.0.113.7", 4711)
SCOPE = {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.4"},
    "http_version": "1.1",
    "scheme": "http",
    "query_string": b"",
    "root_path": "",
    "client": ("127.0.0.1", 50_000),
    "server": ("127.0.0.1", 8080),
}


class Question(BaseModel):
    question: str


class Served:
    """A small application behind the guards, and a key for it."""

    def __init__(self, folder: Path, known_s: float = keys.KNOWN_S, **service: object) -> None:
        areas = {"library": {"max_file_mb": 0.2}}
        self.service = service_of(World(folder), service=service, **areas)
        self.app = FastAPI(openapi_url=None)
        problems.install(self.app)
        guards.install(self.app, self.service, known_s=known_s)
        self._routes()

    def _routes(self) -> None:
        @self.app.get("/")
        @self.app.get("/health")
        @self.app.get("/assets/app.js")
        async def page() -> str:
            return "page"

        @self.app.get("/v1/me")
        async def me(who: Called) -> dict[str, str]:
            return {"owner": who.owner, "key": who.key_id}

        @self.app.get("/elsewhere")
        async def elsewhere() -> str:  # a route that somebody has forgotten to guard
            return "secret"

        @self.app.post("/v1/research")
        async def research(body: Question, who: Caller = Depends(needs(Scope.RESEARCH))) -> str:  # noqa: B008
            return f"{who.owner}: {len(body.question)}"

        @self.app.post("/v1/raw")
        async def raw(request: Request) -> int:
            return len(await request.body())

        @self.app.post("/v1/knowledge")
        async def upload(file: UploadFile) -> int:
            return len(await file.read())

        @self.app.get("/v1/broken")
        async def broken() -> None:
            raise ZeroDivisionError(self.key)

        @self.app.get("/v1/stream")
        async def stream() -> StreamingResponse:
            async def pieces() -> AsyncIterator[bytes]:
                while True:
                    yield b"piece\n"
                    await asyncio.sleep(0)

            return StreamingResponse(pieces())

    async def new_key(self, owner: str = "ann", scopes: Sequence[str] = keys.ALL_BUT_ADMIN) -> str:
        self.key, row = keys.new_key(owner, scopes)
        self.key_id = row.id
        await self.service.store.put_api_key(row)
        return self.key

    async def ask(
        self,
        method: str = "GET",
        path: str = "/v1/me",
        *,
        base: str = HERE,
        client: tuple[str, int] = ("127.0.0.1", 50_000),
        key: str = "",
        **fields: Any,
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=client)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx.AsyncClient(transport=transport, base_url=base) as http:
            return await http.request(method, path, headers={**headers, **fields.pop("headers", {})}, **fields)


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


# ---- who needs a key


async def test_on_this_machine_nobody_needs_a_key(served: Served) -> None:
    for base in (HERE, "http://localhost:8080", "http://[::1]:8080", "http://marg.localhost", "http://127.8.9.1"):
        answer = await served.ask(base=base)
        assert (answer.status_code, answer.json()) == (200, {"owner": "local", "key": ""}), base


async def test_a_page_whose_name_was_made_to_point_here_gets_nothing(served: Served) -> None:
    for base in ("http://evil.example:8080", "http://127.0.0.1.evil.example", "http://localhost.evil.example"):
        answer = await served.ask(base=base)
        assert answer.status_code == 421, base
        assert answer.json()["code"] == "WrongHost"
        assert (await served.ask(path="/", base=base)).status_code == 421
    for host in ("", "user@localhost", "localhost:x", "[::1", "localhost evil.example", "evil.example@localhost"):
        assert (await served.ask(headers={"Host": host})).status_code == 421, host
    assert (await served.ask(path="/health", base="http://10.0.0.3:8080")).status_code == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"client": FAR},
        {"client": ("::ffff:203.0.113.7", 1)},
        {"headers": {"X-Forwarded-For": "203.0.113.7"}},
        {"headers": {"Forwarded": "for=203.0.113.7"}},
        {"headers": {"Via": "1.1 proxy"}},
        {"headers": {"X-Real-IP": "203.0.113.7"}},
    ],
    ids=str,
)
async def test_who_comes_from_elsewhere_needs_a_key_also_through_a_proxy(
    served: Served, fields: dict[str, Any]
) -> None:
    answer = await served.ask(**fields)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    key = await served.new_key()
    fields["headers"] = {**fields.get("headers", {}), "Authorization": f"Bearer {key}"}
    assert (await served.ask(base="https://marg.example.org", **fields)).json()["owner"] == "ann"


@pytest.mark.parametrize("service", [{"auth": "on"}, {"host": "0.0.0.0"}, {"host": "192.0.2.1", "auth": "on"}], ids=str)
async def test_elsewhere_everybody_needs_a_key(tmp_path: Path, service: dict[str, Any]) -> None:
    served = Served(tmp_path, **service)
    for path in ("/v1/me", "/elsewhere", "/v1/nothing", "/nothing", "/openapi.json/x", "/assets", "//v1/me"):
        answer = await served.ask(path=path)
        assert (answer.status_code, answer.json()["code"]) == (401, "Unauthorized"), path
    assert (await served.ask("POST", "/")).status_code == 401
    for path in ("/", "/health", "/assets/app.js"):
        assert (await served.ask(path=path)).json() == "page"
    key = await served.new_key("bob")
    assert (await served.ask(key=key, base="http://any.example")).json() == {"owner": "bob", "key": served.key_id}


async def test_a_key_comes_in_either_header_and_in_no_other_place(served: Served) -> None:
    key = await served.new_key()
    for headers in ({"Authorization": f"Bearer {key}"}, {"authorization": f"bearer  {key} "}, {"X-API-Key": key}):
        assert (await served.ask(client=FAR, headers=headers)).json()["owner"] == "ann"
    for headers in ({"Authorization": key}, {"Authorization": f"Basic {key}"}, {"Cookie": f"key={key}"}):
        assert (await served.ask(client=FAR, headers=headers)).status_code == 401
    escaped = key.replace("_", "%5F")
    for path in (f"/v1/me?api_key={key}", f"/v1/me?key={escaped}", f"/v1/{key}", f"/assets/{key}", f"/runs/{escaped}"):
        answer = await served.ask(path=path)
        assert (answer.status_code, answer.json()["code"]) == (422, "KeyMisplaced"), path


async def test_a_key_that_is_not_good_is_refused_also_where_none_is_needed(served: Served) -> None:
    key = await served.new_key()
    await served.service.store.revoke_api_key(served.key_id)
    assert (await served.ask(key=key)).status_code == 401
    unknown, _ = keys.new_key("ann")
    assert (await served.ask(key=unknown)).status_code == 401
    for other in ("sk-anything", "none", "marg_x"):  # clients of other services must send something
        assert (await served.ask(key=other)).json()["owner"] == "local"
        assert (await served.ask(key=other, client=FAR)).status_code == 401


async def test_a_key_reaches_no_further_than_its_scopes(served: Served) -> None:
    reader = await served.new_key(scopes=["read"])
    answer = await served.ask("POST", "/v1/research", key=reader, json={"question": "?"})
    assert (answer.status_code, answer.json()["code"]) == (403, "Forbidden")
    assert "research" in answer.json()["detail"]
    assert (await served.ask(key=reader)).status_code == 200
    asker = await served.new_key(scopes=["research"])
    assert (await served.ask("POST", "/v1/research", key=asker, json={"question": "?"})).json() == "ann: 1"


async def test_keys_off_is_for_this_machine_alone_but_any_proxy_may_ask(tmp_path: Path) -> None:
    served = Served(tmp_path, auth="off")
    assert (await served.ask(headers={"X-Forwarded-For": "203.0.113.7"})).json()["owner"] == "local"
    assert (await served.ask(base="http://evil.example")).status_code == 421


@pytest.mark.parametrize(
    ("service", "word"),
    [
        ({"auth": "off", "host": "0.0.0.0"}, "auth"),
        ({"auth": "off", "host": "::"}, "auth"),
        ({"auth": "off", "host": "marg.example.org"}, "auth"),
        ({"cors": ["*"]}, "cors"),
        ({"cors": ["*"], "auth": "off"}, "cors"),
        ({"cors": ["example.org"]}, "cors"),
        ({"cors": ["https://example.org/app"]}, "cors"),
        ({"cors": ["https://*.example.org"]}, "cors"),
        ({"cors": ["null"]}, "cors"),
    ],
    ids=str,
)
def test_a_server_that_would_be_open_does_not_start(tmp_path: Path, service: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        check(Settings.model_validate({"service": service}))
    with pytest.raises(UsageError, match=word):
        app_of(tmp_path, service=service)


@pytest.mark.parametrize(
    "service",
    [
        {},
        {"auth": "off"},
        {"auth": "off", "host": "::1"},
        {"auth": "off", "host": "localhost"},
        {"host": "0.0.0.0"},
        {"host": "0.0.0.0", "cors": ["*"]},
        {"cors": ["https://example.org", "http://localhost:3000"]},
    ],
    ids=str,
)
def test_others_start(service: dict[str, Any]) -> None:
    check(Settings.model_validate({"service": service}))


# ---- pages of other sites


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},  # another server of this machine
        {"Origin": "http://localhost:8080"},  # another name is another origin
        {"Origin": "http://127.0.0.1:8080.evil.example"},
        {"Origin": "garbage"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},  # a form
        {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
async def test_a_page_of_another_site_starts_nothing_here(served: Served, headers: dict[str, str]) -> None:
    answer = await served.ask("POST", "/v1/research", headers=headers, json={"question": "?"})
    assert (answer.status_code, answer.json()["code"]) == (403, "CrossSite")
    key = await served.new_key()  # which such a page has not got
    assert (await served.ask("POST", "/v1/research", key=key, headers=headers, json={"question": "?"})).is_success


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": HERE},
        {"Origin": HERE, "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
async def test_its_own_page_and_programs_do(served: Served, headers: dict[str, str]) -> None:
    assert (await served.ask("POST", "/v1/research", headers=headers, json={"question": "?"})).is_success


async def test_a_default_port_is_the_same_origin(served: Served) -> None:
    answer = await served.ask(base="http://localhost", headers={"Origin": "http://localhost:80"})
    assert answer.status_code == 200


async def test_links_from_elsewhere_are_followed_and_nothing_is_embedded(served: Served) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    for path in ("/", "/v1/me"):
        assert (await served.ask(path=path, headers=followed)).status_code == 200
    assert (await served.ask(headers=embedded)).status_code == 403


async def test_cors_is_closed_until_it_is_opened(tmp_path: Path) -> None:
    origin = {"Origin": "https://app.example"}
    asks = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    closed = Served(tmp_path / "closed")
    assert "Access-Control-Allow-Origin" not in (await closed.ask(headers=origin)).headers
    assert not (await closed.ask("OPTIONS", "/v1/research", headers=asks)).is_success
    opened = Served(tmp_path / "open", cors=["https://app.example"], auth="on")
    asked = await opened.ask("OPTIONS", "/v1/research", headers=asks)
    assert asked.status_code == 200
    assert asked.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert asked.headers["X-Content-Type-Options"] == "nosniff"
    key = await opened.new_key()
    answer = await opened.ask("POST", "/v1/research", key=key, headers=origin, json={"question": "?"})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
    assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    refused = await opened.ask(headers=origin)
    assert (refused.status_code, refused.headers["Access-Control-Allow-Origin"]) == (401, "https://app.example")
    other = await opened.ask("OPTIONS", "/v1/research", headers={**asks, "Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in other.headers


async def test_an_origin_that_was_let_in_needs_no_key_where_nobody_does(tmp_path: Path) -> None:
    served = Served(tmp_path, cors=["https://app.example"])
    body = {"question": "?"}
    for headers in (
        {"Origin": "https://app.example"},
        {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"},
    ):
        assert (await served.ask("POST", "/v1/research", headers=headers, json=body)).is_success
    assert (
        await served.ask("POST", "/v1/research", headers={"Origin": "https://x.example"}, json=body)
    ).is_client_error


# ---- how often


async def test_a_caller_may_ask_so_often_a_minute(tmp_path: Path) -> None:
    served = Served(tmp_path, per_minute=5)
    key = await served.new_key()
    answers = [await served.ask(key=key) for _ in range(7)]
    assert [a.status_code for a in answers] == [200] * 5 + [429] * 2
    assert [a.headers["RateLimit-Remaining"] for a in answers[:5]] == list("43210")
    refused = answers[-1]
    assert 1 <= int(refused.headers["Retry-After"]) <= 65
    assert (refused.json()["code"], refused.json()["retryable"]) == ("RateLimited", True)
    assert (await served.ask(key=await served.new_key("bob"))).status_code == 200
    assert (await served.ask()).status_code == 200  # by its address
    for _ in range(10):
        assert (await served.ask(path="/health")).status_code == 200
        assert (await served.ask(path="/assets/app.js", key=key)).status_code == 200


async def test_who_guesses_keys_is_counted_by_address(tmp_path: Path) -> None:
    served = Served(tmp_path, per_minute=5, auth="on")
    statuses = [(await served.ask(key=keys.new_key("ann")[0], client=FAR)).status_code for _ in range(7)]
    assert statuses == [401] * 5 + [429] * 2
    key = await served.new_key()
    assert (await served.ask(key=key, client=FAR)).status_code == 200  # others behind that address go on


async def test_addresses_of_one_site_are_one(tmp_path: Path) -> None:
    served = Served(tmp_path, per_minute=2, auth="on")
    statuses = [(await served.ask(client=(f"2001:db8:1:2::{n}", 1))).status_code for n in range(4)]
    assert statuses == [401, 401, 429, 429]
    assert (await served.ask(client=("2001:db8:1:3::1", 1))).status_code == 401


async def test_replicas_count_together(tmp_path: Path) -> None:
    one = Served(tmp_path, per_minute=6, replicas=2)
    two = FastAPI()
    problems.install(two)
    guards.install(two, one.service)
    key = await one.new_key()
    other = Served.__new__(Served)
    other.app = two
    statuses = [(await (one if n % 2 else other).ask(key=key)).status_code for n in range(8)]
    assert statuses.count(429) == 2
    assert statuses[-2:] == [429, 429]


# ---- how much


async def pieces(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * size


async def test_a_body_has_its_limit_whether_its_length_is_said_or_not(tmp_path: Path) -> None:
    served = Served(tmp_path, max_body_mb=0.01)
    fits, beyond = b"x" * 10_485, b"x" * 10_486
    for method in ("POST", "GET", "DELETE"):
        answer = await served.ask(method, "/v1/raw", content=beyond)
        assert (answer.status_code, answer.json()["code"]) == (413, "TooLarge"), method
        assert "0.01 MB" in answer.json()["detail"]
    assert (await served.ask("POST", "/v1/raw", content=fits)).json() == 10_485
    assert (await served.ask("POST", "/v1/raw", content=pieces(100, 104))).json() == 10_400
    assert (await served.ask("POST", "/v1/raw", content=pieces(100, 105))).status_code == 413
    lying = await served.ask("POST", "/v1/raw", content=pieces(100, 105), headers={"Content-Length": "5"})
    assert lying.status_code == 413


async def test_nothing_is_read_of_a_body_whose_length_is_too_large(tmp_path: Path) -> None:
    served = Served(tmp_path, max_body_mb=0.01)
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for piece in range(1000):
            read += 1
            yield bytes([piece % 256]) * 100

    answer = await served.ask("POST", "/v1/raw", content=body(), headers={"Content-Length": "100000"})
    assert (answer.status_code, read) == (413, 0)
    await served.ask("POST", "/v1/raw", content=body())
    assert read < 110


async def test_documents_have_a_limit_of_their_own(tmp_path: Path) -> None:
    served = Served(tmp_path, max_body_mb=0.01)
    for size, status in ((150_000, 200), (200_000, 200), (300_000, 413)):
        answer = await served.ask("POST", "/v1/knowledge", files={"file": ("a.txt", b"x" * size)})
        assert answer.status_code == status, size
    form = httpx.Request("POST", HERE, files={"file": ("a.txt", b"x" * 300_000)})
    body, kind = form.read(), {"Content-Type": form.headers["Content-Type"]}

    async def chunked() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 10_000):
            yield body[at : at + 10_000]

    answer = await served.ask("POST", "/v1/knowledge", content=chunked(), headers=kind)
    assert (answer.status_code, answer.json()["code"]) == (413, "TooLarge")
    assert (await served.ask("POST", "/v1/raw", files={"file": ("a.txt", b"x" * 20_000)})).status_code == 413


def nested(depth: int) -> Iterator[str]:
    yield "[" * depth + "]" * depth
    yield '{"a":' * depth + "1" + "}" * depth
    yield '{"a[":[' * (depth // 2) + "]}" * (depth // 2)


@pytest.mark.parametrize("depth", [10, 32])
async def test_json_may_be_so_deep(served: Served, depth: int) -> None:
    for text in nested(depth):
        assert json.loads(text)
        answer = await served.ask("POST", "/v1/raw", content=text, headers={"Content-Type": "application/json"})
        assert answer.json() == len(text)


@pytest.mark.parametrize("depth", [34, 1000, 100_000])
async def test_and_no_deeper(served: Served, depth: int) -> None:
    for text in nested(depth):
        answer = await served.ask("POST", "/v1/raw", content=text, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (422, "UsageError")


async def test_brackets_in_strings_are_text_and_other_bodies_are_left_alone(served: Served) -> None:
    text = json.dumps({"a": "[" * 1000 + "\\" + '"' + "{" * 1000, "b": '\\"[' * 100})
    for body, kind in (
        (text, "application/json"),
        ("[" * 1000 + "]" * 1000, "text/plain"),
        ('"[[', "application/json"),
    ):
        answer = await served.ask("POST", "/v1/raw", content=body, headers={"Content-Type": kind})
        assert answer.json() == len(body)


@pytest.mark.parametrize(
    "body",
    [
        '"' + '\\"' * 400_000,
        '"' * 900_000,
        "[" * 900_000,
        "[]" * 450_000,
        "{" * 900_000,
        '"\\' * 450_000,
        "]" * 900_000,
    ],
    ids=lambda body: f"{body[:4]}...",
)
async def test_hostile_bodies_are_seen_through_at_once(served: Served, body: str) -> None:
    async with asyncio.timeout(10):  # where looking took a quadratic time it would be hours
        answer = await served.ask("POST", "/v1/research", content=body, headers={"Content-Type": "application/json"})
    assert 400 <= answer.status_code < 500


async def test_json_is_in_utf_8(served: Served) -> None:
    body = json.dumps({"question": "?"}).encode("utf-16")
    answer = await served.ask("POST", "/v1/research", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (422, "UsageError")


async def test_a_body_that_does_not_come_is_not_waited_for(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_S", 0.01)

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    answer = await served.ask("POST", "/v1/research", content=never())
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (408, "TooSlow", True)


async def test_who_leaves_in_the_middle_of_a_body_leaves_no_error(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b'{"question": "', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    await served.app({**SCOPE, "method": "POST", "path": "/v1/research", "headers": headers}, receive, send)
    assert sent[0]["status"] < 500
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# ---- answers


async def test_every_answer_bears_the_headers(tmp_path: Path) -> None:
    served = Served(tmp_path, per_minute=50)
    await served.new_key()
    asked = [
        await served.ask(),
        await served.ask(path="/"),
        await served.ask(path="/health"),
        await served.ask(path="/nothing"),
        await served.ask(client=FAR),
        await served.ask(base="http://evil.example"),
        await served.ask("POST", "/v1/research", content="{"),
        await served.ask("PUT", "/v1/research"),
        await served.ask("POST", "/v1/raw", content=b"x" * 2_000_000),
        await served.ask(path="/v1/broken"),
        *[await served.ask() for _ in range(50)],
    ]
    statuses = [a.status_code for a in asked]
    assert statuses[:10] == [200, 200, 200, 404, 401, 421, 422, 405, 413, 500]
    assert statuses[-1] == 429
    for answer in asked:
        for name, value in {
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            assert answer.headers[name] == value, (answer.status_code, name)
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert "Permissions-Policy" in answer.headers
        assert "Strict-Transport-Security" not in answer.headers
        if answer.status_code >= 400:
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["status"] == answer.status_code


async def test_over_tls_it_stays_there(served: Served) -> None:
    answer = await served.ask(base="https://localhost")
    assert answer.headers["Strict-Transport-Security"].startswith("max-age=")


async def test_what_broke_is_in_the_log_and_not_in_the_answer(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    key = await served.new_key()
    answer = await served.ask(path="/v1/broken", key=key)
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text
    assert served.key_id in caplog.text
    assert key not in caplog.text


@pytest.mark.parametrize(
    ("media_type", "own", "policy"),
    [
        ("application/json", "", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
        (
            "text/html; charset=utf-8",
            "",
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        ("text/html", "sandbox allow-scripts", "sandbox allow-scripts; frame-ancestors 'none'"),
        ("text/html", "default-src 'self'; frame-ancestors 'self'", "default-src 'self'; frame-ancestors 'self'"),
        ("application/pdf", "", "frame-ancestors 'none'"),
        ("image/svg+xml", "", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"),
    ],
)
def test_the_policy_is_the_route_s_or_that_of_data(media_type: str, own: str, policy: str) -> None:
    given = [(b"content-type", media_type.encode())] + ([(b"content-security-policy", own.encode())] if own else [])
    message: Message = {"type": "http.response.start", "status": 200, "headers": given}
    add_headers({"type": "http", "path": "/v1/x", "scheme": "http"}, message)
    found = dict(message["headers"])
    assert found[b"content-security-policy"].decode() == policy
    assert found[b"cache-control"] == b"no-store"


# ---- streams, spoken to directly: the test client waits for an answer's end


async def listen(served: Served, key: str, pieces_wanted: int, then: Any = None) -> list[Message]:
    """The messages of the stream's answer; `then` runs after some pieces, and the client stays."""
    sent: list[Message] = []
    scope = {
        **SCOPE,
        "method": "GET",
        "path": "/v1/stream",
        "headers": [(b"host", b"127.0.0.1:8080"), (b"authorization", f"Bearer {key}".encode())],
        "client": FAR,
    }

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == pieces_wanted and then is not None:
            await then()

    async with asyncio.timeout(30):
        await served.app(scope, receive, send)
    return sent


async def test_a_stream_ends_when_its_key_does(tmp_path: Path) -> None:
    served = Served(tmp_path, known_s=0.0)
    key = await served.new_key()

    async def revoke() -> None:
        await served.service.store.revoke_api_key(served.key_id)

    sent = await listen(served, key, 20, revoke)
    assert sent[0]["status"] == 200
    assert 20 <= len(sent) <= 25
    assert sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


async def test_there_are_no_web_sockets(served: Served) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/v1/me", "headers": [], "query_string": b"", "client": ("127.0.0.1", 1)}
    await served.app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]
