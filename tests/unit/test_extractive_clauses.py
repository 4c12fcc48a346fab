"""Questions taken apart: clauses, what each asks for, pronouns, things that are asked about one by one."""

from __future__ import annotations

import pytest

from marg_ray.models.extractive.clauses import Kind, as_title, clauses, kind_of, strip_lead, topic_of
from marg_ray.models.extractive.enumerations import items, of_items
from marg_ray.models.extractive.facets import names_item
from marg_ray.models.extractive.words import short_title

FLOODS = "What caused the 2022 Pakistan floods, what damage did they do and how did the world respond?"


def texts(question: str, titles: tuple[str, ...] = ()) -> list[str]:
    return [c.text for c in clauses(question, titles)]


class TestClauses:
    def test_each_thing_that_is_asked_is_a_clause(self) -> None:
        assert texts(FLOODS, ("2022 Pakistan floods",)) == [
            "What caused the 2022 Pakistan floods?",
            "What damage did the 2022 Pakistan floods do?",
            "How did the world respond?",
        ]

    def test_kinds(self) -> None:
        found = clauses(FLOODS, ("2022 Pakistan floods",))
        assert [c.kind for c in found] == [Kind.CAUSE, Kind.CONSEQUENCE, Kind.RESPONSE]

    def test_a_later_clause_is_searched_with_the_topic(self) -> None:
        assert "2022 Pakistan floods" in clauses(FLOODS, ("2022 Pakistan floods",))[2].query

    def test_without_a_topic_the_first_clause_lends_its_words(self) -> None:
        second = clauses("How do I upgrade from one release to the next and what can go wrong?")[1]
        assert second.text == "What can go wrong?"
        assert "upgrade" in second.query

    @pytest.mark.parametrize(
        ("question", "second"),
        [
            ("What is a febrile seizure and how is it treated?", "How is a febrile seizure treated?"),
            ("Who was Christian Atsu and how did he die?", "How did Christian Atsu die?"),
            (
                "What are the 2022 Pakistan floods, and what were their causes?",
                "What were the 2022 Pakistan floods' causes?",
            ),
        ],
    )
    def test_pronouns_give_way_to_the_topic(self, question: str, second: str) -> None:
        titles = ("Febrile seizure", "Christian Atsu", "2022 Pakistan floods")
        assert texts(question, titles)[1] == second

    @pytest.mark.parametrize(
        "question",
        [
            "What did Simon and Garfunkel do?",
            "When was OceanGate founded and by whom?",
            "When and where was the treaty signed?",
            "Which people who live in Rome, Paris or Berlin speak Latin?",
            "What should I see and do in Rome?",
        ],
    )
    def test_what_is_one_question_stays_one(self, question: str) -> None:
        assert texts(question) == [question]

    def test_the_scene_that_is_set_first_is_no_clause(self) -> None:
        scene = "Our company builds engines and has been thinking about moving all of its data to a cloud for years."
        assert texts(f"{scene} Is it safe? What does it cost?") == ["Is it safe?", "What does it cost?"]

    @pytest.mark.parametrize(
        "question",
        [
            "Was verursachte die Flut in Pakistan und welche Schäden gab es?",
            "什么是机器学习，它有什么用？",
            "Quelles sont les causes de la crise et comment la résoudre ?",
        ],
    )
    def test_english_rules_leave_other_languages_alone(self, question: str) -> None:
        assert texts(question) == [question]

    @pytest.mark.parametrize("question", ["?", "a", "and", "...", "and and and", ", , ,", "what"])
    def test_there_is_always_a_clause(self, question: str) -> None:
        assert clauses(question)


class TestLead:
    @pytest.mark.parametrize(
        ("question", "rest"),
        [
            ("Write a report on the collapse of a bank", "the collapse of a bank"),
            ("Please give me a short overview of tidal power", "tidal power"),
            ("Tell me about OceanGate", "OceanGate"),
            ("Can you explain how tides work?", "how tides work?"),
            ("What is a report?", "What is a report?"),
        ],
    )
    def test_the_order_is_not_the_question(self, question: str, rest: str) -> None:
        assert strip_lead(question) == rest

    def test_titles(self) -> None:
        assert as_title("how packages move to testing") == "How packages move to testing"
        assert as_title("how do packages move") == "How do packages move?"


