from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from marg_ray.errors import FetchFailed
from marg_ray.settings import FetchSettings
from marg_ray.sources.fetch import GuardedFetcher
from marg_ray.sources.resilience import Breaker, HostSlots, backoff, retry_after
from tests.loopback import Seen, reply, serve
from tests.shared import case_file, needs_shared

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class FakeTime:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.slept = NOW, list[float]()

    def __call__(self) -> datetime:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(case_file("FET-04", "retry-after.json").read_text("utf-8"))["rows"]
    return found


@needs_shared
@pytest.mark.parametrize("number", range(13))
async def test_case_pauses(number: int) -> None:
    row, clock = rows()[number], FakeTime()

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        first = len(server.seen) == 1
        extra = {} if row["header"] is None else {"Retry_After": row["header"]}
        await (reply(row["status"], "", **extra) if first else reply(200, "page"))(seen, writer)

    async with serve(answer) as server:
        fetcher = GuardedFetcher(allow={("127.0.0.1", server.port)}, now=clock, sleep=clock.sleep)
        if row["wait"] == "no-retry":
            with pytest.raises(FetchFailed) as caught:
                await fetcher.fetch(server.url)
            assert (caught.value.status, len(server.seen), clock.slept) == (row["status"], 1, [])
        else:
            assert (await fetcher.fetch(server.url)).body == b"page"
            assert len(server.seen) == 2
            if isinstance(row["wait"], (int, float)):
                assert row["wait"] <= sum(clock.slept) <= row["wait"] + 0.2
            else:
                assert 0.1 <= sum(clock.slept) <= 30
        await fetcher.close()


async def test_the_last_try_names_the_status() -> None:
    clock = FakeTime()
    async with serve(reply(429, "", Retry_After="7")) as server:
        fetcher = GuardedFetcher(
            FetchSettings(tries=3), allow={("127.0.0.1", server.port)}, now=clock, sleep=clock.sleep
        )
        with pytest.raises(FetchFailed, match="HTTP 429") as caught:
            await fetcher.fetch(server.url)
        await fetcher.close()
    assert (caught.value.status, len(server.seen), clock.slept) == (429, 3, [7, 7])


async def test_a_pause_holds_its_host_only_and_can_be_cancelled() -> None:
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await asyncio.Event().wait()

    async with serve(reply(429, "", Retry_After="50")) as busy, serve(reply(200, "page")) as other:
        holes = {("127.0.0.1", busy.port), ("127.0.0.1", other.port)}
        fetcher = GuardedFetcher(allow=holes, now=lambda: NOW, sleep=sleep)
        waiting = asyncio.create_task(fetcher.fetch(busy.url))
        await asleep.wait()
        assert (await fetcher.fetch(other.url)).body == b"page"
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(busy.seen) == 1
        await fetcher.close()


async def test_a_broken_connection_is_tried_again() -> None:
    clock = FakeTime()

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        if len(server.seen) == 1:
            raise ConnectionResetError
        await reply(200, "page")(seen, writer)

    async with serve(answer) as server:
        fetcher = GuardedFetcher(allow={("127.0.0.1", server.port)}, now=clock, sleep=clock.sleep)
        assert (await fetcher.fetch(server.url)).body == b"page"
        await fetcher.close()


async def test_an_unknown_name_is_said_at_once() -> None:
    async def nothing(host: str) -> list[str]:
        raise OSError("no such name")

    fetcher = GuardedFetcher(resolver=nothing, sleep=lambda s: pytest.fail("it waited"))
    with pytest.raises(FetchFailed, match="not known"):
        await fetcher.fetch("http://nowhere.test/")
    await fetcher.close()


async def test_connections_to_a_host_are_bounded() -> None:
    most = 0

    async def answer(seen: Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        most = max(most, server.open)
        await asyncio.sleep(0.01)
        await reply(200, "page")(seen, writer)

    async with serve(answer) as server:
        fetcher = GuardedFetcher(FetchSettings(per_host=2), allow={("127.0.0.1", server.port)})
        await asyncio.gather(*(fetcher.fetch(f"{server.url}/{n}") for n in range(12)))
        await fetcher.close()
    assert most <= 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 60), ("9" * 400, 60), (" 3 ", 3), ("Tue, 01 Jan 2030 00:00:09 GMT", 9),
        ("Tuesday, 01-Jan-30 00:00:09 GMT", 9),
        ("Tue, 01 Jan 2030 00:00:09", 9), ("Tue, 99 Jan 2030 00:00:09 GMT", None),
        ("soon", None), ("٣", None), (None, None),
        ("1e3", None), ("+5", None), ("0x10", None),
    ],
)  # fmt: skip
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


def test_backoff_grows_and_ends() -> None:
    assert all(1 <= backoff(0) <= 1.25 for _ in range(50))
    assert all(4 <= backoff(2) <= 5 for _ in range(50))
    assert backoff(50) == 30


async def test_hosts_are_forgotten_when_nobody_uses_them() -> None:
    slots = HostSlots(1)
    async with slots.slot("a"):
        pass
    assert slots._slots == {}


def test_breaker() -> None:
    clock = [0.0]
    breaker = Breaker(failures=2, reset_s=30, clock=lambda: clock[0])
    for _ in range(2):
        assert breaker.enter()
        breaker.failed()
    assert not breaker.enter()
    clock[0] = 30
    assert breaker.enter()  # the probe
    assert not breaker.enter()  # one at a time
    breaker.failed()
    assert not breaker.enter()
    clock[0] = 60
    assert breaker.enter()
    breaker.left()  # a cancelled probe leaves room for another
    assert breaker.enter()
    breaker.succeeded()
    assert breaker.enter()
    breaker.failed()
    assert breaker.enter()  # counts from anew
    breaker.failed(for_good=True)
    assert not breaker.enter()
