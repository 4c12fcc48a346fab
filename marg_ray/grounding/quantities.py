"""Figures in running text: values with scale and unit, as digits or as words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from marg_ray.grounding.dates import Date, find_dates
from marg_ray.grounding.units import FACTORS, NUMBER_WORDS, ORDINALS, PARTS, SCALES, UNIT_OF

_DIGITS = r"\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?!\d)|\d+(?:[.,٫٬]\d+)*"
_SCALE = "|".join(sorted(map(re.escape, SCALES), key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?P<sign>(?<![A-Za-z0-9)])[-−–](?=\d))?(?P<money>(?:US|A|C|NZ|HK)?\$|[€£¥₹]|\b(?:USD|EUR|GBP|CNY|RMB|JPY|INR)\s?)?\s?"
    rf"(?<![A-Za-zÀ-ʯ0-9_.])(?P<digits>{_DIGITS})(?P<ordinal>st|nd|rd|th)?"
    rf"(?:\s?-?(?P<scale>{_SCALE})(?![a-zа-яёäöü])|\s?(?P<letter>[kmbKMB]n?)(?![\w²³]))?",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<pp>\s?-?(?:percentage\s+points?|prozentpunkte?n?|个百分点))|(?P<pc>\s?(?:per\s?cent|pour\s?cent|por\s?ciento)\b)|"
    r"(?P<sq>\s?(?:square|sq\.?)\s+(?P<sqof>km|kilomet\w+|met\w+|miles?|feet|ft))|"
    r"\s?-?(?P<unit>km/h|m/s|%|％|٪|℃|℉|°\s?[CF]\b|[€£$¥]|[a-zA-Zµμ]{1,14}[²³23]?(?![\w])|[\u4e00-\u9fff]{1,3})"
)
_APPROX = re.compile(
    r"\b(?:about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|ca\.?|close to|an estimated|over|"
    r"more than|less than|under|up to|at least|at most|etwa|rund|ungefähr|fast|über|knapp|environ|près de|unos|"
    r"cerca de|casi|más de)\s*(?:[€$£¥]|US\$)?\s*\Z|[~≈<>≤≥约約近超]\s*\Z",
    re.IGNORECASE,
)
_CONVERTED = 0.04  # relative difference that rounding after a conversion explains
RANGE = re.compile(r"\s?(?:[-–—~～至到]|to|bis|and|und|à|a)\s?", re.IGNORECASE)

_WORDS = "|".join(sorted(map(re.escape, NUMBER_WORDS), key=len, reverse=True))
_HEADS = "|".join(sorted({re.escape(word[:3]) for word in NUMBER_WORDS} | {"an? "}))  # looked at first: it is quicker
_SPELLED = re.compile(
    rf"\b(?={_HEADS})(?:(?P<word>{_WORDS})|an?(?=[\s](?:hundred|thousand|million|billion|trillion|dozen|third|quarter|fifth)\b))\b"
    r"(?P<half>\sand\sa\shalf)?"
    rf"(?:[\s-](?P<hundred>hundred|dozen)\b(?:\s(?:and\s)?(?P<rest>{_WORDS})\b)?)?"
    rf"(?:[\s-](?P<scale>thousand|million|billion|trillion)\b(?:\s(?:and\s)?(?P<tail>{_WORDS})\b)?)?"
    r"(?:[\s-](?P<part>thirds?|quarters?|fifths?|tenths?)\b)?",
    re.IGNORECASE,
)
_ORDINAL = re.compile(rf"\b(?=[{''.join(sorted({w[0] for w in ORDINALS}))}])(?:{'|'.join(ORDINALS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A figure at `text[start:end]`.

    `values` are its readings: "1.200" is 1.2 or 1200. `unit` is a symbol ("%", "km", "$") or "". `spelled`: in words.
    """

    start: int
    end: int
    text: str
    values: tuple[float, ...]
    unit: str = ""
    approximate: bool = False
    spelled: bool = False
    ordinal: bool = False
    scale: float = 1.0

    def same_value(self, other: Quantity) -> bool:
        return any(_equal(a, b) for a in self.values for b in other.values)

    def rounds(self, other: Quantity) -> bool:
        """Whether one is the other with fewer digits, or near it where it says "about"."""
        slack = 0.06 if self.approximate else 0.0
        return any(
            abs(a - b) <= slack * max(abs(a), abs(b)) or _rounded(a, b) or _rounded(b, a)
            for a in self.values
            for b in other.values
        )

    def same_unit(self, other: Quantity) -> bool:
        return self.unit == other.unit or not self.unit or not other.unit

    def converts(self, other: Quantity) -> bool:
        """Whether both say the same in different units of one dimension, this one rounded: "8 km" for "5 miles".

        A figure of more digits than the other one's conversion leaves is none: "4007 m" for "13,000 ft".
        """
        if {self.unit, other.unit} == {"%", ""}:
            part, share = (self, other) if other.unit == "%" else (other, self)
            return part.spelled and any(_near(100 * a, b) for a in part.values if a < 1 for b in share.values)
        return self.unit != other.unit and any(
            _near(a, b) and (a[0] < 0 or _is_rounded_to(shown, b[1] * shown / a[1]))
            for shown, a in zip(self.values, _in_base(self), strict=False)
            for b in _in_base(other)
            if a[0] == b[0] and a[1]
        )


