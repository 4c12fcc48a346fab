"""Plain text: paragraphs, list items, terms, headings and tables, where the layout shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marg_ray.sources.parse.blocks import Block, Parsed, table_rows
from marg_ray.text import clean_text

_RULE = re.compile(r"^([=\-~^\"'*+#.`_:])\1{2,}$")
_NUMBERED = re.compile(
    r"^(?:(?:Chapter|Appendix|Part|Section) )?((?:\d{1,3}|[A-Z])(?:\.\d{1,3}){0,5})[.:]?\s+(\S.{0,90})$"
)
_BULLET = re.compile(r"^(\s*)(?:[-*+•‣◦·–]|\(?\d{1,3}[.)]|\(?[a-z][.)])\s+(\S.*)$")
_SENTENCE_END = re.compile(r"[.!?:;,]$")
_RULER = re.compile(r"^\s*[-=_*~#+.]{3,}\s*$")
_GRID_RULE = re.compile(r"^\s*[|+][-=+|: ]*[-=]{2}[-=+|: ]*$")
_COMMAND = re.compile(r"^\s*\$ \S")
MAX_TITLE = 100


def read_plain(raw: str) -> Parsed:
    """Blocks of a text file; its first heading is its title."""
    text = clean_text(raw).expandtabs(8)
    chunks = _chunks(text)
    levels = _underline_levels(chunks)
    numbered = _numbers_headings(chunks)
    blocks: list[Block] = []
    for i, chunk in enumerate(chunks):
        heading, rest = _underlined(chunk, levels), chunk
        if heading is not None:
            rest = chunk[(_rule_of(chunk) or ("", 0))[1] :]
        elif len(chunk) == 1:
            following = chunks[i + 1] if i + 1 < len(chunks) else []
            heading = _standing(chunk[0], following, numbered=numbered, first=i == 0)
            rest = [] if heading else chunk
        if heading is not None:
            blocks.append(heading)
        if rest:
            blocks.extend(_body(rest))
    title = next((b.text for b in blocks[:8] if b.kind == "heading" and sum(map(str.isalpha, b.text)) > 3), "")
    return Parsed(blocks, title=title)


def _chunks(text: str) -> list[list[str]]:
    """Runs of lines that no blank line parts."""
    chunks: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            chunks[-1].append(line.rstrip())
        elif chunks[-1]:
            chunks.append([])
    return chunks if chunks[-1] else chunks[:-1]


# -- headings ------------------------------------------------------------------------------------------------


def _rule_of(chunk: Sequence[str]) -> tuple[str, int] | None:
    """The rule under (and perhaps over) a chunk's first line of text, and how many lines the heading takes."""
    if len(chunk) >= 3 and (over := _RULE.match(chunk[0].strip())) and _RULE.match(chunk[2].strip()):
        return over[1] * 2, 3
    if len(chunk) >= 2 and (under := _RULE.match(chunk[1].strip())):
        width, title = len(chunk[1].strip()), chunk[0].strip()
        if 3 <= len(title) <= 120 and abs(width - len(title)) <= 4 and not _RULE.match(title) and "|" not in title:
            return under[1], 2
    return None


def _underline_levels(chunks: Sequence[Sequence[str]]) -> dict[str, int]:
    """Rules to heading levels, in the order in which they are first used."""
    order = dict.fromkeys(rule[0] for chunk in chunks if (rule := _rule_of(chunk)))
    return {rule: min(i + 1, 6) for i, rule in enumerate(order)}


def _underlined(chunk: list[str], levels: dict[str, int]) -> Block | None:
    rule = _rule_of(chunk)
    if rule is None:
        return None
    return Block("heading", (chunk[1] if rule[1] == 3 else chunk[0]).strip(), level=levels[rule[0]])


