"""The references for reference managers: BibTeX (biblatex names its fields) and RIS."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import unquote, urlsplit

from marg_ray.records import SourceKind
from marg_ray.report import wording
from marg_ray.report.model import Report, ReportSource
from marg_ray.text import one_line

_ISO_DATE = re.compile(r"(\d{4})(?:-(0[1-9]|1[0-2])(?:-(0[1-9]|[12]\d|3[01]))?)?(?=\D|$)")
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_DOI_HOSTS = ("doi.org", "dx.doi.org", "www.doi.org")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_SKIPPED = frozenset(
    {
        "a",
        "an",
        "the",
        "on",
        "of",
        "in",
        "what",
        "how",
        "which",
        "der",
        "die",
        "das",
        "le",
        "la",
        "les",
        "el",
        "los",
        "las",
    }
)


@dataclass(frozen=True)
class Entry:
    """What both formats say of one reference. Empty where it is not known."""

    key: str
    number: int
    kind: SourceKind
    title: str
    url: str  # ASCII
    doi: str
    place: str  # of what has no web address
    published: tuple[str, ...]  # year, month, day: as many as are known
    accessed: datetime
    language: str

    @property
    def date(self) -> str:
        return "-".join(self.published)


def entries(report: Report) -> tuple[Entry, ...]:
    """The report's references in order, each with a key of its own."""
    sources = {s.id: s for s in report.sources}
    keys: set[str] = set()
    found = []
    for reference in report.references:
        source = sources[reference.source]
        published = _ISO_DATE.match(one_line(source.published))
        parts = tuple(p for p in published.groups() if p) if published else ()
        url = wording.source_link(source)
        found.append(
            Entry(
                key=_key(source, parts[0] if parts else "", keys),
                number=reference.number,
                kind=source.kind,
                title=wording.source_title(source),
                url=url,
                doi=_doi(url),
                place="" if url else wording.source_place(source),
                published=parts,
                accessed=source.fetched_at,
                language=source.language if _LANGUAGE.fullmatch(source.language) else "",
            )
        )
    return tuple(found)


def _key(source: ReportSource, year: str, taken: set[str]) -> str:
    """E.g. "rance2021", "rance2021b", "rance-b": ASCII without signs that mean something, and none twice."""
    words = [_ascii(w) for w in re.findall(r"\w+", wording.source_title(source))]
    host = (urlsplit(wording.source_link(source)).hostname or "").removeprefix("www.").split(".")[0]
    named = next((w for w in words if len(w) > 1 and w not in _SKIPPED and not w.isdigit()), "") or _ascii(host)
    stem, number = (named[:30] or "source") + year, 1
    key = stem
    while key in taken:
        number += 1
        key = f"{stem}{'' if year else '-'}{_suffix(number)}"
    taken.add(key)
    return key


def _suffix(number: int) -> str:
    """b to z, then z27, z28 ..."""
    return chr(ord("a") + number - 1) if number <= 26 else f"z{number}"


def _ascii(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]", "", plain.lower())


def _doi(url: str) -> str:
    parts = urlsplit(url)
    name = unquote(parts.path).lstrip("/")
    return name if parts.hostname in _DOI_HOSTS and _DOI.fullmatch(name) else ""


# ---- BibTeX

_BIBTEX_TYPES = {SourceKind.WEB: "online", SourceKind.ACADEMIC: "online"}  # others: misc
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\textbraceleft{}",  # \{ would count as a brace where an entry's end is looked for
    "}": r"\textbraceright{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
}
_LATEX_SIGN = re.compile(r"[\\{}~^$&%#_]")


def to_bibtex(report: Report) -> str:
    """The references as BibTeX in UTF-8, for biber and BibTeX alike; titles keep their capitals."""
    return "\n".join(_bibtex(e) for e in entries(report))


def _bibtex(entry: Entry) -> str:
    lines = [f"  {name} = {{{value}}}" for name, value in _bibtex_fields(entry)]
    kind = _BIBTEX_TYPES.get(entry.kind, "misc") if entry.url else "misc"
    return f"@{kind}{{{entry.key},\n" + ",\n".join(lines) + "\n}\n"


def _bibtex_fields(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "title", f"{{{latex(entry.title)}}}"
    if entry.date:
        yield "date", entry.date
        yield "year", entry.published[0]
    if entry.doi:
        yield "doi", entry.doi.replace("{", "%7B").replace("}", "%7D").replace("\\", "%5C")
    if entry.url:
        yield "url", entry.url  # verbatim: percent-encoded, so without braces
        yield "urldate", entry.accessed.date().isoformat()
    else:
        yield "howpublished", latex(wording.KIND_NAMES[entry.kind].capitalize())
    note = f"Reference {entry.number}"
    if entry.place:
        place = f": {entry.place}" if entry.place != entry.title else ""
        note = f"{note}{place}, read {entry.accessed.date().isoformat()}"
    yield "note", latex(note)
    if entry.language:
        yield "language", entry.language


def latex(text: str) -> str:
    """Text in which no sign means anything to TeX, and whose braces are balanced."""
    return _LATEX_SIGN.sub(lambda m: _LATEX[m.group()], text)


# ---- RIS

_RIS_TYPES = {SourceKind.WEB: "ELEC", SourceKind.ACADEMIC: "ELEC", SourceKind.DATABASE: "DBASE"}  # others: GEN


def to_ris(report: Report) -> str:
    """The references as RIS in UTF-8; its lines end as the format asks, with CR LF."""
    return "".join("\r\n".join(_ris(e)) + "\r\n\r\n" for e in entries(report))


def _ris(entry: Entry) -> Iterator[str]:
    yield f"TY  - {_RIS_TYPES.get(entry.kind, 'GEN') if entry.url or entry.kind is SourceKind.DATABASE else 'GEN'}"
    yield f"ID  - {entry.key}"
    yield f"TI  - {entry.title}"
    if entry.published:
        yield f"PY  - {entry.published[0]}"
        year, month, day = (*entry.published, "", "")[:3]
        yield f"DA  - {year}/{month}/{day}/"
    if entry.doi:
        yield f"DO  - {entry.doi}"
    if entry.url:
        yield f"UR  - {entry.url}"
    elif entry.place != entry.title:
        yield f"L1  - {entry.place}" if entry.kind is SourceKind.LIBRARY else f"N2  - {entry.place}"
    yield f"Y2  - {entry.accessed:%Y/%m/%d}/"
    if entry.language:
        yield f"LA  - {entry.language}"
    yield f"M3  - {wording.KIND_NAMES[entry.kind]}"
    yield f"N1  - Reference {entry.number}"
    yield "ER  - "