def _in_base(one: Quantity) -> list[tuple[int, float]]:
    """The values in the first unit of its dimension, with the dimension's number."""
    if one.unit in ("°C", "°F", "K"):
        return [(-1, _kelvin(v, one.unit)) for v in one.values]
    if one.unit not in FACTORS:
        return []
    dimension, size = FACTORS[one.unit]
    return [(dimension, v * size) for v in one.values]


def _is_rounded_to(shown: float, exact: float) -> bool:
    """Whether `exact` gives `shown` to as many digits as that has, one more or less in the last of them."""
    digits = f"{shown:.10f}".rstrip("0").rstrip(".")
    place = 10.0 ** -len(digits.partition(".")[2]) if "." in digits else 10.0 ** (len(digits) - len(digits.rstrip("0")))
    return abs(shown - exact) <= 1.01 * place


def _kelvin(value: float, unit: str) -> float:
    return value if unit == "K" else value + 273.15 if unit == "°C" else (value - 32) / 1.8 + 273.15


def _near(a: float | tuple[int, float], b: float | tuple[int, float]) -> bool:
    x, y = (a[1] if isinstance(a, tuple) else a), (b[1] if isinstance(b, tuple) else b)
    slack = 0.003 if isinstance(a, tuple) and a[0] < 0 else _CONVERTED
    return abs(x - y) <= slack * max(abs(x), abs(y))


def find_quantities(text: str, dates: list[Date] | None = None) -> list[Quantity]:
    """The figures of `text` in order, without those that belong to its dates."""
    return list(_found(text, tuple((d.start, d.end) for d in (find_dates(text) if dates is None else dates))))


@lru_cache(maxsize=4096)  # a passage is compared with many sentences, in many sections
def _found(text: str, taken: tuple[tuple[int, int], ...]) -> tuple[Quantity, ...]:
    found: list[Quantity] = []
    for match in _NUMBER.finditer(text):
        start, end = match.span("digits")
        if any(s < end and start < e for s, e in taken) or _in_a_name(text, start, end, match):
            continue
        found.append(_digits(text, match))
    for match in _SPELLED.finditer(text):
        scaled = match["hundred"] or match["scale"] or match["part"]
        if scaled or (match["word"] or "one").lower() != "one":
            found.append(_spelled(match, text))
    for match in _ORDINAL.finditer(text):
        value = float(ORDINALS[match.group().lower()])
        if not any(q.start <= match.start() < q.end for q in found):
            found.append(Quantity(*match.span(), match.group(), (value,), spelled=True, ordinal=True))
    found = _joined(sorted(found, key=lambda q: q.start), text)
    return tuple(_ranges(text, sorted(found, key=lambda q: q.start)))


def _joined(found: list[Quantity], text: str) -> list[Quantity]:
    """One figure for each that is written in steps of ten thousand without a space: "1億2000万"."""
    joined: list[Quantity] = []
    for one in found:
        last = joined[-1] if joined else None
        if last and last.end == one.start and last.scale > one.scale >= 1.0 and last.scale in (1e4, 1e8, 1e12):
            whole = last.values[0] + one.values[0]
            joined[-1] = replace(one, start=last.start, text=text[last.start : one.end], values=(whole,))
        else:
            joined.append(one)
    return joined


def _ranges(text: str, found: list[Quantity]) -> list[Quantity]:
    """The first figure of "5 to 10 million km" has the unit and the scale of the second."""
    for at in range(len(found) - 2, -1, -1):
        low, high = found[at], found[at + 1]
        if not RANGE.fullmatch(text[low.end : high.start].strip("$€£¥ ") or " "):
            continue
        values = low.values
        if low.scale == 1.0 < high.scale:
            values = (*values, *(v * high.scale for v in values))
        found[at] = replace(low, unit=low.unit or high.unit, values=values)
    return found


_SPACED = re.compile(r"(?<=\d)([.,]) (?=\d)")
_SPACED_FIGURE = re.compile(r"(?<![\d.,])\d{1,3}(?:, \d{3})+(?![\d])|(?<![\d.,])\d{1,3}\. \d{1,2}(?=\s?(?:%|[a-z]))")
_SHORT_END = re.compile(r"(?<!\d)((?:1[5-9]|20)(\d\d))(\s?[-–—/]\s?)(\d\d)(?![\d]|[-–—/.]\d)")  # "2007-11"


def written_out(text: str) -> str:
    """The text with figures that a converter has torn ("26, 000", "2. 4 km") and short ends of years as a whole.

    Where nothing of the kind stands in it, the text itself. What is joined may have been two: read it beside the text.
    """
    text = _SPACED_FIGURE.sub(lambda m: _SPACED.sub(r"\1", m[0]), text)
    return _SHORT_END.sub(lambda m: m[0] if m[4] <= m[2] else f"{m[1]}{m[3]}{m[1][:2]}{m[4]}", text)


