"""Scales, units and number words in the languages that sources use: data for `quantities`."""

from __future__ import annotations

_SCALE_WORDS = {
    1e2: "hundred",
    1e3: "thousand thousands tausend tsd mille mil тысяч тыс 千",
    1e6: "million millions millionen mio millones millón milioni milhões mn mln миллионов млн 百万",
    1e9: "billion billions bn milliarde milliarden milliard milliards mrd miliardi миллиардов млрд 十亿",
    1e12: "trillion trillions tn billionen 万亿 兆",
    1e4: "万 萬",
    1e8: "亿 億",
    1e5: "lakh",
    1e7: "crore",
    12.0: "dozen",
}
SCALES = {word: scale for scale, words in _SCALE_WORDS.items() for word in words.split()}

_UNITS = {
    "%": "% percent prozent pct ％ ٪ procent",
    "pp": "pp",
    "$": "$ us$ usd dollar dollars dólares 美元",
    "€": "€ eur euro euros 欧元",
    "£": "£ gbp pound pounds",
    "¥": "¥ yen jpy yuan cny rmb 元 円 人民币",
    "₹": "₹ rupee rupees inr",
    "km": "km kilometre kilometres kilometer kilometers kilómetros kilomètres",
    "m": "m metre metres meter meters metern mètres metros 米",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "mi": "mile miles mi",
    "ft": "foot feet ft",
    "in": "inch inches",
    "yd": "yard yards",
    "km²": "km² km2 sqkm",
    "m²": "m² m2",
    "m³": "m³ m3",
    "ha": "ha hectare hectares",
    "acre": "acre acres",
    "kg": "kg kilogram kilograms kilo kilos",
    "g": "g gram grams",
    "mg": "mg milligram milligrams",
    "µg": "µg μg mcg microgram micrograms",
    "t": "t tonne tonnes ton tons tonnen toneladas 吨",
    "lb": "lb lbs",
    "l": "l litre litres liter liters",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "W": "w watt watts",
    "kW": "kw kilowatt kilowatts",
    "MW": "mw megawatt megawatts 兆瓦",
    "GW": "gw gigawatt gigawatts",
    "TW": "tw terawatt terawatts",
    "kWh": "kwh",
    "MWh": "mwh",
    "GWh": "gwh",
    "TWh": "twh",
    "°C": "°c ℃ celsius",
    "°F": "°f ℉ fahrenheit",
    "Hz": "hz",
    "kHz": "khz",
    "MHz": "mhz",
    "GHz": "ghz",
    "KB": "kb",
    "MB": "mb",
    "GB": "gb gigabyte gigabytes",
    "TB": "tb terabyte terabytes",
    "s": "second seconds sec secs sekunden",
    "ms": "ms millisecond milliseconds",
    "min": "minute minutes min mins minuten",
    "h": "hour hours h hr hrs stunde stunden",
    "day": "day days tag tage tagen jours días 天",
    "week": "week weeks woche wochen",
    "month": "month months monat monate monaten mois meses 个月",
    "year": "year years jahr jahre jahren ans años",
    "decade": "decade decades",
    "century": "century centuries",
}
UNIT_OF = {alias: unit for unit, aliases in _UNITS.items() for alias in aliases.split()}
TIMES = frozenset({"s", "ms", "min", "h", "day", "week", "month", "year", "decade", "century"})

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_OTHERS = {
    "dozen": 12.0,
    "half": 0.5,
    **dict.fromkeys(("twice", "double", "doubled", "doubling"), 2.0),
    **dict.fromkeys(("triple", "tripled"), 3.0),
}
_FOREIGN = "zwei|deux|dos drei|trois|tres vier|quatre|cuatro fünf|cinq|cinco sechs|seis sieben|siete acht neun zehn"


def _number_words() -> dict[str, float]:
    ones, tens = _ONES.split(), _TENS.split()
    words = {word: float(value) for value, word in enumerate(ones)} | _OTHERS
    for value, ten in enumerate(tens, 2):
        words[ten] = 10.0 * value
        words |= {f"{ten}{gap}{one}": 10.0 * value + n for n, one in enumerate(ones[1:10], 1) for gap in "- "}
    words |= {word: float(value) for value, group in enumerate(_FOREIGN.split(), 2) for word in group.split("|")}
    return words


NUMBER_WORDS = _number_words()
PARTS = {"third": 3.0, "quarter": 4.0, "fifth": 5.0, "tenth": 10.0}
