"""Paying once, falling back, and the two tiers."""

from __future__ import annotations

import pickle

import pytest

from marg_ray.errors import BudgetExceeded, ModelUnavailable, ParseError
from marg_ray.models.client import Call, Reply
from marg_ray.models.tasks import FreeText, QueryIdea
from marg_ray.models.testing import CannedModel, ScriptedModel
from marg_ray.models.tiers import TieredModel
from marg_ray.models.wrappers import FallbackModel, MeteredModel, asked, dump, estimate, free, load
from marg_ray.records import Note, Role, Usage
from marg_ray.seams import Begun, CallKey
from tests import model_tasks as samples

CALL = Call(session_id="r1", task_id="r1/t")
GONE = ModelUnavailable("a", "down")


class MemoryLedger:
    """Keeps settled results; `left` calls are granted."""

    def __init__(self, left: int = 100) -> None:
        self.settled: dict[str, tuple[str, Usage]] = {}
        self.given_back: list[str] = []
        self.estimates: list[Usage] = []
        self.left = left

    async def begin(self, call: CallKey, estimate: Usage) -> Begun:
        self.estimates.append(estimate)
        if call.key in self.settled:
            result, usage = self.settled[call.key]
            return Begun(done=True, result=result, usage=usage)
        if not self.left:
            raise BudgetExceeded("calls", 1, 1)
        self.left -= 1
        return Begun(done=False)

    async def extend(self, call: CallKey, more: Usage) -> None:
        self.estimates.append(more)

    async def end(self, call: CallKey, result: str, usage: Usage) -> None:
        self.settled[call.key] = (result, usage)

    async def failed(self, call: CallKey) -> None:
        self.given_back.append(call.key)


class TestMetered:
    @pytest.mark.parametrize("task", samples.every_task(), ids=lambda t: type(t).__name__)
    async def test_the_same_task_is_paid_once_and_comes_back_typed(self, task: object) -> None:
        inner, ledger = CannedModel(), MemoryLedger()
        first = await MeteredModel(inner, ledger).run(task, CALL)  # type: ignore[arg-type]
        again = await MeteredModel(inner, ledger).run(task, CALL)  # type: ignore[arg-type]
        assert len(inner.calls) == 1
        assert again.output == first.output
        assert type(again.output) is type(first.output)
        assert (again.model, again.notes, again.usage) == (first.model, first.notes, Usage(reused=1))

    async def test_another_question_session_or_model_is_another_call(self) -> None:
        ledger = MemoryLedger()
        for name, session, query in [("a", "r1", "x"), ("b", "r1", "x"), ("a", "r2", "x"), ("a", "r1", "y")]:
            model = MeteredModel(CannedModel(name=name), ledger)
            await model.run(samples.rewrite_query(query=query), Call(session_id=session, task_id="t"))
        # the ledger of a session keeps its own keys; this one only sees the hash
        assert len(ledger.settled) == 3

    async def test_a_document_is_known_by_its_id(self) -> None:
        task = samples.extract_claims()
        text = asked(task)
        assert text.endswith(f'document="{task.document.source_id}"')
        assert task.document.text not in text
        other = samples.extract_claims(document=samples.document("Other text."))
        assert asked(other) != text

    def test_half_a_surrogate_pair_is_no_hindrance(self) -> None:
        texts = {asked(samples.rewrite_query(query=q)) for q in ("tides \ud800", "tides \udbff", "tides")}
        assert len(texts) == 3

    async def test_an_estimate_is_given_what_was_written_out_for_the_key(self) -> None:
        given: list[str] = []

        def estimated(_: object, text: str = "", /) -> Usage:
            given.append(text)
            return Usage()

        task = samples.make_plan()
        await MeteredModel(CannedModel(), MemoryLedger(), estimate=estimated).run(task, CALL)
        assert given == [asked(task)]

    async def test_a_failed_call_is_given_back(self) -> None:
        ledger = MemoryLedger()
        model = MeteredModel(ScriptedModel([GONE, QueryIdea(query="q")]), ledger)
        with pytest.raises(ModelUnavailable):
            await model.run(samples.rewrite_query(), CALL)
        assert len(ledger.given_back) == 1
        assert (await model.run(samples.rewrite_query(), CALL)).output.query == "q"

    async def test_what_a_failed_call_cost_is_counted(self) -> None:
        ledger = MemoryLedger()
        failed = ParseError("make_plan", "no title", 4)
        failed.spent = Usage(calls=4, tokens_in=400)
        again = pickle.loads(pickle.dumps(failed))  # as it comes from another process
        model = MeteredModel(ScriptedModel([again, again]), ledger)
        for _ in range(2):
            with pytest.raises(ParseError):
                await model.run(samples.make_plan(), CALL)
        assert [usage for _, usage in ledger.settled.values()] == [failed.spent] * 2
        assert len(ledger.given_back) == 2

    async def test_a_spent_budget_asks_no_model(self) -> None:
        inner = CannedModel()
        with pytest.raises(BudgetExceeded):
            await MeteredModel(inner, MemoryLedger(left=0)).run(samples.make_plan(), CALL)
        assert inner.calls == []

    async def test_a_reused_text_is_shown_to_a_watcher(self) -> None:
        ledger, seen = MemoryLedger(), []

        async def watch(text: str) -> None:
            seen.append(text)

        model = MeteredModel(CannedModel(), ledger)
        reply = await model.run(samples.draft_section(), CALL)
        await model.run(samples.draft_section(), Call(session_id="r1", task_id="t", on_delta=watch))
        assert seen == [reply.output.markdown]

    async def test_the_estimate_covers_prompt_and_answer(self) -> None:
        task = samples.draft_section()
        reserved = estimate(task)
        assert reserved.calls == 1
        assert reserved.tokens_out == task.max_tokens
        assert reserved.tokens_in >= 900
        ledger = MemoryLedger()
        await MeteredModel(CannedModel(), ledger, estimate=free).run(task, CALL)
        assert ledger.estimates == [Usage()]

    def test_a_stored_reply_keeps_notes_and_what_was_left_out(self) -> None:
        task = samples.draft_section()
        reply = Reply(
            output=FreeText(markdown="潮汐 [1].", incomplete=True),
            usage=Usage(calls=2, cost=0.5),
            model="m",
            notes=(Note(kind="left_out", text="x", section="s1"),),
            left_out=(3, 4),
        )
        assert load(task, dump(reply)) == reply


