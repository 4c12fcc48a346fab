from __future__ import annotations

import pytest

from marg_ray.grounding.terms import stem, words
from marg_ray.records import Hit, SourceKind, Zone
from marg_ray.sources.answerability import Candidate, assess, assess_snippets, coverage, query_terms

PASSAGES = [
    "Storm Ada destroyed 420 houses in Norland.",
    "The army repaired the bridges of Osterby.",
    "Norland Bank failed because deposits were withdrawn.",
]


def df(term: str) -> int:
    return sum(term in {stem(w) for w in words(p)} for p in PASSAGES)


def judge(query: str, *cosines: float, texts: list[str] | None = None) -> Zone:
    texts = texts or PASSAGES[: len(cosines)]
    found = [Candidate(text, cosine=c) for text, c in zip(texts, cosines, strict=True)]
    return assess(query, found, df, len(PASSAGES)).zone


def test_near_in_meaning_and_in_words_is_an_answer() -> None:
    assert judge("How many houses did storm Ada destroy?", 0.8) is Zone.ANSWER


def test_one_wrong_detail_keeps_a_near_passage_from_being_an_answer() -> None:
    assert judge("How many schools did storm Zelda flood in Norland?", 0.7) is Zone.NEAREST


def test_other_words_for_the_same_are_shown_as_nearest_not_refused() -> None:
    assert judge("How many homes were wrecked by the Ada cyclone?", 0.55) is Zone.NEAREST


def test_a_figure_that_is_asked_for_must_stand_in_a_sentence_about_it() -> None:
    assert judge("How many bridges did the army repair in Osterby?", 0.7, texts=[PASSAGES[1]]) is Zone.NEAREST
    with_figure = "The army repaired 12 bridges of Osterby."
    assert judge("How many bridges did the army repair in Osterby?", 0.7, texts=[with_figure]) is Zone.ANSWER
    elsewhere = PASSAGES[1] + " The tea of 1998 was good."
    assert judge("How many bridges did the army repair in Osterby?", 0.7, texts=[elsewhere]) is Zone.NEAREST


def test_far_in_meaning_is_nothing_even_if_a_word_is_shared() -> None:
    assert judge("Which houses of the zodiac rule Norland?", 0.2) is Zone.NOTHING


def test_terms_that_occur_nowhere_are_named_in_the_queries_own_words() -> None:
    verdict = assess("What salary did Osterby's architects earn?", [Candidate(PASSAGES[1], cosine=0.6)], df, 3)
    assert verdict.missing_terms == ("salary", "architects", "earn")
    assert 0 < verdict.coverage < 0.5


def test_nearest_titles_are_named_once_best_first() -> None:
    found = [Candidate("a", title=t, cosine=0.4) for t in ("Two", "One", "Two", "Three", "Four")]
    assert assess("x", found, df, 3).nearest == ("Two", "One", "Three")


def test_title_and_heading_count_as_held() -> None:
    found = [Candidate("Aid was sent.", title="Storm Ada", heading="Response", cosine=0.6)]
    assert assess("What was the response to storm Ada?", found, df, 3).coverage == 1.0


def test_no_passage_answers_nothing() -> None:
    assert assess("Why?", [], df, 0).zone is Zone.NOTHING


def test_words_of_asking_say_nothing() -> None:
    assert list(query_terms("Please explain what happened and which causes are known")) == []
    assert list(query_terms("台风造成了什么损失？")) == ["台风", "风造", "造成", "损失"]
    assert coverage({}, [frozenset()]) == 1.0


@pytest.mark.parametrize(
    ("text", "zone"),
    [("台风造成严重损失，学校停课", Zone.ANSWER), ("台风损失明天公布", Zone.NEAREST), ("银行倒闭", Zone.NOTHING)],
)
def test_a_script_the_encoder_does_not_know_is_judged_by_words(text: str, zone: Zone) -> None:
    verdict = assess("台风造成什么损失", [Candidate(text, cosine=0.9)], lambda _: 1, 100)
    assert verdict.zone is zone


def hit(title: str, snippet: str) -> Hit:
    return Hit(location="https://x.example", title=title, kind=SourceKind.WEB, snippet=snippet)


def test_snippets_are_judged_leniently() -> None:
    hits = [hit("Storm Ada", "A storm in Norland in January."), hit("Tea", "Growing tea at home.")]
    query = "How many houses did storm Ada destroy in Norland?"
    assert assess_snippets(query, hits, [0.45, 0.1]).zone is Zone.ANSWER
    assert assess_snippets(query, hits[1:], [0.1]).zone is Zone.NOTHING
    assert assess_snippets(query, hits[1:], [0.4]).zone is Zone.NEAREST
    assert assess_snippets(query, []).zone is Zone.NOTHING
    assert assess_snippets(query, hits).missing_terms == ("houses", "destroy")


def test_relevance_stands_in_for_cosines_that_are_not_given() -> None:
    near = hit("Homes", "wrecked by weather").model_copy(update={"relevance": 0.6})
    assert assess_snippets("How many houses did the storm destroy?", [near]).zone is Zone.ANSWER
