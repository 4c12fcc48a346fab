"""Reading JSON that is not quite JSON, without losing or inventing a word of it.

`parse` first takes the text literally. Otherwise it mends what models commonly get wrong (inner quotes, backslashes,
comments), hands the rest to json-repair, and then compares words: a repair that drops or splits what was written is
refused, because asking again is cheaper than a wrong plan.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from marg_ray.text import clean_text

MAX_CHARS = 400_000
MAX_DEPTH = 40
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»"}  # opening letter to closing letter
_CLOSERS = frozenset("\"'”“’»")
_OPENS_AFTER = frozenset("{[,:")
_LITERALS = frozenset({"true", "false", "null", "none", "nan", "infinity", "undefined"})
_WORD = re.compile(r"\w+")
_COMMENT = re.compile(r"(?://|#)[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMENTED = frozenset('{[,:}]"')  # a comment stands after one of these
_AFTER_KEY = re.compile(r"\s*:")
_NEXT_ENTRY = re.compile(
    r"""\s*(?:[\]}]|$|//|/\*|\#|\s["“]|,\s*(?:[\]}"'“„‘{\[\d-]|//|/\*|$|true|false|null|True|False|None|\w+\s*:))"""
)
_STRUCTURE = re.compile(r"""(?<!\\)"\s*[:,{}\[\]]""")  # inside a string, it is the end of another
_START = re.compile(r"""\{(?=\s*["'“„}])|\[(?=\s*[\[{"'“„\]])""")
_STEP = {"open": 1, "close": -1}
# TeX commands that begin like a JSON escape, written with a single backslash
_FORMULA = re.compile(
    r"(?<!\\)\\(?=(?:frac|forall|beta|begin|bar|bullet|theta|text\w*|times|rho|right\w*|nabla|neq|not\w+)\b)"
)


class NotJson(ValueError):
    """The text holds no value that can be read without guessing; `args[0]` says why."""


class Unfinished(NotJson):
    """It ends before its outermost bracket is closed."""


def parse(text: str) -> Any:
    """The value that `text` evidently means.

    NaN and infinities become None; strings lose control characters and lone surrogates.

    Raises:
        Unfinished: it was cut off.
        NotJson: it is not JSON, or only after a repair that changes its words.
    """
    if len(text) > MAX_CHARS:
        raise NotJson(f"it is {len(text)} letters long")
    if _depth(text) > MAX_DEPTH:
        raise NotJson("it is nested too deeply")
    text = _FORMULA.sub(r"\\\\", text)
    try:
        return _clean(_literal(text))
    except (json.JSONDecodeError, RecursionError):
        if ends_inside(text):
            raise Unfinished("it ends before it is complete") from None
        return _clean(_mended(text))


