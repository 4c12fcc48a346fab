"""From a reply's text to a typed answer: reasoning out, the right candidate, repaired, checked, never a cut one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from marg_ray.models import near_json
from marg_ray.models.tasks import FreeText
from marg_ray.text import clean_text

OutT = TypeVar("OutT", bound=BaseModel)
_THINK = r"(?:think|thinking|thought|reasoning|reflection|scratchpad)"
_REASONING = re.compile(rf"<{_THINK}>.*?</{_THINK}>|\[THINK\].*?\[/THINK\]|◁think▷.*?◁/think▷", re.S | re.I)
_REASONING_END = re.compile(rf"</{_THINK}>|\[/THINK\]|◁/think▷", re.I)
_REASONING_START = re.compile(rf"<{_THINK}>|\[THINK\]|◁think▷", re.I)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\s*(?:<\|constrain\|>\w+)?<\|message\|>")
_SPECIAL = re.compile(r"<\|(?:channel|message|return|end|start|im_end|eot_id|endoftext)\|>")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.S | re.M)
_PREAMBLE = re.compile(r"\A(?:sure|certainly|of course|okay|ok|here is|here's|below is)\b[^\n]{0,120}:[ \t]*\n+", re.I)
_CLOSING = tuple(".!?…:;\"')]»”’|*_`>。！？」』）")
_FILTERED = frozenset({"content_filter", "SAFETY", "refusal"})
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]*_]*(?=\s|\Z)|[。！？]")


class Unreadable(Exception):
    """The reply cannot be read as what was asked for; `args[0]` is the complaint, in words for the model."""


class CutShort(Exception):
    """The reply ends before the answer does; `args[0]` is what there is of it, without reasoning."""


def read(content: str | None, output: type[OutT], finish: str = "stop", refusal: str = "") -> OutT:
    """The answer that `content` holds. `finish` is the server's finish_reason, `refusal` what it says in its place.

    Raises:
        CutShort: the answer was cut, whether or not the server admits it.
        Unreadable: there is no answer, or not in the asked form.
    """
    text = answer_text(content or "")
    if refusal and not text:
        raise Unreadable(f"the model refused: {refusal}")
    if finish in _FILTERED:
        raise Unreadable("a content filter of the provider stopped the answer")
    if output is FreeText:
        return output.model_validate({"markdown": _markdown(text, finish)})
    if finish == "length":
        raise CutShort(text)
    if not text:
        raise Unreadable("the answer is empty")
    return _json(text, output)


def answer_text(content: str) -> str:
    """The content without the model's reasoning. An opened and never closed block is reasoning to its end."""
    text = content.strip()
    if text[:1] in ("{", "[") and _is_json(text):
        return text  # a tag inside a value is part of the value
    if channels := list(_FINAL_CHANNEL.finditer(text)):
        text = text[channels[-1].end() :]
    text = _REASONING.sub(_gap, text)
    if ends := list(_REASONING_END.finditer(text)):
        text = text[ends[-1].end() :]
    if start := _REASONING_START.search(text):
        text = text[: start.start()]
    return _SPECIAL.sub("", text).strip()


def _gap(block: re.Match[str]) -> str:
    """What stands for a block that was cut out: nothing, but words on both sides must not grow together."""
    before, after = block.string[: block.start()][-1:], block.string[block.end() :][:1]
    return "\n" if before.strip() and after.strip() else ""


def opens_inside_reasoning(content: str) -> bool:
    """Whether the content begins in the middle of a reasoning block."""
    end, start = _REASONING_END.search(content), _REASONING_START.search(content)
    return end is not None and (start is None or end.start() < start.start())


def whole_sentences(markdown: str) -> str:
    """The text up to its last finished sentence, list entry or table row; empty where there is none."""
    head, _, tail = markdown.rstrip().rpartition("\n")
    ends = list(_SENTENCE.finditer(tail))
    return f"{head}\n{tail[: ends[-1].end()]}".strip() if ends else head.rstrip()


