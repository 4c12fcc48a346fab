"""Inline Markdown of a sentence as a small tree, read once and written by every format in its own way.

Only what prose needs is understood: emphasis, code, formulas and links to web addresses. Everything else, raw HTML
and lone signs above all, is text and is shown as typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit

from marg_ray.text import one_line

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_DOLLARS = re.compile(r"\$(?![\s\d.,])([^$\n]{1,200}?)(?<![\s\\])\$(?!\d)")
_PARENS = re.compile(r"\\\((.{1,200}?)\\\)")
_ADDRESS_SIGNS = "!#$%&'()*+,-./:;=?@[]_~|"  # stay as they are in an address


@dataclass(frozen=True)
class Inline:
    """A node: leaves carry `text`, the others `children`; a link carries `href`."""

    kind: Literal["text", "code", "formula", "emphasis", "strong", "link"]
    text: str = ""
    children: tuple[Inline, ...] = ()
    href: str = ""


def literal(text: str) -> tuple[Inline, ...]:
    """Text in which no sign means anything: titles, quotations."""
    return (Inline("text", one_line(text)),)


def parse(text: str) -> tuple[Inline, ...]:
    """The nodes of one sentence of Markdown. Nothing is lost; signs without a partner stay text."""
    tokens = _parser().parseInline(one_line(text))[0].children or []
    nodes, _ = _tree(tokens, 0)
    return nodes


def plain(nodes: Iterable[Inline]) -> str:
    """The words alone."""
    return "".join(n.text or plain(n.children) for n in nodes)


def web_address(address: str) -> str:
    """The address as a link target whose percent-decoding equals that of `address`; "" for anything but http(s)."""
    address = one_line(address)
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https") or not parts.netloc:
        return ""
    return quote(address, safe=_ADDRESS_SIGNS)


# ---- Markdown in


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("zero").enable(["escape", "backticks", "emphasis", "link", "autolink", "entity"])
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.validateLink = lambda url: bool(web_address(url))  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: web_address(url)  # type: ignore[method-assign]
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    r"""`$a_b$` and `\(a_b\)`, but no amount of money: a formula starts with no digit and ends before none."""
    match = _DOLLARS.match(state.src, state.pos) or _PARENS.match(state.src, state.pos)
    if match is None:
        return False
    if not silent:
        state.push("formula", "", 0).content = match.group(1).strip()
    state.pos = match.end()
    return True


def _tree(tokens: Sequence[Token], at: int) -> tuple[tuple[Inline, ...], int]:
    """Nodes up to the closing token of this level, and the index after it."""
    nodes: list[Inline] = []
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.nesting == -1:
            break
        if token.nesting == 1:
            children, at = _tree(tokens, at)
            nodes.append(_parent(token, children))
        elif token.type == "code_inline":
            nodes.append(Inline("code", token.content.strip() or token.content))
        elif token.type == "formula":
            nodes.append(Inline("formula", token.content))
        elif token.content:
            nodes.append(Inline("text", token.content))
    return _joined(nodes), at


def _parent(token: Token, children: tuple[Inline, ...]) -> Inline:
    match token.type:
        case "em_open":
            return Inline("emphasis", children=_unwrapped("emphasis", children))
        case "strong_open":
            return Inline("strong", children=_unwrapped("strong", children))
    return Inline("link", children=children, href=str(token.attrs.get("href", "")))


def _unwrapped(kind: str, nodes: Iterable[Inline]) -> tuple[Inline, ...]:
    """Without nodes of this kind, however deep: emphasis in emphasis is seen once, and its signs would clash."""
    flat: list[Inline] = []
    for node in nodes:
        within = _unwrapped(kind, node.children)
        flat += within if node.kind == kind else [replace(node, children=within)]
    return _joined(flat)


def _joined(nodes: list[Inline]) -> tuple[Inline, ...]:
    joined: list[Inline] = []
    for node in nodes:
        if joined and node.kind == joined[-1].kind == "text":
            joined[-1] = Inline("text", joined[-1].text + node.text)
        elif joined and node.kind == joined[-1].kind and node.kind in ("emphasis", "strong"):  # written side by side
            joined[-1] = Inline(node.kind, children=_joined([*joined[-1].children, *node.children]))  # they would clash
        else:
            joined.append(node)
    return tuple(joined)


# ---- Markdown out

_ALWAYS = re.compile(r"[`*\[\]<~$]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BACKSLASH = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
_ENTITY = re.compile(r"&(?=#?\w{1,32};)")
_BLOCK_START = re.compile(r"^(?:(?=#{1,6}(?:\s|$))|(?=>)|(?=[-+](?:[\s-]|$)))")
_ITEM_START = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")


def escape(text: str) -> str:
    """Text such that every Markdown reader shows it as typed, wherever in a line it stands."""
    text = _BACKSLASH.sub(r"\\\\", text)
    text = _UNDERSCORE.sub(r"\\_", text)
    text = _ENTITY.sub(r"\\&", text)
    return _ALWAYS.sub(lambda m: "\\" + m.group(), text)


def line_start(markdown: str) -> str:
    """A line that begins a paragraph: no heading, list, quotation or rule by accident."""
    markdown = _ITEM_START.sub(r"\1\\\2", markdown)
    return "\\" + markdown if _BLOCK_START.match(markdown) else markdown


def code_span(text: str) -> str:
    """`text` between fences longer than any run of backticks in it."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_link(label: str, href: str) -> str:
    """A link; `label` is Markdown already, `href` a web address."""
    target = href.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
    if re.search(r"[()\\*_\[\]]", target):
        target = f"<{target}>"
    return f"[{label}]({target})"


def to_markdown(nodes: Iterable[Inline]) -> str:
    """Markdown again, with every other sign escaped."""
    return "".join(_markdown(n) for n in nodes)


def _markdown(node: Inline) -> str:
    match node.kind:
        case "text":
            return escape(node.text)
        case "code":
            return code_span(node.text)
        case "formula":
            return code_span(node.text) if "$" in node.text else f"${node.text}$"
        case "emphasis":
            return f"*{to_markdown(node.children)}*"
        case "strong":
            return f"**{to_markdown(node.children)}**"
        case "link":
            return markdown_link(to_markdown(node.children), node.href)
