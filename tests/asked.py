"""Asking the API in process: a client over an application, and a session followed to where it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
from fastapi import FastAPI

from marg_ray.actors.coordinator import Coordinator
from tests.flow import World
from tests.served import service_of as parts_of

LIMIT_S = 60
QUESTION = "How much power do tidal stations produce?"
OVERVIEW = {"question": QUESTION, "depth": "overview"}
MANY = {"per_minute": 1_000_000}  # requests, where a test is no judge of their number


def client_of(app: FastAPI, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """A caller on this machine."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", headers=headers)


async def settled(coordinator: Coordinator, session_id: str) -> str:
    """Wait until a session has nothing under way any more; its status."""
    async with asyncio.timeout(LIMIT_S):
        while (status := await coordinator.ended(session_id)) == "running":
            pass
    return status


async def finished(client: httpx.AsyncClient, world: World, **body: Any) -> str:
    """Ask, and wait for the end; the session's id."""
    reply = await client.post("/v1/research", json={**OVERVIEW, **body})
    assert reply.status_code == 202, reply.text
    session_id = str(reply.json()["id"])
    await settled(world.coordinator, session_id)
    return session_id


__all__ = ["LIMIT_S", "MANY", "OVERVIEW", "QUESTION", "client_of", "finished", "parts_of", "settled"]