def ends_mid_sentence(markdown: str) -> bool:
    """Whether the last line is running text without an end: a sign of a cut that nobody reported."""
    last = markdown.rstrip().rpartition("\n")[2].strip()
    listed = re.match(r"[-*+#>|`~]|\d+[.)]\s", last) is not None
    return bool(last) and not listed and not last.endswith(_CLOSING) and (len(last) > 40 or last.endswith(","))


def join(first: str, more: str, seen: str = "") -> str:
    """One text from a cut answer and its continuation: no word doubled, none lost, none split.

    `seen` is what the model had read; it tells whether two half words belong together.
    """
    more = more.rstrip()
    if not more.strip():
        return first
    head = first.strip()[:60]
    if len(head) >= 40 and more.lstrip().startswith(head):
        return more.strip()  # it began again
    overlap = _overlap(first, more)
    if overlap:
        return first + more.lstrip()[overlap:]
    if first[-1:].isalnum() and more[:1].isalnum():
        left, right = re.split(r"\W+", first)[-1], re.split(r"\W+", more)[0]
        vocabulary = set(re.findall(r"\w+", f"{first[: -len(left)]} {seen}".lower()))
        whole = (left + right).lower() in vocabulary and left.lower() not in vocabulary
        return first + ("" if whole else " ") + more
    if first[-1:].isalnum() or first[-1:] in ",;:.!?)]":
        starts_close = more[:1].isspace() or more[:1] in ",;:.!?)]"
        return first + ("" if starts_close else " ") + more
    return first + more


def _overlap(first: str, more: str) -> int:
    """How many letters of `more` repeat the end of `first`: whole words, at most 300 letters."""
    more = more.lstrip()
    for size in range(min(len(first), len(more), 300), 1, -1):
        if first.endswith(more[:size]):
            starts_word = size == len(first) or not (first[-size - 1].isalnum() and more[0].isalnum())
            ends_word = size == len(more) or not (more[size - 1].isalnum() and more[size].isalnum())
            if starts_word and ends_word and any(c.isalnum() for c in more[:size]):
                return size
    return 0


def _markdown(text: str, finish: str) -> str:
    fence = _FENCE.fullmatch(text)
    if fence and fence[2].lower() in ("", "markdown", "md", "text", "txt"):
        text = fence[3].strip()
    if text.startswith("{") and _is_json(text):
        value = json.loads(text)
        texts = [v for v in value.values() if isinstance(v, str)] if isinstance(value, dict) else []
        text = str(value.get("markdown") or texts[0]) if len(texts) == 1 or "markdown" in value else text
    text = clean_text(_PREAMBLE.sub("", text)).strip()
    if re.match(r"<!doctype html|<html", text, re.I):
        raise Unreadable("the answer is a web page, not the text that was asked for")
    if finish == "length" or ends_mid_sentence(text):
        raise CutShort(text)
    if not text:
        raise Unreadable("the answer is empty")
    return text


def _json(text: str, output: type[OutT]) -> OutT:
    complaint = "there is no JSON object in the answer"
    first = True
    for candidate in _candidates(text):
        try:
            return check(near_json.parse(candidate), output)
        except near_json.Unfinished:
            if first:  # what was cut is the last word; an earlier object is a draft
                raise CutShort(text) from None
        except (near_json.NotJson, Unreadable) as exc:
            complaint = str(exc) if first else complaint
            first = False
    raise Unreadable(complaint)


def _candidates(text: str) -> Iterator[str]:
    """Pieces that may be the answer, the likeliest first: the whole, the last JSON fence, the last object in prose."""
    if text[:1] in ("{", "[") and (_is_json(text) or next(near_json.spans(text), None) == (0, len(text))):
        yield text
        return
    fences = list(_FENCE.finditer(text))
    for names in (("json", "json5", "jsonc"), ("",)):
        for fence in reversed(fences):
            if fence[2].lower() in names and fence[3].lstrip()[:1] in ("{", "["):
                yield fence[3].strip()
    prose = _FENCE.sub("\n", text)
    for start, end in reversed(list(near_json.spans(prose))):
        yield prose[start:end]


