"""Servers of the Model Context Protocol as sources: each is asked for a query beside the web and the library.

`source` puts a query to one of them, over a connection that `connection` holds and `wire` bounds; `choosing` picks the
tool, `replies` reads what it answers.
"""

from __future__ import annotations

from marg_ray.sources.mcp.source import McpSource, build_mcp_sources

__all__ = ["McpSource", "build_mcp_sources"]
