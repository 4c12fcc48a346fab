"""Everything that can go wrong, as one tree.

    MargError
    ├── UsageError              the caller's mistake                    422, exit 2
    │   └── NotRecorded         a replayed run asks for something new   422, exit 2
    ├── SessionNotFound         no such session or source               404, exit 2
    ├── StoreConflict           somebody else wrote first               409, reload and retry
    │   └── StaleEpoch          a newer coordinator took the session    409
    ├── StoreUnavailable        the database is away or unusable        503, exit 5
    ├── SessionMoved            another coordinator has the session     409, ask there
    ├── DecisionConflict        decided already, or nothing to decide   409, exit 2
    ├── KeyReused               the idempotency key has another body    422, exit 2
    ├── TooBusy                 the queue of sessions is full           429, retry later
    ├── ModelError              the model side failed                        exit 5
    │   ├── ModelUnavailable    nothing answered                        503, resumable
    │   ├── ContextOverflow     the prompt does not fit                 502, retried smaller
    │   ├── OutputCut           the answer hit the output limit         502
    │   └── ParseError          answered, but not in the asked form     502
    ├── SourceError             a source could not be used
    │   ├── SearchUnavailable   no search engine answered               503, exit 5
    │   │   └── McpUnavailable  a server of the Model Context Protocol  503
    │   ├── AddressBlocked      the address may not be fetched          422
    │   ├── FetchFailed         the page did not come                   502
    │   └── Unreadable          it came, but it is no document          422
    ├── FormatUnavailable       a report cannot be made in a format     503
    ├── BudgetExceeded          tokens, money, time or tasks are spent       exit 6
    ├── BudgetStopped           spent before anything was found        422, exit 6
    ├── InsufficientEvidence    the sources do not answer               422, exit 4
    ├── RuntimeUnavailable      Ray did not start or does not answer    503, exit 5
    ├── SessionHalted           stopped, and can be resumed             503, exit 5
    └── SessionCancelled        stopped by its owner                    409, exit 130

`http_status`, `exit_code` and `retryable` are class attributes, so that HTTP, the command line and retries need
no tables. Constructor arguments equal `args`, so that every error crosses a process by pickle with its fields.
"""

from __future__ import annotations

from typing import Any, ClassVar


class MargError(Exception):
    """Base of every error this package raises on purpose. `hint` says what the reader can do."""

    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    @property
    def code(self) -> str:
        """The name a program tests: the class name."""
        return type(self).__name__

    @property
    def hint(self) -> str:
        return ""


class UsageError(MargError):
    """The request cannot be carried out as it was made."""

    http_status = 422
    exit_code = 2

    def __init__(self, what: str, todo: str = "") -> None:
        super().__init__(what, todo)
        self.what, self.todo = what, todo

    def __str__(self) -> str:
        return self.what

    @property
    def hint(self) -> str:
        return self.todo


class NotRecorded(UsageError):
    """A replayed run asks for something that its recording does not hold; says what."""


class SessionNotFound(MargError):
    """No session (or source of a session) has this id."""

    http_status = 404
    exit_code = 2

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"there is no session or source {self.session_id!r}"

    @property
    def hint(self) -> str:
        return "`marg runs` lists the sessions"


class StoreConflict(MargError):
    """The log is not where the writer thought it was."""

    http_status = 409
    retryable = True

    def __init__(self, session_id: str, expected: int, found: int) -> None:
        super().__init__(session_id, expected, found)
        self.session_id, self.expected, self.found = session_id, expected, found

    def __str__(self) -> str:
        return f"the log of {self.session_id} is at {self.found}, not {self.expected}: somebody else wrote first"


class StaleEpoch(StoreConflict):
    """A newer coordinator has taken the session over; this one must stop writing."""

    retryable = False

    def __str__(self) -> str:
        return f"{self.session_id} is in epoch {self.found}: a writer of epoch {self.expected} is refused"


class StoreUnavailable(MargError):
    """The database did not answer, after all retries, or cannot be read or written."""

    http_status = 503
    exit_code = 5
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the store is unavailable: {self.reason}"

    @property
    def hint(self) -> str:
        return "nothing is lost: check store.url and the database, then `marg resume`"


