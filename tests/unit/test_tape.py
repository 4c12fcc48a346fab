"""Record and replay: what was asked of the world is kept, and the same run comes out of it again."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marg_ray import errors
from marg_ray.actors.assembly import taped
from marg_ray.actors.coordinator import Coordinator
from marg_ray.actors.critic import Critic
from marg_ray.actors.formatter import Formatter
from marg_ray.actors.planner import Planner
from marg_ray.actors.recorded_order import RecordedOrder
from marg_ray.actors.researcher import Researcher
from marg_ray.actors.synthesizer import Synthesizer
from marg_ray.cli import main
from marg_ray.errors import FetchFailed, ModelError, ModelUnavailable, NotRecorded, ParseError, SourceError, UsageError
from marg_ray.grounding.snapshots import Document, Snapshots
from marg_ray.memory.recorded import run_of, runs_on, timeless, to_replay
from marg_ray.memory.tape import TapedEmbedder, TapedFetcher, TapedSearch, Texts
from marg_ray.messages import Message
from marg_ray.models.client import Call, ModelTask
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.select import Choice, choose
from marg_ray.models.tape import Tape, TapedModel, asked_of, begin, choice_of
from marg_ray.models.testing import CannedModel
from marg_ray.models.wrappers import MeteredModel
from marg_ray.records import Hit, Limits, Request, Role, SourceKind, Usage
from marg_ray.seams import Vectors
from marg_ray.settings import Settings, TapeSettings
from marg_ray.sources.protocol import Fetched, Found
from marg_ray.tasks import Task
from tests import model_tasks as samples
from tests.flow import TIDES, World, page

CALL = Call(session_id="r1", task_id="r1/x")
QUESTION = "How much power do tidal stations produce?"


def recorder(folder: Path) -> Tape:
    return Tape(folder / "tape", replays=False)


def player(folder: Path) -> Tape:
    return Tape(folder / "tape", replays=True)


# ---- one exchange


class Away:
    """A model, a search and a page server that must not be asked."""

    name = "canned"

    async def run(self, task: ModelTask[Any], call: Call) -> Any:
        raise AssertionError(f"{task.template} was asked")

    async def search(self, query: str, limit: int) -> Found:
        raise AssertionError(f"{query} was searched")

    async def fetch(self, url: str) -> Fetched:
        raise AssertionError(f"{url} was fetched")


@pytest.mark.parametrize("task", samples.every_task(), ids=lambda t: type(t).__name__)
async def test_each_task_is_answered_again_as_it_was(task: ModelTask[Any], tmp_path: Path) -> None:
    first = await TapedModel(recorder(tmp_path), CannedModel()).run(task, CALL)
    again = await TapedModel(player(tmp_path), None, name="canned").run(task, replace(CALL, session_id="another"))
    assert again == first


async def test_a_watcher_of_a_replay_gets_the_text(tmp_path: Path) -> None:
    first = await TapedModel(recorder(tmp_path), CannedModel()).run(samples.draft_section(), CALL)
    pieces: list[str] = []

    async def watch(piece: str) -> None:
        pieces.append(piece)

    await TapedModel(player(tmp_path), None).run(samples.draft_section(), replace(CALL, on_delta=watch))
    assert "".join(pieces) == first.output.markdown


async def test_what_was_not_recorded_is_an_error_that_says_what_was_asked(tmp_path: Path) -> None:
    tape = player(tmp_path)
    with pytest.raises(NotRecorded, match="make_plan for 'Is tidal power clean") as plan:
        await TapedModel(tape, None).run(samples.make_plan(question="Is tidal power clean?"), CALL)
    assert str(tape.folder) in str(plan.value)
    assert "--record" in plan.value.hint
    with pytest.raises(NotRecorded, match="'tides' \\(web\\)"):
        await TapedSearch(tape, None, {"source": "web"}).search("tides", 3)
    with pytest.raises(NotRecorded, match=r"fetch to https://tides\.test/x"):
        await TapedFetcher(tape, Away()).fetch("https://tides.test/x")


def test_a_task_is_known_again_whatever_its_fractions(tmp_path: Path) -> None:
    task = samples.extract_claims()
    nearly = task.model_copy(update={"passages": tuple(p.model_copy(update={"score": 0.1}) for p in task.passages)})
    assert asked_of(nearly) == asked_of(task)
    assert asked_of(task.model_copy(update={"max_claims": 3})) != asked_of(task)
    other = task.model_copy(update={"document": samples.document("Another text.")})
    assert asked_of(other) != asked_of(task)


def every(root: type[Exception]) -> list[type[Exception]]:
    return [root, *(c for child in root.__subclasses__() for c in every(child))]


ERRORS: list[Exception] = [
    errors.ModelUnavailable("sim:m (host)", "no answer"),
    errors.ContextOverflow(8192, "too long"),
    errors.OutputCut("draft_section", 900),
    errors.ParseError("make_plan", "no JSON", 4),
    errors.SearchUnavailable("ddgs: 403"),
    errors.McpUnavailable("wiki", "no answer within 20 s"),
    errors.AddressBlocked("http://10.0.0.1/"),
    errors.FetchFailed("https://a.test/", "gone", 404),
    errors.Unreadable("a.pdf", "encrypted"),
]


def test_no_kind_of_error_is_left_out() -> None:
    bases = {ModelError, SourceError}
    assert {type(e) for e in ERRORS} == {
        c for base in bases for c in every(base) if c.__module__ == errors.__name__
    } - bases


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
async def test_an_error_is_an_answer_too(error: Exception, tmp_path: Path) -> None:
    if isinstance(error, ModelError):
        error.spent = Usage(calls=2, tokens_in=9)

    async def fails() -> Any:
        raise error

    with pytest.raises(type(error)):
        await recorder(tmp_path).answer("search", {"query": "q"}, fails, "q")
    with pytest.raises(type(error)) as again:
        await player(tmp_path).answer("search", {"query": "q"}, fails, "q")
    assert again.value is not error
    assert (str(again.value), vars(again.value)) == (str(error), vars(error))


async def test_an_answer_counts_more_than_an_error_that_came_before_or_after(tmp_path: Path) -> None:
    outcomes: list[Any] = [ParseError("t", "c", 1), "fine", ParseError("t", "c", 1)]

    async def make() -> Any:
        made = outcomes.pop(0)
        if isinstance(made, Exception):
            raise made
        return made

    for _ in range(3):
        try:
            await recorder(tmp_path).answer("model", "q", make, "q")
        except ParseError:
            continue
    assert await player(tmp_path).answer("model", "q", make, "q") == "fine"


async def test_many_who_record_the_same_leave_one_whole_file(tmp_path: Path) -> None:
    async def make() -> Any:
        await asyncio.sleep(0)
        return "x" * 50_000

    await asyncio.gather(*(recorder(tmp_path).answer("model", "q", make, "q") for _ in range(50)))
    files = [p for p in (tmp_path / "tape").rglob("*") if p.is_file()]
    assert len(files) == 1
    assert json.loads(files[0].read_text())["asked"] == "q"


async def test_a_page_comes_back_byte_for_byte(tmp_path: Path) -> None:
    class One:
        async def fetch(self, url: str) -> Fetched:
            body = bytes(range(256))
            at = datetime(2026, 3, 1, 12, 30, 5, 123456, tzinfo=UTC)
            return Fetched(
                url=url, final_url=f"{url}/", status=200, media_type="text/html", charset="", body=body, fetched_at=at
            )

    first = await TapedFetcher(recorder(tmp_path), One()).fetch("https://a.test")
    assert await TapedFetcher(player(tmp_path), Away()).fetch("https://a.test") == first


async def test_vectors_come_back_to_the_last_bit_and_new_ones_are_made(tmp_path: Path) -> None:
    class Noisy:
        async def embed(self, texts: Sequence[str]) -> Vectors:
            exact = await HashingEmbedder().embed(texts)
            return (exact + np.random.default_rng().normal(0, 1e-3, exact.shape)).astype(np.float32)

    first = await TapedEmbedder(recorder(tmp_path), Noisy()).embed(["tides", "birds"])
    again = TapedEmbedder(player(tmp_path), Noisy())
    assert np.array_equal(await again.embed(["tides", "birds"]), first)
    assert not np.array_equal(await again.embed(["birds", "tides"]), first[::-1])
    assert (await again.embed([])).shape[0] == 0


async def test_the_texts_that_a_search_found_come_along(tmp_path: Path) -> None:
    home, elsewhere = Snapshots(tmp_path / "one"), Snapshots(tmp_path / "two")
    document = Document(title="T", text="The basin holds water.", parts=())
    hit = Hit(
        location="/x/a.md", title="T", kind=SourceKind.LIBRARY, source_id=home.put(document), relevance=0.123456789
    )

    class Shelf:
        async def search(self, query: str, limit: int) -> Found:
            return Found(hits=(hit,))

    where: dict[str, Any] = {"source": "library"}
    first = await TapedSearch(recorder(tmp_path), Shelf(), where, Texts(recorder(tmp_path), home)).search("basin", 3)
    again = TapedSearch(player(tmp_path), None, where, Texts(player(tmp_path), elsewhere))
    assert await again.search("basin", 3) == first
    assert elsewhere.document(hit.source_id) == document
    with pytest.raises(NotRecorded):
        await again.search("basin", 4)


async def test_a_full_disk_costs_the_recording_and_not_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("marg_ray.models.tape.write_whole", full)
    assert (await TapedModel(recorder(tmp_path), CannedModel()).run(samples.make_plan(), CALL)).output.sections
    assert "has a hole" in caplog.text
    with pytest.raises(UsageError, match="nothing can be recorded"):
        begin(recorder(tmp_path), Choice("a:b", "a:b", ""))


async def test_a_recording_that_names_no_error_of_ours_is_damaged(tmp_path: Path) -> None:
    tape = recorder(tmp_path)
    await tape.put("fetch", {"url": "u"}, {"error": {"type": "SystemExit", "args": [], "spent": None}})
    with pytest.raises(UsageError, match="damaged"):
        await TapedFetcher(player(tmp_path), Away()).fetch("u")


# ---- which models


async def test_a_replay_has_the_recorded_models_and_needs_no_key(tmp_path: Path) -> None:
    begin(recorder(tmp_path), Choice("groq:small", "openai:large", "it is configured"))
    settings = Settings(home=tmp_path, model="openai:another", tape=TapeSettings(replay=str(tmp_path / "tape")))
    choice = await choose(settings, {}, offline=True)
    assert (choice.spec_fast, choice.spec_strong) == ("groq:small", "openai:large")
    begin(recorder(tmp_path), Choice("groq:small", "openai:large", "again"))
    with pytest.raises(UsageError, match="openai:large"):
        begin(recorder(tmp_path), Choice("extractive", "extractive", ""))


async def test_what_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no recording"):
        choice_of(tmp_path)
    (tmp_path / "tape.json").write_text('{"version": 99}')
    with pytest.raises(UsageError, match="another form"):
        choice_of(tmp_path)
    (tmp_path / "tape.json").write_text('{"vers')
    with pytest.raises(UsageError, match="damaged"):
        choice_of(tmp_path)
    with pytest.raises(ValueError, match="not both"):
        TapeSettings(record="a", replay="b")
    assert Path(TapeSettings(record="a").record).is_absolute()
    assert Tape.of(TapeSettings()) is None


# ---- a whole run


@dataclass
class Jitter:
    """Answers come in another order each time."""

    dice: random.Random

    async def pause(self) -> None:
        for _ in range(self.dice.randrange(40)):
            await asyncio.sleep(0)


class Taped(World):
    """A world with the tape before everything outside."""

    tape: Tape
    jitter: Jitter

    def on(self, tape: Tape, seed: int) -> Taped:
        self.tape, self.jitter = tape, Jitter(random.Random(seed))
        model: Any = TapedModel(tape, None if tape.replays else self.model, name=self.model.name)
        model, embedder = MeteredModel(model, self.ledger), TapedEmbedder(tape, HashingEmbedder())
        researcher = self.agents[Role.RESEARCHER]
        assert isinstance(researcher, Researcher)
        units = taped(replace(researcher.workers, model=model, embedder=embedder), tape)  # type: ignore[type-var, arg-type]
        for role, agent in self.agents.items():
            changes: dict[str, Any] = {}
            match agent:
                case Planner():
                    changes = {"model": model}
                case Researcher():
                    changes = {"workers": units}
                case Synthesizer():
                    changes = {"workers": units, "model": model}
                case Critic():
                    changes = {"model": model, "embedder": embedder}
                case Formatter():
                    changes = {"tape": tape}
                case _:
                    changes = {"model": model}
            self.agents[role] = replace(agent, **changes)  # type: ignore[type-var]
        order = RecordedOrder(tape) if tape.replays else None
        self.coordinator = Coordinator(self.store, self._late, order=order)
        return self

    async def _late(self, task: Task) -> Message:
        message = await self._dispatch(task)
        await self.jitter.pause()
        return message

    async def report_bytes(self, **fields: object) -> bytes:
        """The report's JSON of a run that is asked."""
        state = await self.ask(QUESTION, **fields)
        assert state.report is not None, state.halt
        return self.artefacts.get(state.report.artefact).encode()


