"""The live timeline: what a terminal, a narrow terminal and a pipe get to see."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from marg_ray.cli.account import Closing, closing_stats
from marg_ray.cli.timeline import Board, LogLine, Timeline, counter_line, running_rows
from marg_ray.cli.words import clean, dollars, duration
from marg_ray.records import Depth, Limits, Scores, Usage

QUESTION = "How do La Rance and Sihwa Lake compare?"
BOARD = Board(
    running=(*[("researcher", f"reading page {n}") for n in range(5)], ("synthesizer", "drafting s1")),
    counts={"searches": 12, "pages": 8, "evidence": 40, "sentences": 22},
    tokens=12_345,
    cost=0.25,
    elapsed=75,
)


def terminal(width: int = 100, height: int = 24) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=height, _environ={})


def pipe() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=80, _environ={})


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def line(seq: int, text: str = "read a page", section: str = "") -> LogLine:
    return LogLine(seq=seq, at=seq * 1.5, role="researcher", kind="SourceRead", text=text, section=section)


def board_lines(width: int, height: int, texts: list[str]) -> list[str]:
    console = terminal(width, height)
    with Timeline(console, QUESTION, Depth.STANDARD, clock=lambda: 0.0) as timeline:
        for n, text in enumerate(texts):
            timeline.update(line(n, text, "s1"), BOARD)
        rendered = timeline.render()
    shown = terminal(width, height)
    shown.print(rendered)
    return written(shown).splitlines()


def test_the_board_shows_agents_counters_and_events() -> None:
    shown = "\n".join(board_lines(100, 24, ["read La Rance", "read Sihwa Lake"]))
    for part in (QUESTION, "standard", "1:15", "researcher", "drafting s1", "12 searches", "12,345 tokens", "$0.25"):
        assert part in shown
    assert shown.index("read La Rance") < shown.index("read Sihwa Lake")


@pytest.mark.parametrize("width", [20, 33, 60, 100])
@pytest.mark.parametrize("height", [8, 14, 40])
def test_the_board_fits_the_terminal(width: int, height: int) -> None:
    wide = "潮力発電所の歴史とその環境への影響について読んだ" * 4
    lines = board_lines(width, height, [wide, "plain " * 40] * 20)
    assert len(lines) <= height
    assert max(cell_len(text) for text in lines) <= width


def test_a_pipe_gets_one_line_an_event() -> None:
    console = pipe()
    with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
        timeline.update(line(0, "x" * 200), BOARD)
        timeline.update(None, BOARD)
        timeline.update(line(1, section="s2"), BOARD)
    question, first, second = written(console).splitlines()
    assert question.startswith(QUESTION)
    assert "x" * 200 in first
    assert second.split() == ["0:01", "researcher", "[s2]", "read", "a", "page"]


def test_an_event_told_twice_is_shown_once() -> None:
    console = pipe()
    with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
        for seq in (0, 1, 1, 0, 2):
            timeline.update(line(seq, f"event {seq}"), BOARD)
    assert re.findall(r"event \d", written(console)) == ["event 0", "event 1", "event 2"]


def test_the_terminal_is_given_back_after_an_error() -> None:
    console = terminal()

    def interrupted() -> None:
        with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
            timeline.update(line(0), BOARD)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    out = written(console)
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h") == 1  # cursor hidden, shown again


def test_the_screen_is_never_cleared() -> None:
    console = terminal()
    with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
        for n in range(30):
            timeline.update(line(n), BOARD)
        timeline.finish()
    assert "\x1b[2J" not in written(console)


@pytest.mark.parametrize("make", [terminal, pipe])
def test_a_page_cannot_write_on_the_terminal(make: Callable[[], Console]) -> None:
    console = make()
    evil = "title\x1b[2J\x1b]0;owned\x07\r\nsecond\u202eline [bold]x[/bold]"
    with Timeline(console, evil, Depth.STANDARD) as timeline:
        timeline.update(LogLine(0, 0.0, "researcher\x1b[31m", "k", evil, evil), BOARD)
    out = written(console)
    assert not re.search(r"\x1b\[2J|\x1b\]|\x07|\u202e|\x1b\[31m", out)
    assert "[bold]x[/bold]" in out


def test_clean_leaves_one_line() -> None:
    assert clean(" a\tb\r\n\u2028c\x00d\ud800 ") == "a b c d"
    assert clean("Æther 潮") == "Æther 潮"


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1, "0:00"), (7.9, "0:07"), (75, "1:15"), (3600, "1:00:00"), (3723, "1:02:03")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("cost", "text"), [(0, "$0"), (0.0004, "<$0.01"), (0.25, "$0.25"), (1234.5, "$1,234.50")])
def test_dollars(cost: float, text: str) -> None:
    assert dollars(cost) == text


def test_every_role_keeps_a_row() -> None:
    running = (*[("researcher", f"r{n}") for n in range(9)], ("synthesizer", "s"), ("critic", "c"))
    assert running_rows(running, most=4) == [
        ("researcher", "r0"),
        ("", "(+7) r1"),
        ("synthesizer", "s"),
        ("critic", "c"),
    ]
    assert len(running_rows(running, most=2)) == 2
    assert running_rows((), most=3) == []


def test_counters_break_between_counters() -> None:
    lines = counter_line(BOARD, 24).plain.splitlines()
    assert lines == ["12 searches · 8 pages", "40 evidence", "22 sentences", "12,345 tokens · $0.25"]
    assert counter_line(BOARD, 24, most=2).plain.splitlines() == lines[:2]


STATS = Closing(
    session_id="20260101-abc",
    status="quality_warning",
    model="extractive",
    elapsed=95.2,
    iterations=1,
    counts={"searches": 4},
    usage=Usage(calls=10, searches=4, tokens_in=12_000, tokens_out=345, reused=2),
    by_role={"planner": Usage(calls=1), "researcher": Usage(calls=9, searches=4, tokens_in=12_000)},
    scores=Scores(accuracy=0.9, coverage=0.8, clarity=0.95, objectivity=1),
    files=("out/1.md", "out/1.html"),
)


@pytest.mark.parametrize("width", [30, 50, 80, 120])
def test_the_closing_account_fits_and_says_everything(width: int) -> None:
    console = terminal(width)
    console.print(closing_stats(STATS, width))
    shown = written(console)
    assert max(cell_len(text) for text in shown.splitlines()) <= width
    for part in ("quality_warning", "20260101-abc", "1:35, 1 iteration", "accuracy 0.90", "out/1.html", "researcher"):
        assert part in " ".join(shown.split()), part
    assert "12,345" in shown or "12,000" in shown


def test_finish_leaves_the_account_in_place_of_the_board() -> None:
    console = pipe()
    with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
        timeline.finish(closing_stats(STATS))
    assert "20260101-abc" in written(console)


# ---- what its owner should know


def test_the_board_shows_what_is_used_of_each_limit() -> None:
    limits = Limits(usd=1, tokens=50_000, seconds=600, searches=20, tasks=40)
    board = replace(BOARD, limits=limits, searches=3, tasks=7, worked=62)
    shown = counter_line(board, 200).plain
    for part in ("12,345 of 50,000 tokens", "$0.25 of $1.00", "1:02 of 10:00", "3 of 20 web searches", "7 of 40 tasks"):
        assert part in shown
    assert shown.count("tokens") == 1


@pytest.mark.parametrize("notice", ["third in the queue", "research stopped by its budget: 4 of 8 tasks are spent"])
def test_a_notice_is_on_the_board_and_once_in_a_log(notice: str) -> None:
    board = replace(BOARD, notice=notice)
    console = terminal(100, 24)
    with Timeline(console, QUESTION, Depth.STANDARD, clock=lambda: 0.0) as timeline:
        timeline.update(line(0), board)
        rendered = timeline.render()
    shown = terminal(100, 24)
    shown.print(rendered)
    assert notice in written(shown)
    log = pipe()
    with Timeline(log, QUESTION, Depth.STANDARD) as timeline:
        for seq in range(3):
            timeline.update(line(seq), board)
        timeline.update(None, BOARD)
    assert written(log).count(notice) == 1


@pytest.mark.parametrize("height", [6, 8, 14])
def test_a_board_with_a_notice_fits_too(height: int) -> None:
    console = terminal(40, height)
    with Timeline(console, QUESTION, Depth.STANDARD, clock=lambda: 0.0) as timeline:
        for n in range(20):
            timeline.update(line(n), replace(BOARD, notice="stopped by its budget: " + "why " * 40))
        rendered = timeline.render()
    shown = terminal(40, height)
    shown.print(rendered)
    lines = written(shown).splitlines()
    assert len(lines) <= height
    assert max(cell_len(text) for text in lines) <= 40


def test_aside_gives_the_terminal_back_until_the_next_update() -> None:
    console = terminal()
    with Timeline(console, QUESTION, Depth.STANDARD) as timeline:
        timeline.update(line(0), BOARD)
        timeline.aside()
        assert written(console).count("\x1b[?25h") == 1  # the cursor is there to type
        console.print("approve?")
        timeline.update(line(1), BOARD)
        assert written(console).count("\x1b[?25l") == 2
    assert written(console).count("\x1b[?25l") == written(console).count("\x1b[?25h") == 2


def test_aside_in_a_log_repeats_nothing() -> None:
    log = pipe()
    with Timeline(log, QUESTION, Depth.STANDARD) as timeline:
        timeline.update(line(0), BOARD)
        timeline.aside()
        timeline.update(line(1), BOARD)
    assert written(log).count(QUESTION) == 1


def test_the_account_tells_budget_and_decisions() -> None:
    console = terminal(100)
    stats = replace(
        STATS,
        budget=("$0.31 of $1.00", "9 of 20 tasks"),
        stopped="research stopped by its budget: 9 of 20 tasks are spent",
        decisions=("plan approved by ada", "bob: banned x.test"),
    )
    console.print(closing_stats(stats, 100))
    shown = " ".join(written(console).split())
    for part in (*stats.budget, stats.stopped, *stats.decisions):
        assert part in shown
