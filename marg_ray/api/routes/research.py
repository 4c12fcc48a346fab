"""Sessions: ask, look, decide, steer, cancel."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