LAGOON = "https://tides.test/lagoon"
WIDE = {
    **TIDES,
    LAGOON: ("Lagoon", TIDES["https://tides.test/rance"][1].replace("Rance", "Swansea").replace("1966", "2027")),
    "https://tides.test/gone": ("Gone", "A page about tidal stations that is not there any more."),
}


def wide_world(folder: Path) -> Taped:
    from tests.flow import engine_over

    pages: dict[str, Any] = {url: page(*text) for url, text in WIDE.items()}
    pages["https://tides.test/gone"] = FetchFailed("https://tides.test/gone", "gone", 410)
    return Taped(folder, pages=pages, engines=(engine_over(WIDE),))


@pytest.mark.parametrize("seed", range(4))
async def test_a_replayed_run_gives_the_same_report_byte_for_byte(tmp_path: Path, seed: int) -> None:
    recorded = await wide_world(tmp_path / "a").on(recorder(tmp_path), seed).report_bytes()
    assert b"gone (HTTP 410)" in recorded
    for n, again in enumerate((seed + 100, seed + 200)):
        engines: Any = (EngineAway(),)
        world = Taped(tmp_path / str(n), model=Away(), pages={}, engines=engines)
        assert await world.on(player(tmp_path), again).report_bytes() == recorded


class EngineAway:
    name = "away"
    pace = None

    async def search(self, query: str, limit: int) -> Any:
        raise AssertionError(f"{query} was searched")


