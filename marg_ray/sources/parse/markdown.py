"""Markdown (CommonMark with tables, and front matter) to blocks, by markdown-it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from marg_ray.sources.parse.blocks import Block, Parsed, table_rows
from marg_ray.sources.parse.plain import read_plain
from marg_ray.text import clean_text

if TYPE_CHECKING:
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FIELD = re.compile(r"(?m)^(title|date|published|lang|language)\s*:\s*[\"']?(.*?)[\"']?\s*$", re.I)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>|<!--[^<>]{0,2000}-->")
# Marks without end cost a Markdown parser time that grows with their square.
_HOSTILE = re.compile(r"[\[\]*_`~!<(]{500}|(?:\]\(|\[a\]|[>*_-] ?){1500}")
MAX_NESTING = 60


def read_markdown(raw: str) -> Parsed:
    from markdown_it import MarkdownIt

    text = clean_text(raw)
    if _HOSTILE.search(text):
        return read_plain(text)
    fields: dict[str, str] = {}
    if front := _FRONT_MATTER.match(text):
        fields = {m[1].lower(): m[2] for m in _FIELD.finditer(front[1])}
        text = text[front.end() :]
    tokens = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable("table").enable("strikethrough").parse(text)
    blocks = _blocks(tokens)
    heading = next((b for b in blocks if b.kind == "heading" and b.level == 1), None)
    date = _DATE.search(fields.get("date", "") or fields.get("published", ""))
    return Parsed(
        blocks,
        title=fields.get("title", "") or (heading.text if heading else ""),
        language=(fields.get("lang") or fields.get("language") or "")[:2].lower(),
        published=date[0] if date else "",
    )


def _blocks(tokens: Sequence[Token]) -> list[Block]:
    blocks: list[Block] = []
    rows: list[list[str]] = []
    lists = quotes = heading = 0
    for token in tokens:
        match token.type:
            case "heading_open":
                heading = int(token.tag[1:])
            case "heading_close":
                heading = 0
            case "bullet_list_open" | "ordered_list_open":
                lists += 1
            case "bullet_list_close" | "ordered_list_close":
                lists -= 1
            case "blockquote_open":
                quotes += 1
            case "blockquote_close":
                quotes -= 1
            case "table_open":
                rows = []
            case "tr_open":
                rows.append([])
            case "table_close":
                blocks.extend(table_rows(rows, header=True))
                rows = []
            case "fence" | "code_block":
                blocks.append(Block("code", token.content))
            case "html_block":
                blocks.append(Block("paragraph", _TAG.sub(" ", token.content)))
            case "inline":
                if rows:
                    rows[-1].append(_inline(token))
                elif heading:
                    blocks.append(Block("heading", _inline(token), level=heading))
                elif lists:
                    blocks.append(Block("list_item", _inline(token), level=lists - 1))
                else:
                    blocks.append(Block("quote" if quotes else "paragraph", _inline(token)))
    return blocks


def _inline(token: Token) -> str:
    """What a reader sees: no marks, a picture's description for the picture."""
    out: list[str] = []
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            out.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif child.type == "image":
            out.append(child.content)
    return "".join(out)
