"""Web pages: main text with headings, lists, terms, tables and code; walls told from documents."""

from __future__ import annotations

import pytest

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import parse
from tests.shared import case_file

PROSE = "The keeper measured the level of the basin twice a day and wrote each reading into a ledger by hand. "


def page(body: str, head: str = "<title>Tide</title>", name: str = "x.html") -> Document:
    return parse(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode(), name=name)


def kinds(document: Document) -> list[tuple[str, str]]:
    return [(p.kind, document.text[p.start : p.end]) for p in document.parts]


# -- structure -------------------------------------------------------------------------------------------------


def test_headings_keep_their_level_and_stand_apart() -> None:
    document = page(f"<article><h1>Gates</h1><p>{PROSE * 3}</p><h2>South</h2><p>{PROSE * 2}</p></article>")
    headings = [(p.level, document.text[p.start : p.end]) for p in document.parts if p.kind == "heading"]
    assert headings == [(1, "Gates"), (2, "South")]
    assert "South\n\nThe keeper" in document.text
    assert document.heading_path(len(document.text) - 5) == "Gates > South"


def test_definition_terms_are_kept_with_what_explains_them() -> None:
    ebb = "<dt>ebb</dt><dd><p>Falling water.</p><p>It lasts six hours.</p></dd>"
    dl = f"<dl>{ebb}<dt>flood</dt><dd>Rising water.</dd></dl>"
    document = page(f"<main><h1>Words</h1><p>{PROSE}</p>{dl}</main>", '<meta name="generator" content="Docutils">')
    explained = {document.text[p.start : p.end]: p.term for p in document.parts if p.term}
    assert explained == {"Falling water.": "ebb", "It lasts six hours.": "ebb", "Rising water.": "flood"}
    assert ("list_item", "ebb") in kinds(document)


def test_two_terms_with_one_explanation() -> None:
    document = page(f"<main><p>{PROSE}</p><dl><dt>spring</dt><dt>neap</dt><dd>Kinds of tide.</dd></dl></main>")
    assert [p.term for p in document.parts if p.term] == ["spring, neap"]


def test_table_rows_name_their_columns() -> None:
    names = "<tr><th>Site</th><th>Output</th></tr>"
    rows = f"{names}<tr><td>Alpha</td><td>240 kW</td></tr><tr><td>Beta</td><td>320 kW</td></tr>"
    document = page(f"<article><h1>Sites</h1><p>{PROSE * 3}</p><table>{rows}</table><p>{PROSE * 2}</p></article>")
    assert "Site: Alpha; Output: 240 kW\nSite: Beta; Output: 320 kW" in document.text


def test_spans_and_stacked_headers() -> None:
    table = (
        "<table><thead><tr><th>Site</th><th colspan=2>Output</th></tr>"
        "<tr><th></th><th>2021</th><th>2022</th></tr></thead>"
        "<tr><td rowspan=2>Alpha</td><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"
    )
    document = page(f"<main><h1>Sites</h1><p>{PROSE}</p>{table}<p>{PROSE}</p></main>")
    rows = [text for kind, text in kinds(document) if kind == "table_row"]
    assert rows == ["Site: Alpha; Output 2021: 1; 2022: 2", "Site: Alpha; Output 2021: 3; 2022: 4"]


def test_table_without_a_header_keeps_rows() -> None:
    table = (
        "<table><tr><td>Alpha</td><td>240</td><td>2021</td></tr><tr><td>Beta</td><td>320</td><td>2027</td></tr></table>"
    )
    assert "Alpha | 240 | 2021\nBeta | 320 | 2027" in page(f"<main><p>{PROSE * 2}</p>{table}</main>").text


def test_notes_set_as_tables_are_prose() -> None:
    head = "<tr><td rowspan=2><img></td><th>Note</th></tr>"
    note = f'<table summary="Note">{head}<tr><td><p>Doors stay shut.</p></td></tr></table>'
    document = page(f"<main><h1>Doors</h1><p>{PROSE * 2}</p>{note}<p>{PROSE}</p></main>")
    assert ("paragraph", "Doors stay shut.") in kinds(document)


def test_code_keeps_its_lines() -> None:
    document = page(f"<main><h1>Run</h1><p>{PROSE}</p><pre>make\n  install\n</pre><p>{PROSE}</p></main>")
    assert ("code", "make\n  install") in kinds(document)


def test_nested_lists_have_levels() -> None:
    lists = "<ul><li>Outer item<ul><li>Inner item</li></ul></li><li>Next item</li></ul>"
    document = page(f"<main><h1>List</h1><p>{PROSE * 2}</p>{lists}</main>")
    items = [(p.level, document.text[p.start : p.end]) for p in document.parts if p.kind == "list_item"]
    assert items == [(0, "Outer item"), (1, "Inner item"), (0, "Next item")]


def test_marks_of_the_page_are_no_text() -> None:
    body = (
        '<article><h1>Tide<span class="mw-editsection">[edit]</span><a class="headerlink" href="#t">¶</a></h1>'
        f'<p>It rose 6.4 m<sup class="reference"><a href="#cite_note-1">[1]</a></sup> in May'
        f'<sup class="noprint">[<i>update</i>]</sup>, and m<sup>2</sup> stayed. {PROSE * 3}</p>'
        f'<p>So it was<a class="footnote-reference" href="#id1">3</a>. {PROSE * 2}</p></article>'
    )
    text = page(body).text
    assert "It rose 6.4 m in May, and m2 stayed." in text
    assert "So it was. The keeper" in text
    assert "[edit]" not in text
    assert "¶" not in text


