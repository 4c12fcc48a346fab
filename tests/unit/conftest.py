from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything under tests/unit runs in one process; reaching for Ray is a design error."""
    import sys

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a unit test started Ray: move the logic out of the actor")

    if "ray" in sys.modules:
        monkeypatch.setattr(sys.modules["ray"], "init", refuse)