class SessionMoved(MargError):
    """Another coordinator works on the session: shard `shard` of this runtime, or of `holder` where one is named."""

    http_status = 409
    retryable = True

    def __init__(self, session_id: str, shard: int, holder: str = "") -> None:
        super().__init__(session_id, shard, holder)
        self.session_id, self.shard, self.holder = session_id, shard, holder

    def __str__(self) -> str:
        if self.holder:
            return f"another process works on {self.session_id}"
        return f"{self.session_id} is with coordinator {self.shard}"

    @property
    def hint(self) -> str:
        return (
            "`marg cancel`, `marg steer` and `marg decide` reach it there; `marg runs` shows it" if self.holder else ""
        )


class DecisionConflict(MargError):
    """What was decided on is decided already, has changed, or is not there. `current` is the revision or round now."""

    http_status = 409
    exit_code = 2

    def __init__(self, session_id: str, what: str, current: int = 0) -> None:
        super().__init__(session_id, what, current)
        self.session_id, self.what, self.current = session_id, what, current

    def __str__(self) -> str:
        return self.what

    @property
    def hint(self) -> str:
        return f"`marg show {self.session_id} --log` shows what was decided"

    @property
    def more(self) -> dict[str, int]:
        """For programs."""
        return {"current": self.current}


class KeyReused(MargError):
    """An idempotency key came a second time, with another request."""

    http_status = 422
    exit_code = 2

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"this idempotency key belongs to another request: session {self.session_id}"

    @property
    def hint(self) -> str:
        return "send a new key with a new request"


class TooBusy(MargError):
    """No more sessions are taken in for now."""

    http_status = 429
    exit_code = 5
    retryable = True

    def __init__(self, waiting: int, retry_after_s: float) -> None:
        super().__init__(waiting, retry_after_s)
        self.waiting, self.retry_after_s = waiting, retry_after_s

    def __str__(self) -> str:
        return f"{self.waiting} sessions wait already"

    @property
    def hint(self) -> str:
        return f"try again in {self.retry_after_s:.0f} s"


class ModelError(MargError):
    """The model side failed. `spent` is the `Usage` of the answers that came before it did, where there were any."""

    http_status = 502
    exit_code = 5
    spent: Any = None


class ModelUnavailable(ModelError):
    """No endpoint answered, after all retries."""

    http_status = 503
    retryable = True

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(endpoint, reason)
        self.endpoint, self.reason = endpoint, reason

    def __str__(self) -> str:
        return f"the model at {self.endpoint} is unavailable: {self.reason}"

    @property
    def hint(self) -> str:
        return "nothing was invented and nothing is lost: `marg resume` goes on when the model is back"


class ContextOverflow(ModelError):
    """The prompt is larger than the model's window of `limit` tokens."""

    def __init__(self, limit: int, detail: str) -> None:
        super().__init__(limit, detail)
        self.limit, self.detail = limit, detail

    def __str__(self) -> str:
        return f"the prompt does not fit into the model's context of {self.limit} tokens: {self.detail}"


class OutputCut(ModelError):
    """The answer was cut by the output limit, twice."""

    def __init__(self, task: str, limit: int) -> None:
        super().__init__(task, limit)
        self.task, self.limit = task, limit

    def __str__(self) -> str:
        return f"the answer to {self.task} was cut by the output limit of {self.limit} tokens"


class ParseError(ModelError):
    """The answer could not be read as what was asked for."""

    def __init__(self, task: str, complaint: str, tries: int) -> None:
        super().__init__(task, complaint, tries)
        self.task, self.complaint, self.tries = task, complaint, tries

    def __str__(self) -> str:
        return f"the answer to {self.task} could not be read after {self.tries} tries: {self.complaint}"


class SourceError(MargError):
    """A source could not be used; the run goes on without it."""

    http_status = 502


class SearchUnavailable(SourceError):
    """Every configured search engine failed."""

    http_status = 503
    exit_code = 5
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"web search is unavailable: {self.reason}"

    @property
    def hint(self) -> str:
        return "check the network, set MARG_SEARCH__SEARXNG_URL, or give documents with --docs"