def test_navigation_goes_and_words_in_it_do_not_take_the_page_along() -> None:
    around = '<nav>Home News</nav><div class="sidebar"><a href="/">More</a></div>'
    body = f'{around}<div class="comments-page"><p>{PROSE * 4}</p></div>'
    text = page(body).text
    assert "Home News" not in text
    assert text.count("twice a day") == 4


def test_contents_list_of_a_manual_goes() -> None:
    toc = "<ul>" + "".join(f'<li><a href="#{i}">{i}. Section number {i}</a></li>' for i in range(12)) + "</ul>"
    text = page(
        f"<body><h1>Manual</h1>{toc}<p>{PROSE * 4}</p></body>", '<meta name="generator" content="DocBook">'
    ).text
    assert "Section number 5" not in text
    assert "twice a day" in text


def test_text_before_and_inside_inline_elements_is_not_torn() -> None:
    document = page(f"<main><p>One <b>bold</b>, <i>slanted<b>!</b></i> and<br>broken. {PROSE}</p></main>")
    assert document.text.startswith("One bold, slanted! and broken. The keeper")


def test_a_text_set_in_one_pre_is_read_as_text() -> None:
    text = "\n\n".join(f"{PROSE}\n{PROSE}" for _ in range(20))
    document = page(f"<pre>{text}</pre>")
    assert {p.kind for p in document.parts} == {"paragraph"}


def test_what_a_page_says_about_itself() -> None:
    date = '<meta property="article:published_time" content="2024-03-01T08:00:00Z">'
    head = f"<head><title>Tide rises - Harbour News</title>{date}</head>"
    body = f"<body><article><h1>Tide rises</h1><p>{PROSE * 4}</p></article></body>"
    document = parse(f'<html lang="en-GB">{head}{body}</html>'.encode(), name="x.html")
    assert (document.title, document.language, document.published) == ("Tide rises", "en", "2024-03-01")


def test_date_from_linked_data_and_address() -> None:
    script = '<script type="application/ld+json">{"@graph":[{"datePublished":"2023-05-06"}]}</script>'
    assert page(f"<article><p>{PROSE * 4}</p></article>", script).published == "2023-05-06"
    assert (
        page(f"<article><p>{PROSE * 4}</p></article>", name="https://x.org/2022/01/31/tide").published == "2022-01-31"
    )


def test_language_is_told_from_the_text_when_not_said() -> None:
    text = "Die Anlage wurde im Jahr 1966 gebaut und liefert seitdem Strom für die ganze Region an der Küste. "
    assert page(f"<article><p>{text * 4}</p></article>").language == "de"


# -- walls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("js-shell.html", "JavaScript"),
        ("bot-check.html", "blocked"),
        ("login-wall.html", "log-in"),
        ("soft-404.html", "not found"),
        ("looks-like.pdf", "not a PDF"),
        ("consent-wall.html", "consent"),
    ],
)
def test_pages_that_are_no_documents(name: str, why: str) -> None:
    for media_type in ("text/html", "application/pdf"):
        with pytest.raises(Unreadable, match=why if media_type == "text/html" else r"not a PDF|" + why):
            parse(case_file("FET-05", name).read_bytes(), name=name, media_type=media_type)


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("genuine-short.html", "High water at 14:20, 6.4 metres"),
        ("genuine-about-javascript.html", "The menu moved in version 88"),
    ],
)
def test_genuine_pages_pass(name: str, usable: str) -> None:
    assert usable in parse(case_file("FET-05", name).read_bytes(), name=name, media_type="text/html").text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("<h1>404</h1><p>Nothing here.</p>", "not found"),
        ("<h1>Seite nicht gefunden</h1><p>Bitte suchen Sie.</p>", "not found"),
        ("<h1>Attention Required!</h1><p>Please complete the security check.</p><p>Ray ID: 1</p>", "blocked"),
        ("<h1>Access denied</h1><p>You do not have permission to view this page.</p>", "blocked"),
        ("<h1>Log in</h1><form><input type=email><input type=password></form>", "log-in"),
        ("<h1>Subscribe to continue reading</h1><p>Choose a plan.</p>", "log-in"),
        ("<div id=app></div><script src=/a.js></script>", "JavaScript"),
        ("<div id=app>Loading...</div><script src=/a.js></script>", "JavaScript"),
        ("<p>This site requires JavaScript.</p><script src=/a.js></script>", "JavaScript"),
        ("<p>Wir verwenden Cookies.</p><button>Alle akzeptieren</button>", "consent"),
        ("", "empty"),
        ("<img src=a.png>", "empty"),
    ],
)
def test_the_whole_kind_of_walls(body: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        page(body, "<title></title>")


@pytest.mark.parametrize(
    "body",
    [
        f"<h1>Why error 404 is called so</h1><p>{PROSE * 8}</p>",
        f"<article><h1>Log in with a key</h1><p>{PROSE * 8}</p></article><form><input type=password></form>",
        f"<article><h1>Cookies and consent</h1><p>{PROSE * 8}</p></article><button>Accept all</button>",
        f"<article><h1>Captcha history</h1><p>{PROSE * 8}</p></article>",
        "<main><p>Gate 4 was not found on the list; the level was 6.4 metres at noon.</p></main>",
        "<main><h1>Tide</h1><p>High water at 14:20.</p></main><button>Accept all cookies</button>",
        "<main><p>Low water at 08:05, 1.2 metres.</p></main><script src=/a.js></script><a href=/login>Log in</a>",
    ],
)
def test_documents_that_look_like_walls_at_a_glance(body: str) -> None:
    assert page(body).text


def test_an_article_in_the_place_of_a_pdf_is_read() -> None:
    body = f"<!doctype html><html><body><article><h1>Paper</h1><p>{PROSE * 10}</p></article></body></html>".encode()
    assert "twice a day" in parse(body, name="https://x.org/paper.pdf", media_type="application/pdf").text
