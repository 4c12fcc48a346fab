"""Conversation without a model: questions made whole, and what a message says of its writer."""

from __future__ import annotations

import pytest

from marg_ray.models.extractive.talking import facts, plan, standalone
from marg_ray.models.tasks import PlanTurn, Turn

RANCE = "How much power does La Rance give?"


def said(*texts: str) -> tuple[Turn, ...]:
    return tuple(Turn(role="assistant" if n % 2 else "user", text=text) for n, text in enumerate(texts))


@pytest.mark.parametrize(
    ("before", "question", "whole"),
    [
        ((), "When did it open?", "When did it open?"),
        ((RANCE, "240 MW."), "When did it open?", "When did it open (La Rance)?"),
        ((RANCE, "240 MW."), "And when did it open?", "when did it open (La Rance)?"),
        ((RANCE, "240 MW."), "What about Sihwa Lake?", "How much power does give Sihwa Lake?"),
        ((RANCE, "240 MW."), "Why?", "Why (La Rance)?"),
        ((RANCE, "240 MW."), "Which birds live in the Severn estuary?", "Which birds live in the Severn estuary?"),
        (
            ("I live in Kiel.", "Noted."),
            "What happens to fish that pass a dam?",
            "What happens to fish that pass a dam?",
        ),
        (
            (RANCE, "240 MW."),
            "Do fish that pass a barrage lose their way?",
            "Do fish that pass a barrage lose their way?",
        ),
        ((RANCE, "240 MW."), "How many stations are there in Korea?", "How many stations are there in Korea?"),
        ((RANCE, "240 MW.", "thanks", "Ask me."), "When did it open?", "When did it open (La Rance)?"),
    ],
)
def test_a_question_that_refers_is_made_whole(before: tuple[str, ...], question: str, whole: str) -> None:
    assert standalone(question, said(*before)) == whole


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("I work at a museum in Kiel. How high is the tide?", ["I work at a museum in Kiel."]),
        ("My secret word is HERON-A1.", ["My secret word is HERON-A1."]),
        ("Always answer in metric units.", ["Always answer in metric units."]),
        ("Am I late? Is my boat safe?", []),
        ("The Rance opened in 1966.", []),
        ("I " + "work " * 200 + ".", []),
    ],
)
def test_facts_are_what_the_writer_says_of_himself(message: str, kept: list[str]) -> None:
    assert facts(message) == kept


def test_a_second_try_searches_for_names_and_terms() -> None:
    first = plan(PlanTurn(question=RANCE, language="en"))
    second = plan(PlanTurn(question=RANCE, language="en", tried=tuple(first.queries)))
    assert second.queries
    assert second.queries[0].startswith("La Rance")
    assert plan(PlanTurn(question=RANCE, language="en", tried=(*first.queries, *second.queries))).queries == []