class TestKind:
    @pytest.mark.parametrize(
        ("clause", "kind"),
        [
            ("What damage did the storms cause?", Kind.CONSEQUENCE),
            ("Why did the bank fail?", Kind.CAUSE),
            ("How did authorities prepare?", Kind.PREPARE),
            ("How do I install it?", Kind.HOW_TO),
            ("How many people live there?", Kind.NUMBER),
            ("In which year was it founded?", Kind.WHEN),
            ("Where is it?", Kind.WHERE),
            ("Who wrote it?", Kind.WHO),
            ("How does a tide mill differ from a barrage?", Kind.COMPARE),
            ("What are the risks?", Kind.RISK),
            ("How is glass made?", Kind.MAKE),
            ("What is glass?", Kind.WHAT),
        ],
    )
    def test_kind(self, clause: str, kind: Kind) -> None:
        assert kind_of(clause) is kind


class TestItems:
    @pytest.mark.parametrize(
        ("question", "names"),
        [
            ("What is the difference between Depends, Recommends and Suggests?", ("Depends", "Recommends", "Suggests")),
            ("What is the difference between a list and a tuple in Python?", ("list", "tuple")),
            ("stable vs testing", ("stable", "testing")),
            ("Compare Storm Eunice and Hurricane Hilary", ("Storm Eunice", "Hurricane Hilary")),
            ("What are the effects of tides on health, economy and education?", ("health", "economy", "education")),
        ],
    )
    def test_names(self, question: str, names: tuple[str, ...]) -> None:
        found = items(question)
        assert found is not None
        assert found.names == names

    def test_two_names_are_things_of_their_own_only_where_each_has_a_document(self) -> None:
        question = "How did people prepare for Hurricane Idalia and Cyclone Mocha?"
        assert items(question) is None
        assert items(question, ("Hurricane Idalia", "Cyclone Mocha")) is not None
        assert items(question, ("Hurricane Idalia and Cyclone Mocha",)) is None

    def test_a_clause_about_each_belongs_to_all(self) -> None:
        question = "What is the difference between Depends, Recommends and Suggests, and when should each be used?"
        first, second = clauses(question)
        found = items(first.text)
        assert found is not None
        assert of_items(second, found)
        assert not of_items(first, found)


def test_topic_is_the_longest_title_in_the_question() -> None:
    titles = ("Pakistan", "2022 Pakistan floods", "Floods")
    assert topic_of("What caused the 2022 Pakistan floods?", titles) == "the 2022 Pakistan floods"
    assert topic_of("How do I become a Debian developer?") == "Debian"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How do lagoons differ from barrages?", ("lagoons", "barrages")),
        ("What is the difference between tidal lagoons and tidal barrages?", ("lagoons", "barrages")),
        ("tidal stream versus tidal range", ("tidal stream", "tidal range")),
        ("Compare tidal lagoons with barrages in cost", ("tidal lagoons", "barrages")),
        ("What are the advantages of lagoons over barrages?", ("lagoons", "barrages")),
        ("How does tidal power compare with offshore wind in cost and output?", ("tidal power", "offshore wind")),
        ("How do ebb generation and flood generation differ?", ("ebb generation", "flood generation")),
        ("Is tidal power cheaper than offshore wind?", ("tidal power", "offshore wind")),
    ],
)
def test_comparisons(question: str, names: tuple[str, ...]) -> None:
    found = items(question)
    assert found
    assert found.names == names
    assert found.compared


@pytest.mark.parametrize("question", ["Is it better than that?", "Why is tidal power more expensive than wind?"])
def test_no_comparison_of_named_things(question: str) -> None:
    assert items(question) is None


@pytest.mark.parametrize(
    ("text", "item", "expected"),
    [
        ("No lagoon has been built.", "lagoons", True),
        ("Lagoons leave the estuary open.", "lagoon", True),
        ("Old batteries leak.", "battery", True),
        ("A battery leaks.", "batteries", True),
        ("It depends on tides.", "Depends", False),
        ("The gasworks closed.", "gas", False),
    ],
)
def test_a_thing_is_named_in_singular_and_plural(text: str, item: str, expected: bool) -> None:
    assert names_item(text, item) is expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("La Rance: the first large tidal power station", "La Rance"),
        ("Annapolis Royal and the tides of the Bay of Fundy", "Annapolis Royal"),
        ("TIDAL POWER STATIONS OF THE WORLD: A SURVEY", "Tidal power stations of the world"),
        ("OceanGate (company)", "OceanGate"),
        ("Chapter 3. Submersibles", "Submersibles"),
    ],
)
def test_short_titles(title: str, expected: str) -> None:
    assert short_title(title) == expected


def test_what_is_asked_of_a_topic_is_not_the_topic() -> None:
    assert topic_of("What are the environmental effects of tidal power?") == "tidal power"
