"""Plain text: paragraphs, list items, headings where the layout shows them, indented or aligned blocks as code."""

from __future__ import annotations

import re

from marg_ray.sources.parse.blocks import Block, Parsed
from marg_ray.text import clean_text

_UNDERLINE = re.compile(r"^([=\-~^\"'*+#.`_:])\1{2,}\s*$")
_LEVELS = "=-~^\"'*+#.`_:"
_NUMBERED = re.compile(
    r"^((?:\d{1,3}\.)+\d{0,3}|\d{1,3}|[A-Z]\.(?:\d{1,3}\.?)*|Chapter \d+[.:]?|Appendix [A-Z][.:]?)\s+(\S.{0,90})$"
)
_BULLET = re.compile(r"^(\s*)(?:[-*+•‣◦·–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(\S.*)$")
_SENTENCE_END = re.compile(r"[.!?:;,]$")
_RULER = re.compile(r"^\s*[-=_*~#+.]{3,}\s*$")


def read_plain(raw: str) -> Parsed:
    """Blocks of a text file; its first heading is its title."""
    text = clean_text(raw).expandtabs(8)
    blocks: list[Block] = []
    chunks = _chunks(text)
    for i, chunk in enumerate(chunks):
        if heading := _heading(chunk, blocks, chunks[i + 1] if i + 1 < len(chunks) else []):
            block, rest = heading
            blocks.append(block)
            chunk = rest
        if chunk:
            blocks.extend(_body(chunk))
    title = next((b.text for b in blocks[:5] if b.kind == "heading"), "")
    return Parsed(blocks, title=title)


def _chunks(text: str) -> list[list[str]]:
    """Runs of lines that no blank line parts."""
    chunks: list[list[str]] = []
    current: list[str] = []
    for line in text.split("\n"):
        if line.strip():
            current.append(line.rstrip())
        elif current:
            chunks.append(current)
            current = []
    return [*chunks, current] if current else chunks


def _heading(chunk: list[str], before: list[Block], after: list[str]) -> tuple[Block, list[str]] | None:
    """A heading at a chunk's start, and what follows it in the chunk."""
    if len(chunk) >= 3 and _UNDERLINE.match(chunk[0]) and _same_rule(chunk[0], chunk[2]):
        return Block("heading", chunk[1].strip(), level=1), chunk[3:]
    if len(chunk) >= 2 and (rule := _UNDERLINE.match(chunk[1])) and _fits(chunk[0], chunk[1]):
        return Block(
            "heading", chunk[0].strip(), level=_LEVELS.index(rule[1]) // 1 + 1 if rule[1] in "=-~^" else 4
        ), chunk[2:]
    line = chunk[0].strip()
    if len(chunk) > 1 or not line or len(line) > 100 or chunk[0][:1].isspace():
        return None
    if (m := _NUMBERED.match(line)) and not _SENTENCE_END.search(line) and m[2][0].isupper():
        return Block("heading", line, level=max(1, len([n for n in m[1].split(".") if n]))), []
    if line.isupper() and len(line) > 3 and any(c.isalpha() for c in line) and len(line.split()) <= 10:
        return Block("heading", line, level=1), []
    if not before and after and len(line) <= 80 and not _SENTENCE_END.search(line) and not _BULLET.match(line):
        return Block("heading", line, level=1), []
    return None


def _same_rule(a: str, b: str) -> bool:
    return bool(_UNDERLINE.match(b)) and a.strip()[0] == b.strip()[0]


def _fits(title: str, rule: str) -> bool:
    """An underline is about as long as what it underlines; a longer one is a ruler."""
    width = len(title.strip())
    return len(title) == len(title.lstrip()) + 0 and 3 <= width <= 120 and abs(len(rule.strip()) - width) <= 4


def _body(chunk: list[str]) -> list[Block]:
    lines = [line for line in chunk if not _RULER.match(line)]
    if not lines:
        return []
    if _is_grid(lines):
        return [Block("code", "\n".join(lines))]
    blocks: list[Block] = []
    current: list[str] = []
    kind, level = "paragraph", 0

    def flush() -> None:
        if current:
            text = _joined(current)
            blocks.append(Block("list_item", text, level=level) if kind == "list_item" else Block("paragraph", text))
            current.clear()

    for line in lines:
        bullet = _BULLET.match(line)
        if bullet and (kind == "list_item" or not current or _starts_list(lines)):
            flush()
            kind, level = "list_item", min(len(bullet[1]) // 2, 6)
            current.append(bullet[2])
        else:
            current.append(line.strip())
    flush()
    return blocks


def _starts_list(lines: list[str]) -> bool:
    return sum(1 for line in lines if _BULLET.match(line)) >= 2


def _is_grid(lines: list[str]) -> bool:
    """Whether the line breaks carry meaning: columns set with spaces, or code."""
    if len(lines) < 2:
        return False
    gaps = sum(1 for line in lines if re.search(r"\S {3,}\S", line))
    codish = sum(1 for line in lines if re.search(r"[{};]$|^\s*[$#>] \S|^\s+\S*[=({]", line))
    return gaps * 2 >= len(lines) or codish * 2 >= len(lines)


def _joined(lines: list[str]) -> str:
    """Lines as one paragraph, with words cut at a line's end put together again."""
    text = lines[0]
    for line in lines[1:]:
        if re.search(r"[a-zà-ÿ]-$", text) and re.match(r"[a-zà-ÿ]", line):
            text = text[:-1] + line if not _is_compound(text) else text + line
        elif text and line and _is_wide(text[-1]) and _is_wide(line[0]):
            text += line
        else:
            text += " " + line
    return text


def _is_compound(text: str) -> bool:
    """A hyphen that belongs to the word: what stands before it already has one ("state-of-the-")."""
    return "-" in text.rsplit(" ", 1)[-1][:-1]


def _is_wide(c: str) -> bool:
    """East Asian letters, between which a line break is no space."""
    return "\u2e80" <= c <= "\u9fff" or "\uf900" <= c <= "\ufaff" or "\uff00" <= c <= "\uffef"
