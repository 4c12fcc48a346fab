"""Outlines without a model: the question's clauses and things, the sources' headings, the caller's own sections."""

from __future__ import annotations

from typing import Any

import pytest

from marg_ray.models.client import Call
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.extractive import ExtractiveModel
from marg_ray.models.extractive.planning import classify
from marg_ray.models.tasks import MakePlan, PlanIdea, ScoutHit
from marg_ray.records import Depth, OutlineEntry, RequestClass
from marg_ray.seams import in_thread

OCEAN = ScoutHit(
    title="OceanGate",
    headings=("OceanGate", "History", "Fleet of submersibles", "Implosion of Titan", "References", "See also"),
    relevance=0.9,
)


async def plan(question: str, depth: Depth = Depth.STANDARD, **more: Any) -> PlanIdea:
    fields: dict[str, Any] = {"language": "en", "max_sections": 6} | more
    model = ExtractiveModel(HashingEmbedder(), in_thread)
    task = MakePlan(question=question, depth=depth, **fields)
    return (await model.run(task, Call(session_id="s", task_id="t"))).output


async def titles(question: str, depth: Depth = Depth.STANDARD, **more: Any) -> list[str]:
    return [s.title for s in (await plan(question, depth, **more)).sections]


async def test_clauses_are_sections() -> None:
    assert await titles("What is tidal power, and how is it stored?", Depth.OVERVIEW) == [
        "What is tidal power?",
        "How is tidal power stored?",
    ]


async def test_listed_things_are_sections_and_share_the_other_clauses() -> None:
    idea = await plan("What is the difference between Depends, Recommends and Suggests, and when should each be used?")
    assert [s.title for s in idea.sections] == ["Depends", "Recommends", "Suggests"]
    assert all(any("be used" in q for q in s.queries) for s in idea.sections)


async def test_a_broad_question_gets_the_headings_of_its_article() -> None:
    found = await titles("Tell me about OceanGate", scout=(OCEAN,))
    assert found == ["Overview", "History", "Fleet of submersibles", "Implosion of Titan"]


REVIEW = ScoutHit(
    title="Environmental effects of tidal power: what has been observed",
    headings=("Barrages change the basin", "La Rance", "Fish and turbines", "What is not known",
              "Noise and the sea bed", "Taking energy out of the flow", "What reduces the harm"),
    relevance=0.8,
)  # fmt: skip
RANCE = ScoutHit(title="La Rance: the first large station", headings=("How the dam was built",), relevance=0.7)


async def test_a_document_titled_as_the_question_gives_its_headings() -> None:
    found = await titles("What are the environmental effects of tidal power?", scout=(RANCE, REVIEW))
    assert found[0] == "Overview"
    assert len(found) == 6
    assert set(found[1:]) <= set(REVIEW.headings)  # the document is not repeated in each
    assert "La Rance" not in found  # it has a document of its own


async def test_the_overview_still_asks_the_question() -> None:
    idea = await plan("What are the environmental effects of tidal power?", scout=(REVIEW,))
    assert idea.sections[0].title == "Overview"
    assert "environmental effects" in idea.sections[0].queries[0]


async def test_a_strange_document_is_named_by_its_short_title() -> None:
    found = await titles("Tell me about dams and barrages", scout=(RANCE.model_copy(update={"relevance": 0.9}),))
    assert not any("first large station" in t for t in found)


@pytest.mark.parametrize(
    ("snippet", "expected"),
    [
        ("A lagoon leaves the estuary open, a barrage closes it.", ["Comparison", "Lagoons", "Barrages"]),
        ("A barrage closes an estuary.", ["Lagoons", "Barrages"]),
    ],
)
async def test_compared_things_are_sections(snippet: str, expected: list[str]) -> None:
    scout = (ScoutHit(title="Tidal plants", snippet=snippet, relevance=0.9),)
    assert await titles("How do lagoons differ from barrages?", scout=scout) == expected


async def test_rows_of_a_table_are_compared() -> None:
    scout = (ScoutHit(title="stations.csv", snippet="station: Sihwa Lake; capacity: 254", relevance=0.9),)
    found = await titles("How do La Rance and Sihwa Lake compare in capacity?", scout=scout)
    assert found == ["Comparison", "La Rance", "Sihwa Lake"]


async def test_headings_of_other_documents_carry_their_document() -> None:
    other = ScoutHit(title="Chapter 3. Submersibles", headings=("History of private submersibles",), relevance=0.9)
    found = await titles("history of private submersibles and their builders", scout=(other,))
    assert not any(t == "History of private submersibles" for t in found)


async def test_apparatus_is_no_section() -> None:
    found = await titles("Tell me about OceanGate", Depth.DEEP, max_sections=10, scout=(OCEAN,))
    assert not {"References", "See also", "OceanGate"} & set(found[1:])


async def test_no_two_sections_with_one_title() -> None:
    twice = OCEAN.model_copy(update={"headings": ("History", "History", "The history")})
    found = await titles("Tell me about OceanGate", scout=(twice,))
    assert found == ["Overview", "History"]


async def test_the_callers_outline_is_taken_as_it_is() -> None:
    outline = (OutlineEntry(title="Costs", queries=("tidal power costs",)), OutlineEntry(title="Birds"))
    idea = await plan("What is tidal power?", outline=outline, scout=(OCEAN,))
    assert [s.title for s in idea.sections] == ["Costs", "Birds"]
    assert idea.sections[0].queries == ["tidal power costs"]
    assert idea.sections[1].queries


async def test_focus_areas_are_sections() -> None:
    assert "Environmental cost" in await titles("What is tidal power?", focus_areas=("environmental cost",))


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_never_more_sections_than_allowed(limit: int) -> None:
    question = "What is tidal power, who invented it, why is it rare and how is it stored?"
    assert len(await titles(question, max_sections=limit, focus_areas=("Cost", "Birds"))) == limit


@pytest.mark.parametrize("question", ["什么是潮汐发电？", "Was ist Gezeitenkraft und wie wird sie gespeichert?"])
async def test_other_languages_are_one_section(question: str) -> None:
    assert await titles(question, language="zh" if question[0] == "什" else "de") == [question]


@pytest.mark.parametrize("question", ["?", "x", "What " * 900, "A\nB\nC", "[1] **bold** <b>"])
async def test_odd_questions_have_a_plan(question: str) -> None:
    idea = await plan(question)
    assert idea.sections
    assert all(q.strip() for s in idea.sections for q in s.queries)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What caused the floods?", RequestClass.FULL_RESEARCH),
        ("Briefly, what is a tide?", RequestClass.QUICK_RESEARCH),
        ("Find papers on tidal barrages", RequestClass.RESEARCH_ONLY),
        ("Summarise the following text: tides rise.", RequestClass.ANALYZE_PROVIDED),
        ("Write a poem about tides", RequestClass.WRITE_ONLY),
        ("Write a report on tides", RequestClass.FULL_RESEARCH),
        ("Translate this into German", RequestClass.WRITE_ONLY),
        ("What evidence links tides and earthquakes?", RequestClass.FULL_RESEARCH),
    ],
)
def test_classes(question: str, expected: RequestClass) -> None:
    assert classify(question, Depth.STANDARD) is expected
