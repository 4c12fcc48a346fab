"""Markdown as models write it, cut into raw blocks. Knows layout only: no citations, no sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from marg_ray.grounding.citations import mask, unmask
from marg_ray.text import clean_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

RawKind = Literal["paragraph", "bullet", "ordered", "quote", "heading", "table", "code", "formula"]


@dataclass(frozen=True, slots=True)
class RawBlock:
    """A block with its inline Markdown as written. A table has its lines in `rows`, the header first."""

    kind: RawKind
    source: str = ""
    level: int = 0  # as written: of a heading 1 to 6, of a list item its depth from 0
    language: str = ""
    rows: tuple[str, ...] = ()


def raw_blocks(markdown: str) -> list[RawBlock]:
    """The blocks of a model's answer in order. Comments, front matter and an outer fence are gone."""
    source = _prepared(markdown)
    lines = source.split("\n")
    return _Walk(lines).read(_parser().parse(source))


# ---- before parsing


_FRONT_MATTER = re.compile(
    r"\A\s*---[ \t]*\n(?:[\w-]+[ \t]*:.*\n|[ \t]+.*\n|- .*\n){1,40}?(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_OUTER_FENCE = re.compile(r"\A\s*(`{3,})(?:markdown|md)[ \t]*\n(.*?)\n?\1[ \t]*\s*\Z", re.DOTALL)
_FENCE = re.compile(r"^[ \t]{0,12}(?:[-*+>][ \t]+)*(`{3,}|~{3,})([^\n]*)$")
_COMMENT = re.compile(r"(`+[^`\n]+`+)|<!--.*?-->|<!--[^\n]*", re.DOTALL)
_ACTIVE = re.compile(r"<(script|style|iframe|object)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_MATH_BLOCK = re.compile(
    r"^[ \t]*(?:\$\$(?!\$)(.+?)\$\$|\\\[(?![\d\s,;-]+\\\])(.+?)\\\])[ \t]*[.,;]?[ \t]*$", re.DOTALL | re.MULTILINE
)
_MATH = "marg-formula"


def _prepared(markdown: str) -> str:
    text = clean_text(markdown)
    whole = _OUTER_FENCE.match(text)
    if whole and not re.search(rf"^{whole[1]}", whole[2], re.MULTILINE):
        text = whole[2]
    text = _FRONT_MATTER.sub("", text)
    return _outside_fences(text, _without_markup)


def _without_markup(text: str) -> str:
    text = _COMMENT.sub(lambda m: m[1] or "", text)
    text = _ACTIVE.sub("", text)
    return _MATH_BLOCK.sub(lambda m: f"\n~~~~{_MATH}\n{(m[1] or m[2]).strip()}\n~~~~\n", text)


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    out: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence and found and not (found[1][0] == "`" and "`" in found[2]):
            out.append(change("\n".join(prose)))
            prose, fence = [], found[1]
            out.append(line)
        elif fence:
            out.append(line)
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
        else:
            prose.append(line)
    out.append(change("\n".join(prose)))
    return "\n".join(out)


# ---- tokens to blocks


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Without the rule for link definitions "[1]: https://..." stays visible, so that it can be judged.
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("reference")


class _Walk:
    """Turns a token stream into blocks; keeps track of the lists and quotations it is in."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.blocks: list[RawBlock] = []
        self.lists: list[RawKind] = []
        self.quotes = 0
        self.items: list[int] = []  # for each open list item the place of its latest block, -1 before it has one

    def read(self, tokens: Sequence[Token]) -> list[RawBlock]:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            match token.type:
                case "bullet_list_open" | "ordered_list_open":
                    self.lists.append("bullet" if token.type[0] == "b" else "ordered")
                case "bullet_list_close" | "ordered_list_close":
                    self.lists.pop()
                case "list_item_open":
                    self.items.append(-1)
                case "list_item_close":
                    self.items.pop()
                case "blockquote_open" | "blockquote_close":
                    self.quotes += token.nesting
                case "heading_open":
                    self._heading(token, tokens[at + 1].content)
                case "paragraph_open":
                    self._prose(tokens[at + 1].content)
                case "fence" | "code_block":
                    self._code(token)
                case "table_open":
                    self._table(token)
                    while tokens[at].type != "table_close":
                        at += 1
            at += 1
        return self.blocks

    def _heading(self, token: Token, source: str) -> None:
        underlined = token.markup in ("-", "=")
        if self.lists or self.quotes or (underlined and (len(source) > 120 or re.search(r"[.!?:。][*_]*\Z", source))):
            self._prose(source)
        elif source:
            self.blocks.append(RawBlock("heading", source, int(token.tag[1])))

    def _prose(self, source: str) -> None:
        if not source.strip():
            return
        if not self.lists:
            self.blocks.append(RawBlock("quote" if self.quotes else "paragraph", source))
            return
        if self.items[-1] >= 0 and self.items[-1] == len(self.blocks) - 1:
            last = self.blocks[-1]
            self.blocks[-1] = replace(last, source=f"{last.source}\n{source}")
            return
        self.items[-1] = len(self.blocks)
        self.blocks.append(RawBlock(self.lists[-1], source, len(self.lists) - 1))

    def _code(self, token: Token) -> None:
        language = re.sub(r"[^\w+#.-].*", "", (token.info or "").strip(), flags=re.DOTALL)
        text = token.content.rstrip("\n")
        if language == _MATH:
            self.blocks.append(RawBlock("formula", text))
        elif text.strip():
            self.blocks.append(RawBlock("code", text, language=language))

    def _table(self, token: Token) -> None:
        start, end = token.map or [0, 0]
        rows = [re.sub(r"^[\s>]*(?:[-*+]\s+(?=\|))?", "", line).strip() for line in self.lines[start:end]]
        self.blocks.append(RawBlock("table", rows=(rows[0], *(r for r in rows[2:] if r))))


# ---- table rows


def row_cells(row: str) -> list[str]:
    """The cells of a table row as written. A bar in code or in a link separates nothing, nor does an escaped one."""
    masked, spans = mask(row.strip())
    masked = masked.removeprefix("|")
    cells = re.split(r"(?<!\\)\|", masked)
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [unmask(cell.strip(), spans) for cell in cells]


def join_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table_rule(header: str) -> str:
    """The line under a header: as many columns as a Markdown reader counts, which looks into code."""
    return "|" + "---|" * max(1, len(re.findall(r"(?<!\\)\|", header.strip().strip("|"))) + 1)
