"""References for reference managers, read back with strict readers: nothing is lost, no sign breaks an entry."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.records import SourceKind
from marg_ray.report.assemble import build_report
from marg_ray.report.bibliography import to_bibtex, to_ris
from marg_ray.report.model import Reference, Report, ReportSource
from tests.report_sample import inputs
from tests.unit.test_report_markdown import cited_sources

REPORT = build_report(inputs())
READ = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)


def report_of(*sources: ReportSource) -> Report:
    references = tuple(Reference(number=n, source=s.id) for n, s in enumerate(sources, 1))
    return REPORT.model_copy(update={"sources": sources, "references": references})


def source(
    title: str, location: str = "https://example.org/", kind: SourceKind = SourceKind.WEB, **more: str
) -> ReportSource:
    id = f"{title}|{location}|{kind}"
    return ReportSource(id=id, title=title, location=location, kind=kind, fetched_at=READ, **more)


# ---- readers


def read_bibtex(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Entries as type, key, fields with their outer braces off. Braces count as BibTeX counts them: a backslash or a
    quotation mark changes nothing.

    Raises:
        AssertionError: something that BibTeX would not read.
    """
    found, at = [], 0
    while match := re.compile(r"[^@]*@").match(text, at):
        head = re.compile(r"(\w+)\{([A-Za-z0-9_:+-]+),\s*").match(text, match.end())
        assert head, text[match.end() : match.end() + 80]
        at, fields = head.end(), {}
        while text[at] != "}":
            name = re.compile(r"(\w+) = \{").match(text, at)
            assert name, text[at : at + 80]
            start, depth, at = name.end(), 1, name.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            assert name[1] not in fields
            fields[name[1]] = text[start : at - 1]
            at = re.compile(r",?\s*").match(text, at).end()  # type: ignore[union-attr]
        found.append((head[1], head[2], fields))
        at += 1
    return found


def plain(latex: str) -> str:
    """What TeX would print."""
    text = latex.removeprefix("{").removesuffix("}") if latex.startswith("{") else latex
    names = {
        "textbackslash": "\\",
        "textbraceleft": "{",
        "textbraceright": "}",
        "textasciitilde": "~",
        "textasciicircum": "^",
    }
    shown, at = "", 0
    while at < len(text):
        command = re.compile(r"\\(?:(\w+)\{\}|([$&%#_]))").match(text, at)
        if command:
            shown += names[command[1]] if command[1] else command[2]
            at = command.end()
        else:
            assert text[at] not in "\\{}~^$&%#", text
            shown += text[at]
            at += 1
    return shown


def read_ris(text: str) -> list[list[tuple[str, str]]]:
    """Records as tags and values.

    Raises:
        AssertionError: a line that is none of RIS.
    """
    found: list[list[tuple[str, str]]] = []
    assert text == "" or text.endswith("\r\n")
    for line in text.split("\r\n"):
        if not line:
            continue
        match = re.fullmatch(r"([A-Z][A-Z0-9])  - (.*)", line)
        assert match, line
        if match[1] == "TY":
            found.append([])
        found[-1].append((match[1], match[2]))
    for record in found:
        assert record[0][0] == "TY"
        assert record[-1] == ("ER", "")
        assert sum(tag == "ER" for tag, _ in record) == 1
    return found


# ---- the sample


def test_each_reference_is_an_entry_in_order() -> None:
    entries = read_bibtex(to_bibtex(REPORT))
    sources = {s.id: s for s in REPORT.sources}
    titles = [" ".join(sources[r.source].title.split()) for r in REPORT.references]
    assert [plain(fields["title"]) for _, _, fields in entries] == titles
    assert [dict(r)["TI"] for r in read_ris(to_ris(REPORT))] == titles


def test_a_web_page_has_its_address_and_both_dates() -> None:
    kind, key, fields = read_bibtex(to_bibtex(REPORT))[0]
    assert (kind, key) == ("online", "rance2021")
    assert fields["url"] == "https://example.org/wiki/Rance_(tidal)_station?x=[1]"
    assert (fields["date"], fields["year"], fields["urldate"]) == ("2021-05-02", "2021", "2026-03-14")
    record = dict(read_ris(to_ris(REPORT))[0])
    assert record["TY"] == "ELEC"
    assert (record["UR"], record["DA"], record["PY"], record["Y2"]) == (
        fields["url"],
        "2021/05/02/",
        "2021",
        "2026/03/14/",
    )