class McpUnavailable(SearchUnavailable):
    """A server of the Model Context Protocol did not answer, or not with anything that can be used."""

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(reason)
        self.args = (server, reason)
        self.server = server

    def __str__(self) -> str:
        return f"the MCP server {self.server!r} is unavailable: {self.reason}"

    @property
    def hint(self) -> str:
        return f"check mcp.servers.{self.server} in the settings"


class AddressBlocked(SourceError):
    """The address is not one a page may be fetched from, whether something listens there or not."""

    http_status = 422

    def __init__(self, url: str, reason: str = "not a public web address") -> None:
        super().__init__(url, reason)
        self.url, self.reason = url, reason

    def __str__(self) -> str:
        return f"{self.url}: blocked, {self.reason}"


class FetchFailed(SourceError):
    """The page did not come. `status` is 0 where no HTTP answer was had."""

    def __init__(self, url: str, reason: str, status: int = 0) -> None:
        super().__init__(url, reason, status)
        self.url, self.reason, self.status = url, reason, status

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}" + (f" (HTTP {self.status})" if self.status else "")


class Unreadable(SourceError):
    """The bytes came, but there is no document in them. `why` is one short phrase."""

    http_status = 422

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.name, self.why = name, why

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


class FormatUnavailable(MargError):
    """A report cannot be made in this format here; it is there in the others."""

    http_status = 503

    def __init__(self, format: str, why: str, todo: str = "") -> None:
        super().__init__(format, why, todo)
        self.format, self.why, self.todo = format, why, todo

    def __str__(self) -> str:
        return f"no {self.format} can be made: {self.why}"

    @property
    def hint(self) -> str:
        return self.todo


class BudgetExceeded(MargError):
    """A limit of the session is spent."""

    http_status = 422
    exit_code = 6

    def __init__(self, limit: str, value: float, used: float) -> None:
        super().__init__(limit, value, used)
        self.limit, self.value, self.used = limit, value, used

    def __str__(self) -> str:
        return f"the {self.limit} limit of {self.value:g} is spent ({self.used:g} used)"


class BudgetStopped(MargError):
    """A session's limits were spent before anything was found: no report."""

    http_status = 422
    exit_code = 6

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(session_id, reason)
        self.session_id, self.reason = session_id, reason

    def __str__(self) -> str:
        return self.reason

    @property
    def hint(self) -> str:
        return "ask again with higher limits"


class InsufficientEvidence(MargError):
    """The sources do not answer the question: no report."""

    http_status = 422
    exit_code = 4

    def __init__(self, session_id: str, reason: str) -> None:
        super().__init__(session_id, reason)
        self.session_id, self.reason = session_id, reason

    def __str__(self) -> str:
        return self.reason


class RuntimeUnavailable(MargError):
    """Ray did not start here, or does not answer where it was said to be."""

    http_status = 503
    exit_code = 5
    retryable = True

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        where = f"no Ray answers at {self.address}" if self.address else "Ray did not start on this machine"
        return f"{where}: {self.reason}"

    @property
    def hint(self) -> str:
        if not self.address:
            return "a very busy machine is the usual cause: try again"
        return "check MARG_RUNTIME__RAY_ADDRESS; a cluster with token authentication wants RAY_AUTH_TOKEN"


class SessionHalted(MargError):
    """A session stopped because something it needs was away; what it has found stays."""

    http_status = 503
    exit_code = 5
    retryable = True

    def __init__(self, session_id: str, stage: str, detail: str) -> None:
        super().__init__(session_id, stage, detail)
        self.session_id, self.stage, self.detail = session_id, stage, detail

    def __str__(self) -> str:
        return f"stopped while it was to {self.stage}: {self.detail}"

    @property
    def hint(self) -> str:
        return f"`marg resume {self.session_id}` goes on from here"


class SessionCancelled(MargError):
    """The session was cancelled."""

    http_status = 409
    exit_code = 130

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id)
        self.session_id = session_id

    def __str__(self) -> str:
        return f"session {self.session_id} was cancelled"
