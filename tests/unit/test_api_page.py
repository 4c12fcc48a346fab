"""The page's files as they are served: kept, checked again, packed, and nothing else of the disk."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from marg_ray.api.routes import page
from marg_ray.api.routes.page import POLICY, site


@pytest.fixture
def client() -> httpx.AsyncClient:
    app = FastAPI()
    app.include_router(page.router)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page.test")


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/20261130-120000-ab12cd/report", "/library"])
async def test_every_address_is_the_page(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert (await client.head(path)).content == b""


async def test_all_that_it_names_is_there(client: httpx.AsyncClient) -> None:
    named = re.findall(r'"(/assets/[^"]+)"', (await client.get("/")).text)
    assert len(named) > 10
    for path in named:
        answer = await client.get(path)
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]


async def test_what_is_known_is_not_sent_again(client: httpx.AsyncClient) -> None:
    for path in ("/", "/assets/js/main.js"):
        first = await client.get(path)
        assert "immutable" not in first.headers["cache-control"]
        again = await client.get(path, headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]


async def test_it_is_packed_for_those_who_can_unpack(client: httpx.AsyncClient) -> None:
    plain = await client.get("/assets/css/base.css", headers={"Accept-Encoding": "identity"})
    packed = await client.get("/assets/css/base.css", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content
    assert len(gzip.compress(plain.content)) < len(plain.content) / 2


@pytest.mark.parametrize(
    "path",
    ["/assets/../api/app.py", "/assets/%2e%2e/api/app.py", "/assets/js/none.js", "/assets/index.html", "/assets/"],
)
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


async def test_an_older_version_gets_the_file_of_this_one(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/assets/{'0' * 16}/js/main.js")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"


def test_the_version_follows_from_the_files(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<link href="/assets/a.css">')
    (tmp_path / "a.css").write_text("a {}")
    first = site(tmp_path).version
    site.cache_clear()
    (tmp_path / "a.css").write_text("b {}")
    assert site(tmp_path).version != first
    assert site(tmp_path).version.encode() in site(tmp_path).files["index.html"].body


def test_no_script_makes_markup_out_of_text() -> None:
    folder = Path(page.__file__).parents[2] / "web"
    scripts = list((folder / "js").rglob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            script
        )
    assert not re.search(
        r"<style|\sstyle=|<script(?! type=\"module\" src=)|\son\w+=", (folder / "index.html").read_text()
    )