def check(value: Any, output: type[OutT]) -> OutT:
    """`value` as an `output`, after harmless corrections of shape.

    Raises:
        Unreadable: with what is wrong, field by field.
    """
    complaint = ""
    for shaped in _shapes(_stripped(value), output):
        try:
            return _lenient(shaped, output)
        except ValidationError as exc:
            complaint = complaint or _in_words(exc)
    raise Unreadable(complaint or f"the answer is a {type(value).__name__}, not an object")


def _shapes(value: Any, output: type[BaseModel]) -> Iterator[Any]:
    """The value itself; what an envelope of one key holds; a bare list under the only field that may take it."""
    if isinstance(value, dict):
        yield value
        if len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
            yield inner
    elif isinstance(value, list):
        required = [name for name, f in output.model_fields.items() if f.is_required()]
        if len(value) == 1 and isinstance(value[0], dict):
            yield value[0]
        if len(required) == 1:
            yield {required[0]: value}


def _lenient(value: Any, output: type[OutT]) -> OutT:
    """Validate; shorten what is too long, drop what is optional and wrong, a few times over."""
    for _ in range(8):
        try:
            return output.model_validate(value)
        except ValidationError as exc:
            corrected = value
            for error in exc.errors(include_url=False):
                corrected = _corrected(corrected, list(error["loc"]), error)
            if corrected == value:
                raise
            value = corrected
    return output.model_validate(value)


def _corrected(value: Any, path: list[int | str], error: Any) -> Any:
    if path:
        key, rest = path[0], path[1:]
        if isinstance(value, dict) and key in value:
            return value | {key: _corrected(value[key], rest, error)}
        if isinstance(value, list) and isinstance(key, int) and key < len(value):
            return [*value[:key], _corrected(value[key], rest, error), *value[key + 1 :]]
        return value
    match error["type"], value:
        case "too_long", list():
            return value[: error["ctx"]["max_length"]]
        case "string_too_long", str():
            return value[: error["ctx"]["max_length"]].rsplit(" ", 1)[0]
        case "string_type", int() | float():
            return str(value)
        case "list_type", str() | int():
            return [value]
        case (("enum" | "literal_error"), str()):
            return value.strip().lower().replace(" ", "_").replace("-", "_")
        case _:
            return value


def _stripped(value: Any) -> Any:
    """Strings without outer white space; keys without a value are as good as absent."""
    match value:
        case str():
            return value.strip()
        case list():
            return [_stripped(item) for item in value]
        case dict():
            return {key.strip(): _stripped(item) for key, item in value.items() if item is not None}
        case _:
            return value


def _in_words(exc: ValidationError) -> str:
    errors = exc.errors(include_url=False, include_input=False)
    shown = [f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}" for e in errors[:6]]
    return "; ".join(shown) + (f"; and {len(errors) - 6} more" if len(errors) > 6 else "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


class VisibleText:
    """Lets the pieces of a streamed answer through, without reasoning blocks.

    `inside` is set for models whose prompt template opens the block, so that only its end is in the answer.
    """

    def __init__(self, *, inside: bool = False) -> None:
        self._held = ""
        self._inside = inside

    def feed(self, piece: str) -> str:
        """What may be shown now. A letter that could begin a tag is held back until it is known."""
        self._held += piece
        shown = []
        while True:
            tag = (_REASONING_END if self._inside else _REASONING_START).search(self._held)
            if tag is None:
                break
            if not self._inside:
                shown.append(self._held[: tag.start()])
            self._held = self._held[tag.end() :]
            self._inside = not self._inside
        safe = len(self._held)
        for mark in "<[◁":
            at = self._held.rfind(mark)
            if at >= 0 and len(self._held) - at < 16:
                safe = min(safe, at)
        if not self._inside:
            shown.append(self._held[:safe])
        self._held = self._held[safe:]
        return "".join(shown)

    def rest(self) -> str:
        """What was held back and turned out to be no tag."""
        return "" if self._inside else self._held
