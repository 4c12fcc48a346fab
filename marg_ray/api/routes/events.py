"""A session's events as they come (SSE)."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
