"""OpenAI-compatible: any chat client can ask for a report."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
