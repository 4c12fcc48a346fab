"""What every store does with conversations and memories: each belongs to one owner, and is bounded."""

from __future__ import annotations

import asyncio

import pytest

from marg_ray.errors import SessionNotFound
from marg_ray.store.protocol import Store
from marg_ray.store.talk import USE_WORTH_S, MemoryRow, TurnRow


def turn(number: int, text: str = "") -> TurnRow:
    role = "user" if number % 2 else "assistant"
    return TurnRow.model_validate({"id": f"t{number}", "role": role, "text": text or f"turn {number}", "at": number})


def memory(
    name: str, *, at: float = 1.0, kind: str = "archival", conversation: str = "c", **fields: object
) -> MemoryRow:
    values = {"by": "user", "text": f"the text of {name}", "used_at": at, **fields}
    return MemoryRow.model_validate({"id": name, "conversation": conversation, "kind": kind, "at": at, **values})


async def test_a_conversation_keeps_its_turns_in_order(store: Store) -> None:
    talk = store.talk
    await talk.open("ann", "c", "How do tides …? 潮汐")
    await talk.open("ann", "c", "another title")  # it is there
    for number in (2, 1, 3, 3):  # the last one twice: its answer was lost
        await talk.say("ann", "c", turn(number))
    assert [t.id for t in await talk.turns("ann", "c")] == ["t1", "t2", "t3"]
    assert [t.id for t in await talk.turns("ann", "c", limit=2)] == ["t2", "t3"]
    row = await talk.conversation("ann", "c")
    assert (row.title, row.turns, row.owner) == ("How do tides …? 潮汐", 3, "ann")


async def test_the_conversation_last_spoken_in_comes_first(store: Store) -> None:
    talk = store.talk
    for name in ("a", "b"):
        await talk.open("ann", name, name)
    await talk.say("ann", "a", turn(1))
    assert [row.id for row in await talk.conversations("ann")] == ["a", "b"]
    assert [row.id for row in await talk.conversations("ann", limit=1)] == ["a"]


async def test_nobody_finds_anothers_conversation(store: Store) -> None:
    talk = store.talk
    await talk.open("ann", "c", "hers")
    await talk.say("ann", "c", turn(1, "the word is heron"))
    with pytest.raises(SessionNotFound):
        await talk.conversation("bob", "c")
    with pytest.raises(SessionNotFound):
        await talk.say("bob", "c", turn(2))
    assert await talk.turns("bob", "c") == []
    assert await talk.end("bob", "c") == 0
    await talk.open("bob", "c", "his")  # the same id is another conversation
    assert [t.text for t in await talk.turns("ann", "c")] == ["the word is heron"]
    assert await talk.turns("bob", "c") == []


async def test_a_conversation_is_emptied_or_removed(store: Store) -> None:
    talk = store.talk
    await talk.open("ann", "c", "c")
    await talk.say("ann", "c", turn(1))
    assert await talk.end("ann", "c", keep=True) == 1
    assert (await talk.conversation("ann", "c")).turns == 0
    await talk.end("ann", "c")
    with pytest.raises(SessionNotFound):
        await talk.conversation("ann", "c")


async def test_memories_are_kept_replaced_and_forgotten(store: Store) -> None:
    talk = store.talk
    await talk.remember("ann", [memory("m1", kind="core"), memory("m2", at=2.0, conversation="d")], 10)
    await talk.remember("ann", [memory("m1", kind="archival", text="NUL \x00 and \ud800", at=3.0)], 10)
    rows = await talk.memories("ann")
    assert [(m.id, m.kind) for m in rows] == [("m2", "archival"), ("m1", "archival")]
    assert rows[1].text.startswith("NUL ")
    assert await talk.memories("bob") == []
    assert await talk.forget("bob") == 0
    assert await talk.forget("ann", conversation="d") == 1
    assert await talk.forget("ann", ids=["m1", "none"]) == 1
    await talk.remember("ann", [memory("m3"), memory("m4")], 10)
    assert await talk.forget("ann", ids=[]) == 0
    assert await talk.forget("ann") == 2


async def test_beyond_the_cap_the_oldest_of_no_use_go(store: Store) -> None:
    talk = store.talk
    rows = [memory(f"m{n}", at=float(n)) for n in range(6)]
    await talk.remember("ann", [*rows[:5], memory("core", at=0.0, kind="core")], 5)
    await talk.used("ann", ["m0", "unknown"], at=5.5)
    await talk.used("ann", ["m0"], at=5.5)  # told again
    await talk.remember("ann", rows[5:], 5)
    kept = {m.id: m for m in await talk.memories("ann")}
    assert set(kept) == {"core", "m0", "m2", "m3", "m4", "m5"}
    assert kept["m0"].uses >= 1
    assert kept["m0"].worth >= 5.5 + USE_WORTH_S
    await talk.remember("bob", [memory("his")], 0)
    assert await talk.memories("bob") == []


async def test_two_who_speak_at_once_do_not_mix(store: Store) -> None:
    talk = store.talk

    async def one(owner: str) -> None:
        await talk.open(owner, "c", owner)
        for number in range(10):
            await talk.say(owner, "c", turn(number, f"{owner} says {number}"))
            await talk.remember(owner, [memory(f"m{number}", text=f"{owner}: {number}")], 100)

    await asyncio.gather(*(one(owner) for owner in ("ann", "bob", "cleo")))
    for owner in ("ann", "bob", "cleo"):
        assert {t.text.split()[0] for t in await talk.turns(owner, "c")} == {owner}
        assert len(await talk.memories(owner)) == 10
        assert all(m.text.startswith(owner) for m in await talk.memories(owner))
