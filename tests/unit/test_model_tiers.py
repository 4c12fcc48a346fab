"""Who tries a task, what raises it to the strong tier, and what is kept of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import pytest

from marg_ray.errors import BudgetExceeded, MargError, ModelUnavailable, OutputCut, ParseError
from marg_ray.models.client import Call, ModelTask, Reply
from marg_ray.models.tasks import TASKS, ClaimIdea, ClaimIdeas, DraftSection, FreeText
from marg_ray.models.testing import CannedModel, ScriptedModel, answer
from marg_ray.models.tiers import TieredModel, policy_of
from marg_ray.models.wrappers import dump, load
from marg_ray.records import Role, Usage
from marg_ray.settings import ModelSettings, TaskName, TierPolicy
from tests import model_tasks as samples

CALL = Call(session_id="r1", task_id="r1/t", section="s1")
INVENTED = ClaimIdeas(claims=[ClaimIdea(claim="So.", quote="Nobody ever wrote this.")])
READ = samples.extract_claims()
FIRST = samples.draft_section(feedback=(), previous="")


def replied(output: Any, **usage: Any) -> Reply[Any]:
    return Reply(output=output, usage=Usage(**({"calls": 1} | usage)), model="?")


def failing(error: Any, **usage: Any) -> Any:
    error.spent = Usage(**usage)
    return error


def told(error: BaseException) -> list[dict[str, Any]]:
    tries: list[dict[str, Any]] = json.loads(error.told)["tries"]  # type: ignore[attr-defined]
    return tries


class TestPolicies:
    def test_the_settings_know_every_task(self) -> None:
        assert set(get_args(TaskName)) == {"all", *(task.template for task in TASKS)}

    @pytest.mark.parametrize(
        ("table", "fast", "strong"),
        [
            ({}, {"MakePlan", "RewriteQuery", "ExtractClaims", "AnalyseEvidence"}, {"DraftSection", "SummariseReport"}),
            ({"all": "strong"}, set(), {t.__name__ for t in TASKS}),
            ({"all": "fast"}, {t.__name__ for t in TASKS}, set()),
            ({"all": "fast", "draft_section": "strong"}, {"SummariseReport", "MakePlan"}, {"DraftSection"}),
            ({"draft_section": "checked"}, {"MakePlan"}, {"SummariseReport", "DraftSection"}),  # a revision
        ],
        ids=str,
    )
    async def test_a_table_says_who_is_asked(
        self, table: Mapping[TaskName, TierPolicy], fast: set[str], strong: set[str]
    ) -> None:
        small, large = CannedModel(name="f"), CannedModel(name="s")
        model = TieredModel(small, large, policies=ModelSettings(tiers=dict(table)).tiers)
        for task in samples.every_task():
            await model.run(task, CALL)
        assert fast <= set(small.count())
        assert strong <= set(large.count())
        assert set(small.count()).isdisjoint(large.count())

    async def test_a_first_draft_may_be_the_fast_tiers_and_its_revision_is_the_strong_ones(self) -> None:
        small, large = CannedModel(name="f"), CannedModel(name="s")
        model = TieredModel(small, large, policies={"draft_section": "checked"})
        (first,) = (await model.run(FIRST, CALL)).tries
        (again,) = (await model.run(samples.draft_section(), CALL)).tries
        assert (first.tier, first.raised, first.model) == ("fast", False, "f")
        assert (again.tier, again.raised, again.model) == ("strong", True, "s")

    async def test_a_roles_own_model_is_asked_whatever_the_table_says(self) -> None:
        own = ScriptedModel([INVENTED], name="o")
        model = TieredModel(ScriptedModel([]), ScriptedModel([]), {Role.RESEARCHER: own}, {"all": "strong"})
        reply = await model.run(READ, CALL)
        assert [t.tier for t in reply.tries] == ["own"]

    def test_what_the_table_does_not_name_is_as_its_tier_has_it(self) -> None:
        assert policy_of(READ, {}) == "checked"
        assert policy_of(FIRST, {"extract_claims": "fast"}) == "strong"
        assert policy_of(FIRST, {"all": "fast"}) == "fast"


class TestRaising:
    async def test_an_answer_that_fails_its_check_is_made_again(self) -> None:
        fast = ScriptedModel([replied(INVENTED, tokens_in=10, cost=0.1)], name="f")
        strong = ScriptedModel([replied(answer(READ), tokens_in=20, cost=1.0)], name="s")
        reply = await TieredModel(fast, strong).run(READ, CALL)
        assert reply.output == answer(READ)
        assert reply.usage == Usage(calls=2, tokens_in=30, cost=1.1)
        assert [(t.tier, t.raised, bool(t.fault), t.usage.cost) for t in reply.tries] == [
            ("fast", False, True, 0.1),
            ("strong", True, False, 1.0),
        ]
        (note,) = reply.notes
        assert (note.kind, note.section) == ("tier_raised", "s1")
        assert "quotes" in note.text

    async def test_a_passing_answer_is_not(self) -> None:
        reply = await TieredModel(CannedModel(name="f"), ScriptedModel([])).run(READ, CALL)
        assert [(t.tier, t.fault) for t in reply.tries] == [("fast", "")]
        assert reply.notes == ()

    async def test_always_fast_takes_what_comes(self) -> None:
        model = TieredModel(ScriptedModel([INVENTED], name="f"), ScriptedModel([]), policies={"extract_claims": "fast"})
        assert (await model.run(READ, CALL)).output == INVENTED

    async def test_one_model_for_both_is_not_asked_twice(self) -> None:
        one = ScriptedModel([INVENTED])
        assert (await TieredModel(one, one).run(READ, CALL)).output == INVENTED

    async def test_one_model_for_both_raises_no_revision(self) -> None:
        one = CannedModel()
        model = TieredModel(one, one, {Role.CRITIC: CannedModel()}, {"draft_section": "checked"})
        assert not (await model.run(samples.draft_section(), CALL)).tries[0].raised

    @pytest.mark.parametrize(
        "error",
        [ModelUnavailable("s", "down"), ParseError("extract_claims", "no", 4), BudgetExceeded("usd", 1, 1)],
        ids=lambda e: type(e).__name__,
    )
    async def test_where_nothing_better_is_to_be_had_the_first_answer_stays(self, error: MargError) -> None:
        strong = ScriptedModel([failing(error, calls=2, cost=3.0)], name="s")
        reply = await TieredModel(ScriptedModel([replied(INVENTED, cost=0.5)], name="f"), strong).run(READ, CALL)
        assert reply.output == INVENTED
        assert reply.usage == Usage(calls=3, cost=3.5)
        assert [bool(t.fault) for t in reply.tries] == [True, True]
        assert [n.kind for n in reply.notes] == ["tier_kept"]

    async def test_the_second_answer_is_used_though_it_fails_as_well(self) -> None:
        reply = await TieredModel(ScriptedModel([INVENTED]), ScriptedModel([INVENTED])).run(READ, CALL)
        assert reply.tries[1].fault

    async def test_where_both_fail_the_error_tells_of_both(self) -> None:
        fast = ScriptedModel([failing(OutputCut("extract_claims", 64), calls=2, tokens_in=7)], name="f")
        strong = ScriptedModel([failing(ParseError("extract_claims", "no", 4), calls=4, tokens_in=9)], name="s")
        with pytest.raises(ParseError) as caught:
            await TieredModel(fast, strong).run(READ, CALL)
        assert caught.value.spent == Usage(calls=6, tokens_in=16)
        assert [(t["tier"], t["raised"], t["usage"]["calls"]) for t in told(caught.value)] == [
            ("fast", False, 2),
            ("strong", True, 4),
        ]

    @pytest.mark.parametrize("task", [READ, FIRST], ids=lambda t: type(t).__name__)
    async def test_an_absent_model_is_told_of_too(self, task: ModelTask[Any]) -> None:
        gone = failing(ModelUnavailable("x", "down"), calls=1)
        with pytest.raises(ModelUnavailable) as caught:
            await TieredModel(ScriptedModel([gone], name="f"), ScriptedModel([gone], name="s")).run(task, CALL)
        assert [t["usage"]["calls"] for t in told(caught.value)] == [1]

    async def test_only_what_stays_is_shown(self) -> None:
        shown: list[str] = []

        async def watch(text: str) -> None:
            shown.append(text)

        watched = Call(session_id="r1", task_id="t", on_delta=watch)
        unciting = CannedModel({DraftSection: lambda *_: FreeText(markdown="No mark at all.")}, name="f")
        model = TieredModel(unciting, CannedModel(name="s"), policies={"draft_section": "checked"})
        raised = await model.run(FIRST, watched)
        assert shown == [raised.output.markdown]
        shown.clear()
        model = TieredModel(CannedModel(name="f"), ScriptedModel([]), policies={"draft_section": "checked"})
        passed = await model.run(FIRST, watched)
        assert shown == [passed.output.markdown]

    async def test_the_tries_are_kept_with_the_reply(self) -> None:
        reply = await TieredModel(ScriptedModel([INVENTED], name="f"), CannedModel(name="s")).run(READ, CALL)
        assert load(READ, dump(reply)).tries == reply.tries
