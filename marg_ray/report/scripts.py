"""Which script a letter belongs to, and which Debian package brings a font for it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Script:
    """Letters that no font here can draw. `package` is Debian's."""

    name: str
    package: str

    def __str__(self) -> str:
        return f"no font for {self.name}: `apt-get install {self.package}` brings one"


CJK = Script("Chinese, Japanese and Korean", "fonts-noto-cjk")
EMOJI = Script("emoji", "fonts-noto-color-emoji")
OTHERS = "fonts-noto-core"

_RANGES = (
    (0x0590, 0x05FF, Script("Hebrew", OTHERS)),
    (0x0600, 0x06FF, Script("Arabic", OTHERS)),
    (0x0750, 0x077F, Script("Arabic", OTHERS)),
    (0x0870, 0x08FF, Script("Arabic", OTHERS)),
    (0x1100, 0x11FF, CJK),
    (0x2190, 0x2BFF, Script("symbols", "fonts-dejavu-core")),
    (0x2E80, 0x312F, CJK),
    (0x3130, 0xA4CF, CJK),
    (0xAC00, 0xD7FF, CJK),
    (0xF900, 0xFAFF, CJK),
    (0xFB1D, 0xFB4F, Script("Hebrew", OTHERS)),
    (0xFB50, 0xFDFF, Script("Arabic", OTHERS)),
    (0xFE30, 0xFE4F, CJK),
    (0xFE70, 0xFEFE, Script("Arabic", OTHERS)),
    (0xFF00, 0xFFEF, CJK),
    (0x1F000, 0x1FAFF, EMOJI),
    (0x20000, 0x3FFFF, CJK),
)
_PRIVATE = Script("private letters", OTHERS)


def script_of(letter: str) -> Script:
    """Its script, by the range it stands in, or else by the first word of its name."""
    code = ord(letter)
    for first, last, script in _RANGES:
        if first <= code <= last:
            return script
    name = unicodedata.name(letter, "").split(" ")[0]
    return Script(name.capitalize(), OTHERS) if name else _PRIVATE


def scripts_of(letters: Iterable[str]) -> tuple[Script, ...]:
    """Their scripts, each once, in order of the names."""
    return tuple(sorted({script_of(c) for c in letters}, key=lambda s: s.name))
