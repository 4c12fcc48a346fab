"""`marg show --trace`: an old session as a waterfall, without any runtime."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from marg_ray.actors.trace import trace_of
from marg_ray.cli.trace import Waterfall, label_of
from marg_ray.telemetry.spans import Span, Trace
from tests.flow import TIDES, World
from tests.unit.test_cli import marg
from tests.unit.test_cli_figures import _stored

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def span(name: str, start: float, end: float, *, parent: str = "root", **more: object) -> Span:
    kind = "session" if name == "root" else "task"
    attributes = {"gen_ai.agent.name": "researcher", "marg.task.kind": name}
    fields = {"id": name, "name": name, "kind": kind, "start": at(start), "end": at(end), "attributes": attributes}
    return Span.model_validate({**fields, "parent": "" if name == "root" else parent, **more})


def drawn(trace: Trace, width: int = 100, **more: bool) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as shown:
        console.print(Waterfall(trace, **more))
    return shown.get().splitlines()


def of(*spans: Span) -> Trace:
    return Trace(id="0" * 32, session="S", status="passed", spans=spans)


def test_bars_lie_where_the_time_was() -> None:
    trace = of(
        span("root", 0, 10),
        span("plan", 0, 5, critical=True),
        span("read", 6, 10, after="plan", waited=1.0, critical=True),
        span("search", 2, 3),
    )
    rows = {line.split()[-5 if "·" in line else -3]: line for line in drawn(trace) if "█" in line}
    assert len(rows) == 3
    plan, read, search = (
        next(line for line in rows.values() if f" {kind} " in line) for kind in ("plan", "read", "search")
    )
    whole = plan.count("█") * 2
    assert abs(read.count("█") - whole * 0.4) <= 1
    assert abs(read.count("·") - whole * 0.1) <= 1
    assert abs(search.count("█") - whole * 0.1) <= 1
    assert read.index("·") == plan.rindex("█") + 1  # it was due when the plan was there
    assert [line[0] for line in (plan, read, search)] == ["●", "●", " "]


def test_the_critical_path_is_told_in_order_with_its_sums() -> None:
    trace = of(span("root", 0, 10), span("plan", 0, 5, critical=True), span("read", 6, 10, waited=1.0, critical=True))
    text = "\n".join(drawn(trace))
    assert "critical path: 2 tasks, 9.00 s of work, 1.00 s of waiting" in text
    assert "plan 5.00 s, read 4.00 s" in text


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_row_is_wider_than_the_terminal_where_it_has_room(width: int, tmp_path: Path) -> None:
    world = World(tmp_path)
    asyncio.run(world.ask("How much power do tidal stations produce? 潮汐 🌊"))
    trace = asyncio.run(_trace(world))
    assert all(cell_len(line.rstrip()) <= max(width, 80) for line in drawn(trace, width, calls=True))


async def _trace(world: World) -> Trace:
    return trace_of("S", await world.store.read("S"), await world.store.calls("S"))


def test_what_pages_say_does_not_move_the_cursor() -> None:
    hostile = span("read", 0, 1, about="https://x.test/\x1b[2J\u202e\n[bold]")
    trace = of(span("root", 0, 10), hostile)
    text = "\n".join(drawn(trace))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[bold]" in label_of(hostile)


def test_an_old_session_is_shown_without_a_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("MARG_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "140")
    world = World(home)
    asyncio.run(_stored(home, world))
    calls = asyncio.run(world.store.calls("S"))
    assert marg(monkeypatch, "show", "S", "--trace") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("S: passed")
    assert "critical path" in shown
    assert all(url[:20] in shown for url in TIDES)
    assert marg(monkeypatch, "show", "S", "--trace", "--calls") == 0
    with_calls = capsys.readouterr().out
    rows = [line for line in with_calls.splitlines() if "█" in line]
    assert len(rows) == len([line for line in shown.splitlines() if "█" in line]) + len(calls)
    assert marg(monkeypatch, "show", "S", "--trace", "-f", "json") == 0
    trace = Trace.model_validate(json.loads(capsys.readouterr().out))
    assert trace.session == "S"
    assert sum(span.kind in ("model", "search", "fetch") for span in trace.spans) == len(calls)
