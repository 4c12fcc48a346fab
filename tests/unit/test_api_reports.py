"""Reports over HTTP: every format, passages in context, sources, charts and figures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from marg_ray.api.app import create_app
from marg_ray.api.finished import refuses
from marg_ray.grounding.snapshots import Document, text_id
from marg_ray.records import ReportStatus
from marg_ray.report.assemble import build_report
from marg_ray.report.model import Report, from_json, to_json
from marg_ray.report.writers import FORMATS, MEDIA_TYPES
from tests.asked import MANY, client_of, finished, parts_of
from tests.flow import World
from tests.report_sample import E2, SOURCES, TEXTS, inputs
from tests.shared import case_file, needs_shared

BEGINS = {
    "md": b"#",
    "html": b"<!doctype html>",
    "json": b"{",
    "pdf": b"%PDF-",
    "docx": b"PK",
    "bib": b"@",
    "ris": b"TY",
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        yield client


async def kept(world: World, report: Report, session_id: str = "S") -> str:
    """A session that ended with this report, its sources read."""
    from marg_ray.messages import ReportReady, SourceRead

    store = world.store
    await store.create(session_id, owner="local", question=report.question)
    epoch = await store.take_over(session_id)
    for n, source in enumerate(SOURCES.values()):
        text = next(text for text in TEXTS.values() if text_id(text) == source.id)
        world.snapshots.put(Document(title=source.title, text=text, parts=()))
        read = SourceRead(
            task_id=f"read/{n}", section="s1", location=source.location, status="read", source=source, evidence=()
        )
        await store.append(session_id, read, expected_seq=n, epoch=epoch, status="running")
    ready = ReportReady(task_id="format", artefact=world.artefacts.put(to_json(report)), status=report.status)
    await store.append(session_id, ready, expected_seq=len(SOURCES), epoch=epoch, status=str(report.status))
    return session_id


async def test_the_report_of_a_run_comes_in_every_format(client: httpx.AsyncClient, world: World) -> None:
    session_id = await finished(client, world)
    for name in FORMATS:
        reply = await client.get(f"/v1/research/{session_id}/report.{name}")
        assert reply.status_code == 200, f"{name}: {reply.text}"
        assert reply.headers["content-type"] == MEDIA_TYPES[name]
        assert "content-disposition" not in reply.headers
        assert reply.content.lstrip().lower().startswith(BEGINS[name].lower()), name
    data = await client.get(f"/v1/research/{session_id}/report")
    assert from_json(data.text).session_id == session_id
    assert (await client.get(f"/v1/research/{session_id}/report.exe")).status_code == 422


async def test_a_report_in_html_reaches_nothing_of_the_service(client: httpx.AsyncClient, world: World) -> None:
    reply = await client.get(f"/v1/research/{await kept(world, build_report(inputs()))}/report.html")
    policy = reply.headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "allow-same-origin" not in policy


async def test_a_download_is_named_after_the_title(client: httpx.AsyncClient, world: World) -> None:
    report = build_report(inputs()).model_copy(update={"title": "潮汐 / “power”\r\nX-Evil: 1"})
    session_id = await kept(world, report)
    reply = await client.get(f"/v1/research/{session_id}/report.md", params={"download": True})
    named = reply.headers["content-disposition"]
    assert named.isascii()
    assert "filename*=UTF-8''%E6%BD%AE%E6%B1%90" in named
    assert "x-evil" not in reply.headers


@needs_shared
async def test_rep_02_every_title_can_be_downloaded(client: httpx.AsyncClient, world: World) -> None:
    import json

    titles = json.loads(case_file("REP-02", "titles.json").read_text("utf-8"))
    report = build_report(inputs())
    for n, entry in enumerate(titles):
        title = entry if isinstance(entry, str) else entry["title"]
        session_id = await kept(world, report.model_copy(update={"title": title}), f"S{n}")
        reply = await client.get(f"/v1/research/{session_id}/report.md?download=1")
        named = reply.headers["content-disposition"]
        assert reply.status_code == 200
        assert named.isascii()
        assert "filename*=UTF-8''" in named
        assert "\n" not in named


async def test_there_is_none_until_it_is_ready(client: httpx.AsyncClient, world: World) -> None:
    session_id = await finished(client, world, approve_plan=True)
    for rest in ("report", "report.md", "report.pdf", "evidence/e1", "charts/1.svg"):
        reply = await client.get(f"/v1/research/{session_id}/{rest}")
        body = reply.json()
        assert (reply.status_code, body["code"], body["session_status"]) == (409, "NotReady", "waiting"), rest
        assert body["retryable"]
    await client.post(f"/v1/research/{session_id}/cancel")
    body = (await client.get(f"/v1/research/{session_id}/report")).json()
    assert (body["code"], body["session_status"], body["retryable"]) == ("NoReport", "cancelled", False)


async def test_a_refusal_is_no_report_and_says_why(tmp_path: Path) -> None:
    world = World(tmp_path, pages={})
    async with client_of(create_app(parts_of(world, service=MANY))) as client:
        session_id = await finished(client, world)
        reply = await client.get(f"/v1/research/{session_id}/report.md")
        assert reply.status_code == 409
        assert reply.json()["session_status"] == "insufficient_evidence"
        assert reply.json()["reason"]
        view = (await client.get(f"/v1/research/{session_id}")).json()
        assert view["report"]["verdict"] == reply.json()["reason"]


def test_a_report_that_a_budget_stopped_is_one_where_it_says_anything() -> None:
    stopped = build_report(inputs(status=ReportStatus.BUDGET_STOPPED))
    assert not refuses(stopped)
    assert refuses(stopped.model_copy(update={"sections": (), "summary": ()}))
    assert refuses(stopped.model_copy(update={"status": ReportStatus.INSUFFICIENT_EVIDENCE}))


async def test_a_passage_is_shown_where_it_stands(client: httpx.AsyncClient, world: World) -> None:
    report = build_report(inputs())
    session_id = await kept(world, report)
    cited = {c for s in report.sentences() for c in s.citations}
    for evidence in report.evidence:
        reply = await client.get(f"/v1/research/{session_id}/evidence/{evidence.id}")
        body = reply.json()
        assert reply.status_code == 200
        text = world.snapshots.text(evidence.source)
        assert body["before"] + body["quote"] + body["after"] in text
        assert body["quote"] == text[body["evidence"]["start"] : body["evidence"]["end"]]
        assert (len(body["before"]), len(body["after"])) <= (400, 400)
        resting = [s["text"] for s in body["sentences"]]
        assert resting == [s.text for s in report.sentences() if evidence.id in s.citations]
        assert bool(resting) == (evidence.id in cited)
        assert body["source"]["id"] == evidence.source
    assert (await client.get(f"/v1/research/{session_id}/evidence/e0000000000")).status_code == 404


async def test_a_source_is_read_as_it_was_read_and_only_one_of_the_session(
    client: httpx.AsyncClient, world: World
) -> None:
    session_id = await kept(world, build_report(inputs()))
    reply = await client.get(f"/v1/research/{session_id}/sources/{E2.source}")
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert reply.text[E2.start : E2.end] == E2.quote
    other = world.snapshots.put(Document(title="Another session's", text="a secret", parts=()))
    for name in (other, "a" * 64, "..%2Fmarg.db", "x"):
        assert (await client.get(f"/v1/research/{session_id}/sources/{name}")).status_code == 404


async def test_figures_are_there_while_it_runs_and_after(client: httpx.AsyncClient, world: World) -> None:
    waiting = await finished(client, world, approve_plan=True)
    during = (await client.get(f"/v1/research/{waiting}/metrics")).json()
    assert (during["status"], during["searches"]) == ("waiting", 1)
    done = await finished(client, world)
    after = (await client.get(f"/v1/research/{done}/metrics")).json()
    assert after["status"] == (await client.get(f"/v1/research/{done}")).json()["status"]
    assert after["sources"] > 0
    assert set(after["stages"]) >= {"planner", "researcher", "critic"}


async def test_charts_are_drawn_by_id_or_number(client: httpx.AsyncClient, world: World) -> None:
    from marg_ray.report.model import ChartSeries, ReportChart

    series = (ChartSeries(name="MW", values=(240.0, 254.0)),)
    chart = ReportChart(
        id="c1", section="s1", kind="bar", title="Power", x="Plant", y="MW", labels=("Rance", "Sihwa"), series=series
    )
    session_id = await kept(world, build_report(inputs()).model_copy(update={"charts": (chart,)}))
    for name in ("c1", "1"):
        reply = await client.get(f"/v1/research/{session_id}/charts/{name}.svg")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/svg+xml")
        assert reply.text.startswith("<svg")
    assert (await client.get(f"/v1/research/{session_id}/charts/2.svg")).status_code == 404
