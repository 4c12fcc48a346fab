"""The draft over HTTP: what its owner reads before deciding on it."""

from __future__ import annotations

from pathlib import Path

from marg_ray.api.app import create_app
from marg_ray.report.model import Report
from tests.asked import MANY, OVERVIEW, client_of, parts_of, settled
from tests.flow import World


async def test_a_draft_is_read_before_it_is_decided_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        body = {**OVERVIEW, "approve_plan": True, "gate": "always", "strict": True, "on_timeout": "wait"}
        taken = (await client.post("/v1/research", json=body)).json()["links"]["self"]
        await settled(world.coordinator, taken.rsplit("/", 1)[1])
        unwritten = await client.get(f"{taken}/draft")
        assert (unwritten.status_code, unwritten.json()["code"]) == (409, "NotReady")

        await client.post(f"{taken}/decision", json={"what": "approve"})
        await settled(world.coordinator, taken.rsplit("/", 1)[1])
        reply = await client.get(f"{taken}/draft")
        draft = Report.model_validate(reply.json())
        assert reply.status_code == 200
        assert all(section.sentences for section in draft.sections)
        cited = {c for sentence in draft.sentences() for c in sentence.citations}
        assert cited <= {e.id for e in draft.evidence}
        for e in draft.evidence:  # and each passage can be seen where it stands
            text = (await client.get(f"{taken}/sources/{e.source}")).text
            assert text[e.start : e.end] == e.quote
        assert (await client.get(f"{taken}/report")).status_code == 409


async def test_a_draft_is_its_owner_s_alone(tmp_path: Path) -> None:
    async with client_of(create_app(parts_of(World(tmp_path), service=MANY))) as client:
        assert (await client.get("/v1/research/20261130-120000-ab12cd/draft")).status_code == 404
