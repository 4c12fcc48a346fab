"""Quotations, a writer who speaks of himself, denials of what nobody denied, and two statements run into one."""

from __future__ import annotations

import pytest

from marg_ray.grounding.alignment import Unit, passage
from marg_ray.grounding.verify import check_sentence
from marg_ray.grounding.voices import lone_denial
from marg_ray.records import Evidence, Verdict


def kinds(text: str, *quotes: str) -> list[str]:
    evidence = [Evidence(id=f"e{n}", source="s", quote=q, start=0, end=len(q)) for n, q in enumerate(quotes)]
    return [c.kind for c in check_sentence(text, evidence).complaints]


SPEECH = "The minister told parliament that the plan was a mistake and would be very, very costly for the region."


@pytest.mark.parametrize(
    ("text", "misquoted"),
    [
        ('The minister told parliament that the plan was "a mistake and would be very, very costly".', False),
        ('The minister told parliament that the plan was "a mistake ... very costly for the region".', False),
        ('The minister told parliament that the plan "was a mistake that will cost the region dearly".', True),
        ("The minister told parliament that the plan “was a shame for all of the region”.", True),
        ('The minister told parliament, in "The Great Plan of the Region", that it was a mistake.', False),  # a title
        ('The minister told parliament that the plan was "costly".', False),
    ],
)
def test_words_in_quotation_marks_stand_so_in_a_passage(text: str, misquoted: bool) -> None:
    assert ("quotation" in kinds(text, SPEECH)) is misquoted


GREEN = "Green is the colour between blue and yellow on the visible spectrum, and it is common in nature."


@pytest.mark.parametrize(
    ("text", "speaks"),
    [
        ("My favourite colour is green, between blue and yellow.", True),
        ("I think green is the colour between blue and yellow.", True),
        ("I'm sure green is the colour between blue and yellow.", True),
        ("Green is the colour between blue and yellow.", False),
        ("Type I colours lie between blue and yellow on the visible spectrum.", False),
    ],
)
def test_nobody_can_back_what_the_writer_says_of_himself(text: str, speaks: bool) -> None:
    assert ("speaker" in kinds(text, GREEN)) is speaks


def test_who_speaks_of_himself_may_be_quoted() -> None:
    said = "I have always thought that my garden is the best place in the world, the poet said in May."
    assert "speaker" not in kinds("I have always thought that my garden is the best place in the world.", said)
    assert "speaker" not in kinds('The poet said: "I am sure it is the best place in the world."', "The poet was sure.")


def test_a_denial_needs_one_in_the_passages() -> None:
    walk = "The relation between walking in traffic areas and lung function in elderly adults was studied in London."
    claim = Unit("No effect of the air in London on elderly adults is known.")
    assert "deny nothing" in lone_denial(claim, [passage(walk)])
    assert lone_denial(claim, [passage(walk), passage("Elsewhere, no relation was found.")]) == ""
    assert lone_denial(Unit("Effects of the air in London on elderly adults are known."), [passage(walk)]) == ""


POLL = (
    "Emanuel had about 45 per cent of the votes in a poll of likely voters that was published on Monday. "
    "His rival has more supporters on the south side. "
    "He had been ahead of four other candidates in the election of February."
)


@pytest.mark.parametrize(
    ("text", "spliced"),
    [
        ("Emanuel had about 45 per cent of the votes ahead of four other candidates in the election.", True),
        (
            "Emanuel had about 45 per cent of the votes in a poll, ahead of four other candidates in the election.",
            False,
        ),
        ("Emanuel had about 45 per cent of the votes in a poll of likely voters published on Monday.", False),
        ("He had been ahead of four other candidates in the election of February.", False),
    ],
)
def test_two_statements_are_not_run_into_one(text: str, spliced: bool) -> None:
    assert ("splice" in kinds(text, POLL)) is spliced


@pytest.mark.parametrize(
    ("text", "passage"),
    [
        ("About 26,000 Yanomami live in Brazil.", "There are about 26, 000 Yanomami living in Brazil."),
        ("His weight fell to 102.5 kg.", "His weight fell from 105kg to 102. 5kg this year."),
        ("The band was together from 2007 to 2011.", "The band was together in later years (2007–11)."),
        ("Barcelona will offer £50 million for him.", "Barcelona will offer £ 50 m for him."),
        ("Third, fish live in water and have bright colours.", "Fish live in water and have bright colours."),
        (
            "He played in two bands: Greta and Audioslave.",
            "He played in the band Greta, and in Audioslave, which is a band too.",
        ),
        ("Chronic kidney disease (CKD) is common.", "Chronic kidney disease is common."),
        ("NF-kB-dependent expression rises with age.", "The expression that depends on NF-kB rises with age."),
        ("The U.S. Supreme Court heard the case.", "The United States Supreme Court heard the case."),
        (
            "Former Manchester player Carlos Tevez has joined the club.",
            "Manchester's Carlos Tevez has joined the club.",
        ),
        (
            "The virus and the cells feed each other in the body.",
            "The virus feeds the cells in the body, which feed it.",
        ),
    ],
)
def test_another_way_to_write_it_is_no_fault(text: str, passage: str) -> None:
    assert kinds(text, passage) == []


@pytest.mark.parametrize(
    ("text", "passage", "kind"),
    [
        ("About 27,000 Yanomami live in Brazil.", "There are about 26, 000 Yanomami living in Brazil.", "number"),
        ("The band was together from 2007 to 2012.", "The band was together in later years (2007–11).", "date"),
        (
            "He played in three bands in all: Greta and Audioslave.",
            "He played in Greta and in Audioslave.",
            "number word",
        ),
        ("Chronic kidney disease (XYZ) is common.", "Chronic kidney disease is common.", "name"),
        ("HBV-dependent expression rises with age.", "The expression that depends on NF-kB rises with age.", "name"),
    ],
)
def test_and_what_differs_is_still_told(text: str, passage: str, kind: str) -> None:
    found = kinds(text, passage)
    assert found
    assert kind in found or found[0] in ("number", "figure", "date")


def test_the_number_of_an_item_is_none() -> None:
    homer = "Homer is the name given to the author of two epic poems."
    evidence = [Evidence(id="e", source="s", quote=homer, start=0, end=len(homer))]
    assert check_sentence("4. Homer is the name given to the author.", evidence).verdict is Verdict.SUPPORTED
