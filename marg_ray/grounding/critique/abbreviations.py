"""Abbreviations that nobody spelled out. English texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from marg_ray.grounding.critique.prose import Flag, Line
from marg_ray.grounding.names import acronyms
from marg_ray.records import IssueKind

_ABBREVIATION = re.compile(r"(?<![\w./#@&'’-])([A-Z][A-Z&]{1,4}[A-Z])(?:s|['’]s)?(?![\w/&@]|[-.]\w| \d)")
_SPELLED = re.compile(r"\(\s*(?:or |the |also |abbreviated (?:as )?|known as )?([A-Z][A-Z&]{1,4}[A-Z])s?\b")
_GLOSSED = re.compile(r"\b([A-Z][A-Z&]{1,4}[A-Z])s?,? (?:\(|stands for|short for|or (?:the )?[A-Z]|for [A-Z]|, an? )")

# Known to any reader: places, bodies, media, units, techniques, Roman numerals.
KNOWN = frozenset(
    """
    USA USSR UAE NATO NASA UNESCO UNICEF WHO IMF OPEC ASEAN OECD WTO EEC ESA CERN FBI CIA NSA KGB IRS FDA EPA FAA CDC
    NHS MIT UCLA NYU BBC CNN ABC NBC CBS FOX HBO ESPN MTV PBS NPR ITV CNBC MSNBC AMC TBS TNT USB RAM ROM CPU GPU PDF
    HTML HTTP HTTPS URL DVD CD-ROM LCD LED OLED LAN WAN WIFI API SQL XML JSON CSS FTP SSH DNS TCP UDP GNU BIOS ISO ASCII
    IBM AMD NEC BMW VW GMC SUV ATM PIN GPS SMS SIM GSM LTE RFID DNA RNA HIV AIDS SARS MERS COVID MRI ECG EEG ICU ADHD
    PTSD DDT CFC GDP GNP VAT IPO CEO CFO CTO COO CPI USD EUR GBP JPY CNY NBA NFL MLB NHL FIFA UEFA NCAA UFC WWE WWF PGA
    ATP WTA FIA NASCAR MVP IOC BCE UTC GMT EST PST EDT PDT CET FAQ DIY VIP RIP UFO LGBT LGBTQ NGO NGOS PHD MBA LLC INC
    LTD PLC AKA ASAP TBA TNT SOS KFC MGM RCA EMI CBE OBE MBE CIO TSA DEA SEC NYC LA DC UK EU UN US AM PM TV
    GWH MWH KWH III VII VIII XII XIII XIV XVI XVII XVIII XIX XXI XXII XXIII XIX XXX IIII LIV LVI XLV MMO RPG PVC LPG LNG
    PSG NYPD LAPD SWAT NASDAQ NYSE BASIC UNIX LINUX GOP MP3 JPEG GIF PNG RSS VPN IDE PHP WWII WWI II IV VI IX XI XV XX
    """.split()  # noqa: SIM905
)


def flags(lines: Iterable[Line], spelling: Iterable[str]) -> Iterator[Flag]:
    """Every sentence with an abbreviation that none of the texts `spelling` spells out or uses as a known name."""
    known = set(KNOWN)
    for text in spelling:
        known |= defined(text)
    told: set[str] = set()
    for line in lines:
        if not line.is_prose or _shouts(line.text):
            continue
        own = defined(line.text) if "(" in line.text else frozenset()
        unknown = [a for a in dict.fromkeys(_ABBREVIATION.findall(line.text)) if a not in known and a not in own]
        for short in unknown[:1]:
            again = short in told
            told.add(short)
            yield Flag(
                signal="undefined_abbreviation",
                line=line,
                kind=IssueKind.LOGIC_ERROR,
                words=short,
                detail=f'"{short}" is nowhere spelled out' + (" (again)" if again else ""),
                instruction=f'Spell out "{short}" where it first stands.',
            )


def defined(text: str) -> frozenset[str]:
    """The abbreviations that a text spells out, or whose words it has in a row."""
    found = {*_SPELLED.findall(text), *_GLOSSED.findall(text)}
    return frozenset({*found, *(a.upper() for a in acronyms(text) if len(a) > 2)})


def named(text: str) -> frozenset[str]:
    """All abbreviations that a title or question uses: who asks with them knows them."""
    return frozenset(_ABBREVIATION.findall(text))


def _shouts(text: str) -> bool:
    """Written in capitals throughout, as headings are."""
    letters = [c for c in text if c.isalpha()]
    return sum(c.isupper() for c in letters) > 0.5 * len(letters)
