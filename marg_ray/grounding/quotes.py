"""Finds a model's quotation in the text it was taken from."""

from __future__ import annotations

import re

_SPACE = r"[\s\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # soft hyphen, zero widths
_SAME = (
    '"“”„‟«»〝〞＂″',
    "'‘’‚‛`´′ʼ＇‹›",
    "-‐‑‒–—―−﹣－",
    ":：∶",
    ",，",
    ";；",
    "!！",
    "?？",
    "(（",
    ")）",
    "·•∙⋅・",
    "~～∼",
    "%％",
)
_CLASSES = {char: f"[{re.escape(group)}]" for group in _SAME for char in group}
_LIGATURES = {
    **{"ff": "ﬀ", "fi": "ﬁ", "fl": "ﬂ", "ffi": "ﬃ", "ffl": "ﬄ", "st": "ﬆ"},
    "...": "…",
}
_SPELLED = {sign: letters for letters, sign in _LIGATURES.items()}
_PIECES = re.compile(rf"{_SPACE}+|\.\.\.|ffi|ffl|ff|fi|fl|st|.", re.DOTALL)
_OUTER = re.compile(r"\A[\"'“”„«»‘’`*_]+|[\"'“”«»‘’`*_]+\Z")
_ELLIPSIS = re.compile(
    rf"\A{_SPACE}*(?:\[?(?:\.\.\.|…)\]?){_SPACE}*|{_SPACE}*(?:\[(?:\.\.\.|…)\]|\.\.\.+|…)\.?{_SPACE}*\Z"
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")


def locate(quote: str, text: str, near: int | None = None) -> tuple[int, int] | None:
    """Where `quote` stands in `text`, as (start, end); None where it does not stand there as a whole.

    `text[start:end]` is the quotation but for white space and for signs that readers do not tell apart: kinds of
    quotation marks and dashes, soft hyphens, ligatures. An ellipsis or quotation marks around the whole are not part of
    it. Of several places the one nearest to `near` is taken, else the first.
    """
    for candidate in dict.fromkeys(_candidates(quote)):
        found = _nearest(candidate, text, near)
        if found:
            return found
    return None


def _candidates(quote: str) -> list[str]:
    whole = quote.strip()
    bare = _ELLIPSIS.sub("", whole).strip()
    stripped = _ELLIPSIS.sub("", _OUTER.sub("", bare)).strip()
    return [c for c in (whole, bare, stripped) if any(x.isalnum() for x in c)]


def _nearest(quote: str, text: str, near: int | None) -> tuple[int, int] | None:
    if near is None:
        at = text.find(quote)
        if at >= 0:
            return at, at + len(quote)
    best: tuple[int, int] | None = None
    for pattern in _patterns(quote, text):
        for match in pattern.finditer(text):
            if near is None:
                return match.span()
            if best is None or abs(match.start() - near) < abs(best[0] - near):
                best = match.span()
            elif match.start() > near:
                break
        if best:
            break
    return best


def _patterns(quote: str, text: str) -> list[re.Pattern[str]]:
    """The pattern that suits most texts, then one for texts with invisible letters or without spaces between words."""
    quote = "".join(c for c in quote if c not in _UNSEEN)
    for sign, letters in _SPELLED.items():
        quote = quote.replace(sign, letters)
    pieces = _PIECES.findall(quote)
    if not any(p.strip() for p in pieces):
        return []
    found = [_compiled([_piece(p, text) for p in pieces], "")]
    between = rf"[{_UNSEEN}]*" if any(c in text for c in _UNSEEN) else ""
    if _WIDE.search(quote):
        gap = rf"(?:{_SPACE}|[{_UNSEEN}])*"
        found.append(_compiled([_piece(p, text) for p in pieces if p.strip()], gap))
    elif between:
        single: list[str] = []
        for piece in pieces:
            single += list(piece) if piece in _LIGATURES and _LIGATURES[piece] not in text else [piece]
        found.append(_compiled([_piece(p, text) for p in single], between))
    return found


def _compiled(parts: list[str], between: str) -> re.Pattern[str]:
    return re.compile(between.join(parts))


def _piece(piece: str, text: str) -> str:
    if not piece.strip():
        return f"{_SPACE}+"
    if len(piece) == 1:
        return _CLASSES.get(piece) or re.escape(piece)
    sign = _LIGATURES[piece]
    spelled = "".join(_spelled_ways(piece, text))
    return f"(?:{spelled}|{sign})" if sign in text else spelled


def _spelled_ways(piece: str, text: str) -> list[str]:
    if piece in ("ffi", "ffl") and "ﬀ" in text:
        return [f"(?:ff|ﬀ){piece[2]}"]
    return [re.escape(piece)]