def test_a_file_has_its_path_and_no_address() -> None:
    kind, _, fields = read_bibtex(to_bibtex(REPORT))[1]
    assert kind == "misc"
    assert "url" not in fields
    assert "/home/reader/library/tidal survey (2019).pdf" in plain(fields["note"])
    assert (fields["year"], fields["date"]) == ("2019", "2019")
    record = dict(read_ris(to_ris(REPORT))[1])
    assert (record["TY"], record["L1"]) == ("GEN", "/home/reader/library/tidal survey (2019).pdf")


@pytest.mark.parametrize("kind", list(SourceKind))
@pytest.mark.parametrize("location", ["https://example.org/x", "a place", ""])
def test_every_kind_of_source_is_an_entry(kind: SourceKind, location: str) -> None:
    report = report_of(source("A title", location, kind))
    (entry,), (record,) = read_bibtex(to_bibtex(report)), read_ris(to_ris(report))
    assert ("url" in entry[2]) == location.startswith("https") == (entry[0] == "online" or "url" in entry[2])
    assert dict(record)["TI"] == "A title"


def test_a_doi_is_told() -> None:
    report = report_of(source("Paper", "https://doi.org/10.1000/ab(c)_1", SourceKind.ACADEMIC))
    assert read_bibtex(to_bibtex(report))[0][2]["doi"] == "10.1000/ab(c)_1"
    assert dict(read_ris(to_ris(report))[0])["DO"] == "10.1000/ab(c)_1"


@pytest.mark.parametrize("published", ["", "soon", "20215", "2021-13-01", "2021-05-40", "in 2021"])
def test_a_date_that_is_none_is_left_out_or_kept_as_far_as_it_is_one(published: str) -> None:
    report = report_of(source("T", published=published))
    assert read_bibtex(to_bibtex(report))[0][2].get("date", "") in ("", "2021", "2021-05")


def test_keys_are_unique_also_where_titles_are_not() -> None:
    report = report_of(*(source("The same, same title", f"https://example.org/{n}") for n in range(60)))
    keys = [key for _, key, _ in read_bibtex(to_bibtex(report))]
    assert len({k.lower() for k in keys}) == 60
    assert keys[:2] == ["same", "same-b"]


def test_a_title_without_latin_letters_takes_its_key_from_the_host() -> None:
    report = report_of(source("江厦潮汐电站", "https://www.tides.cn/一", published="1980"))
    ((_, key, fields),) = read_bibtex(to_bibtex(report))
    assert key == "tides1980"
    assert plain(fields["title"]) == "江厦潮汐电站"
    assert fields["url"].isascii()


NASTY = [
    "}{",
    "a{b",
    "{{{",
    "50% & $5 #1 _x_ ~ ^",
    "\\input{/etc/passwd}",
    '"quoted"',
    "@article{x,",
    "tail\\",
    "é ü 🌊",
    "TY - JOUR",
]


@pytest.mark.parametrize("title", NASTY)
def test_no_sign_in_a_title_or_place_breaks_an_entry(title: str) -> None:
    report = report_of(
        source(title, f"/docs/{title}.pdf", SourceKind.LIBRARY),
        source(f"{title}\nER  - ", f"https://example.org/?q={title}"),
    )
    entries, records = read_bibtex(to_bibtex(report)), read_ris(to_ris(report))
    assert [plain(f["title"]) for _, _, f in entries] == [title, f"{title} ER -"]
    assert f"/docs/{title}.pdf" in plain(entries[0][2]["note"])
    assert [dict(r)["TI"] for r in records] == [title, f"{title} ER -"]
    assert dict(records[0])["L1"] == f"/docs/{title}.pdf"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=12))
def test_anything_can_be_read_back(title: str, place: str, published: str) -> None:
    report = report_of(
        source(title, f"https://example.org/{place}", published=published), source(title, place, SourceKind.LIBRARY)
    )
    assert len(read_bibtex(to_bibtex(report))) == len(read_ris(to_ris(report))) == 2


def test_cit04_every_address_is_whole() -> None:
    report = cited_sources("CIT-04")
    from urllib.parse import unquote

    sources = {s.id: s for s in report.sources}
    for (_, _, fields), reference in zip(read_bibtex(to_bibtex(report)), report.references, strict=True):
        assert unquote(fields["url"]) == unquote(sources[reference.source].location)


def test_a_report_without_references_gives_none() -> None:
    assert read_bibtex(to_bibtex(report_of())) == read_ris(to_ris(report_of())) == []