async def test_without_the_recorded_order_the_log_would_be_another(tmp_path: Path) -> None:
    """What the order is for: the seeds of the test above do lead to different logs."""
    logs = set()
    for seed in range(4):
        world = wide_world(tmp_path / str(seed)).on(recorder(tmp_path / str(seed)), seed)
        await world.ask(QUESTION)
        logs.add(tuple(e.message.task_id for e in await world.store.read("S")))
    assert len(logs) > 1


async def test_a_replay_that_asks_something_new_halts_and_says_what(tmp_path: Path) -> None:
    await wide_world(tmp_path / "a").on(recorder(tmp_path), 1).report_bytes()
    world = Taped(tmp_path / "b", model=Away())
    state = await world.on(player(tmp_path), 2).ask("What do tidal stations cost?")
    assert state.halt is not None
    assert (state.halt.error, state.halt.exit_code) == ("NotRecorded", 2)
    assert "tidal stations cost" in state.halt.detail


@pytest.mark.parametrize("lost", ["model", "fetch"])
async def test_a_recording_with_a_hole_never_gives_another_report(tmp_path: Path, lost: str) -> None:
    await wide_world(tmp_path / "a").on(recorder(tmp_path), 1).report_bytes()
    for path in sorted((tmp_path / "tape" / lost).rglob("*.json"))[:1]:
        path.unlink()
    state = await Taped(tmp_path / "b", model=Away()).on(player(tmp_path), 2).ask(QUESTION)
    assert state.report is None
    assert state.halt is not None
    assert state.halt.error == "NotRecorded"


