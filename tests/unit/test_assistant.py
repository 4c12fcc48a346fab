"""Questions about a finished report: answered from its evidence, each sentence checked, or not answered at all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from marg_ray.actors.assistant import task_id
from marg_ray.actors.material import AROUND, of_report, window
from marg_ray.errors import ModelUnavailable, SessionNotFound, UsageError
from marg_ray.memory.chat import Answer, Cited, Turn
from marg_ray.models.client import Call
from marg_ray.models.tasks import AnswerQuestion, FreeText, PlanTurn
from marg_ray.models.testing import CannedModel
from marg_ray.records import Limits
from marg_ray.settings import Settings
from tests.flow import World
from tests.served import assistant_of

ASKED = "How many turbines has the Rance tidal power station?"


def saying(text: str | Callable[[AnswerQuestion], str]) -> CannedModel:
    """A model that answers questions about reports with `text`."""

    def hook(task: AnswerQuestion, _: Any) -> FreeText:
        return FreeText(markdown=text if isinstance(text, str) else text(task))

    return CannedModel({AnswerQuestion: hook})


def card_with(words: str) -> Callable[[AnswerQuestion], int]:
    return lambda task: next(c.number for c in task.evidence if words in c.quote)


async def asked(world: World, question: str = ASKED, *, owner: str = "local", history: Any = ()) -> Answer:
    assistant = assistant_of(world, Settings(home=world.folder))
    return await assistant.answer(owner, "S", question, history)


async def world_of(folder: Path, model: CannedModel | None = None, **fields: Any) -> World:
    world = World(folder, model=model or CannedModel())
    await world.ask(**fields)
    return world


async def test_an_answer_cites_the_report_s_own_evidence(tmp_path: Path) -> None:
    world = await world_of(tmp_path)
    report = world.report(await _state(world))
    answer = await asked(world)
    assert answer.known
    assert "24 turbines" in answer.text
    own = {e.id for e in report.evidence}
    assert {c for s in answer.sentences for c in s.citations} <= own
    assert all(s.verdict in ("supported", "partial") for s in answer.sentences)
    for passage in answer.passages:
        assert world.snapshots.text(passage.source)[passage.start : passage.end] == passage.quote
        assert passage.session == "S"


async def _state(world: World) -> Any:
    from marg_ray.folding import replay

    return replay(e.message for e in await world.store.read("S"))


async def test_what_the_evidence_does_not_say_is_left_out(tmp_path: Path) -> None:
    def text(task: AnswerQuestion) -> str:
        n = card_with("24 turbines")(task)
        return (
            f"The Rance station has 24 turbines [{n}]. It has 31 turbines [{n}]. "
            f"The minister of energy opened it with a speech about whales [{n}]. It cost 620 million francs. "
            f"All of this is certain [99]."
        )

    answer = await asked(await world_of(tmp_path, saying(text)))
    assert [s.text for s in answer.sentences] == ["The Rance station has 24 turbines."]
    dropped = {s.text: s for s in answer.dropped}
    assert "It has 31 turbines." in dropped
    assert "It cost 620 million francs." in dropped
    assert all(s.reason for s in answer.dropped)


async def test_a_sentence_with_a_wrong_mark_gets_the_passage_that_carries_it(tmp_path: Path) -> None:
    def text(task: AnswerQuestion) -> str:
        wrong = card_with("Sihwa")(task)
        return f"The Rance tidal power station has 24 turbines with a capacity of 240 megawatts [{wrong}]."

    answer = await asked(
        await world_of(tmp_path, saying(text)), "What is the capacity of the Rance and Sihwa stations?"
    )
    assert answer.known
    (cited,) = (p for p in answer.passages)
    assert "24 turbines" in cited.quote


@pytest.mark.parametrize(
    "question",
    ["Who won the chess championship of Iceland?", "What does a zebra eat in winter?"],
)
async def test_what_was_not_researched_is_not_known_and_no_model_is_asked(tmp_path: Path, question: str) -> None:
    world = await world_of(tmp_path)
    answer = await asked(world, question)
    assert not answer.known
    assert answer.missing
    assert "do not answer" in answer.text
    assert world.model.asked(AnswerQuestion) == []  # type: ignore[attr-defined]


async def test_a_model_that_does_not_know_says_so(tmp_path: Path) -> None:
    answer = await asked(await world_of(tmp_path, saying("UNKNOWN: the name of the architect")))
    assert not answer.known
    assert "do not answer" in answer.text
    assert "architect" not in answer.text, "what a model adds in passing is nobody's"


async def test_a_part_that_stays_open_is_named_in_the_question_s_words(tmp_path: Path) -> None:
    def text(task: AnswerQuestion) -> str:
        n = card_with("24 turbines")(task)
        return f"The Rance station has 24 turbines [{n}].\n\nUNKNOWN: the turbines of the Rance"

    answer = await asked(await world_of(tmp_path, saying(text)))
    assert answer.sentences[0].text == "The Rance station has 24 turbines."
    assert answer.sentences[-1].verdict == "not_factual"


async def test_what_comes_after_not_known_is_only_the_nearest(tmp_path: Path) -> None:
    def text(task: AnswerQuestion) -> str:
        n = card_with("24 turbines")(task)
        return f"UNKNOWN: the colour\n\nThe Rance station has 24 turbines [{n}]."

    answer = await asked(await world_of(tmp_path, saying(text)))
    assert not answer.known
    assert [s.verdict for s in answer.sentences] == ["not_factual", "supported"]
    assert "nearest" in answer.sentences[0].text


async def test_nothing_that_holds_is_not_known(tmp_path: Path) -> None:
    answer = await asked(await world_of(tmp_path, saying("It is made of cheese and has 777 wheels [1].")))
    assert not answer.known
    assert len(answer.dropped) == 1


async def test_where_the_model_is_away_the_answer_is_quoted(tmp_path: Path) -> None:
    world = await world_of(tmp_path)

    def away(task: Any, good: Any) -> Any:
        raise ModelUnavailable("http://gone", "no answer")

    world.model._hooks[AnswerQuestion] = away  # type: ignore[attr-defined]
    answer = await asked(world)
    assert answer.known
    assert "Rance" in answer.text
    assert any("in quotations" in note for note in answer.notes)


async def test_a_session_whose_budget_is_spent_answers_in_quotations(tmp_path: Path) -> None:
    world = await world_of(tmp_path)
    row = await world.store.session("S")
    world.store._change("S", limits=Limits(tokens=1))
    world.ledger._accounts.clear()
    answer = await asked(world)
    assert row.artefact
    assert any("tokens limit" in note for note in answer.notes), answer.notes
    assert answer.known
    assert world.model.asked(AnswerQuestion) == []  # type: ignore[attr-defined]


async def test_a_question_is_paid_once_and_under_its_session(tmp_path: Path) -> None:
    world = await world_of(tmp_path)
    before = len(await world.store.calls("S"))
    first, second = await asked(world), await asked(world)
    assert first == second
    assert len(world.model.asked(AnswerQuestion)) == 1  # type: ignore[attr-defined]
    new = (await world.store.calls("S"))[before:]
    assert [(row.call.role, row.status) for row in new] == [("assistant", "settled")]
    assert new[0].usage.tokens_in > 0


async def test_only_the_owner_asks(tmp_path: Path) -> None:
    world = await world_of(tmp_path)
    for owner, session in (("bob", "S"), ("local", "none")):
        with pytest.raises(SessionNotFound):
            await assistant_of(world, Settings(home=tmp_path)).answer(owner, session, ASKED)


async def test_a_session_without_a_report_and_a_question_without_words_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.store.create("S", owner="local", question="q")
    with pytest.raises(UsageError, match="no report yet"):
        await asked(world)
    with pytest.raises(UsageError, match="no question"):
        await asked(await world_of(tmp_path / "b"), '"" ?!')


async def test_what_was_said_before_makes_a_question_whole(tmp_path: Path) -> None:
    def plan(task: PlanTurn, good: Any) -> Any:
        return good.model_copy(update={"question": ASKED})

    world = await world_of(tmp_path)
    world.model._hooks[PlanTurn] = plan  # type: ignore[attr-defined]
    said = [Turn(role="user", text="Tell me of the Rance."), Turn(role="assistant", text="It opened in 1966.")]
    answer = await asked(world, "How many turbines has it?", history=said)
    (task,) = world.model.asked(AnswerQuestion)  # type: ignore[attr-defined]
    assert task.question == ASKED
    assert [t.text for t in task.history] == [t.text for t in said]
    assert "24 turbines" in answer.text


# ---- as it comes


class Slowly(CannedModel):
    """Says its answer in pieces; each waits until the one before was heard."""

    def __init__(self, pieces: list[str]) -> None:
        super().__init__({AnswerQuestion: lambda task, good: FreeText(markdown="".join(self.said(task)))})
        self._pieces = pieces
        self.heard = asyncio.Event()
        self.cancelled = False

    def said(self, task: AnswerQuestion) -> list[str]:
        number = str(card_with("24 turbines")(task))
        return [piece.replace("#", number) for piece in self._pieces]

    async def run(self, task: Any, call: Call) -> Any:
        if not isinstance(task, AnswerQuestion):
            return await super().run(task, call)
        assert call.on_delta is not None
        try:
            for piece in self.said(task):
                await call.on_delta(piece)
                if piece.endswith("~"):
                    await self.heard.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return await super().run(task, Call(session_id=call.session_id, task_id=call.task_id))


async def test_a_sentence_is_shown_once_it_has_ended_and_passed(tmp_path: Path) -> None:
    pieces = [
        "The Rance station has 24 tur",
        "bines [",
        "#]. It has 31 turbines [#]. Its tur",
        "~",
        "bines number 24 [#].",
    ]
    model = Slowly([p.replace("~", " ~") if p == "~" else p for p in pieces])
    model._pieces[3] = "~"
    world = await world_of(tmp_path, model)
    assistant = assistant_of(world, Settings(home=tmp_path))
    async with asyncio.timeout(30), aclosing(assistant.stream("local", "S", ASKED)) as parts:
        first = await anext(parts)
        assert isinstance(first, Cited)
        assert first.text == "The Rance station has 24 turbines."
        assert first.citations
        assert not model.heard.is_set()
        model.heard.set()
        rest = [part async for part in parts]
    assert isinstance(rest[-1], Answer)
    assert rest[-1].sentences[0] == first
    assert [s for s in rest if isinstance(s, Cited)] == list(rest[-1].sentences[1:])


async def test_who_leaves_stops_the_model(tmp_path: Path) -> None:
    model = Slowly(["The Rance station has 24 turbines [#]. And it ~"])
    world = await world_of(tmp_path, model)
    assistant = assistant_of(world, Settings(home=tmp_path))
    async with asyncio.timeout(30):
        async with aclosing(assistant.stream("local", "S", ASKED)) as parts:
            async for _ in parts:
                break
    assert model.cancelled


# ---- the passages


@pytest.mark.parametrize("around", ["", "Before it. ", "A" * 500 + ". "])
def test_a_window_has_whole_sentences(around: str) -> None:
    quote = "The quoted words stand here."
    text = f"{around}{quote} After it. B{'b' * 500}."
    start = text.index(quote)
    low, high = window(text, start, start + len(quote), 0, len(text))
    shown = text[low:high]
    assert quote in shown
    assert shown.startswith(("The quoted", "Before it."))
    assert shown.endswith("After it.")
    assert start - low <= AROUND
    assert high - start - len(quote) <= AROUND


async def test_passages_of_one_source_do_not_overlap(tmp_path: Path) -> None:
    world = await world_of(tmp_path)
    report = world.report(await _state(world))
    material = of_report(report, {s.id: world.snapshots.text(s.id) for s in report.sources})
    by_source: dict[str, list[tuple[int, int]]] = {}
    for e in material.evidence:
        by_source.setdefault(e.source, []).append((e.start, e.end))
    for spans in by_source.values():
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_a_task_s_id_derives_from_what_is_asked() -> None:
    said = (Turn(role="user", text="a"),)
    assert task_id("S", "q", ()) == task_id("S", "q", ()) != task_id("S", "q", said) != task_id("S", "r", said)
