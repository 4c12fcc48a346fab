from __future__ import annotations

from contextlib import aclosing

import pytest
import ray

from marg_ray.actors.coordinator import new_session_id
from marg_ray.client import Marg, Step, error_of, make_request
from marg_ray.errors import InsufficientEvidence, SessionNotFound, UsageError
from marg_ray.memory.chat import Answer, Said
from marg_ray.records import ReportStatus, Role, Verdict
from marg_ray.report.model import Report
from marg_ray.store.sql import SqlStore
from tests.cluster.conftest import LIBRARY

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]

QUESTION = "What are the environmental effects of tidal barrages?"


async def ask(marg: Marg, question: str = QUESTION, **options: object) -> Report:
    return await marg.research(question, docs=[LIBRARY], **options)  # type: ignore[arg-type]


def check(marg: Marg, report: Report) -> None:
    """Everything a reader may rely on, seen from outside the code that made it."""
    snapshots = marg.runtime.places.snapshots
    evidence = {e.id: e for e in report.evidence}
    numbers = {r.number: r.source for r in report.references}
    for e in report.evidence:
        assert snapshots.text(e.source)[e.start : e.end] == e.quote
    for sentence in report.sentences():
        assert set(sentence.citations) <= evidence.keys()
        assert [numbers[n] for n in sentence.numbers] == list(
            dict.fromkeys(evidence[c].source for c in sentence.citations)
        )
    used = [n for s in report.sentences() for n in s.numbers]
    assert sorted(numbers) == list(range(1, len(numbers) + 1)) == sorted(set(used))
    if report.status is ReportStatus.PASSED:
        bad = (Verdict.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_CHECKED)
        assert not [s for s in report.sentences() if s.verdict in bad]


async def test_a_question_about_the_documents_gets_a_checked_report(marg: Marg) -> None:
    steps: list[Step] = []
    report = await ask(marg, on_step=steps.append)
    check(marg, report)
    assert report.status is ReportStatus.PASSED
    assert report.model == "extractive"
    assert len(report.sections) >= 3
    assert report.summary
    roles = {r.role for s in steps for r in s.progress.running}
    assert {Role.RESEARCHER, Role.SYNTHESIZER} <= roles, "the agents were never seen at work"
    assert set(report.usage.by_role) >= {"planner", "researcher", "synthesizer", "critic"}


async def test_two_sessions_at_once_do_not_mix(marg: Marg) -> None:
    import asyncio

    one, two = await asyncio.gather(
        ask(marg, "Why was the Swansea Bay tidal lagoon rejected?", depth="overview"),
        ask(marg, "What is the capacity of the Sihwa Lake tidal power station?", depth="overview"),
    )
    for report in (one, two):
        check(marg, report)
    assert one.session_id != two.session_id
    assert "Swansea" in " ".join(s.text for s in one.sentences())
    assert "254" in " ".join(s.text for s in two.sentences())


async def test_a_question_that_nothing_answers_is_refused_with_the_missing_words(marg: Marg) -> None:
    with pytest.raises(InsufficientEvidence):
        await ask(marg, "Who won the 1998 football world cup in France?")


async def test_a_missing_folder_is_said_before_anything_starts(marg: Marg) -> None:
    before = len(await marg.runtime.sessions())
    with pytest.raises(UsageError, match="no folder"):
        await marg.research(QUESTION, docs=["/no/such/folder"])
    assert len(await marg.runtime.sessions()) == before


async def test_a_report_is_asked_about_and_talked_over(marg: Marg) -> None:
    """The assistant's actor: whole answers, streams, errors, readers who leave, a conversation after it was killed."""
    report = await ask(marg, depth="overview")
    sid, assistant = report.session_id, marg.runtime.assistant
    fish = "What happens to fish that pass a barrage?"
    answer = await assistant.answer("local", sid, fish)
    assert answer.known
    assert {c for s in answer.sentences for c in s.citations} <= {e.id for e in report.evidence}
    parts = [part async for part in assistant.stream("local", sid, fish)]
    assert parts == [*answer.sentences, answer]
    with pytest.raises(SessionNotFound):
        await assistant.answer("bob", sid, fish)
    with pytest.raises(SessionNotFound):
        [part async for part in assistant.stream("bob", sid, fish)]
    async with aclosing(assistant.stream("local", sid, fish)) as leaving:
        assert await anext(leaving) == answer.sentences[0]
    store = await SqlStore.open(marg.runtime.places.store_url)
    await store.talk.open("local", "c", "")
    said = [Said(conversation="c", turn=f"{n}", text=text) for n, text in enumerate(("I live in Kiel.", fish))]
    heard = [part async for part in assistant.converse("local", said[0])]
    assert isinstance(heard[-1], Answer)
    assert heard[-1].remembered == ("I live in Kiel.",)
    ray.kill(ray.get_actor("agent:assistant"), no_restart=False)
    heard = [part async for part in assistant.converse("local", said[1])]
    assert isinstance(heard[-1], Answer)
    assert heard[-1].known
    assert [t.role for t in await store.talk.turns("local", "c")] == ["user", "assistant"] * 2
    await store.close()


@pytest.mark.parametrize(
    "victim",
    ["coordinator:0", "ledger", "worker:0", "worker:1", "agent:planner", "agent:critic", "agent:synthesizer"],
)
async def test_a_killed_actor_does_not_lose_the_run(marg: Marg, victim: str) -> None:
    session_id = new_session_id()
    request = make_request(QUESTION, docs=[LIBRARY], depth="overview", offline=True)
    killed, last = False, None
    async for step in marg.run(session_id, request):
        last = step
        if not killed and step.state.plan is not None:
            ray.kill(ray.get_actor(victim), no_restart=False)
            killed = True
    assert killed
    assert last is not None
    assert error_of(last.state, session_id) is None
    report = marg.report(last.state, session_id)
    check(marg, report)
    log = [e.message.task_id for e in (await marg.runtime.progress(session_id)).entries]
    assert len(log) == len(set(log)), "a fact is in the log twice"
