"""The suite that defines a model backend, run against both tiers of the real engine.

Its tests of *what* is written need a model that follows instructions, and 135 million parameters do not: they run where
MARG_SMALL_MODEL names a folder with better weights and MARG_ABLE_MODEL=1 says so. All others hold for any model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest

import tests.contract.test_models as suite
from marg_ray.models.client import ModelClient
from marg_ray.models.tasks import TASKS, ExtractClaims
from marg_ray.models.tiers import TieredModel
from tests.contract.test_models import Backend
from tests.vllm.conftest import STRONG, Engine, client

FORM = (
    "test_each_task_is_answered_in_its_type",
    "test_a_cancelled_call_stops_and_the_next_one_works",
    "test_the_same_task_twice_has_answers_of_one_type",
)
WORDS = (
    "test_a_watcher_gets_the_text_that_is_answered",  # word for word, where the answer is not cut or introduced
    "test_a_plan_is_bounded_and_searchable",
    "test_a_given_outline_is_kept",
    "test_quotes_stand_in_the_passages",
    "test_a_document_without_passages_yields_nothing_invented",
    "test_a_section_cites_only_what_it_was_given",
    "test_without_evidence_a_section_cites_nothing",
    "test_a_summary_cites_only_what_the_sections_cite",
    "test_findings_rest_on_given_cards",
    "test_a_review_scores_within_bounds_and_names_known_sections",
    "test_letters_of_every_kind_pass",
    "test_many_at_once_do_not_mix",
    "test_a_turn_is_understood_by_itself_and_searchable",
    "test_without_evidence_an_answer_says_that_it_is_unknown",
    "test_an_answer_cites_only_what_it_was_given",
)
ABLE = bool(os.environ.get("MARG_ABLE_MODEL"))
globals().update({name: getattr(suite, name) for name in (*FORM, *(WORDS if ABLE else ()))})
model = suite.model
if not ABLE:  # a reader that names sentences which are not there has failed its check, and so weak a one does
    kinds = [kind for kind, task in enumerate(TASKS) if task is not ExtractClaims]
    every = pytest.mark.parametrize("kind", kinds, ids=[TASKS[kind].__name__ for kind in kinds])

    @every
    async def test_each_task_is_answered_in_its_type(model: ModelClient, kind: int) -> None:
        await suite.test_each_task_is_answered_in_its_type(model, kind)


@pytest.fixture
async def backend(engine: Engine) -> AsyncIterator[Backend]:
    models = engine.settings.models
    tiers = TieredModel(client(engine, models.fast), client(engine, models.strong))

    def hold() -> asyncio.Event:
        """Nothing to hold: a real engine is at work on a call for seconds. The event says that it is."""
        arrived = asyncio.Event()

        async def watch() -> None:
            await engine.until(STRONG, lambda now: now.running > 0)
            arrived.set()

        watching.append(asyncio.create_task(watch()))
        return arrived

    watching: list[asyncio.Task[None]] = []
    yield Backend(tiers, hold)
    for task in watching:
        task.cancel()
    await tiers.aclose()


def test_every_test_of_the_suite_is_run_here_or_known_to_need_an_able_model() -> None:
    there = {name for name in vars(suite) if name.startswith("test_")}
    assert there == {*FORM, *WORDS}