def _numbers_headings(chunks: Sequence[Sequence[str]]) -> bool:
    """Whether lone lines such as "1.2. Scope" are this file's headings: there are several, and few are underlined."""
    alone = [chunk[0] for chunk in chunks if len(chunk) == 1 and not chunk[0][0].isspace()]
    dotted = sum(1 for line in alone if (m := _NUMBERED.match(line)) and ("." in m[1] or line.startswith("Chapter")))
    underlined = sum(1 for chunk in chunks if _rule_of(chunk))
    return underlined == 0 or (dotted >= 2 and underlined <= dotted // 2)


def _standing(line: str, following: Sequence[str], *, numbered: bool, first: bool) -> Block | None:
    """A heading that stands alone: numbered, in capitals, or the file's first line."""
    text = line.strip()
    letters = sum(map(str.isalpha, text))
    if len(text) > MAX_TITLE or _SENTENCE_END.search(text) or not following:
        return None
    if first and letters * 2 > len(text):
        return Block("heading", text, level=1)
    if not numbered or line[:1].isspace():
        return None
    if m := _NUMBERED.match(text):
        dotted = "." in m[1]
        # "1. Name" above "2. Name" is a list, whose items stand apart.
        after = _NUMBERED.match(following[0]) if len(following) == 1 else None
        listed = not dotted and after is not None and "." not in after[1]
        if not listed and (m[2][0].isupper() or (dotted and len(text) < 60)):
            return Block("heading", text, level=min(m[1].count(".") + 1, 6))
    if text.isupper() and letters > 3 and len(text.split()) <= 10:
        return Block("heading", text, level=1)
    return None


# -- everything else -----------------------------------------------------------------------------------------


def _body(chunk: list[str]) -> list[Block]:
    if _is_drawn_table(chunk):
        return _drawn_table(chunk)
    lines = [line for line in chunk if not _RULER.match(line)]
    if not lines:
        return []
    if _is_grid(lines) or (len(lines) == 1 and _COMMAND.match(lines[0])):
        return [Block("code", "\n".join(lines))]
    if term := _term(lines):
        return [Block("list_item", term), *(Block(b.kind, b.text, b.level, term=term) for b in _prose(lines[1:]))]
    return _prose(lines)


def _prose(lines: Sequence[str]) -> list[Block]:
    """Paragraphs and list items."""
    blocks: list[Block] = []
    current: list[str] = []
    level = -1  # of the current list item, -1 for a paragraph
    several = sum(1 for line in lines if _BULLET.match(line)) >= 2

    def flush() -> None:
        if current:
            text = _joined(current)
            blocks.append(Block("paragraph", text) if level < 0 else Block("list_item", text, level=level))
            current.clear()

    for line in lines:
        bullet = _BULLET.match(line)
        if bullet and (level >= 0 or not current or several):
            flush()
            level = min(len(bullet[1]) // 3, 6)
            current.append(bullet[2])
        else:
            current.append(line.strip())
    flush()
    return blocks


def _term(lines: Sequence[str]) -> str:
    """A short line above deeper lines that explain it, as a manual sets its terms."""
    if len(lines) < 2 or _BULLET.match(lines[0]):
        return ""
    indents = [len(line) - len(line.lstrip()) for line in lines]
    title = lines[0].strip()
    if min(indents[1:]) < indents[0] + 2 or len(title) > 70 or _SENTENCE_END.search(title.removesuffix(":")):
        return ""
    longest = max(len(line.strip()) for line in lines[1:])
    return title.removesuffix(":") if len(title) < 0.7 * longest else ""


def _is_drawn_table(lines: Sequence[str]) -> bool:
    return len(lines) >= 3 and all(line.strip()[0] in "|+" for line in lines)


def _drawn_table(lines: Sequence[str]) -> list[Block]:
    """A table drawn with bars. Where every row has a rule under it, the lines between two rules are one row."""
    rules = sum(1 for line in lines if _GRID_RULE.match(line))
    by_rule = rules >= 3 and rules * 3 >= len(lines)
    rows: list[list[str]] = []
    header, fresh = False, True
    for line in lines:
        if _GRID_RULE.match(line):
            header = header or len(rows) == 1
            fresh = True
            continue
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if by_rule and not fresh and rows and len(rows[-1]) == len(cells):
            rows[-1] = [f"{a} {b}".strip() for a, b in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
        fresh = False
    return table_rows(rows, header=header)


def _is_grid(lines: Sequence[str]) -> bool:
    """Whether the line breaks carry meaning: columns set with spaces, or code."""
    if len(lines) < 2:
        return False
    gaps = sum(1 for line in lines if re.search(r"\S {3,}\S", line))
    codish = sum(1 for line in lines if re.search(r"[{};]$|^\s*[$#>] \S|^\s+\S*[=({]", line))
    return gaps * 2 >= len(lines) or codish * 2 >= len(lines)


def _joined(lines: Sequence[str]) -> str:
    """Lines as one paragraph, with words cut at a line's end put together again."""
    text = lines[0]
    for line in lines[1:]:
        if re.search(r"[^\W\d_]{2}-$", text) and line[:1].islower():
            # A word that has a hyphen already, such as "state-of-the-", keeps this one too.
            text = text + line if "-" in text.rsplit(" ", 1)[-1][:-1] else text[:-1] + line
        elif text and line and _is_wide(text[-1]) and _is_wide(line[0]):
            text += line
        else:
            text += " " + line
    return text


def _is_wide(c: str) -> bool:
    """East Asian letters, between which a line break is no space."""
    return "\u2e80" <= c <= "\u9fff" or "\uf900" <= c <= "\ufaff" or "\uff00" <= c <= "\uffef"
