"""Server-sent events on the wire (WHATWG HTML, chapter 9.2): frames that no text can break."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
BEAT = b":\n\n"  # a comment: a sign of life that no client takes for an event
_BREAKS = ("\x85", "\u2028", "\u2029")  # lines end here for many a client's library


def frame(event: str, data: object, number: int | None = None) -> bytes:
    """An event with its data (JSON values) on one line; `number` becomes its id, which a client resumes after.

    JSON escapes line feeds and carriage returns. Other breaks are escaped here, half a surrogate pair becomes "?".
    """
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {event}\ndata: {_line(data)}\n\n".encode("utf-8", "replace")


def retry(seconds: float) -> bytes:
    """Tells the client how long to wait before it connects again."""
    return b"retry: %d\n\n" % round(1000 * seconds)


def _line(data: object) -> str:
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:  # no JSON for infinity
        text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"))
    for found in _BREAKS:
        text = text.replace(found, f"\\u{ord(found):04x}")
    return text


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
