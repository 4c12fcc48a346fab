"""Errors that only a server has."""

from __future__ import annotations

from marg_ray.errors import MargError, UsageError


class Unauthorized(MargError):
    """No API key, or one that is not valid."""

    http_status = 401
    exit_code = 2

    def __str__(self) -> str:
        return "an API key is needed"

    @property
    def hint(self) -> str:
        return "send it as `Authorization: Bearer KEY`; `marg keys add` makes one"


class Forbidden(MargError):
    """The key does not reach so far."""

    http_status = 403
    exit_code = 2

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.scope = scope

    def __str__(self) -> str:
        return f"this key may not do that: it lacks the scope {self.scope!r}"

    @property
    def hint(self) -> str:
        return "use a key that has it"


class RateLimited(MargError):
    """Too many requests of one caller."""

    http_status = 429
    exit_code = 2
    retryable = True

    def __init__(self, per_minute: int, retry_after_s: float) -> None:
        super().__init__(per_minute, retry_after_s)
        self.per_minute, self.retry_after_s = per_minute, retry_after_s

    def __str__(self) -> str:
        return f"more than {self.per_minute} requests a minute"

    @property
    def hint(self) -> str:
        return f"wait {self.retry_after_s:.0f} s"


class TooLarge(MargError):
    """A body or a field beyond its limit."""

    http_status = 413
    exit_code = 2

    def __init__(self, what: str, limit: str) -> None:
        super().__init__(what, limit)
        self.what, self.limit = what, limit

    def __str__(self) -> str:
        return f"{self.what} is larger than {self.limit}"


class TooSlow(MargError):
    """A body that does not come."""

    http_status = 408
    exit_code = 2
    retryable = True

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"the body did not come within {self.seconds:.0f} s"


class KeyMisplaced(UsageError):
    """An API key where it would be stored, logged or searched for."""

    def __init__(self, where: str) -> None:
        MargError.__init__(self, where)
        self.where = where

    def __str__(self) -> str:
        return f"the {self.where} of the request holds an API key"

    @property
    def hint(self) -> str:
        return "keys go into the header `Authorization` alone; whoever has seen this one can use it: revoke it"


class WrongHost(MargError):
    """A server that needs no keys was reached under a name that is not this machine's own."""

    http_status = 421
    exit_code = 2

    def __str__(self) -> str:
        return "this server answers without a key only as localhost or 127.0.0.1"

    @property
    def hint(self) -> str:
        return "use that name, or send a key; behind a proxy set service.auth to on"


class CrossSite(MargError):
    """A page of another site wants something of a server that needs no keys."""

    http_status = 403
    exit_code = 2

    def __str__(self) -> str:
        return "pages of other sites may not use this server"

    @property
    def hint(self) -> str:
        return "service.cors names the origins that may"


class NotReady(MargError):
    """The session has no report yet."""

    http_status = 409
    exit_code = 2
    retryable = True

    def __init__(self, session_id: str, status: str) -> None:
        super().__init__(session_id, status)
        self.session_id, self.status = session_id, status

    def __str__(self) -> str:
        return f"session {self.session_id} has no report yet: it is {self.status}"

    @property
    def hint(self) -> str:
        return f"follow /v1/research/{self.session_id}/events until it ends"

    @property
    def more(self) -> dict[str, str]:
        return {"session_status": self.status}


class NoReport(MargError):
    """The session is over, and there is no report."""

    http_status = 409
    exit_code = 2

    def __init__(self, session_id: str, status: str, reason: str = "") -> None:
        super().__init__(session_id, status, reason)
        self.session_id, self.status, self.reason = session_id, status, reason

    def __str__(self) -> str:
        return f"session {self.session_id} has no report: it is {self.status}{self.reason and f', {self.reason}'}"

    @property
    def more(self) -> dict[str, str]:
        return {"session_status": self.status, "reason": self.reason}
