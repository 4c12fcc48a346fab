"""A command that follows a session: what it asks, what it prints, its exit code. No Ray: the coordinator is here."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.live import Progress
from marg_ray.actors.owner import Decision
from marg_ray.cli.gate import Keyboard
from marg_ray.cli.run import LOOK_S, Output, Watch
from marg_ray.records import Request
from marg_ray.settings import load
from tests.flow import World

QUESTION = "How much power do tidal stations produce?"


class Here:
    """The way to a session whose coordinator is in this process."""

    def __init__(self, coordinator: Coordinator, asked: asyncio.Event) -> None:
        self._coordinator, self._asked = coordinator, asked
        self.deaf = False  # hears of no decision from elsewhere
        self.resume, self.cancel, self.decide = coordinator.resume, coordinator.cancel, coordinator.decide

    async def progress(self, session_id: str, after: int = 0, wait_s: float = 10.0) -> Progress:
        if wait_s == LOOK_S:  # the command does not follow, it waits for a decision
            self._asked.set()
            if self.deaf:
                await asyncio.Event().wait()
        return await self._coordinator.progress(session_id, after, wait_s)

    def close(self) -> None:
        pass


class Screen(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


class Terminal:
    """Somebody at a terminal: what is shown to them, and what they type."""

    def __init__(self) -> None:
        self.reads, self._writes = os.pipe()
        self.screen = Screen()
        self.console = Console(file=self.screen, force_terminal=True, color_system=None, width=100, _environ={})

    def type(self, text: str) -> None:
        os.write(self._writes, text.encode())

    def leave(self) -> None:
        os.close(self._writes)

    @property
    def shown(self) -> str:
        return self.screen.getvalue()

    async def shows(self, text: str) -> None:
        while text not in self.shown:
            await self.screen.written.wait()
            self.screen.written.clear()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


class Command:
    """One `marg resume S` on a world of its own, without a terminal unless one is given."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = World(home)
        self.asked = asyncio.Event()  # the command has said that the session waits, and waits
        self.patch, self.deaf = monkeypatch, False

    async def run(self, output: Output | None = None, terminal: Terminal | None = None, **fields: object) -> int:
        request = Request.model_validate({"question": QUESTION, "depth": "overview", **fields})
        await self.world.coordinator.submit("S", request)
        here = Here(self.world.coordinator, self.asked)
        here.deaf = self.deaf
        self.patch.setattr("marg_ray.actors.deploy.Control.attach", lambda holder: here)
        watch = Watch(load(), request, output or Output(), "S", resumed=True)
        watch.terminal = terminal.console if terminal else None
        if terminal:
            watch.keyboard = Keyboard(terminal.reads)
        async with asyncio.timeout(60):
            return await watch.run("here")


