"""Questions about finished reports, and what is remembered of conversations."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
