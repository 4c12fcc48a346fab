"""`marg decide`, `steer`, `pause` and `cancel` on sessions that nobody works on: they are kept in the log."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from marg_ray.actors.assembly import Places
from marg_ray.actors.holder import Holder, this_process
from marg_ray.cli import main
from marg_ray.folding import replay
from marg_ray.messages import Message, PlanDecided, Steered
from marg_ray.routing import waiting_for
from marg_ray.state import ResearchState
from marg_ray.store.sql import SqlStore, sqlite_url
from tests.flow import World

Make = Callable[..., None]
Marg = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def make(home: Path) -> Make:
    """Puts a session "S", as far as it goes by itself, into the store under the home."""

    def run(holder: str = "", **fields: object) -> None:
        async def copy() -> None:
            world = World(home)
            await world.ask(**fields)
            row = await world.store.session("S")
            store = await SqlStore.open(sqlite_url(Places(home).database))
            await store.create("S", owner="local", question=row.question)
            epoch = await store.take_over("S", holder=holder)
            for entry in await world.store.read("S"):
                await store.append("S", entry.message, expected_seq=entry.seq - 1, epoch=epoch, status=row.status)
            await store.close()

        asyncio.run(copy())

    return run


@pytest.fixture
def marg(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Marg:
    """Runs a command in this process: exit code, standard output, standard error."""

    def run(*args: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["marg", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        said = capsys.readouterr()
        return code if isinstance(code, int) else 0, said.out, said.err

    return run


def log(home: Path) -> list[Message]:
    async def read() -> list[Message]:
        store = await SqlStore.open(sqlite_url(Places(home).database))
        entries = await store.read("S")
        await store.close()
        return [e.message for e in entries]

    return asyncio.run(read())


def state(home: Path) -> ResearchState:
    return replay(log(home))


# ---- decisions


def test_a_plan_is_approved_in_the_log_and_the_way_on_is_said(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    code, out, err = marg("decide", "S", "approve", "--by", "ada")
    assert (code, err) == (0, "")
    assert "`marg resume S` goes on" in out
    last = log(home)[-1]
    assert isinstance(last, PlanDecided)
    assert (last.approved, last.by) == (True, "ada")
    assert json.loads(marg("runs", "--json")[1])["status"] == "interrupted"


def test_of_two_who_decide_the_second_is_told_what_won(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    assert marg("decide", "S", "approve", "--by", "ada")[0] == 0
    before = len(log(home))
    code, out, err = marg("decide", "S", "reject", "--note", "too broad", "--by", "bob")
    assert (code, out) == (2, "")
    assert "approved by ada" in err
    assert len(log(home)) == before
    assert marg("decide", "S", "approve")[0] == 0, "who did not hear the answer may ask again"
    assert len(log(home)) == before


def test_a_decision_on_an_older_plan_is_refused(make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    assert marg("decide", "S", "edit", "--section", "Tides: Where are tides high?; Why?", "--on", "1")[0] == 0
    code, _, err = marg("decide", "S", "approve", "--on", "1")
    assert code == 2
    assert "revision 2" in err


def test_an_edited_plan_waits_on_for_approval(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    code, out, _ = marg("decide", "S", "edit", "--section", "Tides: Where are tides high?; Why?", "--section", "Cost")
    assert code == 0
    assert "marg decide S approve" in out
    now = state(home)
    assert waiting_for(now) == "plan"
    assert now.plan is not None
    assert [(s.title, s.queries) for s in now.plan.sections] == [
        ("Tides", ("Where are tides high?", "Why?")),
        ("Cost", ("Cost",)),
    ]
    assert marg("decide", "S", "approve")[0] == 0
    assert not waiting_for(state(home))


@pytest.mark.parametrize("writes", [True, False])
def test_the_plan_opens_in_an_editor(
    writes: bool, home: Path, make: Make, marg: Marg, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(approve_plan=True)
    seen = tmp_path / "seen.txt"
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\n"
        f"page = pathlib.Path(sys.argv[1]); pathlib.Path({str(seen)!r}).write_text(page.read_text('utf-8'), 'utf-8')\n"
        + ("page.write_text('# remark\\nTides\\n  Where are they high?\\n\\nCost\\n', 'utf-8')" if writes else ""),
        "utf-8",
    )
    monkeypatch.setenv("VISUAL", f"{sys.executable} {script}")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    plan = state(home).plan
    assert plan is not None
    code, out, err = marg("decide", "S", "edit")
    assert code == 0, err
    page = seen.read_text("utf-8")
    for section in plan.sections:
        assert section.title in page
    now = state(home).plan
    assert now is not None
    if writes:
        assert [(s.title, s.queries) for s in now.sections] == [
            ("Tides", ("Where are they high?",)),
            ("Cost", ("Cost",)),
        ]
    else:
        assert "nothing was changed" in out
        assert now == plan


def test_an_editor_that_fails_changes_nothing(
    home: Path, make: Make, marg: Marg, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(approve_plan=True)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    before = len(log(home))
    for editor in ("/no/such/editor", "false", 'an "open quote'):
        monkeypatch.setenv("VISUAL", editor)
        code, _, err = marg("decide", "S", "edit")
        assert code == 2
        assert "editor" in err
        assert "Traceback" not in err
    assert len(log(home)) == before


def test_a_rejected_plan_is_made_anew_with_the_note(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    assert marg("decide", "S", "reject", "--note", "less on cost")[0] == 0
    now = state(home)
    assert now.plan is None
    assert now.plan_rejections == ("less on cost",)


def test_a_draft_that_waits_can_be_extended_beyond_the_cap(home: Path, make: Make, marg: Marg) -> None:
    make(gate="always")
    assert waiting_for(state(home)) == "review"
    code, _, err = marg("show", "S")
    assert code == 2
    assert "its draft waits for a decision" in err
    assert "marg decide S approve" in err
    assert marg("decide", "S", "edit", "--section", "A")[0] == 2, "there is no plan to edit any more"
    assert marg("decide", "S", "extend", "--note", "say more on fish")[0] == 0
    assert state(home).extra_iterations == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("decide", "S", "approve"), "nothing waits"),
        (("decide", "S", "edit"), "--section"),
        (("decide", "S", "reject", "--section", "A"), "does not go with"),
        (("decide", "S", "edit", "--section", ": a query"), "no title"),
        (("decide", "nope", "approve"), "nope"),
        (("steer", "S", "add"), "missing"),
        (("steer", "S", "add", "a question"), "over"),
        (("steer", "S", "budget"), "--usd"),
        (("steer", "S", "budget", "more"), "--usd"),
        (("steer", "S", "budget", "--usd", "nan"), "usd"),
        (("steer", "S", "budget", "--deadline", "yesterday"), "deadline"),
        (("steer", "S", "ban", "x.test", "--usd", "2"), "budget"),
        (("steer", "S", "pin", "/no/such/file"), "no such file"),
        (("steer", "S", "pin", "ftp://x.test/a"), "http"),
        (("pause", "nope"), "nope"),
        (("cancel", "nope"), "nope"),
    ],
)
def test_every_mistake_is_one_sentence_and_what_to_do(
    args: tuple[str, ...], said: str, make: Make, marg: Marg, home: Path
) -> None:
    make()
    before = len(log(home))
    code, out, err = marg(*args)
    assert (code, out) == (2, ""), err
    assert said.lower() in err.lower()
    assert "Traceback" not in err
    assert len(log(home)) == before


# ---- steering


def test_a_sub_question_is_added_and_dropped(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    count = len(state(home).sections)
    code, out, _ = marg("steer", "S", "add", "What do fish do?")
    assert code == 0
    assert 'asked also "What do fish do?"' in out
    now = state(home)
    assert len(now.sections) == count + 1
    added = list(now.sections)[-1]
    assert marg("steer", "S", "add", "And eels?", "--section", added)[0] == 0
    assert "And eels?" in [s.query for s in state(home).sections[added].searches]
    assert marg("steer", "S", "drop", "And eels?")[0] == 0
    assert marg("steer", "S", "drop", added)[0] == 0
    assert added not in state(home).sections
    code, _, err = marg("steer", "S", "drop", "s99")
    assert code == 2
    assert "the sections are" in err


def test_a_pinned_file_is_frozen_and_a_pinned_address_is_not(
    home: Path, make: Make, marg: Marg, tmp_path: Path
) -> None:
    make(approve_plan=True)
    notes = tmp_path / "notes.md"
    notes.write_text("# Fish\n\nEels came back to the estuary in 1999.\n", "utf-8")
    assert marg("steer", "S", "pin", "notes.md")[0] == 0
    last = log(home)[-1]
    assert isinstance(last, Steered)
    assert last.hit is not None
    assert last.hit.location == str(notes)
    notes.unlink()
    assert "Eels came back" in Places(home).snapshots.text(last.hit.source_id)
    assert marg("steer", "S", "pin", "https://tides.test/more")[0] == 0
    assert [h.source_id != "" for h in state(home).pinned] == [True, False]


def test_a_source_is_banned_by_host_or_by_a_path_from_here(home: Path, make: Make, marg: Marg, tmp_path: Path) -> None:
    make(approve_plan=True)
    (tmp_path / "docs").mkdir()
    for what in ("tides.test", "docs"):
        assert marg("steer", "S", "ban", what)[0] == 0
    assert state(home).banned == ("tides.test", str(tmp_path / "docs"))


def test_the_budget_is_set_anew_where_it_is_named(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True, limits={"usd": 1.0, "tasks": 30})
    assert marg("steer", "S", "budget", "--usd", "2.5", "--minutes", "20")[0] == 0
    limits = state(home).limits
    assert (limits.usd, limits.seconds, limits.tasks) == (2.5, 1200, 30)
    assert marg("steer", "S", "budget", "--deadline", "2h")[0] == 0
    assert state(home).limits.deadline is not None


# ---- pause, cancel


def test_a_session_is_paused_and_cancelled_in_its_log(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    code, out, _ = marg("pause", "S")
    assert code == 0
    assert "paused" in out
    assert "marg resume S" in out
    assert json.loads(marg("runs", "--json")[1])["status"] == "paused"
    assert "it is paused" in marg("show", "S")[2]
    assert marg("cancel", "S", "--by", "ada")[1] == "S: cancelled\n"
    assert json.loads(marg("runs", "--json")[1])["status"] == "cancelled"
    code, _, err = marg("decide", "S", "approve")
    assert code == 2
    assert "over" in err


def test_what_is_over_stays_as_it_is(home: Path, make: Make, marg: Marg) -> None:
    make()
    before = state(home)
    assert marg("pause", "S")[1] == "S: passed\n"
    assert marg("cancel", "S")[1] == "S: passed\n"
    assert state(home).report == before.report
    assert marg("show", "S")[0] == 0


# ---- whoever works on it


def unreachable() -> str:
    """A holder on this machine that lives, and whose Ray does not answer."""
    me = Holder.parse(this_process())
    return str(Holder(me.host, os.getpid(), me.started, "marg-test", "127.0.0.1:9"))


def test_a_runtime_that_neither_answers_nor_gives_signs_of_life_does_not_keep_a_session(make: Make, marg: Marg) -> None:
    make(approve_plan=True, holder=unreachable())
    code, out, err = marg("cancel", "S")
    assert (code, out) == (0, "S: cancelled\n"), err


def test_a_session_in_living_hands_is_left_to_them(home: Path, make: Make, marg: Marg) -> None:
    make(approve_plan=True, holder=unreachable())

    async def beat() -> None:
        store = await SqlStore.open(sqlite_url(Places(home).database))
        await store.beat(unreachable(), 0)
        await store.close()

    asyncio.run(beat())
    before = log(home)
    code, _, err = marg("cancel", "S")
    assert code == 5
    assert "no Ray answers" in err
    assert log(home) == before


def test_runs_says_what_holds_now(home: Path, marg: Marg) -> None:
    from marg_ray.cli.runs import shown
    from marg_ray.settings import load
    from marg_ray.store.protocol import SessionRow, ShardRow

    settings = load(admission={"sessions": 2})
    now = datetime.now(UTC)

    def row(name: str, status: str, holder: str = "", seq: int = 9) -> SessionRow:
        return SessionRow(
            id=name, owner="o", question="q", created_at=now, updated_at=now, status=status, seq=seq, holder=holder
        )

    here, gone, away = this_process(), f"{Holder.parse(this_process()).host}/999999999/1//", "////10.0.0.1:6379"
    rows = [
        row("a", "running", here),
        row("b", "running", here),
        row("c", "running", here, seq=1),
        row("d", "running", gone),
        row("e", "running", away),
        row("f", "waiting", gone),
        row("g", "running", "other//", seq=1),
        row("h", "paused"),
    ]
    shards = [ShardRow(holder=away, shard=0, beat_at=now - timedelta(hours=1))]
    words = {r.id: r.status for r in shown(rows, [r for r in rows if r.status == "running"], shards, settings)}
    assert words == {
        **{"a": "running", "b": "running", "c": "queued", "d": "interrupted", "e": "interrupted"},
        **{"f": "waiting", "g": "running", "h": "paused"},
    }


# ---- show, doctor, cache


def test_show_tells_limits_decisions_and_what_was_spent(make: Make, marg: Marg, home: Path, tmp_path: Path) -> None:
    make(limits={"usd": 1.0, "tokens": 1_000_000, "tasks": 500})
    code, out, err = marg("show", "S")
    assert code == 0
    assert out.startswith("# ")
    account = " ".join(err.split())
    assert re.search(r"[\d,]+ of 1,000,000 tokens", account)
    assert re.search(r"\d+ of 500 tasks", account)
    assert "of $1.00" in account
    code, out, _ = marg("show", "S", "-o", "a.md", "-o", "a.html")
    assert code == 0
    assert out.split() == [str(tmp_path / "a.md"), str(tmp_path / "a.html")]
    assert (tmp_path / "a.md").read_text("utf-8").startswith("# ")


def test_show_tells_who_decided(make: Make, marg: Marg) -> None:
    make(approve_plan=True)
    marg("decide", "S", "reject", "--note", "less on cost", "--by", "ada")
    _, _, err = marg("show", "S")
    assert "plan rejected by ada: less on cost" in " ".join(err.split())


def test_the_cache_is_listed_and_cleared(home: Path, marg: Marg) -> None:
    async def fill() -> None:
        store = await SqlStore.open(sqlite_url(Places(home).database))
        for key in ("a", "b"):
            await store.cache_put("search", key, "[]", 60)
        await store.cache_put("page", "a", "{}", 60)
        await store.cache_get("search", "a")
        await store.close()

    assert marg("cache")[:2] == (0, "")
    asyncio.run(fill())
    code, out, _ = marg("cache")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["page", "1", "entries", "0", "hits"],
        ["search", "2", "entries", "1", "hits"],
    ]
    assert json.loads(marg("cache", "search", "--json")[1]) == {"space": "search", "entries": 2, "hits": 1}
    assert marg("cache", "nope")[0] == 2
    assert "2 entries" in marg("cache", "search", "--clear")[1]
    assert [line.split()[0] for line in marg("cache")[1].splitlines()] == ["page"]
    assert marg("cache", "--clear")[0] == 0
    assert marg("cache")[1] == ""


def test_doctor_shows_store_files_and_cache(
    home: Path, make: Make, marg: Marg, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARG_MODEL", "extractive")

    def findings() -> dict[str, dict[str, object]]:
        return {f["name"]: f for f in map(json.loads, marg("doctor", "--offline", "--json")[1].splitlines())}

    before = findings()
    assert "made by the first session" in str(before["store"]["detail"])
    assert not Places(home).database.exists(), "looking makes nothing"
    make()
    after = findings()
    assert "1 session" in str(after["store"]["detail"])
    assert str(home) in str(after["files"]["detail"])
    assert "nothing is kept yet" in str(after["cache"]["detail"])
    monkeypatch.setenv("MARG_STORE__URL", "mysql://root:secret@db/marg")
    wrong = findings()
    assert wrong["store"]["fine"] is False
    assert "secret" not in str(wrong["store"]["detail"])
