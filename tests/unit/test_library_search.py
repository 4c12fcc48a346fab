from __future__ import annotations

import numpy as np
import pytest

from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.records import SourceKind
from marg_ray.sources.answerability import assess
from marg_ray.sources.library.catalog import Entry
from marg_ray.sources.library.found import candidates, hits, shorten
from marg_ray.sources.library.hybrid import RESIDUALS, latin_share, rank, residual_query
from marg_ray.sources.library.index import Index, best_first, minmax
from marg_ray.sources.library.passages import Piece, row_of

TEXTS = {
    "Journal of Tides": "The Journal of Tides is published by the Norland Society of Mariners in Osterby.",
    "Norland Society of Mariners": "The society elected Ada Brandt as its first president in 1893.",
    "Tea": "Tea grows on the island of Sulo and is dried in the sun.",
    "Ceylon": "Planters of the island sold leaves to merchants at auctions.",
    "Lighthouses": "Lighthouses of the coast were manned until the last century.",
    "Presidents": "A president chairs the meetings and signs the letters of a company.",
    "First aid": "First aid is given to the injured before a doctor comes.",
    "Publishing": "Publishers print books and periodicals for their readers.",
}


async def index_of(texts: dict[str, str], heading: str = "") -> Index:
    documents = [(title, title, [row_of(title, text, Piece(0, len(text), heading))]) for title, text in texts.items()]
    vectors = await HashingEmbedder().embed([row.embedded for _, _, rows in documents for row in rows])
    return Index.of(documents, vectors)


def titles(index: Index, order: object) -> list[str]:
    return [index.titles[int(i)] for i in order]  # type: ignore[attr-defined]


async def test_the_second_hop_finds_what_the_first_result_names() -> None:
    index = await index_of(TEXTS)
    query = "Who was the first president of the association that publishes the Journal of Tides?"
    one = await rank(index, query, HashingEmbedder(), second_hop=False)
    two = await rank(index, query, HashingEmbedder())
    gold = "Norland Society of Mariners"
    assert titles(index, two.order[:2])[0] == "Journal of Tides"
    assert titles(index, two.order).index(gold) <= titles(index, one.order).index(gold)
    assert two.scores[list(TEXTS).index(gold)] > one.scores[list(TEXTS).index(gold)] + 0.3
    assert titles(index, two.order[:3]) == titles(index, one.order[:3])  # the first hop's best stay in front
    assert sorted(two.order.tolist()) == list(range(len(index)))


async def test_a_residual_query_is_what_a_seed_leaves_open_and_the_names_it_brings() -> None:
    index = await index_of(TEXTS)
    text = residual_query("Who was first president of the society behind the Journal of Tides?", index, 0)
    assert "president" in text
    assert "Norland Society of Mariners" in text
    assert "Osterby" in text
    assert "Tides" not in text


async def test_shared_rare_names_link_passages_and_common_ones_do_not() -> None:
    many = {
        f"Town {i}": f"Town {i} lies in Norland near Sulo Bay." if i < 3 else f"Town {i} lies in Norland."
        for i in range(20)
    }
    index = await index_of(many)
    assert set(index.sharing(0)) == {1, 2}
    assert index.sharing(5) == {}


async def test_document_frequencies_and_bm25() -> None:
    index = await index_of(TEXTS)
    assert (index.df("island"), index.df("tide"), index.df("nothing")) == (2, 1, 0)
    scores = index.bm25(["island", "tea"])
    assert titles(index, np.argsort(-scores))[:2] == ["Tea", "Ceylon"]
    assert scores[list(TEXTS).index("Publishing")] == 0
    assert index.idf("nothing") > index.idf("tide") > index.idf("island")


async def test_a_heading_is_called_by_its_name_unless_many_have_it() -> None:
    index = await index_of({f"Doc {i}": f"Text {i}." for i in range(9)}, heading="Manual > Introduction")
    assert index.heading_targets == {}
    index = await index_of({"Doc": "Text."}, heading="Manual > Circular dependencies")
    assert index.heading_targets == {"circular dependencies": [0]}