class TestFallback:
    async def test_the_next_one_answers_and_says_so(self) -> None:
        model = FallbackModel(ScriptedModel([GONE], name="a"), ScriptedModel([QueryIdea(query="q")], name="b"))
        reply = await model.run(samples.rewrite_query(), CALL)
        assert reply.model == "b"
        (note,) = reply.notes
        assert note.kind == "model_fallback"
        assert "down" in note.text

    async def test_only_absence_makes_it_go_on(self) -> None:
        second = ScriptedModel([])
        model = FallbackModel(ScriptedModel([ParseError("t", "c", 3)]), second)
        with pytest.raises(ParseError):
            await model.run(samples.rewrite_query(), CALL)
        assert second.calls == []

    async def test_all_gone_names_all(self) -> None:
        model = FallbackModel(ScriptedModel([GONE]), ScriptedModel([ModelUnavailable("b", "away")]))
        with pytest.raises(ModelUnavailable, match="a and b is unavailable: down; away"):
            await model.run(samples.rewrite_query(), CALL)


class TestTiers:
    async def test_each_task_goes_to_its_tier_or_role(self) -> None:
        fast, strong, critic = CannedModel(name="f"), CannedModel(name="s"), CannedModel(name="c")
        model = TieredModel(fast, strong, {Role.CRITIC: critic})
        for task in samples.every_task():
            await model.run(task, CALL)
        assert set(fast.count()) == {"MakePlan", "RewriteQuery", "ExtractClaims", "AnalyseEvidence", "PlanTurn"}
        assert set(strong.count()) == {"DraftSection", "SummariseReport", "AnswerQuestion"}
        assert set(critic.count()) == {"JudgeClaims", "ReviewReport"}
        assert model.name == "s + f + c"

    async def test_what_fast_cannot_do_strong_tries(self) -> None:
        failed = ParseError("make_plan", "no title", 4)
        failed.spent = Usage(calls=4)
        model = TieredModel(ScriptedModel([failed], name="f"), CannedModel(name="s"))
        reply = await model.run(samples.make_plan(), CALL)
        assert reply.usage.calls == 5
        assert reply.model == "s"
        (note,) = reply.notes
        assert note.kind == "tier_raised"
        assert "no title" in note.text

    async def test_strong_has_nobody_behind_it(self) -> None:
        fast = CannedModel()
        model = TieredModel(fast, ScriptedModel([ParseError("review_report", "c", 4)]))
        with pytest.raises(ParseError):
            await model.run(samples.review_report(), CALL)
        assert fast.calls == []

    async def test_an_absent_fast_model_is_not_hidden(self) -> None:
        with pytest.raises(ModelUnavailable):
            await TieredModel(ScriptedModel([GONE]), CannedModel()).run(samples.make_plan(), CALL)
