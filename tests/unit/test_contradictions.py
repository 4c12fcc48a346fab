from __future__ import annotations

from datetime import UTC, datetime

import pytest

from marg_ray.grounding.contradictions import find_contradictions
from marg_ray.records import Contradiction, Evidence, Source, SourceKind


def find(*quotes: str, same_source: bool = False) -> tuple[Contradiction, ...]:
    ids = ["s0" if same_source else f"s{n}" for n in range(len(quotes))]
    evidence = [
        Evidence(id=f"e{n}", source=i, quote=q, start=0, end=len(q))
        for n, (i, q) in enumerate(zip(ids, quotes, strict=True))
    ]
    sources = {
        i: Source(id=i, title="Rance", location="x", kind=SourceKind.WEB, fetched_at=datetime(2026, 1, 1, tzinfo=UTC))
        for i in ids
    }
    return find_contradictions(evidence, sources)


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (
            "The Rance station has an output of 240 MW.",
            "The output of the Rance station is 320 MW.",
            ("240 MW", "320 MW"),
        ),
        (
            "The Rance station has 24 turbines.",
            "The tidal station on the Rance has 26 turbines.",
            ("24 turbines", "26 turbines"),
        ),
        ("The gates of Rance cost $1.2 million.", "Rance's gates cost $1.5 million.", ("$1.2 million", "$1.5 million")),
        ("The Rance dam was opened in 1966.", "The Rance dam was opened in November 1967.", ("1966", "November 1967")),
        (
            "Site: Rance; Output: 240 MW; Opened: 1966",
            "Site: Rance; Output: 250 MW; Opened: 1966",
            ("240 MW", "250 MW"),
        ),
        (
            "In 2019 Rance produced 540 GWh of energy.",
            "Rance produced 480 GWh of energy in 2019.",
            ("540 GWh", "480 GWh"),
        ),
    ],
)
def test_another_value_for_the_same_thing(one: str, other: str, values: tuple[str, str]) -> None:
    (found,) = find(one, other)
    shown = tuple(side.value for side in found.sides)
    assert all(a.split()[0] in b for a, b in zip(values, shown, strict=True))
    assert [side.evidence for side in found.sides] == ["e0", "e1"]
    assert found.subject


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("In 2018 Rance produced 540 GWh of energy.", "Rance produced 480 GWh of energy in 2019."),
        ("The Rance station has an output of 240 MW.", "The Sihwa station has an output of 254 MW."),
        ("The north gate of Rance is 13 m wide.", "The south gate of Rance is 15 m wide."),
        ("The inner gate of Rance is 13 m wide.", "The outer gate of Rance is 15 m wide."),
        ("The gates of Rance cost 1.2 million euros.", "The gates of Rance cost 1,203,000 euros."),
        ("The gates of Rance cost about 1.2 million euros.", "The gates of Rance cost 1,250,000 euros."),
        ("Rance is expected to produce 600 GWh of energy.", "Rance produced 540 GWh of energy."),
        ("The total output of the Rance station is 240 MW.", "The average output of the Rance station is 57 MW."),
        ("The Rance station has an output of 240 MW.", "The Rance station had an output of more than 200 MW."),
        ("Output of the Rance station grew from 200 to 240 MW.", "The output of the Rance station is 230 MW."),
        ("The Rance station needs 5 to 10 workers a shift.", "The Rance station needs 7 workers a shift."),
        ("The Rance station is 3 km from the port.", "The Rance station has 24 turbines."),
        ("The festival on the Rance was held in 2018.", "The festival on the Rance was held in 2019."),
        ("The Rance station has 24 turbines.", "The Rance station has 240 workers."),
        ("Men in Rance earn 20 % more.", "Women in Rance earn 15 % more."),
        ("Site: Rance; Output: 240 MW", "Site: Sihwa; Output: 254 MW"),
        ("The Rance dam is 750 m long.", "The Rance road is 800 m long."),
        ("Output rose by 3 % in Rance.", "Output fell by 5 % in Rance."),
    ],
)
def test_what_is_no_contradiction(one: str, other: str) -> None:
    assert find(one, other) == ()


def test_one_source_does_not_contradict_itself() -> None:
    assert find("The Rance station has 24 turbines.", "The Rance station has 26 turbines.", same_source=True) == ()


def test_three_sources_are_one_disagreement() -> None:
    (found,) = find(*(f"The Rance station has {n} turbines." for n in (24, 26, 28)))
    assert len(found.sides) == 3
