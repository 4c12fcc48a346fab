"""Bytes to text: which character set they are in, whatever header and page say."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from marg_ray.sources.parse.language import language_of

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# A label names the set that browsers read it as (WHATWG Encoding): always the larger sibling.
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
_META = re.compile(rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_.:-]{2,40})""", re.I)
_LANG = re.compile(rb"""<html[^>]{0,300}?lang\s*=\s*["']?([A-Za-z]{2})""", re.I)
_TAG = re.compile(rb"<[^<>]{0,2000}>")
_META_WINDOW = 1 << 20
_SAMPLE = 100_000
FEW = 6  # bytes above ASCII that prove no East Asian set
_UTF8_MULTI = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_CJK_SETS = ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949")
_BY_LANGUAGE = {
    "ja": ("cp932", "euc_jp"),
    "zh": ("gb18030", "big5hkscs"),
    "ko": ("cp949",),
    "ru": ("cp1251", "koi8_r"),
    "uk": ("cp1251", "koi8_u"),
    "bg": ("cp1251",),
    "el": ("cp1253",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "fa": ("cp1256",),
    "th": ("cp874",),
    "tr": ("cp1254",),
    "pl": ("cp1250", "iso8859_2"),
    "cs": ("cp1250", "iso8859_2"),
    "hu": ("cp1250", "iso8859_2"),
}
_LATIN = ("cp1250", "cp1254")  # told from Western European by the language alone


@dataclass(frozen=True, slots=True)
class Decoded:
    text: str
    charset: str
    guessed: bool = False  # nothing declared it


def decode(body: bytes, declared: str = "", *, html: bool = False) -> Decoded:
    """Decode without ever failing; what cannot be a letter becomes U+FFFD.

    In this order: a byte order mark; bytes that only UTF-8 can explain; what the page itself and the header say,
    where the bytes agree; a guess from the bytes. `declared` is the header's charset.
    """
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(charset, "replace"), charset)
    if (wide := _wide(body)) is not None:
        return Decoded(body.decode(wide, "replace"), wide, guessed=True)
    labels = _labels(body, declared, html=html)
    if body.isascii():
        # Seven-bit sets that switch alphabets by escape sequences look like ASCII.
        if b"\x1b$" in body or b"\x1b(" in body:
            return Decoded(body.decode("iso2022_jp", "replace"), "iso2022_jp")
        return Decoded(body.decode("ascii"), "utf-8")
    try:
        return Decoded(body.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    if _damaged_utf8(body, labelled="utf-8" in labels):
        return Decoded(body.decode("utf-8", "replace"), "utf-8")
    for label in labels:
        if (text := _agreeing(body, label)) is not None:
            return Decoded(text, label)
    return _guess(body, labels, html=html)


def _labels(body: bytes, declared: str, *, html: bool) -> list[str]:
    """The declared sets, most credible first: a page knows itself better than a server's default does."""
    header = _known(declared)
    own = ""
    if html:
        found = _XML.match(body[:1024]) or _META.search(body[:_META_WINDOW])
        own = _known(found[1].decode("ascii")) if found else ""
    order = [own, header] if header in ("", "cp1252", "utf-8") else [header, own]
    return [label for label in order if label]


def _known(label: str) -> str:
    try:
        name = codecs.lookup(label.strip().strip("\"'")).name if label else ""
    except (LookupError, ValueError):
        return ""
    if name in ("hex", "base64", "bz2", "zlib", "rot13", "uu", "quopri", "idna", "punycode", "unicode_escape"):
        return ""
    if name.startswith(("utf-16", "utf-32", "utf-7", "raw-unicode", "unicode")):
        return ""  # without a byte order mark or zero bytes the label is wrong
    return _SUPERSETS.get(name, name)


def _wide(body: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark, seen by where the zero bytes stand."""
    head = body[:4096]
    if len(head) < 8 or head.count(0) < len(head) // 5:
        return None
    columns = [head[i::4].count(0) / len(head[i::4]) for i in range(4)]
    full = [share > 0.7 for share in columns]
    return {
        (False, True, True, True): "utf-32-le",
        (True, True, True, False): "utf-32-be",
        (False, True, False, True): "utf-16-le",
        (True, False, True, False): "utf-16-be",
    }.get((full[0], full[1], full[2], full[3]))


def _damaged_utf8(body: bytes, *, labelled: bool) -> bool:
    """UTF-8 with a few bad bytes in it, such as a letter cut in half."""
    good = sum(1 for _ in _UTF8_MULTI.finditer(body))
    bad = body.decode("utf-8", "replace").count("\ufffd") - body.count(b"\xef\xbf\xbd")
    return good >= bad if labelled else good > 4 * bad


def _agreeing(body: bytes, label: str) -> str | None:
    """The text in a declared set, if the bytes can be in it."""
    if label == "utf-8":
        return None  # tried already
    try:
        if label == "cp1252":
            text = _cp1252(body)
            # It is what servers say of everything: not taken for languages that need another Latin set.
            return text if _plausible(text) and not _other_latin(text) else None
        text = body.decode(label, "replace")
    except (LookupError, UnicodeError, ValueError):
        return None
    bad = text.count("\ufffd")
    high = sum(1 for c in text if c > "\x7f")
    return text if bad == 0 or bad * 50 <= high else None


def _cp1252(body: bytes) -> str:
    """Windows-1252 as browsers read it: the five unassigned bytes are controls, not errors."""
    return "".join(chunk.decode("cp1252", "surrogateescape") for chunk in (body,)).translate(
        {0xDC00 + b: b for b in range(0x80, 0x100)}
    )


def _plausible(text: str) -> bool:
    """Whether text read as Western European could be that: mostly plain letters between the accented ones."""
    high = sum(1 for c in text if c > "\x7f")
    odd = sum(1 for c in text if "\x80" <= c <= "\x9f" or c in "¤¦¨¬¯¸¹ÐÞþð")
    plain = sum(1 for c in text if c.isascii() and c.isalpha())
    return odd * 4 <= high and high <= plain


def _guess(body: bytes, labels: list[str], *, html: bool) -> Decoded:
    prose = _shown(body) if html else body[:_SAMPLE]
    high = sum(1 for b in prose if b > 0x7F)
    plain = sum(1 for b in prose if 65 <= b <= 90 or 97 <= b <= 122)
    language = m[1].decode().lower() if html and (m := _LANG.search(body[:4096])) else ""
    for charset in _BY_LANGUAGE.get(language, ()):
        try:
            return Decoded(body.decode(charset), charset, guessed=True)
        except UnicodeDecodeError:
            continue
    western = _cp1252(prose)
    if high * 4 <= plain or high < FEW:
        if charset := _other_latin(western):
            return Decoded(body.decode(charset, "replace"), charset, guessed=True)
        if _plausible(western):
            return Decoded(_cp1252(body), "cp1252", guessed=True)
    if found := _cjk(prose) or _normalizer(prose):
        return Decoded(body.decode(found, "replace"), found, guessed=True)
    if labels:
        return Decoded(body.decode(labels[0], "replace"), labels[0], guessed=True)
    return Decoded(_cp1252(body), "cp1252", guessed=True)


def _shown(body: bytes) -> bytes:
    """About the bytes that a reader sees: no scripts, styles and tags."""
    body = body[: _SAMPLE * 10]
    for name in (b"script", b"style"):
        kept: list[bytes] = []
        lower, at = body.lower(), 0
        while (start := lower.find(b"<" + name, at)) >= 0:
            kept.append(body[at:start])
            end = lower.find(b"</" + name, start)
            at = end if end >= 0 else len(lower)
        body = b" ".join([*kept, body[at:]])
    return _TAG.sub(b" ", body)[:_SAMPLE]


def _other_latin(western: str) -> str:
    """The set of a Latin-written language that Western European letters do not serve, "" for all others."""
    sample = western[:_SAMPLE]
    return next((c for c in _BY_LANGUAGE.get(language_of(sample), ()) if c in _LATIN), "")


def _cjk(prose: bytes) -> str | None:
    """The East Asian set whose reading has the most everyday letters, if one stands out."""
    best, best_score = None, 0.0
    for charset in _CJK_SETS:
        text = prose.decode(charset, "replace")
        high = [c for c in text if c > "\x7f"]
        if not high or text.count("\ufffd") * 100 > len(high):
            continue
        score = sum(map(_everyday, high)) / len(high)
        if score > best_score:
            best, best_score = charset, score
    return best if best_score >= 0.35 else None


_COMMON_HAN = frozenset(
    "的一是不了在人有我他这個个們们中来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子那得于於着"
    "下自之年过過发發后後作里用道行所然家种種事成方多经經么麼去法学學如都同现現当當没沒动動面起看定天分还還进進"
    "好小部其些主样樣理心本前开開但因只从從想实實日水力电電市新高长長量机機"
)


def _everyday(c: str) -> float:
    if "\u3041" <= c <= "\u3096" or c in "。、，":
        return 1.0
    if "\u30a1" <= c <= "\u30fc":
        return 0.8
    if "\uac00" <= c <= "\ud7a3":
        return 0.75
    if c in _COMMON_HAN:
        return 1.5
    if "\u4e00" <= c <= "\u9fff":
        return 0.3
    if "\uff61" <= c <= "\uff9f" or "\ue000" <= c <= "\uf8ff":
        return -1.0  # half-width kana and private letters: signs of the wrong set
    return 0.0


def _normalizer(prose: bytes) -> str | None:
    from charset_normalizer import from_bytes

    best = from_bytes(prose[:20_000], threshold=0.3).best()
    return best.encoding if best is not None and best.encoding != "ascii" else None
