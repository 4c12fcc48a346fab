"""The failure cases speak of title, steps and query; a plan of ours has title, sections and queries."""

from __future__ import annotations

import json
import re
from typing import Any

_QUERY = re.compile(r"""(["'“])query(["'”])\s*:\s*("[^"]*"|'[^']*'|“[^”]*”)""")
_STEPS = re.compile(r"""(["'“])steps(["'”])""")


def as_plan(text: str) -> str:
    return _QUERY.sub(r"\1queries\2: [\3]", _STEPS.sub(r"\1sections\2", text))


def as_plan_body(body: dict[str, Any]) -> dict[str, Any]:
    """The same for the content of a whole chat completion, its reasoning fields included."""
    copy = json.loads(json.dumps(body))
    for choice in copy.get("choices") or []:
        message = choice.get("message") or {}
        for key, value in message.items():
            if isinstance(value, str):
                message[key] = as_plan(value)
    return dict(copy)
