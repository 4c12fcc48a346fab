"""Blocking calls that may hang (name look-ups, foreign HTTP clients) and must hold neither the loop nor the exit."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def abandonable(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `fn` in a daemon thread; on cancellation or time-out the caller goes on at once and the thread ends alone.

    The loop's own executor is joined when the loop closes, so one look-up against a dead name server would hold a
    finished program for many seconds.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, error = None, None
        try:
            result = fn(*args, **kwargs)
        except Exception as exc:
            error = exc
        except BaseException as exc:  # a panic of compiled code is none that its callers could catch
            error = RuntimeError(f"{type(exc).__name__}: {exc}")
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name=f"abandonable {getattr(fn, '__name__', '')}", daemon=True).start()
    return await future


async def resolve(host: str) -> list[str]:
    """Every address of a host name, as text.

    Raises:
        OSError: the name is not known, or no name server answers.
    """
    found = await abandonable(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))
