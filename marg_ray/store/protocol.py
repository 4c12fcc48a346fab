"""The durable side of a session: its log, and the calls it paid for. Every backend passes one contract suite."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from marg_ray.messages import Message, WireMessage
from marg_ray.records import Limits, Record, SourceKind, Usage
from marg_ray.seams import CallKey
from marg_ray.store.talk import Talk


class LogEntry(Record):
    seq: int  # from 1, without holes
    epoch: int = 0  # of the coordinator that wrote it
    at: datetime
    message: WireMessage


class SessionRow(Record):
    id: str
    owner: str
    question: str
    created_at: datetime
    updated_at: datetime
    status: str  # "running", "waiting", "paused", "halted", "cancelled", or the report's status
    seq: int
    artefact: str = ""  # SHA-256 of the report's JSON
    holder: str = ""  # the runtime that works on it
    shard: int = 0  # and its coordinator
    epoch: int = 0
    limits: Limits = Limits()  # as they stand now


class CallRow(Record):
    """A paid call that was begun; `result` is there once it is settled."""

    call: CallKey
    status: Literal["begun", "released", "settled"]
    result: str = ""
    usage: Usage = Usage()
    reserved: Usage = Usage()  # for the attempt under way
    lost: Usage = Usage()  # reserved for attempts that ended with their process: spent, as far as anybody knows
    begun: int = 1  # how often it was begun: above 1 where a process died inside it
    begun_at: datetime | None = None  # for the first time; None: not known


class Account(Record):
    """What a session has spent on settled calls and on calls that died, against its limits."""

    limits: Limits
    spent: Usage
    lost: Usage


class ShardRow(Record):
    """A coordinator's last sign of life."""

    holder: str
    shard: int
    beat_at: datetime


class CacheRow(Record):
    value: str
    stored_at: datetime
    hits: int  # this one included


class CacheCount(Record):
    space: str
    entries: int
    hits: int


class ApiKey(Record):
    """A key of the HTTP service. The secret itself is not kept."""

    id: str
    owner: str
    name: str = ""
    scopes: tuple[str, ...]
    digest: str  # SHA-256 of the secret
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None  # to within an hour
    revoked_at: datetime | None = None


class SnapshotRow(Record):
    """A source that a session has read."""

    source_id: str
    location: str
    kind: SourceKind
    title: str


class Store(Protocol):
    @property
    def talk(self) -> Talk:
        """Conversations and what is remembered of them."""

    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        """Make room for a session. An existing one stays as it is."""

    async def take_over(
        self, session_id: str, *, holder: str = "", shard: int = 0, expected_epoch: int | None = None
    ) -> int:
        """Raise the session's epoch and return it; every writer of an earlier epoch is refused from now on.

        `holder` and `shard` name who works on the session, so that a restarted coordinator finds its own. Of several
        that pass the same `expected_epoch` one wins.

        Raises:
            SessionNotFound: there is no such session.
            StaleEpoch: the session is not in `expected_epoch` any more.
        """

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        """Add `message` durably as number `expected_seq + 1`, and note the session's status.

        What a message says of the session is kept beside it in the same transaction: a report's artefact, limits that
        were set or raised, a source that was read. May be called again with the same arguments when the answer was
        lost: an entry that is there already comes back.

        Raises:
            StoreConflict: the log is not at `expected_seq`; somebody else wrote first.
            StaleEpoch: a newer coordinator has taken the session over.
        """

    async def read(self, session_id: str, *, after: int = 0, most: int | None = None) -> list[LogEntry]:
        """Entries with a number above `after`, in order, at `most` so many; empty for an unknown session."""

    async def session(self, session_id: str) -> SessionRow:
        """One session.

        Raises:
            SessionNotFound: there is no such session.
        """

    async def sessions(
        self, *, limit: int = 100, status: str = "", holder: str = "", shard: int | None = None, owner: str = ""
    ) -> list[SessionRow]:
        """Sessions, newest first; narrowed by what is given."""

    async def session_counts(self) -> dict[str, int]:
        """How many sessions there are, by status."""

    async def fence(self, session_id: str, epoch: int) -> None:
        """See that `epoch` is the session's; 0 passes.

        Raises:
            SessionNotFound: there is no such session.
            StaleEpoch: a newer coordinator has taken the session over.
        """

    async def begin_call(self, call: CallKey, reserved: Usage | None = None) -> CallRow:
        """Note that a call is under way; a settled one comes back with its result and is not touched.

        Begun again without having been released, its process died: what was reserved counts as lost. The same
        `attempt` (where the call names one) is not begun twice: its answer was lost, and it comes back as it is, with
        the larger of what was and what is to be reserved: so a call under way may be allowed more.

        Raises:
            StaleEpoch: the call's epoch is not 0 and not the session's.
        """

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        """Keep a call's result. The first result stays.

        Raises:
            StaleEpoch: the call's epoch is not 0 and not the session's.
        """

    async def release_call(self, call: CallKey) -> None:
        """A begun call ended without a result and without cost; it may be begun again. Settled ones stay."""

    async def call(self, session_id: str, key: str) -> CallRow | None:
        """One call, if it was begun or settled."""

    async def calls(self, session_id: str) -> list[CallRow]:
        """Every call of a session, in the order they were begun."""

    async def account(self, session_id: str) -> Account:
        """What the session has spent, and its limits; calls that are begun and open are not in it.

        Raises:
            SessionNotFound: there is no such session.
        """

    async def snapshots(self, session_id: str) -> list[SnapshotRow]:
        """The sources a session has read, each once."""

    async def put_metrics(self, session_id: str, metrics: str) -> None:
        """Keep a run's figures (JSON text); the last stand."""

    async def metrics(self, session_id: str) -> str:
        """A run's figures, or an empty text."""

    async def claim_key(self, owner: str, key: str, body: str, session_id: str) -> tuple[str, str]:
        """Tie an idempotency key to a session. Returns the (session id, body) that it is tied to: the first stay.

        `key` and `body` are digests; of any number of calls at once one wins.
        """

    async def put_api_key(self, key: ApiKey) -> None:
        """Keep a new key of the HTTP service; one that is there under this id stays as it is."""

    async def api_key(self, key_id: str) -> ApiKey | None:
        """A key of the HTTP service, whether it is still good or not."""

    async def api_keys(self, owner: str = "") -> list[ApiKey]:
        """The keys of an owner (of all, without one), in the order they were made."""

    async def revoke_api_key(self, key_id: str) -> bool:
        """End a key; says whether there is one. The moment of the first time stays."""

    async def touch_api_key(self, key_id: str, at: datetime) -> None:
        """Note that a key was used."""

    async def tally(self, name: str, period: int, since: int) -> dict[int, int]:
        """Count one more for `name` in `period`; the numbers of its periods from `since` on, this one included.

        Periods that lie before `since` are forgotten, those of other names as well.
        """

    async def beat(self, holder: str, shard: int) -> None:
        """A coordinator's sign of life."""

    async def shards(self, holder: str = "") -> list[ShardRow]:
        """The coordinators of a runtime (of all, without `holder`), by number."""

    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        """A value that was stored and is not too old; the hit is counted."""

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None:
        """Store a value for `ttl_s` seconds; an older one is replaced, its hits stay."""

    async def cache_drop(self, space: str = "", *, expired: bool = True) -> int:
        """Drop the values of a space (of all, without one) that are too old, or all of them; returns how many."""

    async def cache_counts(self) -> list[CacheCount]:
        """Entries and hits by space."""

    async def close(self) -> None: ...
