from __future__ import annotations

import signal

from tests.postgres import postgres as postgres


def pytest_configure() -> None:
    """A shell's background jobs ignore Ctrl-C, and so do the commands that the tests start there and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
