"""Keys: made once, known again, and ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from marg_ray.api.keys import MOST, KeyRing, new_key
from marg_ray.errors import StoreUnavailable, UsageError
from marg_ray.kinds import Scope
from marg_ray.store.memory import MemoryStore
from marg_ray.store.protocol import ApiKey


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.asked = self.written = 0
        self.away = False

    async def api_key(self, key_id: str) -> ApiKey | None:
        self.asked += 1
        return await super().api_key(key_id)

    async def touch_api_key(self, key_id: str, at: datetime) -> None:
        self.written += 1
        if self.away:
            raise StoreUnavailable("away")
        await super().touch_api_key(key_id, at)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_is_known_by_its_whole_text() -> None:
    store = MemoryStore()
    text, key = new_key("ann", name="laptop")
    other, _ = new_key("ann")
    await store.put_api_key(key)
    ring = KeyRing(store)
    found = await ring.find(text)
    assert found is not None
    assert (found.id, found.owner, found.scopes) == (key.id, "ann", ("read", "research", "library"))
    secret = other.rsplit("_", 1)[1]
    for wrong in (other, f"marg_{key.id}_{secret}", text[:-1], text + "0", text.upper(), f" {text}", "", "marg__"):
        assert await ring.find(wrong) is None


def test_each_key_is_new() -> None:
    made = [new_key("ann") for _ in range(200)]
    assert len({text for text, _ in made}) == len({key.id for _, key in made}) == 200
    assert all(len(text.rsplit("_", 1)[1]) * 4 == 256 for text, _ in made)


async def test_the_store_is_asked_once_in_a_while_and_a_revoked_key_ends() -> None:
    store, clock = Counting(), Clock()
    text, key = new_key("ann")
    await store.put_api_key(key)
    ring = KeyRing(store, known_s=5, clock=clock)
    for _ in range(100):
        assert await ring.find(text)
    assert (store.asked, store.written) == (1, 1)
    await store.revoke_api_key(key.id)
    clock.now += 4.9
    assert await ring.find(text)
    clock.now += 0.2
    assert await ring.find(text) is None
    assert not await ring.still_good(key.id)
    assert store.asked == 2


async def test_what_is_no_key_is_not_looked_up_each_time_either() -> None:
    store, clock = Counting(), Clock()
    text, _ = new_key("ann")
    ring = KeyRing(store, clock=clock)
    for _ in range(100):
        assert await ring.find(text) is None
    assert store.asked == 1
    assert await ring.find("nothing like a key") is None
    assert store.asked == 1


async def test_no_more_than_so_many_are_remembered() -> None:
    ring = KeyRing(Counting())
    for n in range(MOST + 100):
        await ring.find(f"marg_{n:012x}_{'0' * 64}")
    assert len(ring._known) == MOST


async def test_a_key_is_good_until_it_is_over() -> None:
    store, clock = MemoryStore(), Clock()
    text, key = new_key("ann", expires_at=datetime.now(UTC) + timedelta(hours=1))
    await store.put_api_key(key)
    assert await KeyRing(store, clock=clock).find(text)
    over = key.model_copy(update={"expires_at": datetime.now(UTC) - timedelta(microseconds=1)})
    store._api_keys[key.id] = over
    assert await KeyRing(store, clock=clock).find(text) is None


async def test_when_it_was_used_is_written_once_an_hour() -> None:
    store, clock = Counting(), Clock()
    text, key = new_key("ann")
    await store.put_api_key(key)
    ring = KeyRing(store, clock=clock)
    for _ in range(20):
        clock.now += 60
        await ring.find(text)
    assert store.written == 1
    await store.touch_api_key(key.id, datetime.now(UTC) - timedelta(hours=1, seconds=1))
    clock.now += 60
    await ring.find(text)
    (kept,) = await store.api_keys()
    assert kept.used_at is not None
    assert datetime.now(UTC) - kept.used_at < timedelta(minutes=1)


async def test_a_store_that_cannot_note_the_use_turns_nobody_away() -> None:
    store = Counting()
    text, key = new_key("ann")
    await store.put_api_key(key)
    store.away = True
    assert all(await asyncio.gather(*(KeyRing(store).find(text) for _ in range(3))))


@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": ""},
        {"owner": "  "},
        {"owner": "a\x00b"},
        {"owner": "a\x1b[31m"},
        {"owner": "x" * 201},
        {"owner": "a\u202eb"},
        {"owner": "\ud800"},
        {"name": "\x07"},
        {"scopes": ()},
        {"scopes": ("read", "everything")},
        {"expires_at": datetime.now(UTC)},
    ],
    ids=str,
)
def test_a_key_that_makes_no_sense_is_not_made(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        new_key(**{"owner": "ann", **wrong})  # type: ignore[arg-type]


def test_what_a_key_is_for_is_kept_as_it_was_meant() -> None:
    _, key = new_key("  Ann  Bär 潮 ", [Scope.ADMIN, Scope.READ, Scope.ADMIN], name=" two\twords ")
    assert (key.owner, key.scopes, key.name) == ("Ann Bär 潮", ("admin", "read"), "two words")
