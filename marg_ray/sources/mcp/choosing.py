"""Which of a server's tools searches, and which of its parameters takes the query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import Tool

QUERY = ("query", "q", "question", "search", "search_query", "text", "input", "prompt", "keywords", "term", "terms")
COUNT = ("limit", "max_results", "num_results", "top_k", "k", "count", "n", "size")
_SEARCHES = re.compile(r"search|find|query|look_?up|retrieve|ask|(^|_)rag(_|$)", re.I)
_NAMED = 12  # tools that are named where none fits


class NoTool(ValueError):
    """No tool of the server can be asked; says why, and what to set."""


@dataclass(frozen=True)
class Way:
    """How to put a query: the tool, its parameter for the query, and the one for the number of results, if any."""

    tool: str
    query: str
    count: str = ""
    most: int | None = None  # results that it may be asked for

    def arguments(self, query: str, limit: int) -> dict[str, Any]:
        number = min(limit, self.most) if self.most is not None else limit
        return {self.query: query, **({self.count: number} if self.count else {})}


def way_of(tools: Sequence[Tool], wanted: str = "") -> Way:
    """The tool called `wanted`; without a name the first whose name says that it searches, then one that only reads.

    A tool that nobody named is asked only where one text is all that it needs, and never one that says it destroys:
    what a query says must not become an order.

    Raises:
        NoTool: there is none.
    """
    if wanted:
        named = next((t for t in tools if t.name == wanted), None)
        if named is None:
            raise NoTool(f"it has no tool {wanted!r}: {_names(tools)}")
        query = _query_of(named.input_schema, named=True)
        if not query:
            raise NoTool(f"its tool {wanted!r} takes no text alone")
        return _way(named, query)
    open_to = [(t, q) for t in tools if not _destroys(t) and (q := _query_of(t.input_schema))]
    for tool, query in open_to:
        if _SEARCHES.search(tool.name):
            return _way(tool, query)
    for tool, query in open_to:
        if tool.annotations is not None and tool.annotations.read_only_hint:
            return _way(tool, query)
    raise NoTool(f"none of its tools searches by one text: {_names(tools)}; name one with `tool`")


def _way(tool: Tool, query: str) -> Way:
    properties = _properties(tool.input_schema)
    for name in COUNT:
        kind = properties.get(name)
        if isinstance(kind, Mapping) and "integer" in _types(kind):
            most = kind.get("maximum")
            return Way(tool.name, query, name, most if isinstance(most, int) and most > 0 else None)
    return Way(tool.name, query)


def _query_of(schema: Mapping[str, Any], *, named: bool = False) -> str:
    """The parameter for the query; "" where the tool needs something besides, or takes no text."""
    properties = _properties(schema)
    required = [r for r in schema.get("required") or () if isinstance(r, str)]
    texts = [n for n, kind in properties.items() if isinstance(kind, Mapping) and "string" in _types(kind)]
    if len(required) > 1 or (required and required[0] not in texts):
        return ""
    if required:
        return required[0]
    usual = next((n for n in QUERY if n in texts), "")
    return usual or (texts[0] if len(texts) == 1 and named else "")


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _types(kind: Mapping[str, Any]) -> set[str]:
    """The JSON types that a parameter's schema allows."""
    options = [kind, *(o for o in kind.get("anyOf") or kind.get("oneOf") or () if isinstance(o, Mapping))]
    found: set[str] = set()
    for option in options:
        named = option.get("type")
        found |= {named} if isinstance(named, str) else {n for n in named or () if isinstance(n, str)}
    return found


def _destroys(tool: Tool) -> bool:
    hints = tool.annotations
    return hints is not None and bool(hints.destructive_hint) and not hints.read_only_hint


def _names(tools: Sequence[Tool]) -> str:
    names = [t.name for t in tools[:_NAMED]]
    return ", ".join([*names, "..."] if len(tools) > _NAMED else names) or "it has none at all"
