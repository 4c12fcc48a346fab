"""Keeps secrets out of lines: by the name of a field, by the look of a value, and by the values that are known."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from marg_ray.masking import masked

MASK = "***"
MOST = 20_000  # letters of a text; what is beyond is cut
LEAST = 6  # letters of a known secret; a shorter one would hide ordinary words
_NAMES = re.compile(
    r"(?:^|[_.-])(?:key|keys|secret|password|passwd|passphrase|authorization|auth|cookie|credentials?|token)$", re.I
)
_OF_THE_ENVIRONMENT = re.compile(r"(?:_KEY|_TOKEN|_SECRET|PASSWORD)$")
_LOOKS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {MASK}"),
    (re.compile(r"(?i)\b((?:authorization|cookie)[\"']?\s*[:=]\s*[\"']?)[^\"'\r\n,}]+"), rf"\1{MASK}"),
    (
        re.compile(r"(?i)([\w-]{0,40}api[_-]?key|password|passwd|secret)([\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}]+"),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"(?<=://)[^\s/@:]*:[^\s/@]+(?=@)"), MASK),  # user and password of an address
    (re.compile(r"(?i)([?&](?:key|token|access_token|signature|sig)=)[^&\s\"'#]+"), rf"\1{MASK}"),
    (re.compile(r"\b(?:sk|gsk|pk|rk|ghp|hf|xox[abp])[-_][\w*.-]{6,}|\bAIza[\w-]{10,}"), MASK),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"), MASK),  # a JSON web token
)

_ANY_LOOK = re.compile(  # what every one of these needs: most texts are passed over with one look
    r"(?i)bearer|basic|authorization|cookie|api[_-]?key|passw|secret|://|[?&][a-z_]*(?:key|token|sig)|"
    r"\b(?:sk|gsk|pk|rk|ghp|hf|xox[abp])[-_]|aiza|eyj"
)
OURS = frozenset(
    ("time", "level", "actor", "session", "task", "role", "section", "kind", "tool", "outcome", "status", "zone")
)
"""Fields whose values are made here, of numbers and closed sets: no secret can be in them."""


class Mask:
    """Masks texts and whole structures. `known` are secrets that this process has been given."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = sorted({k for k in known if len(k) >= LEAST}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """`text` without what is a secret or looks like one."""
        if len(text) > MOST:
            text = f"{text[:MOST]}... ({len(text) - MOST} letters more)"
        for secret in self._known:
            if secret in text:
                text = text.replace(secret, MASK)
        text = masked(text)
        if _ANY_LOOK.search(text) is not None:
            for pattern, instead in _LOOKS:
                text = pattern.sub(instead, text)
        return text

    def value(self, value: Any, name: str = "") -> Any:
        """A value of a line, however deep; what is no number, text or collection becomes masked text."""
        if isinstance(value, (bool, int, float)) or value is None or name in OURS:
            return value
        if name and _NAMES.search(name):
            return MASK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, str(k)) for k, v in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.value(v) for v in value]
        return self.text(str(value))


def secrets_in(settings: object) -> Iterator[str]:
    """Every secret that the settings hold, and those of the environment (`*_KEY`, `*_TOKEN`, ...)."""
    yield from _held(settings)
    yield from (value for name, value in os.environ.items() if _OF_THE_ENVIRONMENT.search(name))


def _held(value: object) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for _, inner in value:
            yield from _held(inner)
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _held(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _held(inner)
