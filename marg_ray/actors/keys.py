"""Idempotency keys, as they are kept: neither a key nor what came with it is stored as it was sent."""

from __future__ import annotations

import hashlib

from marg_ray.records import Request


def digests(key: str, request: Request) -> tuple[str, str]:
    """The digests of an idempotency key and of the request that came with it; empty without a key."""
    return (_digest(key), _digest(request.model_dump_json())) if key else ("", "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