def figures(text: str) -> list[str]:
    """Every run of digits as typed, without thousands separators: what must stand in a quotation to be backed by it."""
    return [re.sub(r"[,.]+\Z", "", m).replace(",", "") for m in re.findall(r"\d[\d.,]*", text)]


def _in_a_name(text: str, start: int, end: int, match: re.Match[str]) -> bool:
    """ "COVID-19", "B12", "2.10.1": letters or dots make it a name."""
    if re.search(r"[A-Za-zÀ-ʯ][-‐]?\Z|[\d_@#/]\.?\Z", text[max(0, start - 2) : start]) and not match["money"]:
        return True
    return match["digits"].count(".") > 1 and not re.fullmatch(r"\d{1,3}(?:\.\d{3})+", match["digits"])


def _digits(text: str, match: re.Match[str]) -> Quantity:
    end = match.end()
    scale = SCALES.get((match["scale"] or "").lower(), 1.0)
    letter = (match["letter"] or "").lower()
    unit = UNIT_OF.get((match["money"] or "").strip().lower().lstrip("ac nzhku").removeprefix("s") or "", "")
    if "$" in (match["money"] or ""):
        unit = "$"
    if letter:
        apart = match.start("letter") > max(match.end("digits"), match.end("ordinal"))  # "5 m" is a length
        if unit or (letter in ("k", "bn", "mn") and not apart):
            scale = {"k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}[
                letter.removesuffix("n") if letter == "kn" else letter
            ]
        else:
            end = max(match.end("digits"), match.end("ordinal"))
    after = _AFTER.match(text, end)
    if after and not (unit and not match["money"]):
        found = _unit(after)
        if found and not (unit and found not in ("%",)):
            unit, end = found, after.end()
    values = tuple(v * scale * (-1 if match["sign"] else 1) for v in _readings(match["digits"]))
    start = match.start("digits")
    approximate = bool(_APPROX.search(text, max(0, match.start() - 24), match.start("digits")))
    return Quantity(start, end, text[start:end], values, unit, approximate, ordinal=bool(match["ordinal"]), scale=scale)


def _unit(after: re.Match[str]) -> str:
    if after["pp"]:
        return "pp"
    if after["pc"]:
        return "%"
    if after["sq"]:
        return {"k": "km²", "f": "ft²"}.get(
            after["sqof"][0].lower(), "mi²" if after["sqof"].lower().startswith("mi") else "m²"
        )
    raw = after["unit"].replace(" ", "")
    if raw in ("M", "K", "H", "S", "T", "G", "L", "In", "in"):
        return ""
    return UNIT_OF.get(raw.lower(), "")


def _spelled(match: re.Match[str], text: str) -> Quantity:
    value = NUMBER_WORDS[match["word"].lower()] if match["word"] else 1.0
    if match["half"]:
        value += 0.5
    if match["hundred"]:
        value *= SCALES[match["hundred"].lower()]
        value += NUMBER_WORDS[match["rest"].lower()] if match["rest"] else 0.0
    if match["scale"]:
        value *= SCALES[match["scale"].lower()]
        value += NUMBER_WORDS[match["tail"].lower()] if match["tail"] else 0.0
    if match["part"]:
        value /= PARTS[match["part"].lower().removesuffix("s")]
    after = _AFTER.match(text, match.end())
    unit = _unit(after) if after else ""
    end = after.end() if after and unit else match.end()
    if len(unit) == 1 and after and len(after.group().strip(" -")) == 1 and after.group().strip(" -").isalpha():
        unit, end = "", match.end()  # "five m" is nothing that is written
    return Quantity(match.start(), end, text[match.start() : end], (value,), unit, spelled=True)


def _readings(digits: str) -> tuple[float, ...]:
    plain = re.sub(r"[ \u00a0\u202f'’٬]", "", digits).replace("٫", ".")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain):
        return (float(plain.replace(",", "")),)
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", plain):
        return (float(plain.replace(".", "").replace(",", ".")),)
    if re.fullmatch(r"\d{1,3}\.\d{3}", plain):
        return (float(plain), float(plain.replace(".", "")))
    try:
        return (float(plain.replace(",", ".")),)
    except ValueError:
        return (float(re.split(r"[.,]", plain)[0]),)


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def _rounded(short: float, full: float) -> bool:
    """Whether `short` is `full` rounded to the digits that `short` has (at least two, or one of a larger number)."""
    if short == 0 or full == 0 or (short < 0) != (full < 0):
        return False
    digits = len(f"{abs(short):.10g}".replace(".", "").strip("0")) or 1
    try:
        rounded = float(f"{full:.{digits}g}")
    except ValueError:
        return False
    return _equal(rounded, short) and abs(short - full) <= 0.06 * abs(full)
