"""A key sent wherever it can be sent is found in no log line, answer, file or row."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from marg_ray.api.app import create_app
from marg_ray.api.keys import new_key
from tests.flow import World
from tests.served import service_of

LIMIT_S = 60


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
async def address(world: World) -> AsyncIterator[str]:
    """Where the service listens, with every log line there can be."""
    app = create_app(service_of(world, service={"per_minute": 1000}))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, log_level="debug", access_log=True))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    await serving


def requests(key: str) -> list[dict[str, Any]]:
    """Requests with a key in every place there is."""
    question, escaped = {"question": "What is a tide?"}, key.replace("_", "%5F")
    research = {"method": "POST", "url": "/v1/research"}
    headers = ("Authorization", "X-API-Key", "Cookie", "User-Agent", "Referer", "X-Request-Id", "Idempotency-Key")
    more = ("Last-Event-ID", "Content-Type", "Accept", "Origin", "If-None-Match", "Mcp-Session-Id", "Range")
    return [
        *({"method": "GET", "url": "/v1/research", "headers": {name: key}} for name in (*headers, *more)),
        {"method": "GET", "url": "/v1/chat", "headers": {"Authorization": f"Basic {key}"}},
        {**research, "json": question, "headers": {"Authorization": f"Bearer {key}", "Idempotency-Key": key}},
        *({"method": "GET", "url": f"/v1/research?{name}={key}"} for name in ("api_key", "limit", "status", "token")),
        *({"method": "GET", "url": f"{path}{key}"} for path in ("/", "/v1/", "/v1/research/", "/assets/", "/runs/")),
        {"method": "GET", "url": f"/v1/research/{escaped}/events?after={escaped}"},
        {"method": "GET", "url": f"/v1/research/{key}/report.{key}"},
        {"method": "PATCH", "url": "/v1/research", "content": key},
        {**research, "json": {"question": key}},
        {**research, "json": {"question": f"What is {key} for?"}},
        {**research, "json": {**question, key: 1}},
        {**research, "json": {**question, "depth": key}},
        {**research, "json": {**question, "limits": {"tokens": key}}},
        {**research, "json": [key]},
        {**research, "content": f'{{"question": "{key}'},
        {**research, "json": {"question": f"{key[:-1]}?"}},  # no key any more, but nearly
        {**research, "json": {"question": key.upper()}},
        {"method": "POST", "url": "/v1/chat/completions", "json": {"model": key, "messages": [{"role": key}]}},
        {"method": "POST", "url": "/v1/chat/completions", "json": {"messages": [{"role": "user", "content": key}]}},
        {"method": "POST", "url": "/mcp", "json": {"jsonrpc": "2.0", "id": key, "method": key, "params": {key: key}}},
    ]


async def test_a_key_is_found_nowhere(world: World, address: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good, row = new_key("ann")
    revoked, gone = new_key("ann")
    unknown, _ = new_key("ann")
    for key in (row, gone):
        await world.store.put_api_key(key)
    await world.store.revoke_api_key(gone.id)
    answers: list[str] = []
    async with asyncio.timeout(LIMIT_S), httpx.AsyncClient(base_url=address, timeout=LIMIT_S) as http:
        for key in (good, revoked, unknown):
            for request in requests(key):
                answer = await http.request(**request)
                assert answer.status_code < 500, request
                answers.append(f"{answer.status_code} {answer.headers} {answer.text}")
        for started in await world.store.sessions():
            await world.coordinator.ended(started.id, LIMIT_S)
    written = {
        "the answers": "\n".join(answers),
        "the log": caplog.text,
        "the log's records": "\n".join(str(record.__dict__) for record in caplog.records),
        "the store": str({name: str(value) for name, value in vars(world.store).items()}),
        "the files": "\n".join(
            path.read_bytes().decode("latin-1") for path in world.folder.rglob("*") if path.is_file()
        ),
    }
    assert "/v1/research" in written["the log"]
    assert "What is a tide?" in written["the store"]
    assert row.digest in written["the store"]
    for key in (good, revoked, unknown):
        secret = key.rsplit("_", 1)[1]
        for place, text in written.items():
            assert secret[:20] not in text.lower(), place