@pytest.fixture
def command(home: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(home, monkeypatch)


async def test_a_run_that_passes_prints_its_report(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command.run() == 0
    said = capsys.readouterr()
    assert said.out.startswith("# ")
    assert "passed" in said.err


# ---- without a terminal


async def test_a_session_that_waits_is_no_success_and_says_how_to_decide(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command.run(approve_plan=True, on_timeout="wait") == 7
    said = capsys.readouterr()
    assert said.out == ""
    assert "`marg decide S approve`" in said.err
    assert "`marg resume S` goes on" in said.err


async def test_the_last_line_of_json_says_what_is_waited_for(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command.run(Output(as_json=True), gate="always", on_timeout="wait") == 7
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    end = lines[-1]
    assert (end["kind"], end["status"], end["waiting_for"]) == ("end", "waiting", "review")
    assert [line["seq"] for line in lines[:-1]] == list(range(1, len(lines)))


async def test_a_rule_that_decides_is_waited_for(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command.run(gate="always", on_timeout="approve", gate_timeout_s=0.3) == 0
    said = capsys.readouterr()
    assert "delivered by rule" in said.err, "it is on the account"
    assert said.out.startswith("# ")


async def test_a_rule_that_cancels(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command.run(gate="always", on_timeout="cancel", gate_timeout_s=0.3) == 130
    assert "cancelled" in capsys.readouterr().err


async def test_a_decision_from_another_terminal_is_noticed(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asyncio.create_task(command.run(approve_plan=True))
    await command.asked.wait()
    await command.world.coordinator.decide("S", Decision(what="approve", by="ada"))
    assert await run == 0
    said = capsys.readouterr().err
    assert re.search(r"`marg decide S approve` .*; otherwise approved by rule in [45]:\d\d, at \d\d:\d\d", said)
    assert "plan approved by ada" in said


async def test_a_pause_from_another_terminal_ends_the_command(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asyncio.create_task(command.run(approve_plan=True))
    await command.asked.wait()
    await command.world.coordinator.pause("S", "ada")
    assert await run == 7
    assert "paused by ada; `marg resume S` goes on" in capsys.readouterr().err


# ---- in a terminal


async def test_plan_and_draft_are_shown_and_approved(
    command: Command, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.type("\nhm\napprove\na\n")
    assert await command.run(terminal=terminal, approve_plan=True, gate="always", on_timeout="wait") == 0
    shown = terminal.shown
    plan = next(iter(command.world.coordinator._live.values())).state.plan
    assert plan is not None
    for section in plan.sections:
        assert section.title in shown
    assert "approve / edit / reject / cancel?" in shown
    assert "approve / reject / extend / cancel?" in shown
    assert "Review, round 1" in shown
    assert "accuracy" in shown
    assert "megawatts" in shown, "the draft's text"
    assert capsys.readouterr().out.startswith("# ")


async def test_a_rejected_draft_comes_again_with_the_note(command: Command, terminal: Terminal) -> None:
    terminal.type("r say more on fish\nreject\nshorter\napprove\n")
    assert await command.run(terminal=terminal, gate="always", on_timeout="wait") in (0, 3)
    state = await command.world.coordinator.state("S")
    notes = [n.text for n in state.notes if n.kind == "gate"]
    assert notes == ["reject by owner: say more on fish", "reject by owner: shorter", "approve by owner"]
    assert "What should be different?" in terminal.shown


async def test_a_plan_is_edited_and_then_asked_for_again(
    command: Command, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\nprintf "Capacity\\n  What is the capacity?\\n" > "$1"\n', "utf-8")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    terminal.type("edit\napprove\n")
    assert await command.run(terminal=terminal, approve_plan=True, on_timeout="wait") in (0, 3)
    assert "(revision 2)" in terminal.shown
    state = await command.world.coordinator.state("S")
    assert [s.section.title for s in state.sections.values()] == ["Capacity"]


async def test_cancelled_at_the_prompt(command: Command, terminal: Terminal) -> None:
    terminal.type("c\n")
    assert await command.run(terminal=terminal, approve_plan=True, on_timeout="wait") == 130
    assert (await command.world.coordinator.state("S")).cancelled


async def test_somebody_else_decides_while_it_is_asked_here(
    command: Command, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.type("appr")  # half a word
    run = asyncio.create_task(command.run(terminal=terminal, approve_plan=True, on_timeout="wait"))
    await command.asked.wait()
    await terminal.shows("approve / edit")
    await command.world.coordinator.decide("S", Decision(what="approve", by="ada"))
    assert await run == 0
    assert "meanwhile, from elsewhere" in terminal.shown
    assert "plan approved by ada" in capsys.readouterr().err


async def test_the_first_of_two_wins_and_the_other_is_told(
    command: Command, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    command.deaf = True
    run = asyncio.create_task(command.run(terminal=terminal, approve_plan=True, on_timeout="wait"))
    await command.asked.wait()
    await terminal.shows("approve / edit")
    await command.world.coordinator.decide("S", Decision(what="approve", by="ada"))
    terminal.type("reject too long\n")
    assert await run == 0
    assert "it was decided already: plan approved by ada" in capsys.readouterr().err


async def test_a_closed_terminal_leaves_the_session_waiting(
    command: Command, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.leave()
    assert await command.run(terminal=terminal, approve_plan=True, on_timeout="wait") == 7
    assert "`marg decide S approve`" in capsys.readouterr().err
    assert not (await command.world.coordinator.state("S")).over


async def test_interrupted_at_the_prompt_leaves_the_session_waiting(
    command: Command, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    run = asyncio.create_task(command.run(terminal=terminal, approve_plan=True, on_timeout="wait"))
    await command.asked.wait()
    await terminal.shows("approve / edit")
    run.cancel()
    assert await run == 7
    assert "`marg decide S approve`" in capsys.readouterr().err


async def test_the_time_that_is_left_is_said(command: Command, terminal: Terminal) -> None:
    terminal.type("approve\n")
    assert await command.run(terminal=terminal, approve_plan=True, gate_timeout_s=600) == 0
    assert re.search(r"approved by rule in \d:\d\d, at \d\d:\d\d", terminal.shown)


# ---- limits and exports


async def test_stopped_by_its_budget_is_an_exit_code_of_its_own_with_a_report(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command.run(limits={"tasks": 16, "writer_share": 0.5}) == 6
    said = capsys.readouterr()
    assert "stopped by its budget" in said.err
    assert "of 16 tasks" in said.err
    assert said.out.startswith("# ")


async def test_stopped_before_anything_was_found_says_by_what(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await command.run(limits={"tasks": 1}) == 6
    said = capsys.readouterr()
    assert said.out == ""
    assert "the limit of 1 tasks is spent" in said.err


async def test_a_file_that_cannot_be_written_costs_itself(
    command: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "r.html").mkdir()
    assert await command.run(Output(files=(home / "r.html", home / "r.md"))) == 0
    said = capsys.readouterr()
    assert (home / "r.md").read_text("utf-8").startswith("# ")
    (line,) = [line for line in said.err.splitlines() if "not written" in line]
    assert "marg show S -o" in line
    assert said.out == ""


async def test_the_report_is_not_lost_with_its_only_file(
    command: Command, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "r.html").mkdir()
    assert await command.run(Output(files=(home / "r.html",))) == 0
    assert capsys.readouterr().out.startswith("# ")


async def test_one_means_that_nothing_was_delivered(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(report: object, fmt: str) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr("marg_ray.report.writers.render", fails)
    assert await command.run() == 1
