from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.grounding.snapshots import Document, Part
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import Hit, SourceKind
from marg_ray.sources.ranking import LEAST, NEAR, OPENING, best_windows, rank_hits, without_echoes


def hit(title: str, snippet: str, kind: SourceKind = SourceKind.WEB, relevance: float = 0.0) -> Hit:
    return Hit(location=f"https://{title}.example", title=title, kind=kind, snippet=snippet, relevance=relevance)


def document(*paragraphs: str) -> Document:
    parts, at = [], 0
    for text in paragraphs:
        parts.append(Part(kind="paragraph", start=at, end=at + len(text)))
        at += len(text) + 2
    return Document(title="Norland", text="\n\n".join(paragraphs), parts=tuple(parts))


FILLER = [f"Paragraph {i} is about tea number {i} and how its leaves dry. " * 9 for i in range(40)]
STORM = "Storm Ada destroyed 420 houses in the city of Osterby. " * 9
BANK = "The bank of Norland failed after its deposits were withdrawn. " * 9


async def test_hits_are_ranked_by_what_they_share_with_the_query() -> None:
    hits = [
        hit("Tea", "How to grow tea."),
        hit("Storm", "A storm destroyed houses in Osterby."),
        hit("City", "Osterby is a city."),
    ]
    ranked = await rank_hits("houses destroyed by the storm in Osterby", hits, HashingEmbedder())
    assert [h.title for h in ranked] == ["Storm", "City", "Tea"]
    assert all(0 <= h.relevance <= 1 for h in ranked)


async def test_a_librarys_hits_keep_their_relevance_and_nothing_is_ranked_from_nothing() -> None:
    own = hit("Doc", "storm", SourceKind.LIBRARY, 0.42)
    assert (await rank_hits("storm", [own], HashingEmbedder()))[0].relevance == 0.42
    assert await rank_hits("storm", [], HashingEmbedder()) == ()


async def test_what_promises_most_by_words_and_order_is_embedded_by_its_beginning() -> None:
    tea = [hit(f"Tea {i}", f"How to grow tea of kind {i}.") for i in range(10)]
    storms = [
        hit(f"Storm {i}", f"Osterby after the storm, {' '.join(f'w{i}{n}' for n in range(60))}.") for i in range(9)
    ]
    embedder = HashingEmbedder()
    ranked = await rank_hits("storm in Osterby", [*tea, *storms], embedder)
    assert embedder.texts[0] == "storm in Osterby"
    assert [t.split(".")[0] for t in embedder.texts[1:]] == [f"Storm {i}" for i in range(NEAR)]
    assert all(len(t) <= OPENING + len("Storm 1. ") for t in embedder.texts[1:])
    assert {h.title for h in ranked[:9]} == {h.title for h in storms}
    assert len(ranked) == 19


async def test_where_no_word_is_shared_the_engines_first_are_looked_at() -> None:
    hits = [hit(f"Tea {i}", f"How to grow tea of kind {i}.") for i in range(10)]
    embedder = HashingEmbedder()
    await rank_hits("quantum computers", hits, embedder)
    assert embedder.texts[1:] == [f"Tea {i}. How to grow tea of kind {i}." for i in range(LEAST)]


async def test_the_engines_order_decides_between_equals_and_no_more() -> None:
    same = [hit("Storm", f"Storm in Osterby, part {n}.") for n in "abcd"]
    assert [h.snippet for h in await rank_hits("storm Osterby", same, None)] == [h.snippet for h in same]
    late = [hit(f"Tea {i}", f"How to grow tea of kind {i}.") for i in range(9)] + same[:1]
    assert (await rank_hits("storm Osterby", late, HashingEmbedder()))[0].title == "Storm"


@pytest.mark.parametrize("query", ["storm Osterby", "奥斯特比的台风"])
async def test_without_an_encoder_that_knows_the_script_words_and_order_rank(query: str) -> None:
    hits = [hit("Tea", "How to grow tea."), hit("Storm", "A storm in Osterby. 奥斯特比的台风")]
    embedder = HashingEmbedder()
    ranked = await rank_hits(query, hits, None if query.isascii() else embedder)
    assert [h.title for h in ranked] == ["Storm", "Tea"]
    assert 0.4 < ranked[0].relevance <= 1
    assert embedder.texts == []


async def test_reprints_are_shown_once_the_one_with_more_of_the_querys_words_stays() -> None:
    same = "The storm destroyed four hundred houses in Osterby on Monday; ferries stayed in port until Thursday "
    same += "and schools were closed for the rest of the week because no bus could run along the coast, "
    text, reprint = f"{same} said the government of Norland.", f"MONDAY - {same} it was said."
    ranked = await rank_hits("storm in Norland", [hit("Tea", reprint), hit("Storm Osterby", text)], HashingEmbedder())
    assert [h.title for h in ranked] == ["Storm Osterby"]


def test_short_or_different_texts_are_no_echoes() -> None:
    hits = [hit("a", "Read more"), hit("b", "Read more"), hit("c", ""), hit("d", "")]
    assert len(without_echoes(hits)) == 4
    same = "one two three four five six seven eight nine ten"
    assert len(without_echoes([hit("a", same, SourceKind.LIBRARY), hit("b", same, SourceKind.LIBRARY)])) == 2


async def test_each_query_gets_its_best_window_and_few_are_embedded() -> None:
    doc, embedder = document(*FILLER[:20], STORM, *FILLER[20:], BANK), HashingEmbedder()
    spans = await best_windows(["storm houses Osterby", "why the bank failed"], doc, embedder, 250)
    texts = [doc.text[s.start : s.end] for s in spans]
    assert sum(len(t.split()) for t in texts) <= 260
    assert any("420 houses" in t for t in texts)
    assert any("deposits" in t for t in texts)
    assert len(embedder.texts) <= 2 + 16
    assert [s.score for s in spans] == sorted((s.score for s in spans), reverse=True)


async def test_a_document_that_fits_is_given_whole_without_an_embedding() -> None:
    doc, embedder = document("Storm Ada came.", BANK, STORM), HashingEmbedder()
    spans = await best_windows(["houses destroyed in Osterby"], doc, embedder, 1000)
    assert "420 houses" in doc.text[spans[0].start : spans[0].end]
    assert "".join(doc.text[s.start : s.end] for s in sorted(spans, key=lambda s: s.start)).count("Osterby") == 9
    assert embedder.texts == []


async def test_no_shared_word_looks_over_the_whole_text() -> None:
    doc = document(*FILLER)
    spans = await best_windows(["quantum computers"], doc, HashingEmbedder(), 300)
    assert spans
    assert await best_windows(["x"], Document(title="", text="", parts=()), HashingEmbedder(), 300) == ()
    assert await best_windows([""], doc, HashingEmbedder(), 300) != ()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([*FILLER[:6], STORM, BANK, "短い文。" * 50]), max_size=14), st.integers(0, 900))
async def test_windows_never_overlap_and_stay_within_the_limit(paragraphs: list[str], limit: int) -> None:
    doc = document(*paragraphs)
    spans = sorted(await best_windows(["storm", "bank deposits"], doc, HashingEmbedder(), limit), key=lambda s: s.start)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert len(spans) <= 1 or sum(len(doc.text[s.start : s.end].split()) for s in spans) <= limit
