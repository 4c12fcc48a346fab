"""A sentence's statements: what is taken apart, what is carried along, and what is left whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.grounding.claims import MOST, split_claims


def texts(sentence: str) -> list[str]:
    return [claim.text.rstrip(".") for claim in split_claims(sentence)]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "The gates were renewed in 2019; the turbines reach 240 MW.",
            ["The gates were renewed in 2019", "The turbines reach 240 MW"],
        ),
        (
            "EDF renewed the gates, and the turbines were replaced in 2020.",
            ["EDF renewed the gates", "The turbines were replaced in 2020"],
        ),
        (
            "The station opened in 1966 and has 24 turbines.",
            ["The station opened in 1966", "The station has 24 turbines"],
        ),
        (
            "The barrage was built in 1966 and demolished in 1990.",
            ["The barrage was built in 1966", "The barrage was demolished in 1990"],
        ),
        (
            "The barrage was built in 1966 but is not used today.",
            ["The barrage was built in 1966", "The barrage is not used today"],
        ),
        (
            "According to EDF, the gates were renewed and the turbines were replaced.",
            ["According to EDF, the gates were renewed", "According to EDF, the turbines were replaced"],
        ),
        (
            "The operator said that the gates were renewed and that output rose by 3 %.",
            ["The operator said that the gates were renewed", "The operator said that output rose by 3 %"],
        ),
        (
            "If the gates fail, the basin empties and the turbines are stopped.",
            ["If the gates fail, the basin empties", "If the gates fail, the turbines are stopped"],
        ),
        (
            "The Rance station, which opened in 1966, produces 540 GWh a year.",
            ["The Rance station produces 540 GWh a year", "The Rance station opened in 1966"],
        ),
        (
            "The Rance station, built in 1966, produces 540 GWh a year.",
            ["The Rance station produces 540 GWh a year", "The Rance station was built in 1966"],
        ),
        (
            "The Rance station, a barrage in Brittany, was closed in 1996.",
            ["The Rance station was closed in 1996", "The Rance station was a barrage in Brittany"],
        ),
        (
            "EDF renewed the gates, which cost $1.2 million.",
            ["EDF renewed the gates", "The gates cost $1.2 million"],
        ),
        (
            "The Rance station (built in 1966) produces 540 GWh a year.",
            ["The Rance station produces 540 GWh a year", "The Rance station was built in 1966"],
        ),
        (
            "The ore contains copper, zinc and lead.",
            ["The ore contains copper", "The ore contains zinc", "The ore contains lead"],
        ),
        (
            "An explosion at the plant injured six people and sparked a fire.",
            ["An explosion at the plant injured six people", "An explosion at the plant sparked a fire"],
        ),
        (
            "The operator, which studied the gates in 1990, expressed regret in May 2018 while EDF was silent.",
            [
                "The operator expressed regret in May 2018",
                "EDF was silent",
                "The operator studied the gates in 1990",
            ],
        ),
        ("| Rance | 240 MW | 1966 |", ["Rance; 240 MW", "Rance; 1966"]),
        ("Name: Rance; Power: 240 MW; Opened: 1966", ["Name: Rance; Power: 240 MW", "Name: Rance; Opened: 1966"]),
    ],
)
def test_statements_are_told_apart(sentence: str, expected: list[str]) -> None:
    assert texts(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "The station and its turbines were renewed in 2019.",
        "The station produces power for homes and offices in Brittany.",
        "Neither the gates nor the turbines were renewed in 2019.",
        "No station was renewed and was reopened in 2019.",
        "The gates will be renewed and opened if EDF agrees.",
        "The gates were not renewed in 2019 and opened in 2020.",
        "EDF reportedly renewed the gates and replaced the turbines.",
        "EDF renewed the gates that were old and were leaking.",
        "EDF renewed the gates built in 1966 and opened in 1970.",
        "The output rose, EDF said, and the gates were renewed.",
        "Output may rise and fall with the tide.",
        "EDF denied that the gates leaked and that the turbines failed.",
        "The wall between the gates and the basin is 3 metres high.",
        "The minister called it “a success that grew and was copied” in 1970.",
        "Copper and zinc together cost 3 million euros in 2019.",
        "The ore does not contain copper, zinc and lead.",
        "She was a director and the second governor of Texas, known for her notes.",
        "The board met old and retired workers in 1990.",
        "Only the Rance station, built in 1966, produces power.",
        "They feared that the gates leaked and the turbines were lost.",
        "The operator said that the gates were renewed, but the turbines were lost.",
        "Die Anlage wurde 1966 eröffnet und hat 24 Turbinen.",
        "La centrale a été ouverte en 1966 et compte 24 turbines.",
        "潮汐电站于1966年开放，并有24台涡轮机。",
        "Why was the station built and who was in charge?",
        "It works.",
        "",
    ],
)
def test_what_cannot_be_parted_safely_stays_whole(sentence: str) -> None:
    (claim,) = split_claims(sentence)
    assert (claim.text, claim.start, claim.end) == (sentence, 0, len(sentence))


def test_a_statement_says_where_it_stands() -> None:
    sentence = "In 2019 the gates were renewed, and the turbines were replaced in 2020."
    first, second = split_claims(sentence)
    assert sentence[first.start : first.end] == "In 2019 the gates were renewed"
    assert sentence[second.start : second.end] == "the turbines were replaced in 2020"


_PIECES = st.sampled_from(
    """
        the station EDF gates it , ; and but which who was were not has opened built in 1966 (a dam) that if
        said copper . : | “no” renewed costs may
        """.split()  # noqa: SIM905
)


@given(st.lists(_PIECES, max_size=25).map(" ".join) | st.text(max_size=80))
def test_any_text_has_statements_inside_it(text: str) -> None:
    claims = split_claims(text)
    assert 1 <= len(claims) <= MOST
    for claim in claims:
        assert 0 <= claim.start <= claim.end <= len(text)
        assert claim.text or not text
    negated = sum(word in ("not", "no") for word in text.lower().split())
    if len(claims) > 1 and negated:
        assert any(w in claim.text.lower() for claim in claims for w in ("not", "no"))
