from __future__ import annotations

import os
import signal

import hypothesis

from tests.postgres import postgres as postgres

# The same examples in every run, so that what a change broke is told from what chance has found. To look for new ones:
# HYPOTHESIS=random .venv/bin/python -m pytest tests/unit/test_critique.py
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.register_profile("random")
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS", "same"))


def pytest_configure() -> None:
    """A shell's background jobs ignore Ctrl-C, and so do the commands that the tests start there and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
