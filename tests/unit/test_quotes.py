from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.grounding.quotes import locate

TEXT = (
    "The basin – dug by hand – is “old”.\nIts ﬁrst  gate\u00a0was\tre\u00adnewed in 2019.\n\n"
    "It's 6.4 m deep; the ﬂow... stops. 潮汐\n电站的产出上升了。 Its first gate was sold. End. The of\u00adfice ends."
)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ('The basin - dug by hand - is "old".', "The basin – dug by hand – is “old”."),
        ("Its first gate was renewed in 2019.", "Its ﬁrst  gate\u00a0was\tre\u00adnewed in 2019."),
        ("first gate was renewed ...", "ﬁrst  gate\u00a0was\tre\u00adnewed"),
        ("… gate was\nsold. …", "gate was sold."),
        ("“It’s 6.4 m deep”", "It's 6.4 m deep"),
        ('"the flow… stops."', "the ﬂow... stops."),
        ("潮汐电站的产出", "潮汐\n电站的产出"),
        ("潮汐 电站 的产出", "潮汐\n电站的产出"),
        ("[...] stops. 潮汐", "stops. 潮汐"),
        ("The office ends.", "The of\u00adfice ends."),
    ],
)
def test_a_quotation_is_found_whatever_its_spaces_and_signs(quote: str, found: str) -> None:
    place = locate(quote, TEXT)
    assert place is not None
    assert TEXT[slice(*place)] == found


@pytest.mark.parametrize(
    "quote",
    [
        "",
        " ",
        "…",
        '""',
        "Its first gate was old.",
        "dug by hand ... renewed",
        "The basin dug by hand",
        "is 6.5 m deep",
        "END.",
    ],
)
def test_never_less_than_the_whole_quotation(quote: str) -> None:
    assert locate(quote, TEXT) is None


def test_the_nearest_of_several_places() -> None:
    text = "a gate. " * 50
    assert locate("a gate.", text) == (0, 7)
    assert locate("a gate.", text, near=81) == (80, 87)
    assert locate("a gate.", text, near=10_000) == (392, 399)


@given(st.text(min_size=1, max_size=80), st.data())
def test_every_stretch_is_found_with_its_spaces_changed(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = re.sub(r"\s+", "  \n ", text[start:end])
    place = locate(quote, text)
    if place is None:
        assert not any(c.isalnum() for c in quote) or set(quote) & set("\u00ad\u200b\u200c\u200d\u2060\ufeff")
    else:
        assert text[slice(*place)].strip()


def test_a_long_text_is_searched_quickly() -> None:
    text = "The basin was filled again and the gate closed. " * 20_000 + "The last  gate\u00a0was “sold”."
    words = 0
    start = time.perf_counter()
    words = len(text.split())
    split = time.perf_counter() - start
    start = time.perf_counter()
    place = locate('The last gate was "sold".', text)
    assert place is not None
    assert words
    assert time.perf_counter() - start < 40 * split