async def test_a_replay_that_has_left_its_recording_ends_all_the_same(tmp_path: Path) -> None:
    """The order names tasks that do not come any more: nobody waits for them."""
    await wide_world(tmp_path / "a").on(recorder(tmp_path), 1).report_bytes()
    (path,) = (tmp_path / "tape" / "run").glob("*.json")
    told = json.loads(path.read_text())
    told["order"] = ["/never/1", *reversed(told["order"]), "/never/2"]
    path.write_text(json.dumps(told))
    await Taped(tmp_path / "b", model=Away()).on(player(tmp_path), 2).report_bytes()


async def test_a_damaged_run_on_the_tape_halts_the_replay(tmp_path: Path) -> None:
    await wide_world(tmp_path / "a").on(recorder(tmp_path), 1).report_bytes()
    (path,) = (tmp_path / "tape" / "run").glob("*.json")
    path.write_text('{"session_id": "S"}')
    state = await Taped(tmp_path / "b", model=Away()).on(player(tmp_path), 1).ask(QUESTION)
    assert state.halt is not None
    assert "damaged" in state.halt.detail


async def test_a_run_that_halted_halts_again_and_one_that_recovered_is_whole(tmp_path: Path) -> None:
    def down(task: Any, good: Any) -> Any:
        raise ModelUnavailable("sim:m (host)", "it is away")

    from marg_ray.models.tasks import MakePlan

    world = Taped(tmp_path / "a", model=CannedModel({MakePlan: down})).on(recorder(tmp_path), 1)
    assert (await world.ask(QUESTION)).halt is not None
    again = await Taped(tmp_path / "b", model=Away()).on(player(tmp_path), 2).ask(QUESTION)
    assert again.halt is not None
    assert again.halt.error == "ModelUnavailable"
    whole = await Taped(tmp_path / "c").on(recorder(tmp_path), 3).report_bytes()
    assert await Taped(tmp_path / "d", model=Away()).on(player(tmp_path), 4).report_bytes() == whole


