"""A circuit breaker: after several failures in a row an endpoint is left alone for a while."""

from __future__ import annotations

import time
from collections.abc import Callable


class Breaker:
    """Closed, open or half-open.

    `after` failures in a row open it for `pause_s`. Then a single call is let through to see: its success closes the
    breaker, its failure opens it again.
    """

    def __init__(self, *, after: int = 5, pause_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._after, self._pause, self._clock = after, pause_s, clock
        self._failures = 0
        self._opened: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        if self._opened is None:
            return "closed"
        return "half-open" if self._clock() - self._opened >= self._pause else "open"

    def admit(self) -> bool:
        """Whether a call may be made now. An admitted call reports `succeeded`, `failed` or `abandoned`."""
        state = self.state
        if state == "half-open" and not self._probing:
            self._probing = True
            return True
        return state == "closed"

    def succeeded(self) -> None:
        self._failures, self._opened, self._probing = 0, None, False

    def failed(self) -> None:
        self._failures += 1
        if self._opened is not None or self._failures >= self._after:
            self._opened = self._clock()
        self._probing = False

    def abandoned(self) -> None:
        """The call was cancelled: it tells nothing."""
        self._probing = False

    @property
    def wait_s(self) -> float:
        """Seconds until a call may be tried again."""
        return 0.0 if self._opened is None else max(0.0, self._pause - (self._clock() - self._opened))
