"""Two ledgers at once: the node of one was lost, and its processes live on for a moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marg_ray.actors.ledger import LedgerBook
from marg_ray.records import Limits, Request, Role, Usage
from marg_ray.seams import CallKey, paid
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import Store
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.answers import started


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store = MemoryStore()
    if request.param == "sqlite":
        made = await SqlStore.open(sqlite_url(tmp_path / "marg.db"))
    await made.create("S", owner="o", question="q?")
    yield made
    await made.close()


def call(name: str, attempt: str) -> CallKey:
    key = CallKey.of("S", "model", Role.PLANNER, name, task_id=f"S/{name}")
    return key.model_copy(update={"attempt": attempt})


@pytest.mark.parametrize("limits", [Limits(), Limits(tokens=10_000)])
async def test_what_the_old_ledger_settles_the_new_one_does_not_grant_again(store: Store, limits: Limits) -> None:
    epoch = await store.take_over("S")
    start = started(limits=limits)
    assert isinstance(start.request, Request)
    await store.append("S", start, expected_seq=0, epoch=epoch, status="running")
    old, new = LedgerBook(store), LedgerBook(store)
    most = Usage(calls=1, tokens_in=10, tokens_out=10)
    assert not (await old.begin(call("draft", "a"), most)).done  # under way on the lost node
    assert not (await new.begin(call("other", "b"), most)).done  # the new ledger has read the account
    await old.end(call("draft", "a"), '"text"', Usage(calls=1, tokens_in=9, tokens_out=9))
    made: list[str] = []

    async def make() -> tuple[str, Usage]:
        made.append("again")
        return '"text"', Usage(calls=1)

    assert (await paid(new, call("draft", ""), make, most)).result == '"text"'
    assert not made, "a settled call was paid again"
    row = await store.call("S", call("draft", "").key)
    assert row is not None
    assert row.status == "settled"
    assert await store.call("S", "nothing") is None
