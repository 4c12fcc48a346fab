"""Dates in running text, in the notations and languages that sources use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_NAMES = (
    "january jan januar janvier janv enero ene gennaio janeiro januari января январь",
    "february feb februar février févr febrero febbraio fevereiro februari февраля февраль",
    "march mar märz mrz mars marzo março maart марта март",
    "april apr avril avr abril aprile апреля апрель",
    "may mai mayo maggio maio mei мая май",
    "june jun juni juin junio giugno junho июня июнь",
    "july jul juli juillet juil julio luglio julho июля июль",
    "august aug août agosto augustus августа август",
    "september sep sept septembre septiembre settembre setembro сентября сентябрь",
    "october oct oktober okt octobre octubre ottobre outubro октября октябрь",
    "november nov novembre noviembre novembro ноября ноябрь",
    "december dec dezember dez décembre déc diciembre dic dicembre dezembro декабря декабрь",
)
MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DAY = r"(?P<{0}>[0-3]?\d)(?:st|nd|rd|th|º|er|\.)?"
_YEAR = r"(?P<{0}>1\d{{3}}|20\d{{2}}|[3-9]\d{{2}}(?=\s*(?:AD|CE|BC|BCE)\b))"
_FIRST = "".join(sorted({name[0] for name in MONTHS}))
# Every date begins with a digit or a month; that is looked at first, for a long text has few places like that.
_DATE = re.compile(
    rf"""
    (?:(?=\d)|\b(?=[{_FIRST}]))(?:
      (?<!\d)(?P<y1>1\d{{3}}|20\d{{2}})[-/.](?P<m1>0?[1-9]|1[0-2])[-/.](?P<d1>0?[1-9]|[12]\d|3[01])(?!\d)
    | (?P<y2>\d{{4}})\s*年(?:\s*(?P<m2>\d{{1,2}})\s*月(?:\s*(?P<d2>\d{{1,2}})\s*日)?)?
    | (?<!\d)(?P<a3>[0-3]?\d)[./](?P<b3>[01]?\d|[0-3]?\d)[./](?P<y3>1\d{{3}}|20\d{{2}})(?!\d)
    | \b(?P<m4>{_MONTH})\.?\s+{_DAY.format("d4")}(?:\s*[-–]\s*\d{{1,2}})?(?:\s*,)?\s+{_YEAR.format("y4")}\b
    | (?<!\d){_DAY.format("d5")}\s+(?:of\s+|de\s+)?(?P<m5>{_MONTH})\.?,?\s+(?:de\s+|del\s+|of\s+)?{_YEAR.format("y5")}\b
    | \b(?P<m6>{_MONTH})\.?,?\s+(?:of\s+|de\s+|del\s+)?{_YEAR.format("y6")}\b
    | \b(?P<m7>{_MONTH})\.?\s+{_DAY.format("d7")}(?![\d,.]*\d)\b
    | (?<![\d.,]){_DAY.format("d8")}\s+(?:of\s+|de\s+)?(?P<m8>{_MONTH})\b
    | (?<![\d.,/$€£])(?<![\d\s][-–])
      (?P<y9>1[0-9]\d\d|20\d\d)(?P<s9>s)?(?:[-–/](?P<t9>\d\d)(?!\d))?(?![\d%]|[.,]\d|[^\W\d_])
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\s*(?:%|per\s?cent|people|persons?|men|women|children|units?|km|kg|metres?|meters?|miles?|dollars?|euros?|MW|kW|"
    r"tons?|tonnes?|feet|ft|m\b|mm|cm|homes?|workers?|employees|copies|votes?|times|words|hectares?|acres?|patients?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Date:
    """A date at `text[start:end]`; what is not said is 0. `decade` stands for "1990s"."""

    start: int
    end: int
    text: str
    year: int = 0
    month: int = 0
    day: int = 0
    decade: bool = False

    def fits(self, other: Date) -> bool:
        """Whether all that this date says is said by the other one."""
        if self.decade and not other.decade:
            return self.year <= other.year < self.year + 10
        same = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(not mine or mine == theirs for mine, theirs in same) and self.decade == other.decade

    def clashes(self, other: Date) -> bool:
        """Whether both say a part, and differently."""
        if self.decade != other.decade:
            return False
        same = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return any(mine and theirs and mine != theirs for mine, theirs in same)


def find_dates(text: str) -> list[Date]:
    """The dates of `text` in order. A bare four-digit number counts as a year unless it counts things."""
    return list(_dates(text))


@lru_cache(maxsize=4096)  # a passage is compared with many sentences, in many sections
def _dates(text: str) -> tuple[Date, ...]:
    return tuple(date for match in _DATE.finditer(text) for date in _read(match, text))


def _read(match: re.Match[str], text: str) -> list[Date]:
    parts = {key: value for key, value in match.groupdict().items() if value}
    number = max(int(key[1]) for key in parts)
    year, month, day = (parts.get(f"{letter}{number}", "") for letter in "ymd")
    start, end = match.span()
    if number == 9:
        if _COUNTED.match(text, end):
            return []
        first = Date(start, end, match.group(), int(year), decade="s9" in parts)
        if "t9" not in parts:
            return [first]
        return [first, Date(start, end, match.group(), int(year[:2] + parts["t9"]))]
    if number == 3:
        a, b = int(parts["a3"]), int(parts["b3"])
        if not (1 <= a <= 31 and 1 <= b <= 31) or (a > 12 and b > 12):
            return []
        pair = {(a, b) if b <= 12 else (b, a), (b, a) if a <= 12 else (a, b)}  # day and month, either way
        return [Date(start, end, match.group(), int(year), m, d) for d, m in sorted(pair)]
    month_number = int(month) if month.isdigit() else MONTHS.get(month.lower(), 0)
    if day and not 1 <= int(day) <= 31:
        return []
    if match["m8"] and match["m8"].lower() in ("may", "mar", "mars", "ene", "mai") and match["m8"].islower():
        return []
    return [Date(start, end, match.group(), int(year or 0), month_number, int(day or 0))]
