from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from marg_ray.sources.abandon import abandonable, resolve


async def test_results_and_errors_come_back() -> None:
    assert await abandonable(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await abandonable(divmod, 7, 0)


async def test_a_panic_is_an_ordinary_error() -> None:
    class Panic(BaseException):
        pass

    def panic() -> None:
        raise Panic("at the disco")

    with pytest.raises(RuntimeError, match="Panic: at the disco"):
        await abandonable(panic)


def test_a_hanging_call_holds_neither_the_caller_nor_the_end_of_the_loop() -> None:
    release = threading.Event()

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await abandonable(release.wait, 30)

    started = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert time.monotonic() - started < 15
    release.set()  # the thread now reports to a loop that is closed, and ends quietly


async def test_names_of_this_machine() -> None:
    assert set(await resolve("localhost")) & {"127.0.0.1", "::1"}
    with pytest.raises(socket.gaierror):
        await resolve("no-such-name.invalid")
