"""PDF: reading order, tables, hyphens, running titles, pages; and files that give no text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable

import pytest

from marg_ray.errors import Unreadable
from marg_ray.grounding.snapshots import Document
from marg_ray.sources.parse import parse
from tests.shared import DATA, case_file, needs_shared

WORDS = "The keeper of the basin measured the level twice a day and wrote it down in the ledger of the tower. "


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def made(draw: Callable[..., None], pages: int = 1) -> Document:
    """A PDF drawn by `draw(canvas, page)`, parsed."""
    from reportlab.lib.pagesizes import A4
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    for page in range(1, pages + 1):
        draw(canvas, page)
        canvas.showPage()
    canvas.save()
    return parse(out.getvalue(), name="made.pdf")


def lines(
    canvas: object, x: float, y: float, text: str, width: int = 90, font: str = "Helvetica", size: int = 10
) -> float:
    """Draw text in lines of `width` letters downwards; return where the next line goes."""
    canvas.setFont(font, size)  # type: ignore[attr-defined]
    line = ""
    for word in [*text.split(), ""]:
        if line and (not word or len(line) + len(word) >= width):
            canvas.drawString(x, y, line)  # type: ignore[attr-defined]
            line, y = "", y - size * 1.25
        line = f"{line} {word}".strip()
    return y


# -- the cases -------------------------------------------------------------------------------------------------


def test_two_columns_and_a_table() -> None:
    document = parse(case_file("PAR-03", "two-columns-and-table.pdf").read_bytes(), name="two.pdf")
    text = squeezed(document.text)
    assert (
        "each reading in a ledger. The ledger was kept in the tower until the fire of 1931, after which only the "
        "copies made by the harbour school remained. Those copies show a mean range of 6.4 metres"
    ) in text
    assert re.search(r"Beta.*320.*2027.*Gamma.*2030", text)
    gamma = text[text.index("Gamma") :]
    assert "320" not in gamma
    assert "240" not in gamma
    assert text.count("Table 1. Sites") == 1
    assert text.count("Readings of the old basin") == 1
    assert [p.kind for p in document.parts if p.kind == "heading"] == ["heading"]


def test_hyphens_and_footers() -> None:
    document = parse(case_file("PAR-03", "hyphens-and-footers.pdf").read_bytes(), name="hyphens.pdf")
    text = squeezed(document.text)
    wanted = "was postponed because of the high water in March. It took place in June without findings."
    assert text.count(wanted) == 1
    assert "Harbour office" not in text
    assert document.page_at(document.text.index("postponed")) == 1
    assert document.page_at(document.text.index("It took place")) == 2


@needs_shared
def test_every_sample_gives_text_or_a_reason() -> None:
    listed = json.loads((DATA / "pdf_samples" / "files.json").read_text("utf-8"))["data"]
    pages = {row["path"].replace("/", "__"): row.get("pages") for row in listed}
    files = sorted((DATA / "pdf_samples").glob("*.pdf"))
    assert files
    reasons: dict[str, str] = {}
    for path in files:
        try:
            document = parse(path.read_bytes(), name=path.name)
        except Unreadable as error:
            reasons[error.name] = error.why
            continue
        last = max((part.page or 0) for part in document.parts)
        assert 1 <= last <= (pages.get(path.name) or 999), path.name
    assert set(reasons) <= {path.name for path in files}
    assert len(reasons) <= 8
    assert all(re.search(r"password|pictures|no text", why) for why in reasons.values())


# -- by kind ---------------------------------------------------------------------------------------------------


def test_columns_drawn_line_by_line_across_the_gap() -> None:
    left, right = (
        ["Left words go on here and"] * 12 + ["left ends."],
        ["Right words go on here and"] * 12 + ["right ends."],
    )

    def draw(canvas: object, page: int) -> None:
        for i, (a, b) in enumerate(zip(left, right, strict=True)):
            canvas.drawString(60, 760 - 14 * i, a)  # type: ignore[attr-defined]
            canvas.drawString(320, 760 - 14 * i, b)  # type: ignore[attr-defined]

    text = squeezed(made(draw).text)
    assert text.index("left ends.") < text.index("Right words")


def test_title_across_two_columns_comes_first() -> None:
    def draw(canvas: object, page: int) -> None:
        lines(canvas, 60, 790, "Of tides and their measuring in the old harbour", font="Helvetica-Bold", size=16)
        lines(canvas, 60, 750, WORDS * 6 + "Left ends.", width=40)
        lines(canvas, 320, 750, WORDS * 6 + "Right ends.", width=40)

    document = made(draw)
    text = squeezed(document.text)
    assert text.startswith("Of tides")
    assert text.index("Left ends.") < text.index("Right ends.")
    assert document.title.startswith("Of tides")


def test_table_without_rulings_keeps_its_rows() -> None:
    def draw(canvas: object, page: int) -> None:
        y = lines(canvas, 60, 780, WORDS * 3)
        for row in (
            ["Site", "Output", "Year"],
            ["Alpha", "240", "2021"],
            ["Beta", "320", "2027"],
            ["Gamma", "", "2030"],
        ):
            for x, cell in zip((60, 220, 380), row, strict=True):
                canvas.drawString(x, y - 20, cell)  # type: ignore[attr-defined]
            y -= 16
        lines(canvas, 60, y - 50, WORDS * 3)

    text = made(draw).text
    assert re.search(r"Alpha.{0,12}240.{0,10}2021", text)
    assert re.search(r"Beta.{0,12}320.{0,10}2027", text)


def test_headings_by_size_get_levels_and_paragraphs_stand_apart() -> None:
    def draw(canvas: object, page: int) -> None:
        y = lines(canvas, 60, 780, "Harbour report", font="Helvetica-Bold", size=20)
        y = lines(canvas, 60, y - 10, "Gates", font="Helvetica-Bold", size=14)
        y = lines(canvas, 60, y - 10, WORDS * 3)
        y = lines(canvas, 60, y - 10, "Pumps", font="Helvetica-Bold", size=14)
        lines(canvas, 60, y - 10, WORDS * 3)

    document = made(draw)
    headings = [(p.level, document.text[p.start : p.end]) for p in document.parts if p.kind == "heading"]
    assert headings == [(1, "Harbour report"), (2, "Gates"), (2, "Pumps")]
    assert [p.kind for p in document.parts].count("paragraph") == 2


def test_paragraph_goes_on_over_the_page_and_running_titles_go() -> None:
    def draw(canvas: object, page: int) -> None:
        canvas.setFont("Helvetica", 9)  # type: ignore[attr-defined]
        canvas.drawString(60, 815, f"Harbour report {2020 + page}")  # type: ignore[attr-defined]
        canvas.drawString(290, 30, str(page))  # type: ignore[attr-defined]
        lines(
            canvas, 60, 770, WORDS * 8 + "It was kept open by the" if page == 1 else "keeper until noon. " + WORDS * 8
        )

    document = made(draw, pages=2)
    text = squeezed(document.text)
    assert "It was kept open by the keeper until noon." in text
    assert "Harbour report" not in text
    assert not re.search(r"\b[12] keeper|the [12]\b", text)


def test_words_cut_at_line_ends_are_put_together_but_compounds_stay() -> None:
    def draw(canvas: object, page: int) -> None:
        canvas.setFont("Helvetica", 10)  # type: ignore[attr-defined]
        for i, line in enumerate(
            ("The inspection was post-", "poned for a state-of-the-", "art reason of the keeper.")
        ):
            canvas.drawString(60, 700 - 12.5 * i, line)  # type: ignore[attr-defined]

    assert "was postponed for a state-of-the-art reason" in made(draw).text


def test_terms_in_other_letters_are_kept_with_what_explains_them() -> None:
    def draw(canvas: object, page: int) -> None:
        y = lines(canvas, 60, 780, WORDS * 3)
        y = lines(canvas, 60, y - 8, "ebb", font="Courier")
        y = lines(canvas, 90, y, "Falling water, which lasts for six hours. " * 3, width=80)
        lines(canvas, 60, y - 8, WORDS * 3)

    document = made(draw)
    assert [(p.kind, p.term) for p in document.parts][1:] == [
        ("list_item", ""),
        ("paragraph", "ebb"),
        ("paragraph", ""),
    ]


def test_contents_pages_with_leaders_go() -> None:
    def draw(canvas: object, page: int) -> None:
        if page == 1:
            y = lines(canvas, 60, 780, "Contents", font="Helvetica-Bold", size=16)
            for n in range(8):
                y = lines(canvas, 60, y, f"{n} Chapter on gates . . . . . . . . . . . . . . {n + 3}", width=200)
        else:
            lines(canvas, 60, 780, WORDS * 5)

    text = made(draw, pages=2).text
    assert "Chapter on gates" not in text
    assert "twice a day" in text


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_turned_pages_read_like_upright_ones(rotation: int) -> None:
    def draw(canvas: object, page: int) -> None:
        canvas.setPageRotation(rotation)  # type: ignore[attr-defined]
        lines(canvas, 60, 780, WORDS * 4)

    assert "twice a day and wrote it down" in squeezed(made(draw).text)


def test_cut_short_or_locked_files_say_so() -> None:
    body = case_file("PAR-03", "two-columns-and-table.pdf").read_bytes()
    for cut in (20, 200, 400):
        with pytest.raises(Unreadable, match=r"damaged|truncated|no text"):
            parse(body[:cut], name="cut.pdf")
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, encrypt="secret")
    canvas.drawString(60, 700, "hidden")
    canvas.save()
    with pytest.raises(Unreadable, match="password"):
        parse(out.getvalue(), name="locked.pdf")


def test_a_page_without_text_is_no_document() -> None:
    with pytest.raises(Unreadable, match="no text"):
        made(lambda canvas, page: canvas.rect(10, 10, 50, 50))
