"""Reports in every format, and the passages behind them."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter()
