"""A recorded run comes out of its recording again, byte for byte, without the documents, the model or the network."""

from __future__ import annotations

import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulated_critic import StrictCritic
from benchmarks.simulated_search import SimulatedSearch
from marg_ray.client import Marg
from marg_ray.models.tape import Tape
from marg_ray.report.model import Report, to_json
from marg_ray.settings import Settings, TapeSettings, load
from tests.cluster.conftest import LIBRARY

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(420)]
QUESTION = "What are the environmental effects of tidal barrages?"


async def ask(marg: Marg, library: Path, web: bool) -> Report:
    return await marg.research(QUESTION, docs=[library], depth="overview", web=web)


@pytest.mark.parametrize("backend", ["extractive", "llm"])
async def test_a_recording_replays_identically_twice_offline(backend: str, tmp_path: Path) -> None:
    library, tape = tmp_path / "library", str(tmp_path / "tape")
    shutil.copytree(LIBRARY, library)
    async with AsyncExitStack() as servers:
        fields: dict[str, Any] = {"model": "extractive"}
        if backend == "llm":
            critic = await servers.enter_async_context(StrictCritic(revise=1))
            search = await servers.enter_async_context(SimulatedSearch(results=3))
            fields = {"model": critic.spec, "search": {"searxng_url": search.base_url}}
        settings = load(home=tmp_path / "home", tape=TapeSettings(record=tape), **fields)
        async with Marg(settings) as marg:
            recorded = await ask(marg, library, web=backend == "llm")
        asked = len(critic.requests) if backend == "llm" else 0
    shutil.rmtree(tmp_path / "home")
    for path in library.iterdir():  # the folder is there, its documents are not
        path.unlink()

    replaying: Settings = load(home=tmp_path / "other", model="openai:none", tape=TapeSettings(replay=tape))
    async with Marg(replaying, offline=True) as marg:  # no server runs any more, and there is no key
        for _ in range(2):
            again = await marg.research(QUESTION, docs=[library], depth="overview", web=backend == "llm", offline=False)
            assert to_json(again) == to_json(recorded)
        sessions = await marg.runtime.sessions()
        assert len({row.id for row in sessions} | {recorded.session_id}) == 3, "each replay is a session of its own"
        snapshots = marg.runtime.places.snapshots
        assert all(snapshots.text(e.source)[e.start : e.end] == e.quote for e in recorded.evidence)
        assert Tape.of(replaying.tape) is not None
    assert recorded.references
    assert recorded.iterations == (2 if backend == "llm" else recorded.iterations)
    assert (asked > 5) == (backend == "llm")
