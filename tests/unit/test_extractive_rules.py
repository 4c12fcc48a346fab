"""Which sentences may be quoted, and which may open a quotation."""

from __future__ import annotations

import pytest

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.words import is_english, same_statement, unnumbered


@pytest.mark.parametrize(
    "sentence",
    [
        "The barrage opened in 1966.",
        "It is possible to build a barrage in five years.",
        "There are two types of barrage.",
        "In 1966, the barrage was opened.",
        "When a barrage is built, it changes the tides.",
        "12 people were killed when the wall collapsed.",
        "iPhone sales rose by a tenth.",
    ],
)
def test_stands_alone(sentence: str) -> None:
    assert rules.stands_alone(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "It opened in 1966.",
        "However, the barrage was late.",
        "These turbines work in both directions.",
        "The former is larger than the latter.",
        "When these things happen, the barrage is shut.",
        "As a result, the birds left.",
        "The next day, the gates were opened.",
        "On 6 February, he went missing.",
        "Except for two of the fields, they appear in the file.",
        "The decision was criticised by fishermen.",
        "and so the birds left.",
        '"Never again", said the minister.',
        "In this case, the turbines are stopped.",
        "1.75 billion (or US$8 million) for the victims.",
        "",
    ],
)
def test_needs_what_stood_before(sentence: str) -> None:
    assert not rules.stands_alone(sentence)


def test_other_languages_are_judged_by_their_first_letter_only() -> None:
    assert rules.stands_alone("Die Anlage wurde 1966 eröffnet.", english=False)
    assert not rules.stands_alone("und dann kamen die Vögel zurück.", english=False)


@pytest.mark.parametrize(
    "sentence",
    [
        "What is a barrage?",
        "The steps are as follows:",
        "sudo apt-get install -y foo=1.2 && ./run.sh --all",
        "Too short.",
        "The barrage (which opened in 1966 is the oldest of all.",
        "Power of the plants of the world",
        "The company applied for a loan for approx",
        "All flights to and from L.F",
        "The telethon raised funds for flood victims and received ₨",
        "1 2 3 4 5 6 7 8 9 10 11 12.",
    ],
)
def test_junk(sentence: str) -> None:
    assert rules.is_junk(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The barrage declares an absolute end of wading birds.",
        "Die Anlage hat eine Leistung von 240 Megawatt.",
        "Its 24 bulb turbines work in both directions of the tide",
    ],
)
def test_prose(sentence: str) -> None:
    assert not rules.is_junk(sentence, english=is_english(sentence))


def test_a_labelled_sentence_may_be_short() -> None:
    assert rules.is_junk("This declares a dependency.")
    assert not rules.is_junk("This declares a dependency.", labelled=True)


def test_signposts() -> None:
    assert rules.is_pointer("More information can be found at the project's page.")
    assert rules.is_pointer("For details, ask the library.")
    assert rules.is_deictic("The fields are described below.")
    assert rules.is_deictic("There were problems with the above synthesis.")
    assert not rules.is_deictic("The tide rises (as described above) twice a day.")
    assert not rules.is_pointer("The barrage is found to be safe.")


def test_same_statement() -> None:
    said = "The floods killed 1,739 people and destroyed 897,014 houses in Pakistan."
    assert same_statement(said, "In Pakistan the floods killed 1,739 people and destroyed 897,014 houses, it was said.")
    assert not same_statement(said, "The floods killed 2,000 people and destroyed 500,000 houses in Pakistan.")
    strong, absolute = "This declares a strong, but not absolute, dependency.", "This declares an absolute dependency."
    assert not same_statement(strong, absolute)


def test_numbers_of_headings() -> None:
    assert unnumbered("3.1.2. Maintain packages in stable") == "Maintain packages in stable"
    assert unnumbered("Chapter 2. Package management") == "Package management"
    assert unnumbered("2022 in sport") == "2022 in sport"


@pytest.mark.parametrize("text", ["Was ist der Grund für die Flut?", "什么是机器学习？", "¿Qué es la marea?", ""])
def test_not_english(text: str) -> None:
    assert not is_english(text)


@pytest.mark.parametrize("text", ["stable vs testing", "OceanGate", "Compare Storm Eunice and Hurricane Hilary"])
def test_english(text: str) -> None:
    assert is_english(text)


def test_a_subject_after_a_date_refers_back() -> None:
    assert not rules.stands_alone("In 25 years it generated 243 GWh of electricity.")
    assert rules.stands_alone("In 25 years the station generated 243 GWh of electricity.")
