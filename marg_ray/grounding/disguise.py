"""What a model can read in a text that is not written there plainly: odd letters, codes, words pulled apart.

The homoglyphs follow the idea of Unicode Technical Standard 39 (skeletons of confusable letters), kept to those that
pass for Latin ones. A reading is made only of a text that shows a sign of the disguise, so that plain prose costs one
search for each sign.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_plus

_LOOKALIKES = str.maketrans(
    "аАвВсСеЕНһіІјЈкКмМоОрРԛѕЅтТуУхХѵԝԁɡɩοΟαΑεΕιΙκΚνΝρΡτΤυΥχΧΒΗΜΖηıℓßӏԼ",
    "aAbBcCeEHhiIjJkKmMoOpPqsStTyYxXvwdgioOaAeEiIkKvNpPtTuYxXBHMZnilBlL",
)
_LEET = str.maketrans("013457@$!|", "oieastasil")
_LEET_L = str.maketrans("013457@$!|", "oleastasll")
_SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")

_TAG_LETTERS = re.compile("[\U000e0020-\U000e007e]{4,}")
_HTML_TAG = re.compile(r"<[^<>]{0,60}>")
_MARKS = re.compile(r"[*_`~\\]+")
_SINGLES = re.compile(r"(?:\b\w[ .·•\-_*,/|]{1,3}){6,}\w\b")
_SLUG = re.compile(r"(?<![\w/:.])\w{2,}(?:[_+.-]\w{1,20}){3,}")
_CELL = re.compile(r"\s*(?:[;|\n]+|\s[/·]\s)\s*(?:[^:;|\n.]{1,30}:\s)?")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"\b(?:0x)?(?:[0-9a-f]{2}[ :,]?){16,}|(?:\\x[0-9a-f]{2}){8,}", re.IGNORECASE)
_BITS = re.compile(r"(?:\b[01]{8}\b[ ,]?){10,}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-f]{4}){4,}", re.IGNORECASE)


def _folded(text: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return plain.translate(_SMALL_CAPITALS).translate(_LOOKALIKES)


def _singles_joined(text: str) -> str:
    return _SINGLES.sub(lambda m: re.sub(r"[\W_]+", "", m[0]), text)


def _texts_of(pattern: re.Pattern[str], decode: Callable[[str], bytes]) -> Callable[[str], str]:
    """A text with each code that stands for words replaced by them."""

    def replaced(match: re.Match[str]) -> str:
        try:
            words = decode(match[0]).decode("utf-8")
        except (ValueError, binascii.Error):
            return match[0]
        readable = sum(c.isprintable() or c.isspace() for c in words)
        return f" . {words} . " if words and readable == len(words) and " " in words else match[0]

    return lambda text: pattern.sub(replaced, text)


def _from_base64(code: str) -> bytes:
    code = code.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(code + "=" * (-len(code) % 4))


def _from_hex(code: str) -> bytes:
    return bytes.fromhex(re.sub(r"0x|\\x|[ :,]", "", code))


def _from_bits(code: str) -> bytes:
    return bytes(int(b, 2) for b in re.findall(r"[01]{8}", code))


def _from_escapes(code: str) -> bytes:
    return "".join(chr(int(c, 16)) for c in re.findall(r"\\u([0-9a-fA-F]{4})", code)).encode("utf-8", "replace")


def _slugs_parted(text: str) -> str:
    return _SLUG.sub(lambda m: re.sub(r"[_+.-]", " ", m[0]), text)


def _unmarked(text: str) -> str:
    return _MARKS.sub("", text)


def _turned(text: str) -> str:
    return codecs.encode(text, "rot13")


def _unquoted(text: str) -> str:
    return re.sub(r"\S*%\S+", lambda m: f" . {unquote_plus(m[0])} . ", text)


class Reading(NamedTuple):
    """A disguise: the sign that a text shows, one of `words` with it if there are any, and what is read then."""

    name: str
    words: tuple[str, ...]
    sign: re.Pattern[str]
    read: Callable[[str], str]

    def places(self, text: str) -> Iterator[int]:
        if not self.words or any(word in text for word in self.words):
            yield from (m.start() for m in self.sign.finditer(text))


_ODD = (
    "[\uff01-\uff5e\U0001d400-\U0001d7ff\u2460-\u24ff\U0001f130-\U0001f189\u1d00-\u1d2b\ua730-\ua731\u0300-\u036f]|"
    "[A-Za-z][\u0370-\u052f]|[\u0370-\u052f][A-Za-z]|[À-ÿ][a-z]?[À-ÿ][a-z]?[À-ÿ]"
)
_LEETS = r"[a-zA-Z][0134578@$!|][a-zA-Z]\w*\W+(?:\w+\W+){0,3}?\w*[0134578@$][a-zA-Z]"
_GAP = "[ .·•\\-_*,/|]"
_ROT = r"\b(?:vtaber|Vtaber|VTABER|[qQ]vfertneq|[sS]betrg|[bB]ireevqr)\b|vafgehpgvba|\bcerivbhf\b"
_BACK = r"\b(?:erongi|erongI|dragersi[dD]|tegro[fF]|edirrev[oO])\b|snoitcurtsni|tpmorp metsys"
_READINGS: tuple[Reading, ...] = tuple(
    Reading(name, words, re.compile(sign), read)
    for name, words, sign, read in (
        ("letters", (), _ODD, _folded),
        ("leet", (), _LEETS, lambda t: t.translate(_LEET)),
        ("leet", (), _LEETS, lambda t: t.translate(_LEET_L)),
        ("spaced", (), rf"\b\w{_GAP}\w{_GAP}\w{_GAP}\w{_GAP}\w\b", _singles_joined),
        ("slug", ("_", "+", "-"), r"\w[_+-][a-zA-Z]{2,12}[_+-][a-zA-Z]{2,12}[_+-][a-zA-Z]", _slugs_parted),
        ("marks", ("*", "_", "~", "`", "\\"), r"[a-z](?:\*\*?|__?|~~|`|\\)[a-z]|[*_`~][a-zA-Z]+[*_`~]", _unmarked),
        ("tags", ("<",), r"[a-zA-Z]<[^<>\n]{1,60}>[a-zA-Z<]", lambda t: _HTML_TAG.sub("", t)),
        ("base64", (), r"[a-zA-Z0-9+/_-]{24}", _texts_of(_BASE64, _from_base64)),
        ("hex", (), r"(?:[0-9a-fA-F]{2}[ :,]?){16}|\\x[0-9a-fA-F]{2}\\x", _texts_of(_HEX, _from_hex)),
        ("bits", ("0 0", "0,0", "1 0", "1,0"), r"[01]{8}[ ,][01]{8}[ ,]", _texts_of(_BITS, _from_bits)),
        ("percent", ("%",), r"%[0-7][0-9a-fA-F][^%\s]{0,20}%[0-7][0-9a-fA-F][^%\s]{0,20}%", _unquoted),
        ("entities", ("&",), r"&#?\w{2,8};[^&]{0,12}&#?\w{2,8};", lambda t: html.unescape(html.unescape(t))),
        ("escapes", ("\\u00",), r"\\u00[0-9a-fA-F]{2}\\u00", _texts_of(_ESCAPES, _from_escapes)),
        ("rot13", ("ertneq", "etrg", "taber", "TABER", "ireevqr", "vafgeh", "cerivbhf"), _ROT, _turned),
        ("reversed", ("erong", "dragersi", "tegro", "edirrev", "snoitcurtsni", "tpmorp"), _BACK, lambda t: t[::-1]),
    )
)


def disguised(text: str) -> list[int]:
    """Offsets at which `text` shows a sign of a disguise, in order."""
    signs = {one.sign: one for one in _applicable(text)}  # several readings have the same sign
    return sorted({at for one in signs.values() for at in one.places(text)})


def readings(text: str) -> Iterator[tuple[str, str]]:
    """What else can be read in `text`, each with the name of its disguise."""
    for one in _applicable(text):
        if next(one.places(text), None) is not None and (other := one.read(text)) != text:
            yield one.name, other


def _applicable(text: str) -> tuple[Reading, ...]:
    return _READINGS[1:] if text.isascii() else _READINGS


def joined_cells(text: str) -> str:
    """A row or lines as one sentence: separators and the names of columns left out."""
    return _CELL.sub(" ", text)


def tag_letters(text: str) -> list[str]:
    """Words in invisible tag letters (U+E0020 to U+E007E), as ASCII."""
    if text.isascii():
        return []
    return ["".join(chr(ord(c) - 0xE0000) for c in m[0]) for m in _TAG_LETTERS.finditer(text)]
