"""REP-02 over HTTP: a report under any title is a download with a name that every client can take."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest

from marg_ray.api.app import create_app
from marg_ray.messages import ReportReady
from marg_ray.report.assemble import build_report
from marg_ray.report.model import to_json
from marg_ray.report.writers import MEDIA_TYPES
from tests.flow import World
from tests.report_sample import inputs
from tests.served import service_of
from tests.shared import case_file
from tests.unit.test_report_files import is_good

REPORT = build_report(inputs())


async def keep(world: World, session: str, title: str) -> None:
    artefact = world.artefacts.put(to_json(REPORT.model_copy(update={"title": title})))
    await world.store.create(session, owner="local", question=REPORT.question)
    epoch = await world.store.take_over(session)
    ready = ReportReady(task_id="t", artefact=artefact, status=REPORT.status, words=1)
    await world.store.append(session, ready, expected_seq=0, epoch=epoch, status=REPORT.status)


def client(world: World) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=create_app(service_of(world)), client=("127.0.0.1", 50000))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def test_rep02_every_title_is_a_download_with_a_safe_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    titles: list[str] = json.loads(case_file("REP-02", "titles.json").read_text("utf-8"))
    async with client(world) as http:
        for number, title in enumerate(titles):
            await keep(world, f"S{number}", title)
            answer = await http.get(f"/v1/research/S{number}/report.md", params={"download": "1"})
            assert answer.status_code == 200, answer.text
            header = answer.headers["Content-Disposition"]
            match = re.fullmatch(r"attachment; filename=\"([ -~]+)\"; filename\*=UTF-8''([!-~]+)", header)
            assert match, header
            assert is_good(unquote(match[2]))
            assert match[1].endswith(".md")
            assert match[2].endswith(".md")


@pytest.mark.parametrize("format", list(MEDIA_TYPES))
async def test_each_format_is_served_as_what_it_is(format: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    await keep(world, "S", "潮汐 🌊 report")
    async with client(world) as http:
        answer = await http.get(f"/v1/research/S/report.{format}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == MEDIA_TYPES[format]
    assert len(answer.content) > 500