async def test_only_ids_moments_and_durations_come_from_the_recording(tmp_path: Path) -> None:
    """A figure that the replay computes differently shows: here the recorded one is changed by hand."""
    await Taped(tmp_path / "a").on(recorder(tmp_path), 1).report_bytes()
    (path,) = (tmp_path / "tape" / "run").glob("*.json")
    told = json.loads(path.read_text())
    numbers = {k: v for k, v in told.items() if k not in ("request", "order", "session_id")}
    assert set(numbers) == {"times", "created_at", "finished_at", "wall_seconds", "cost", "seconds", "fetched_at"}
    told["cost"] = dict.fromkeys(told["cost"], 99.0)
    path.write_text(json.dumps(told))
    replayed = json.loads(await Taped(tmp_path / "b", model=Away()).on(player(tmp_path), 2).report_bytes())
    assert replayed["usage"]["cost"] == 0.0


async def test_what_a_recording_asks_can_be_asked_without_saying_it(tmp_path: Path) -> None:
    tape = player(tmp_path)
    with pytest.raises(UsageError, match="came to its end"):
        to_replay(tape)
    limits = Limits(seconds=900, usd=3)
    await Taped(tmp_path / "a").on(recorder(tmp_path), 1).ask(QUESTION, limits=limits)
    request = to_replay(tape)
    assert (request.question, request.limits.usd, request.limits.seconds) == (QUESTION, 3, None)
    assert run_of(tape, request) is not None
    assert run_of(tape, Request(question=f"  {QUESTION.upper()} ", depth=request.depth)) is not None
    assert run_of(tape, timeless(Request(question="Another?"))) is None
    await Taped(tmp_path / "b").on(recorder(tmp_path), 1).ask("How many turbines has the Rance station?")
    assert len(runs_on(tape)) == 2
    with pytest.raises(UsageError, match="How many turbines"):
        to_replay(tape)


def test_the_command_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for args, said in (
        ((), "there is no question"),
        (("--replay", "nothing"), "came to its end"),
        (("Why?", "--record", "a", "--replay", "b"), "not both"),
    ):
        monkeypatch.setattr("sys.argv", ["marg", "research", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert said in re.sub(r"\s+", " ", capsys.readouterr().err)
