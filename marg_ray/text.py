"""Text hygiene: what every string passes before it is stored, searched for, shown to a model or logged."""

from __future__ import annotations

import re
import unicodedata

# Moves a terminal's cursor or colours its text; without the ESC the rest would stay behind as litter.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_LINE_ENDS = re.compile("\r\n?|[\u000b\u000c\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")

# A flag of a nation within a state (England, Texas): the only well-formed use of tag letters.
_TAG_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{3,6}\U000e007f"
_DROPPED = re.compile(
    f"({_TAG_FLAG})|["
    "\u0000-\u0008\u000e-\u001f\u007f-\u009f"  # controls, all but newline and tab
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"  # soft hyphen and fillers without a width
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero width, bidi controls, annotation
    "\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(p + 0xFFFE)}{chr(p + 0xFFFF)}" for p in range(0x10000, 0x110000, 0x10000))
    + "\U000e0000-\U000e007f"  # tag letters: invisible, and read by models
    "]"
)
# One variation selector chooses a glyph; a run of them is hidden data.
_SELECTORS = re.compile("([\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_JOINERS = re.compile("[\u200c\u200d]+")
_LIGATURES = {
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st",
}  # fmt: skip
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_PRINTED = re.compile(  # what is changed or dropped and is printable all the same
    "[\u034f\u115f\u1160\u17b4\u17b5\ufb00-\ufb06\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(s: str) -> str:
    r"""The same text, fit to be stored and compared; applying it twice changes nothing more.

    NFC; "\n" line ends; every kind of space is U+0020; Latin ligatures are spelled out. Dropped: NUL and all
    other controls but newline and tab, terminal escape sequences, bidi controls, zero-width letters, tag
    letters, noncharacters. A joiner stays where it shapes its neighbours (Arabic and Indic scripts, emoji). A
    lone surrogate becomes U+FFFD; two that belong together become their letter.
    """
    if s.replace("\n", "").replace("\t", "").isprintable():  # most often: one walk instead of eight
        if s.isascii():
            return s
        if not _PRINTED.search(s):
            return unicodedata.normalize("NFC", s)
    if _SURROGATE.search(s):
        s = s.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    s = _LINE_ENDS.sub("\n", _TERMINAL.sub("", s))
    s = _DROPPED.sub(lambda m: m[1] or "", s)
    if s.isascii():
        return s
    s = _LIGATURE.sub(lambda m: _LIGATURES[m[0]], _SPACES.sub(" ", s))
    s = _SELECTORS.sub(r"\1", _JOINERS.sub(_keep_joiner, s))
    return unicodedata.normalize("NFC", s)


def one_line(s: str) -> str:
    """`clean_text` with every run of white space made one space, none at the ends."""
    return " ".join(clean_text(s).split())


def _keep_joiner(m: re.Match[str]) -> str:
    before, after = m.string[max(m.start() - 1, 0) : m.start()], m.string[m.end() : m.end() + 1]
    return m[0][0] if _is_shaped(before) and _is_shaped(after) else ""


def _is_shaped(c: str) -> bool:
    """Whether a joiner beside this letter can change how it looks."""
    if not c:
        return False
    code = ord(c)
    return (
        0x0600 <= code <= 0x08FF  # Arabic, Syriac, Thaana, N'Ko
        or 0x0900 <= code <= 0x0DFF  # the Indic scripts
        or 0x1000 <= code <= 0x109F  # Myanmar
        or 0x1780 <= code <= 0x18AF  # Khmer, Mongolian
        or 0x2190 <= code <= 0x2BFF  # symbols used as emoji
        or 0xFE00 <= code <= 0xFE0F  # an emoji's variation selector
        or 0xFE70 <= code <= 0xFEFC
        or 0x1F000 <= code <= 0x1FAFF  # emoji
        or 0xE0100 <= code <= 0xE01EF
    )
