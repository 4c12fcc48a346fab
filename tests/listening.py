"""An application on a real port of this machine, in a thread with an event loop of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI

ENDS_WITHIN_S = 30


@contextlib.contextmanager
def listening(app: FastAPI) -> Iterator[str]:
    """Serve meanwhile; gives the address. Whoever connects before the application has started waits for it."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(100)
        server = uvicorn.Server(
            uvicorn.Config(app, lifespan="on", log_config=None, access_log=False, timeout_graceful_shutdown=1)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(ENDS_WITHIN_S)
            assert not thread.is_alive(), "the server did not end"
