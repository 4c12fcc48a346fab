from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.grounding.sentences import sentence_spans, split_sentences
from marg_ray.grounding.terms import content_terms, words

# "¦" marks where a sentence ends; the text is the same without it.
CASES = [
    "Dr. Smith met J. K. Rowling in the U.S.¦ The U.S. Army agreed, e.g. in Fig. 3 and No. 5.¦ See vol. 2.",
    "It cost 1.2 million (approx. $3.50).¦ Version 2.10.1 of foo.py is at https://a.b/c.d?e=f.¦ Fine!¦ Really?",
    "Apple Inc.¦ The firm grew.¦ Apple Inc. Chairman Levin left.¦ He said no.¦ Then he left on Jan. 5, 2020.",
    "Das ist z. B. am 3. Mai passiert.¦ Im 19. Jahrhundert gab es das.¦ Am 3. Oktober d. h. gestern kam Dr. Maier.",
    "Selon M. Dupont, c'est vrai.¦ Mme. Curie était là.¦ Il y a env. 3,5 km.",
    "El Sr. García llegó a EE. UU. en 2010.¦ ¿Por qué?¦ No se sabe.",
    "输出上升。¦它下降了！¦为什么？¦增长3.5%。",
    "「そうだ。」と言った。¦終わり。",
    "ارتفع الإنتاج.¦ لماذا؟¦ لا نعرف۔¦ نعم",
    "यह वाक्य है।¦ दूसरा वाक्य।",
    "ราคาเพิ่มขึ้นมากในปีนี้ และจะลดลง",
    'He asked "Why?" and left.¦ "We go."¦ She nodded.¦ Wait... what?¦ Yahoo! is big.¦ It ended (see p. 3).¦ The rest.',
    "It rose in 2019.¦ The fall came in 12.¦ A new one came in May.¦ iPhone sales rose.",
    "Plan B.¦ The plan failed.¦ John F. Kennedy spoke.¦ Smith et al. found it.",
    "It rose.[1]¦ The basin fell.[2][3]¦ Gone.",
    "Site: A; MW: 3¦\nSite: B; MW: 4",
    "Three parts:¦\n- one gate¦\n- two gates¦\n\nA new paragraph",
    "A hard\nwrapped line.¦ Next one.",
]


@pytest.mark.parametrize("case", CASES)
def test_sentences_end_where_a_reader_ends_them(case: str) -> None:
    wanted = [part.strip() for part in case.split("¦")]
    assert split_sentences(case.replace("¦", "")) == wanted


@given(st.text(alphabet=st.sampled_from("aB1 .!?…。！?\"')]\n\t-:;•зд।م"), max_size=200) | st.text(max_size=200))
def test_spans_are_ordered_and_cover_everything_but_space(text: str) -> None:
    spans = sentence_spans(text)
    covered = [False] * len(text)
    last = 0
    for start, end in spans:
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        covered[start:end] = [True] * (end - start)
        last = end
    assert all(inside or char.isspace() for inside, char in zip(covered, text, strict=True))


@pytest.mark.parametrize("unit", ["a.", "A. ", "x ", ". ", "Dr. ", "(", "\n", "1. ", "。", "a: b; "])
def test_time_grows_with_length_not_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = 9e9
        for _ in range(3):
            start = time.perf_counter()
            sentence_spans(text)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(80_000) < 30 * max(seconds(10_000), 1e-4)  # quadratic would be 64


def test_words_fold_accents_numbers_and_scripts() -> None:
    assert words("The Café's 1,200 m² and 1.234.567") == ["the", "cafe", "1200", "m2", "and", "1234567"]
    assert words("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert words("潮汐电站") == ["潮汐", "汐电", "电站"]


def test_content_terms_are_stems_without_stop_words() -> None:
    assert content_terms("The runners were running to the stations") == ["runner", "run", "station"]


@given(st.text(alphabet="aZs'’1,. “–—_-/\n", max_size=30))
def test_a_latin_text_has_the_same_words_beside_another_script(text: str) -> None:
    assert words(f"{text} 中文") == [*words(text), "中文"]
