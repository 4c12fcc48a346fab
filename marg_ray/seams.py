"""The seams between pure code and machinery: one to three methods each, a double beside every one of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, ParamSpec, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from marg_ray.records import Record, Role, Usage

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vectors: TypeAlias = "NDArray[np.float32]"  # not every process that passes vectors on needs numpy


class Embedder(Protocol):
    """Sentence embeddings. One shared instance batches the requests of all sessions."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return an array of shape (len(texts), dimension) with rows of length 1; no texts give no rows."""


class Offload(Protocol):
    """Runs CPU work off the event loop: a Ray task on a cluster, a thread in tests."""

    async def __call__(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


async def in_thread(fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The `Offload` for one process: the loop stays free, the work shares this process's interpreter."""
    return await asyncio.to_thread(fn, *args, **kwargs)


class CallKey(Record):
    """Names one paid call: the same question in the same session has the same key, whoever asks."""

    session_id: str
    kind: Literal["model", "search", "fetch"]
    key: str  # hash of what is asked
    role: Role
    task_id: str = ""
    epoch: int = 0  # of the coordinator that handed the task out; 0: not fenced
    attempt: str = ""  # tells two attempts of one task apart; not part of what is asked

    @classmethod
    def of(
        cls,
        session_id: str,
        kind: Literal["model", "search", "fetch"],
        role: Role,
        *asked: object,
        task_id: str = "",
        epoch: int = 0,
    ) -> CallKey:
        blob = json.dumps([kind, *asked], sort_keys=True, ensure_ascii=False, default=str)
        digest = hashlib.sha256(blob.encode("utf-8", "surrogatepass")).hexdigest()
        return cls(session_id=session_id, kind=kind, key=digest, role=role, task_id=task_id, epoch=epoch)

    def anew(self) -> CallKey:
        """The same call as another attempt."""
        return self.model_copy(update={"attempt": uuid4().hex[:12]})


class Begun(Record):
    """The ledger's answer: `done` carries the stored result, otherwise the call is granted."""

    done: bool
    result: str = ""
    usage: Usage = Usage()


class Ledger(Protocol):
    """Every paid call passes here, so that none is paid twice and all are counted."""

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        """Ask before a call; `estimate` is the most it may use, and is reserved.

        While the same call is under way elsewhere, waits for its result; while only what others have reserved stands
        in the way, waits for them to settle.

        Raises:
            BudgetExceeded: the session's limits leave no room for it.
            StaleEpoch: a newer coordinator has taken the session over.
        """

    async def extend(self, call: CallKey, more: Usage) -> None:
        """Reserve `more` for a granted call that is to be tried again; `call` names the attempt that was granted.

        Raises:
            BudgetExceeded: the session's limits leave no room for it.
            StaleEpoch: a newer coordinator has taken the session over.
        """

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        """Settle a granted call with its result (JSON text).

        Raises:
            StaleEpoch: a newer coordinator has taken the session over; the result is not kept.
        """

    async def failed(self, call: CallKey) -> None:
        """Give a granted call back: it ended without a result and may be asked again."""


@dataclass(frozen=True)
class Paid:
    """A call's result; `usage` is what was spent now (only `reused` where the ledger had it)."""

    result: str
    usage: Usage


async def paid(
    ledger: Ledger,
    call: CallKey,
    make: Callable[[], Awaitable[tuple[str, Usage]]],
    estimate: Usage | None = None,
) -> Paid:
    """Make a call through the ledger: reuse its stored result, or make it and settle it.

    The ledger is told how long it took, where `make` does not say. Where it fails, `spent` of the error (a `Usage`) is
    counted, so that a call that is tried in vain costs too; `told` of the error (JSON text) says on what, where there
    is more to say. A call without an attempt gets one.
    """
    call = call if call.attempt else call.anew()
    try:
        begun = await ledger.begin(call, estimate or Usage())
    except asyncio.CancelledError:  # it may have been granted all the same
        await asyncio.shield(ledger.failed(call))
        raise
    if begun.done:
        return Paid(begun.result, Usage(reused=1))
    began = time.perf_counter()
    try:
        result, usage = await make()
    except BaseException as exc:
        await asyncio.shield(_give_back(ledger, call, getattr(exc, "spent", None), getattr(exc, "told", "")))
        raise
    entered = usage if usage.seconds else usage.model_copy(update={"seconds": _since(began)})
    await asyncio.shield(ledger.end(call, result, entered))  # it is paid: whoever is cancelled now, the result stays
    return Paid(result, usage)


def _since(began: float) -> float:
    return round(time.perf_counter() - began, 4)


async def _give_back(ledger: Ledger, call: CallKey, spent: Usage | None, told: str) -> None:
    """Enter what a failed call cost under a key of its own, so that the call itself may be asked again."""
    if spent is not None and spent != Usage():
        once = CallKey.of(call.session_id, call.kind, call.role, call.key, call.attempt, "failed", task_id=call.task_id)
        await ledger.end(once, told, spent)  # before the room comes back, else another call would take it
    await ledger.failed(call)
