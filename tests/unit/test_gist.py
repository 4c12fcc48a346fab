"""A document by its own sentences."""

from __future__ import annotations

from marg_ray.grounding.snapshots import Document
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.sources.library.gist import LONGEST, MOST, gist
from marg_ray.sources.parse import parse
from tests.flow import TIDES

TEXT = TIDES["https://tides.test/rance"][1]
PAGE = f"# La Rance\n\n{TEXT}\n\n| year | output |\n| --- | --- |\n| 1966 | 500 gigawatt hours of electricity |\n"


def page(text: str = PAGE) -> Document:
    return parse(text.encode(), name="rance.md")


async def test_sentences_are_word_for_word_and_in_order() -> None:
    document = page()
    spans = await gist(document, HashingEmbedder(), 3)
    quoted = [document.text[s.start : s.end] for s in spans]
    assert len(quoted) == 3
    assert all(q in TEXT for q in quoted)
    assert [s.start for s in spans] == sorted(s.start for s in spans)
    assert {s.heading for s in spans} == {"La Rance"}


async def test_all_there_is_where_there_is_little() -> None:
    assert len(await gist(page(), HashingEmbedder(), 20)) == 4


async def test_what_says_the_same_is_not_said_twice() -> None:
    same = "The Rance tidal power station has a capacity of 240 megawatts."
    other = "Silt has collected in the wide estuary behind the long barrage."
    document = page(f"{same} {same.replace('has', 'had')} {same.replace('The', 'This')} {other}")
    chosen = [document.text[s.start : s.end] for s in await gist(document, HashingEmbedder(), 2)]
    assert other in chosen


async def test_a_long_document_is_looked_at_all_over() -> None:
    sentences = [f"Sentence number {n} speaks of the tide in year {n} and of nothing else." for n in range(5 * MOST)]
    asked: list[str] = []

    class Counting(HashingEmbedder):
        async def embed(self, texts):  # type: ignore[no-untyped-def]
            asked.extend(texts)
            return await super().embed(texts)

    await gist(page(" ".join(sentences)), Counting(), 5)
    assert len(asked) <= MOST
    assert asked[0] == sentences[0]
    assert asked[-1] == sentences[-1]


async def test_a_document_without_sentences_has_none() -> None:
    assert await gist(page("# Title\n\nShort.\n\n" + "x" * (LONGEST + 1)), HashingEmbedder(), 5) == ()
