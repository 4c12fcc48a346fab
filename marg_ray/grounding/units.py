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
    "‰": "‰ promille",
    "$": "$ us$ usd dollar dollars dólares 美元",
    "€": "€ eur euro euros 欧元",
    "£": "£ gbp pound pounds",
    "franc": "franc francs chf",
    "mark": "deutschmark deutschmarks",
    "rouble": "rouble roubles ruble rubles",
    "peso": "peso pesos",
    "krona": "krona kronor krone kroner",
    "lira": "lira lire liras",
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
    "nmi": "nmi",
    "fathom": "fathom fathoms",
    "ly": "lightyear lightyears",
    "m/s": "m/s",
    "km/h": "km/h kmh kph",
    "mph": "mph",
    "kn": "knot knots",
    "gal": "gallon gallons",
    "pt": "pint pints",
    "bbl": "barrel barrels bbl",
    "hp": "hp horsepower",
    "cal": "calorie calories",
    "kcal": "kcal",
    "J": "joule joules",
    "kJ": "kj kilojoule kilojoules",
    "V": "volt volts",
    "Pa": "pascal pascals",
    "bar": "bars",
    "dB": "db decibel decibels",
    "K": "kelvin kelvins",
    "km²": "km² km2 sqkm",
    "m²": "m² m2",
    "m³": "m³ m3",
    "ha": "ha hectare hectares",
    "acre": "acre acres",
    "kg": "kg kilogram kilograms kilo kilos",
    "g": "g gram grams",
    "mg": "mg milligram milligrams",
    "oz": "oz ounce ounces",
    "st": "stone stones",
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
    "Hz": "hz hertz",
    "kHz": "khz kilohertz",
    "MHz": "mhz megahertz",
    "GHz": "ghz gigahertz",
    "KB": "kb kilobyte kilobytes",
    "MB": "mb megabyte megabytes",
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
    "millennium": "millennium millennia",
}
UNIT_OF = {alias: unit for unit, aliases in _UNITS.items() for alias in aliases.split()}
# Units of one dimension, each with how many of the first one it is.
_DIMENSIONS: tuple[dict[str, float], ...] = (
    {"m": 1, "km": 1e3, "cm": 1e-2, "mm": 1e-3, "mi": 1609.344, "ft": 0.3048, "in": 0.0254, "yd": 0.9144,
     "nmi": 1852, "fathom": 1.8288, "ly": 9.4607e15},
    {"m²": 1, "km²": 1e6, "ha": 1e4, "acre": 4046.856, "mi²": 2.589988e6, "ft²": 0.09290304},
    {"m³": 1, "l": 1e-3, "ml": 1e-6, "gal": 3.785412e-3, "pt": 4.73176e-4, "bbl": 0.1589873},
    {"kg": 1, "g": 1e-3, "mg": 1e-6, "µg": 1e-9, "t": 1e3, "lb": 0.45359237, "£": 0.45359237, "oz": 0.02834952,
     "st": 6.35029},
    {"W": 1, "kW": 1e3, "MW": 1e6, "GW": 1e9, "TW": 1e12, "hp": 745.7},
    {"kWh": 1, "MWh": 1e3, "GWh": 1e6, "TWh": 1e9, "J": 2.7778e-7, "kJ": 2.7778e-4, "cal": 1.163e-6, "kcal": 1.163e-3},
    {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"KB": 1, "MB": 1e3, "GB": 1e6, "TB": 1e9},
    {"km/h": 1, "m/s": 3.6, "mph": 1.609344, "kn": 1.852},
    {"s": 1, "ms": 1e-3, "min": 60, "h": 3600, "day": 86400, "week": 604800},
    {"month": 1, "year": 12, "decade": 120, "century": 1200, "millennium": 12000},
)  # fmt: skip
FACTORS = {unit: (number, size) for number, sizes in enumerate(_DIMENSIONS) for unit, size in sizes.items()}
TIMES = frozenset({"s", "ms", "min", "h", "day", "week", "month", "year", "decade", "century", "millennium"})

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
_ORDINALS = (
    "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth"
)
ORDINALS = {word: value for value, word in enumerate(_ORDINALS.split(), 3)} | {
    f"{ten}-{word}": 10 * value + n
    for value, ten in enumerate(_TENS.split(), 2)
    for n, word in enumerate(f"first second {_ORDINALS}".split()[:9], 1)
}
