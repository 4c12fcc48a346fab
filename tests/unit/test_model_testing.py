"""The doubles themselves: they must fail when a test is wrong, and answer sensibly when it is right."""

from __future__ import annotations

import asyncio

import pytest

from marg_ray.errors import ModelUnavailable
from marg_ray.models import canned
from marg_ray.models.client import Call, Reply
from marg_ray.models.tasks import DraftSection, FreeText, MakePlan, PlanIdea, QueryIdea, RewriteQuery, SectionIdea
from marg_ray.models.testing import CannedModel, Misbehave, ScriptedModel
from marg_ray.records import Depth
from tests import model_tasks as samples

CALL = Call(session_id="r1", task_id="t")
PLAN = PlanIdea(title="T", sections=[SectionIdea(title="One", queries=["q"])])


class TestScripted:
    async def test_it_replays_in_order_and_keeps_what_was_asked(self) -> None:
        model = ScriptedModel([PLAN, ModelUnavailable("m", "down"), Reply(output=QueryIdea(query="q"), model="x")])
        assert (await model.run(samples.make_plan(), CALL)).output is PLAN
        with pytest.raises(ModelUnavailable):
            await model.run(samples.make_plan(), CALL)
        assert (await model.run(samples.rewrite_query(), CALL)).model == "x"
        assert [type(task) for task, _ in model.calls] == [MakePlan, MakePlan, RewriteQuery]
        assert len(model.asked(MakePlan)) == 2
        model.assert_finished()

    async def test_by_type_the_order_between_types_is_free(self) -> None:
        model = ScriptedModel({MakePlan: [PLAN], RewriteQuery: [lambda task: QueryIdea(query=task.query)]})
        assert (await model.run(samples.rewrite_query(query="x"), CALL)).output.query == "x"
        assert (await model.run(samples.make_plan(), CALL)).output is PLAN

    async def test_running_dry_fails(self) -> None:
        with pytest.raises(AssertionError, match=r"call 1 \(MakePlan\) is not in the script"):
            await ScriptedModel([]).run(samples.make_plan(), CALL)

    async def test_a_script_left_over_fails(self) -> None:
        with pytest.raises(AssertionError, match="1 scripted answers"):
            ScriptedModel({MakePlan: [PLAN]}).assert_finished()

    async def test_an_answer_of_the_wrong_type_fails(self) -> None:
        with pytest.raises(AssertionError, match="answered with PlanIdea"):
            await ScriptedModel([QueryIdea(query="q")]).run(samples.make_plan(), CALL)


class TestCanned:
    @pytest.mark.parametrize(("depth", "sections"), [(Depth.OVERVIEW, 3), (Depth.STANDARD, 5), (Depth.DEEP, 8)])
    async def test_a_plan_has_as_many_sections_as_the_depth_wants(self, depth: Depth, sections: int) -> None:
        task = samples.make_plan(outline=(), depth=depth, max_sections=10)
        plan = (await CannedModel().run(task, CALL)).output
        assert len(plan.sections) == sections
        assert plan.sections[0].title == "birds"
        assert len({s.queries[0] for s in plan.sections}) == sections
        assert len((await CannedModel().run(task.model_copy(update={"max_sections": 2}), CALL)).output.sections) == 2

    async def test_a_hook_spoils_an_answer_or_raises(self) -> None:
        def fail(task: MakePlan, good: PlanIdea) -> PlanIdea:
            raise ModelUnavailable("m", "down")

        model = CannedModel({DraftSection: Misbehave.unknown_citation, MakePlan: fail})
        assert "[93]" in (await model.run(samples.draft_section(), CALL)).output.markdown
        with pytest.raises(ModelUnavailable):
            await model.run(samples.make_plan(), CALL)
        assert model.count() == {"DraftSection": 1, "MakePlan": 1}

    @pytest.mark.parametrize(
        "fault",
        [
            Misbehave.unknown_citation,
            Misbehave.uncited_claim,
            Misbehave.wrong_number,
            Misbehave.typed_url,
            Misbehave.cut,
        ],
    )
    async def test_every_fault_changes_the_text(self, fault: object) -> None:
        good = (await CannedModel().run(samples.draft_section(), CALL)).output
        bad = (await CannedModel({DraftSection: fault}).run(samples.draft_section(), CALL)).output  # type: ignore[dict-item]
        assert bad != good

    async def test_a_test_can_hold_a_call(self) -> None:
        gate, reached = asyncio.Event(), asyncio.Event()

        async def hold(task: object, call: Call) -> None:
            reached.set()
            await gate.wait()

        running = asyncio.create_task(CannedModel(before=hold).run(samples.make_plan(), CALL))
        await reached.wait()
        assert not running.done()
        gate.set()
        assert (await running).output.sections

    def test_a_section_quotes_every_card_and_keeps_to_its_length(self) -> None:
        full = canned.section(samples.draft_section()).markdown
        assert all(f"[{card.number}]" in full for card in samples.cards())
        short = canned.section(samples.draft_section(words=20)).markdown
        assert len(short.split()) < 40

    @pytest.mark.parametrize(
        ("sentence", "marked"),
        [
            ("It rose.", "It rose [4]."),
            ("It rose", "It rose [4]."),
            ("Really?!", "Really [4]?"),
            ("成本很高。", "成本很高 [4]。"),
            ("Two\nlines.", "Two lines [4]."),
        ],
    )
    def test_a_mark_stands_before_the_full_stop(self, sentence: str, marked: str) -> None:
        assert canned.with_mark(sentence, 4) == marked

    def test_an_empty_section_says_so(self) -> None:
        assert canned.section(samples.draft_section(evidence=())) == FreeText(
            markdown="The sources at hand do not treat this."
        )