def ends_inside(text: str) -> bool:
    """Whether the text stops before its outermost bracket is closed: it was cut off."""
    depth, inside = 0, False
    for kind, _ in _tokens(text):
        depth += _STEP.get(kind, 0)
        inside = kind == "unclosed"
    if inside:  # an unclosed string may also be a quote too many: then the end still looks like an end
        return not text.rstrip().endswith(("}", "]"))
    return depth > 0


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Stretches of prose that are a bracketed value, from the left, not overlapping. The last may be unclosed."""
    at = 0
    while (found := _START.search(text, at)) is not None:
        depth, end = 0, len(text)
        for kind, place in _tokens(text, found.start()):
            depth += _STEP.get(kind, 0)
            if depth == 0:
                end = place + 1
                break
        yield found.start(), end
        at = max(end, found.end())


def _literal(text: str) -> Any:
    return json.loads(text, strict=False, parse_constant=lambda _: None, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key given twice keeps its filled value; two different filled values cannot both be meant."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            if found[key] and value:
                raise NotJson(f"the key {key!r} is given twice with different values")
            value = value or found[key]
        found[key] = value
    return found


def _mended(text: str) -> Any:
    from json_repair import repair_json

    plain = _normalised(text)
    try:
        return _literal(plain)
    except (json.JSONDecodeError, RecursionError) as exc:
        complaint = str(exc)
    try:
        value = repair_json(plain, return_objects=True, skip_json_loads=True)
    except (RecursionError, ValueError):
        raise NotJson(complaint) from None
    if not isinstance(value, dict | list) or not value:
        raise NotJson(complaint)
    said, kept = _words(plain), _words_of(value)
    if lost := said - kept - _LITERALS:
        raise NotJson(f"{complaint}; a repair would lose {', '.join(sorted(lost)[:5])}")
    if split := [s for s in _strings(value) if not _stands_alone(s, plain)]:
        raise NotJson(f"{complaint}; a repair would make an entry of the fragment {split[0][:40]!r}")
    if merged := [s for s in _strings(value) if s in text and (_STRUCTURE.search(s) or s[:1] in (",", ":"))]:
        raise NotJson(f"{complaint}; a repair would swallow entries in {merged[0][:60]!r}")
    return value


def _normalised(text: str) -> str:
    """The same value with plain quotes, escaped inner quotes and backslashes, and without comments."""
    out: list[str] = []
    for kind, place in _tokens(text):
        if kind == "string":
            out.append(_plain_string(text, place))
        elif kind in ("open", "close", "other"):
            out.append(text[place])
        elif kind == "unclosed":
            out.append(text[place:])
    return _literals_outside("".join(out))


def _literals_outside(text: str) -> str:
    names = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
    pattern = re.compile(r'"(?:[^"\\]|\\.)*"|\b(?:True|False|None|undefined)\b|,(?=\s*[\]}])', re.DOTALL)
    return pattern.sub(lambda m: m[0] if m[0].startswith('"') else names.get(m[0], ""), text)


def _plain_string(text: str, start: int) -> str:
    end = _string_end(text, start)
    doubled = text.startswith('""', start) and end > start + 1
    body = text[start + (2 if doubled else 1) : end - (1 if doubled and text[end - 1] == '"' else 0)]
    if _STRUCTURE.search(body):
        raise NotJson(f"a string is not closed before {body[:60]!r}")
    body = re.sub(r"\\(?![\"\\/bfnrtu])|\\(?=u(?![0-9a-fA-F]{4}))", r"\\\\", body.replace("\\'", "'"))
    body = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body)
    return f'"{body}"'


def _tokens(text: str, at: int = 0) -> Iterator[tuple[str, int]]:
    """Brackets, strings (their first letter) and every other letter of near-JSON, in order; comments are skipped."""
    before = ""
    while at < len(text):
        letter = text[at]
        if letter in _QUOTES and (before in _OPENS_AFTER or before == "" or letter == '"'):
            end = _string_end(text, at)
            if end < 0:
                yield "unclosed", at
                return
            yield "string", at
            at, before = end + 1, '"'
            continue
        if (comment := _COMMENT.match(text, at)) and before in _COMMENTED:
            at = comment.end()
            continue
        kind = "open" if letter in "{[" else "close" if letter in "}]" else "other"
        yield kind, at
        before = before if letter.isspace() else letter
        at += 1


def _string_end(text: str, start: int) -> int:
    """Where the string that opens at `start` closes; -1 where it does not.

    A quote closes when what follows can follow a string: a colon, a bracket, or a comma and another entry.
    """
    close = _QUOTES[text[start]]
    closing = {close, '"'} if text[start] in "“„" else {close}
    doubled = text.startswith('""', start) and text[start + 2 : start + 3].isalnum()
    first = start + (2 if doubled else 1)
    at = start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        closes = text[at] in closing and at >= first
        if closes and (_AFTER_KEY.match(text, at + 1) or _NEXT_ENTRY.match(text, at + 1)):
            return at
        at += 1
    return -1


def _depth(text: str) -> int:
    depth = deepest = 0
    for letter in re.findall(r"[\[\]{}]", text):
        depth += 1 if letter in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _words(text: str) -> set[str]:
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    return {w.lower() for w in _WORD.findall(re.sub(r"\\[bfnrt](?![a-z]{3})", " ", plain))}


def _words_of(value: Any) -> set[str]:
    return _words(json.dumps(value, ensure_ascii=False, default=str).replace("\\n", " ").replace("\\t", " "))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from _strings(item)


def _stands_alone(string: str, text: str) -> bool:
    """Whether the string occurs between quotes, or unquoted between brackets, commas and colons."""
    body = json.dumps(string, ensure_ascii=False)[1:-1]
    if not body.strip() or body not in text:
        return True  # its words were compared already
    at = text.find(body)
    while at >= 0:
        left, right = text[:at], text[at + len(body) :]
        opened = left[-1:] in _CLOSERS or not left.rstrip() or left.rstrip()[-1] in _OPENS_AFTER
        closed = right[:1] in _CLOSERS or not right.strip() or right.lstrip()[0] in ",:]}\n"
        if opened and closed:
            return True
        at = text.find(body, at + 1)
    return False


def _clean(value: Any) -> Any:
    match value:
        case str():
            return clean_text(value)
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {clean_text(str(key)): _clean(item) for key, item in value.items()}
        case _:
            return value
