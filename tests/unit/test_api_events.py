"""Event streams over a real server on loopback: dropped clients, hostile texts, and case API-01."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from marg_ray.api.app import create_app
from marg_ray.api.routes import events
from marg_ray.api.routes.events import EventStream, hub_of, resume_after
from marg_ray.api.sse import frame
from marg_ray.messages import Message, SearchDone, SessionCancelled
from marg_ray.records import Depth, Request
from marg_ray.store.sql import SqlStore, sqlite_url
from marg_ray.tasks import Task
from tests.flow import World
from tests.followed import QUESTION, Followed, eventually, listening, service_over
from tests.served import service_of
from tests.shared import case_file
from tests.sse import Event, Parser, Stream, parse

PATH = "/v1/research/S/events"
BUSY: dict[str, Any] = {"per_minute": 100_000}
HOSTILE = (
    "two\nlines",
    "carriage\rreturn\r\nboth",
    "\n\nid: 99\nevent: end\ndata: {}\n\n",
    "data: x\n: comment\nretry: 1",
    "separators \u2028 \u2029 \x85 \x0b \x0c \x1c \x1d \x1e end",
    "half a pair \ud83d and another \udc00",
    "whole pair \U0001f30a, Arabic \u0645\u062f, CJK \u6f6e\u6c50, a null \x00",
    '"quotes" \\ and \\n as it is written, </script><!--',
    "",
)


def app_over(followed: Followed, folder: Path, **settings: Any) -> FastAPI:
    return create_app(service_over(followed, folder, service=BUSY | settings))


def ids(found: list[Event]) -> list[int]:
    return [event.id for event in found if event.id is not None and event.entry]


# ---- a whole run


async def test_a_client_that_is_dropped_fifty_times_sees_each_event_of_a_run_once_and_in_order(tmp_path: Path) -> None:
    world, chance = World(tmp_path), random.Random(5)
    gate = asyncio.Semaphore(0)
    whole = world._dispatch

    async def paced(task: Task) -> Message:
        await gate.acquire()
        return await whole(task)

    world.coordinator._dispatch = paced
    await world.coordinator.submit("S", Request(question=QUESTION, depth=Depth.OVERVIEW))
    seen: list[Event] = []
    last_id, cut_inside = "", 0
    async with listening(create_app(service_of(world, service=BUSY | {"heartbeat_s": 0.02}))) as port:
        for _ in range(50):
            gate.release()
            stream = await Stream.open(port, PATH, **({"Last_Event_ID": last_id} if last_id else {}))
            assert stream.status == 200
            async for piece in stream.pieces():
                broken = chance.random() < 0.7
                at = chance.randint(0, len(piece)) if broken else len(piece)  # inside a frame, a line, a letter
                seen += [event for event in stream.parser.feed(piece[:at]) if event.entry]
                cut_inside += not piece[:at].endswith(b"\n\n")
                if broken:
                    break
            last_id = stream.parser.last_id or last_id
            stream.drop()
        for _ in range(1000):
            gate.release()
        rest = await (await Stream.open(port, PATH, Last_Event_ID=last_id)).all()
    entries = await world.store.read("S")
    assert rest[-1] == Event("end", {"status": "passed"}, None)
    assert len(entries) > 20
    assert cut_inside > 10
    assert ids(seen + rest) == list(range(1, len(entries) + 1))
    told = [(event.name, event.data["at"]) for event in seen + rest if event.entry]
    assert told == [(e.message.kind, e.at.isoformat()) for e in entries]


async def test_a_run_goes_on_while_nobody_listens(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with listening(create_app(service_of(world, service=BUSY))) as port:
        await world.coordinator.submit("S", Request(question=QUESTION, depth=Depth.OVERVIEW))
        stream = await Stream.open(port, PATH)
        await anext(stream.pieces())
        stream.drop()
        async with asyncio.timeout(60):
            status = "running"
            while status == "running":
                status = await world.coordinator.ended("S")
        assert status == "passed"
        found = await (await Stream.open(port, PATH)).all()
    assert ids(found) == [entry.seq for entry in await world.store.read("S")]
    board = next(event.data for event in reversed(found) if event.name == "board")
    assert board["status"] == "passed"
    assert board["report"]["artefact"]
    assert {section["state"] for section in board["sections"]} <= {"done", "gap"}


# ---- framing


async def test_no_text_breaks_a_frame(tmp_path: Path) -> None:
    followed = Followed()
    await followed.begin(question="Q" + "".join(HOSTILE))
    for n, text in enumerate(HOSTILE):
        await followed.say(SearchDone(task_id=f"S/{n}", section=text, query=text, rewritten=text))
    await followed.say(SessionCancelled(task_id="S/cancel", by="\r\n\u2028"))
    async with listening(app_over(followed, tmp_path)) as port:
        stream = await Stream.open(port, PATH)
        body = b"".join([piece async for piece in stream.pieces()])
        stream.drop()
    found = Parser().feed(body)
    assert ids(found) == list(range(1, len(HOSTILE) + 3))
    assert [event.name for event in found][-2:] == ["board", "end"]
    lines = body.decode().split("\n")
    assert lines == [*body.decode().splitlines(), ""]  # nor for libraries that know more breaks than the standard
    assert {line.partition(":")[0] for line in lines} == {"", "id", "event", "data", "retry"}
    for text, event in zip(HOSTILE, found[1:], strict=False):
        told = event.data["query"]
        assert told == " ".join(text.encode("utf-8", "replace").decode().split())


@pytest.mark.parametrize("text", HOSTILE)
def test_a_frame_gives_its_text_back(text: str) -> None:
    sent = frame("x", {"text": text, text: [text]}, 3)
    assert sent.count(b"\n") == 4
    assert len(sent.decode().splitlines()) == 4
    told = text.encode("utf-8", "replace").decode()
    assert parse(sent) == [Event("x", {"text": told, told: [told]}, 3)]


def test_a_frame_holds_no_number_that_is_no_json() -> None:
    data = {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": -float("inf")}}
    assert parse(frame("x", data))[0].data == {"a": None, "b": [None, 1.5], "c": {"d": None}}


async def test_headers_keep_proxies_and_caches_off(tmp_path: Path) -> None:
    followed = Followed()
    await followed.begin()
    async with listening(app_over(followed, tmp_path)) as port:
        stream = await Stream.open(port, PATH)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert "no-store" in stream.headers["cache-control"]
        assert stream.headers["x-accel-buffering"] == "no"
        stream.drop()


# ---- what a client may ask for


@pytest.mark.parametrize(
    ("header", "after", "start"),
    [
        ("", 0, 0),
        ("7", 0, 7),
        ("7", 9, 9),
        ("9", 7, 9),
        (" 7 ", 0, 7),
        ("abc'; --", 0, 0),
        ("-5", 3, 3),
        ("1e3", 0, 0),
        ("\u0667", 0, 0),
        ("9" * 10, 0, events.MAX_ID),
        ("9" * 5000, 0, events.MAX_ID),
    ],
)
def test_the_larger_of_header_and_query_wins(header: str, after: int, start: int) -> None:
    assert resume_after(header, after) == start


async def test_a_stream_can_be_asked_for_in_several_ways(tmp_path: Path) -> None:
    followed = Followed()
    await followed.begin()
    await followed.searches(4)
    await followed.say(SessionCancelled(task_id="S/cancel"))
    async with listening(app_over(followed, tmp_path)) as port:
        both = await (await Stream.open(port, f"{PATH}?after=2", Last_Event_ID="4")).all()
        other_name = await (await Stream.open(port, "/v1/status/S?after=4")).all()
        quiet = await (await Stream.open(port, f"{PATH}?board=0&after=4")).all()
    assert both == other_name
    assert [event.name for event in both] == ["search_done", "session_cancelled", "board", "end"]
    assert [event.name for event in quiet] == ["search_done", "session_cancelled", "end"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/research/nope/events", 404),
        ("/v1/research/theirs/events", 404),
        ("/v1/status/theirs", 404),
        (f"{PATH}?after=-1", 422),
        (f"{PATH}?after=abc", 422),
        (f"{PATH}?after={'9' * 400}", 422),
        (f"{PATH}?board=perhaps", 422),
    ],
)
async def test_what_cannot_be_followed_is_a_problem_and_no_stream(tmp_path: Path, path: str, status: int) -> None:
    followed = Followed()
    await followed.begin()
    await followed.begin("theirs", owner="somebody else")
    app = app_over(followed, tmp_path)
    async with listening(app) as port:
        stream = await Stream.open(port, path)
        body = json.loads(await anext(stream.pieces()))
        stream.drop()
    assert stream.status == body["status"] == status
    assert stream.headers["content-type"] == "application/problem+json"
    assert followed.asked == 0


async def test_comments_come_on_a_quiet_stream(tmp_path: Path) -> None:
    followed = Followed()
    await followed.begin()
    async with listening(app_over(followed, tmp_path, heartbeat_s=0.02)) as port:
        stream = await Stream.open(port, f"{PATH}?board=0")
        async for piece in stream.pieces():
            stream.parser.feed(piece)
            if stream.parser.comments == 3:
                break
        stream.drop()


# ---- connections that break or stand still


async def test_a_dropped_connection_is_let_go_of_at_once(tmp_path: Path) -> None:
    followed = Followed()
    await followed.begin()
    app = app_over(followed, tmp_path)
    async with listening(app) as port:
        stream = await Stream.open(port, PATH)
        await anext(stream.pieces())
        channel = hub_of(app)._channels["S"]
        assert len(channel._readers) == 1
        stream.drop()
        await eventually(lambda: not channel._readers)
        assert followed.waiting == 1  # for those who come back at once
        hub_of(app).close()
        await eventually(lambda: not followed.waiting)


async def test_a_client_that_takes_nothing_holds_nothing_and_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "STUCK_S", 0.5)
    followed = Followed()
    await followed.begin()
    await followed.searches(1000, text="\u6f6e" * 600)  # megabytes: more than sockets take
    app = app_over(followed, tmp_path)
    async with listening(app) as port:
        dull = socket.socket()
        dull.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dull.setblocking(False)
        await asyncio.get_running_loop().sock_connect(dull, ("127.0.0.1", port))
        await asyncio.get_running_loop().sock_sendall(dull, f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await eventually(lambda: "S" in getattr(app.state, "streams", hub_of(app))._channels)
        channel = hub_of(app)._channels["S"]
        await eventually(lambda: bool(channel._readers) and channel.tail.head == 1001)
        (reader,) = channel._readers
        stream = await Stream.open(port, f"{PATH}?board=0")
        assert ids(await stream.until(1001)) == list(range(1, 1002))  # the others read on
        assert reader._cursor < 1001
        stream.drop()
        await eventually(lambda: not channel._readers)
        dull.close()


async def test_a_client_that_leaves_while_it_is_written_to_is_no_fault(tmp_path: Path) -> None:
    followed = Followed()
    row = await followed.begin()
    hub = hub_of(app_over(followed, tmp_path))
    silent = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await silent.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            raise OSError("broken pipe")

    await EventStream(hub, row, 0, boards=True)({"type": "http"}, receive, send)
    assert not hub._channels["S"]._readers
    hub.close()


# ---- case API-01


def scenario() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(case_file("API-01", "scenario.json").read_text())
    return found


async def first_seven(followed: Followed, port: int, session: str) -> list[Event]:
    """Events 1 to 7, of a client that is then dropped."""
    await followed.begin(session)
    await followed.searches(6, session)
    stream = await Stream.open(port, f"/v1/research/{session}/events")
    found = await stream.until(7)
    stream.drop()
    return found


async def all_twenty(followed: Followed, session: str) -> None:
    await followed.searches(19 - (await followed.store.session(session)).seq, session)
    await followed.say(SessionCancelled(task_id=f"{session}/cancel"), session)


async def test_api_01_every_reconnect_gets_what_it_is_to_get(tmp_path: Path) -> None:
    followed = Followed()
    async with listening(app_over(followed, tmp_path)) as port:
        for step in scenario()["reconnects"]:
            session = step["name"]
            seen = await first_seven(followed, port, session)
            await followed.searches(4, session)
            if session == "after-the-end":
                await all_twenty(followed, session)
            headers = {name.replace("-", "_"): value for name, value in step["headers"].items()}
            path = f"/v1/research/{session}/events"
            clients = [await Stream.open(port, path, **headers) for _ in range(step.get("clients", 1))]
            reading = [asyncio.create_task(client.all()) for client in clients]
            if session != "after-the-end":
                await all_twenty(followed, session)
            for client, found in zip(clients, await asyncio.gather(*reading), strict=True):
                assert client.status == 200, step
                wanted = re.match(r"(\d+)(?:\.\.(\d+))?", step.get("expect_ids", "1..20"))
                assert wanted is not None
                first, last = int(wanted[1]), int(wanted[2] or wanted[1])
                assert ids(found) == list(range(first, last + 1)), step
                assert found[-1].name == "end", step
                data = {event.id: event.data for event in seen}
                assert all(event.data == data.get(event.id, event.data) for event in found if event.entry), step
            assert (found[0].name == "resync") == (session in ("id-of-the-future", "id-very-long"))


async def test_api_01_a_storm_of_dropped_connections_leaves_nothing(tmp_path: Path) -> None:
    followed, storm = Followed(), scenario()["drop_storm"]
    await followed.begin()
    app = app_over(followed, tmp_path)
    async with listening(app) as port:
        first = await Stream.open(port, PATH)  # what a first connection brings about is not counted
        await first.until(1)
        first.drop()
        hub_of(app).close()
        await eventually(lambda: not followed.waiting)
        before = _held()
        for n in range(storm["connect_and_drop"]):
            stream = await Stream.open(port, PATH)
            assert stream.status == 200
            if n % 2:
                await anext(stream.pieces())
            stream.drop()
        last = await Stream.open(port, PATH)
        await followed.searches(3)
        assert ids(await last.until(4)) == [1, 2, 3, 4]
        last.drop()
        hub_of(app).close()
        spare = (5, 0, 0)
        await eventually(
            lambda: all(now <= then + more for now, then, more in zip(_held(), before, spare, strict=True))
        )


def _held() -> tuple[int, int, int]:
    """Open files, tasks, threads."""
    return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), threading.active_count()


async def test_api_01_ids_survive_a_restart_of_the_server(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "marg.db")
    followed = Followed(await SqlStore.open(url))
    async with listening(app_over(followed, tmp_path)) as port:
        seen = await first_seven(followed, port, "S")
    await followed.store.close()
    followed = Followed(await SqlStore.open(url))
    async with listening(app_over(followed, tmp_path)) as port:
        stream = await Stream.open(port, PATH, Last_Event_ID="7")
        reading = asyncio.create_task(stream.all())
        await all_twenty(followed, "S")
        assert ids(await reading) == list(range(8, 21))
        again = await (await Stream.open(port, PATH)).all()
    await followed.store.close()
    assert ids(again) == list(range(1, 21))
    assert [event for event in again if event.entry][:7] == seen