@pytest.mark.parametrize(
    ("text", "share"), [("What is tea?", 1.0), ("台风造成的损失", 0.2), ("1998 ?", 1.0), ("", 1.0)]
)
def test_the_encoder_is_trusted_as_far_as_it_knows_the_script(text: str, share: float) -> None:
    assert latin_share(text) == share


def test_minmax_of_equal_scores_is_zero() -> None:
    assert minmax(np.array([2, 2], np.float32)).tolist() == [0, 0]
    assert minmax(np.array([1, 3, 2], np.float32)).tolist() == [0, 1, 0.5]
    assert minmax(np.zeros(0, np.float32)).shape == (0,)


async def test_documents_come_by_their_best_passage_and_relevance_never_rises() -> None:
    index = await index_of(TEXTS)
    query = "Who was the first president of the society behind the Journal of Tides?"
    ranking = await rank(index, query, HashingEmbedder())
    verdict = assess(query, candidates(index, ranking), index.df, len(index))
    entries = {t: Entry(path=f"/{t}", size=1, mtime_ns=0, digest="", source_id=t, title=t) for t in TEXTS if t != "Tea"}
    found = hits(index, ranking, entries, verdict, 4)
    assert len(found) <= 4
    assert found[0].title == "Journal of Tides"
    assert [h.relevance for h in found] == sorted((h.relevance for h in found), reverse=True)
    assert all(0 <= h.relevance <= 1 and h.kind is SourceKind.LIBRARY for h in found)
    assert "Tea" not in {h.title for h in found}  # no longer in the catalogue


async def test_a_passage_that_stands_in_two_places_is_shown_once() -> None:
    index = await index_of({"One": TEXTS["Tea"], "Two": TEXTS["Tea"], "Three": TEXTS["Ceylon"]})
    ranking = await rank(index, "tea on the island", HashingEmbedder())
    entries = {t: Entry(path=f"/{t}", size=1, mtime_ns=0, digest="", source_id=t, title=t) for t in index.titles}
    found = hits(index, ranking, entries, assess("tea", [], index.df, 3), 9)
    assert len([h for h in found if h.title in ("One", "Two")]) == 1


def test_a_snippet_ends_with_a_sentence_or_between_words() -> None:
    assert shorten("Short.") == "Short."
    assert shorten("First sentence is here. " * 20).endswith("here.")
    assert shorten("word " * 200).endswith("word…")
    assert len(shorten("x" * 900)) <= 300


async def test_only_the_best_seeds_are_asked_what_they_leave_open_and_none_where_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index, embedder = await index_of(TEXTS), HashingEmbedder()
    await rank(index, "Who was the first president of the society behind the Journal of Tides?", embedder)
    assert len(embedder.texts) == 2, "the second is far from the first here"
    monkeypatch.setattr("marg_ray.sources.library.hybrid.SEED_SHARE", 0.0)
    every = HashingEmbedder()
    await rank(index, "Who was the first president of the society behind the Journal of Tides?", every)
    assert len(every.texts) == 1 + RESIDUALS
    covered = HashingEmbedder()
    one = await rank(index, "Does tea grow on an island in the sun?", covered)
    assert covered.texts == ["Does tea grow on an island in the sun?"]
    assert index.titles[int(one.order[0])] == "Tea"


def test_the_best_are_sorted_and_equals_stand_as_they_were() -> None:
    scores = np.random.default_rng(7).integers(0, 40, 1000).astype(np.float32)
    order = best_first(scores, 64)
    assert sorted(order.tolist()) == list(range(1000))
    # which of the equals at the border are in is open
    certain = int((scores > scores[order[63]]).sum())
    assert order[:certain].tolist() == np.argsort(-scores, kind="stable")[:certain].tolist()
    assert scores[order[63]] == np.sort(scores)[-64]
    few = np.array([1, 3, 3, 2], np.float32)
    assert best_first(few).tolist() == [1, 2, 3, 0]


async def test_what_a_passage_calls_and_shares_is_worked_out_once() -> None:
    index = await index_of(TEXTS)
    assert index.called_by(0) is index.called_by(0)
    assert "norland society of mariners" in index.called_by(0)
    assert index.sharing(0) is index.sharing(0)
    assert index.wording(0) != index.wording(1)
