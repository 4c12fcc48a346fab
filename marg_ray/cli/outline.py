"""A plan's outline as text: options, an editor's page, and back."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from marg_ray.records import OutlineEntry, Plan, Section

_HEAD = """# The plan of: {title}
# A line is a section's title; the indented lines below it are what is asked for it.
# Lines that begin with # are left out. Save an empty page to change nothing.
"""


def outline_of(sections: Iterable[str]) -> tuple[OutlineEntry, ...]:
    """From options: `Title`, or `Title: query; query`."""
    from marg_ray.records import OutlineEntry

    entries = []
    for text in sections:
        title, _, queries = text.partition(":")
        if not title.strip():
            raise UsageError(f"the section {text!r} has no title", 'write --section "Title: query; query"')
        asked = tuple(q.strip() for q in queries.split(";") if q.strip())
        entries.append(OutlineEntry(title=title.strip(), queries=asked))
    return tuple(entries)


def to_text(plan: Plan) -> str:
    """The plan as a page for an editor."""
    lines = [_HEAD.format(title=" ".join(plan.title.split()))]
    for section in plan.sections:
        lines.append(" ".join(section.title.split()))
        lines += [f"    {' '.join(query.split())}" for query in section.queries]
    return "\n".join(lines) + "\n"


def from_text(text: str) -> tuple[OutlineEntry, ...]:
    """The outline on an editor's page; empty where nothing is left.

    Raises:
        UsageError: it begins with an indented line.
    """
    from marg_ray.records import OutlineEntry

    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            found.append((line.strip(), []))
        elif found:
            found[-1][1].append(line.strip())
        else:
            raise UsageError("the first line is indented: it belongs to no section", "begin with a section's title")
    return tuple(OutlineEntry(title=title, queries=tuple(queries)) for title, queries in found)


async def edited(plan: Plan) -> tuple[OutlineEntry, ...]:
    """The plan's outline after its owner had it in an editor; empty where nothing was changed.

    Raises:
        UsageError: the editor did not start or failed, or what was saved is no outline.
    """
    outline = from_text(await _in_editor(to_text(plan)))
    return () if same(outline, plan.sections) else outline


def same(outline: Sequence[OutlineEntry], sections: Sequence[Section]) -> bool:
    def plain(entries: Sequence[OutlineEntry] | Sequence[Section]) -> list[list[str]]:
        return [[" ".join(t.split()) for t in (e.title, *e.queries)] for e in entries]

    return plain(outline) == plain(sections)


async def _in_editor(text: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    page = await asyncio.to_thread(_page, text)
    ours = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the editor's while it is open
    try:
        process = await asyncio.create_subprocess_exec(*shlex.split(editor), str(page))
        code = await process.wait()
        if code:
            raise UsageError(f"the editor {editor!r} ended with exit code {code}: nothing was changed")
        return await asyncio.to_thread(page.read_text, "utf-8", "replace")
    except (OSError, ValueError) as exc:
        raise UsageError(f"the editor {editor!r} did not start: {exc}", "set EDITOR, or use --section") from None
    finally:
        signal.signal(signal.SIGINT, ours)
        await asyncio.to_thread(page.unlink, True)


def _page(text: str) -> Path:
    handle, name = tempfile.mkstemp(prefix="marg-plan-", suffix=".txt")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    return Path(name)
