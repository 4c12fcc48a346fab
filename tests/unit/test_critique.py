from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marg_ray.grounding.critique.signals import measured
from marg_ray.quality import THRESHOLDS, Measured, judge
from marg_ray.records import (
    Block,
    Draft,
    Grounding,
    Issue,
    IssueKind,
    Review,
    ReviewVerdict,
    Scores,
    Section,
    Sentence,
    SentenceVerdict,
    Signal,
    Verdict,
)
from marg_ray.tasks import Judged

QUESTION = "How much power do tidal stations produce?"
POWER = (
    "The Rance tidal power station in Brittany opened in 1966.",
    "Its 24 turbines have a capacity of 240 megawatts.",
    "The station produces about 500 gigawatt hours of electricity a year.",
    "Electricity from the station covers a large part of what the region uses.",
)
HARM = (
    "Silt has collected in the estuary since the barrage was closed.",
    "Some fish became rare in the basin of the estuary, while others came back within ten years.",
    "Fish pass through the turbines at low speed, and most of them survive the passage.",
)
Row = tuple[str, Verdict]


def section(
    texts: Sequence[str | Row], *, id: str = "s1", title: str = "Power of tidal stations", weight: float = 0.5,
    queries: tuple[str, ...] = ("tidal station capacity megawatts",), kind: str = "paragraph",
) -> Judged:  # fmt: skip
    rows = [(t, Verdict.SUPPORTED) if isinstance(t, str) else t for t in texts]
    sentences = tuple(Sentence(text=t, citations=("e1",)) for t, _ in rows)
    block = Block.model_validate({"kind": kind, "sentences": sentences})
    verdicts = tuple(SentenceVerdict(verdict=v) for _, v in rows)
    return Judged(
        section=Section(id=id, title=title, weight=weight, queries=queries),
        draft=Draft(section=id, revision=1, blocks=(block,)),
        grounding=Grounding(section=id, revision=1, verdicts=verdicts, coverage=1.0),
        evidence=3,
        sources=1,
    )


def harm(texts: Sequence[str | Row] = HARM) -> Judged:
    queries = ("fish tidal turbines survival",)
    return section(texts, id="s2", title="Harm to the estuary", queries=queries)


def looked_at(*sections: Judged, language: str = "en") -> Measured:
    return measured(sections, {}, question=QUESTION, language=language)


def signal(found: Measured, name: str) -> Signal:
    return next(s for s in found.signals if s.name == name)


def test_a_sound_draft_shows_nothing() -> None:
    found = looked_at(section(POWER), harm())
    assert [i.detail for i in found.issues] == []
    assert set(found.scores.values()) == {1.0}


@pytest.mark.parametrize(
    ("kind", "texts", "words"),
    [
        ("promotional", ["The Rance is a world-class tidal power station."], "world-class"),
        ("promotional", ["The Rance station boasts an unparalleled design."], "boasts"),
        ("one_sided", ["Tidal power stations are obviously worth their price."], "obviously"),
        ("one_sided", ["The decision against the tidal power station was shameful."], "shameful"),
        ("unattributed_opinion", ["Unfortunately the tidal power station is small."], "Unfortunately"),
        ("unattributed_opinion", ["The Rance is simply the best tidal power station."], "is simply the best"),
        ("undefined_abbreviation", ["The tidal power station is watched over by the QZRB."], "QZRB"),
        ("contradiction", ["The station produces about 620 gigawatt hours of electricity a year."], "500"),
        ("contradiction", ["The Rance tidal power station in Brittany opened in 1971."], "1966"),
        ("contradiction", ["Electricity from the station does not cover a large part of what the region uses."], "not"),
        ("repetition", ["The Rance tidal power station in Brittany was opened in 1966."], "opened in 1966"),
        ("off_subject", ["Mozart composed forty symphonies for orchestras at Vienna and Salzburg."], ""),
    ],
)
def test_what_is_at_fault_is_named_with_its_words(kind: str, texts: list[str], words: str) -> None:
    found = looked_at(section([*POWER, *texts]), harm())
    issues = [i for i in found.issues if i.signal == kind]
    assert issues, [i.detail for i in found.issues]
    assert issues[0].section == "s1"
    assert issues[0].sentence in (*texts, *POWER)
    assert words.casefold() in f"{issues[0].words} {issues[0].detail}".casefold()
    assert issues[0].instruction
    assert signal(found, kind).value != 1.0
    assert {i.signal for i in found.issues} - {"section_weights"} == {kind}


@pytest.mark.parametrize(
    "text",
    [
        "Critics praised the tidal power station as a stunning work.",
        'The tidal power station is "simply the best" by its owner\'s advertisement.',
        "According to its owner the tidal power station was a complete success.",
        "The tidal power station is run by the Quality Zone Review Board (QZRB).",
        "The QZRB (Quality Zone Review Board) runs the tidal power station.",
        "BBC and NASA filmed the tidal power station.",
        "In 1970 the station produced about 620 gigawatt hours of electricity.",
        "According to another source the station produces about 620 gigawatt hours of electricity a year.",
        "The tidal power station at Sihwa has a capacity of 254 megawatts.",
        "It is likely that more tidal power stations will be built.",
        "The Rance is the best documented tidal power station.",
    ],
)
def test_what_is_in_order_is_left_alone(text: str) -> None:
    assert [i.detail for i in looked_at(section([*POWER, text]), harm()).issues] == []


@pytest.mark.parametrize(
    ("start", "title", "found"),
    [
        ("However, tides turn the turbines.", "Power of tidal stations", True),
        ("It has 24 turbines that are driven by tides.", "Power and harm", True),
        ("This makes power cheap in Brittany.", "Rance", True),
        ("It has 24 turbines.", "Power of the Rance", False),  # the title says of what it speaks
        ("It is possible that tides make power.", "Power of tidal stations", False),
        ("This report covers tides.", "Power of tidal stations", False),
    ],
)
def test_a_section_begins_with_something_that_stands_alone(start: str, title: str, found: bool) -> None:
    issues = looked_at(section([start, *POWER], title=title), harm()).issues
    assert any(i.signal == "incoherence" for i in issues) is found


def test_a_sentence_of_another_section_is_a_repetition_there() -> None:
    found = looked_at(section(POWER), harm([*HARM, POWER[2]]))
    issue = next(i for i in found.issues if i.signal == "repetition")
    assert issue.section == "s2"
    assert "Power of tidal stations" in issue.detail
    assert POWER[2] in issue.instruction  # the writer is told which sentence


@pytest.mark.parametrize(
    ("query", "answered"),
    [
        ("capacity in megawatts of tidal stations", True),
        ("electricity produced a year", True),
        ("salaries and pensions of the workers", False),
        ("electricity from tidal power stations in the region: observed: power", True),  # little more than its section
        ("what are tidal stations", True),  # asks no more than the question does
    ],
)
def test_each_sub_question_needs_a_sound_sentence(query: str, answered: bool) -> None:
    found = looked_at(section(POWER, queries=(query,)), harm())
    assert [i.fix_query for i in found.issues] == ([] if answered else [query])
    assert (found.scores["coverage"] == 1.0) is answered


def test_an_unsupported_sentence_answers_nothing() -> None:
    texts = [(t, Verdict.UNSUPPORTED if "capacity" in t else Verdict.SUPPORTED) for t in POWER]
    found = [(i.signal, i.sentence) for i in looked_at(section(texts), harm()).issues]
    assert ("verdicts", POWER[1]) in found
    assert ("sub_questions", "") in found


def test_a_heavy_section_must_say_more_than_a_line() -> None:
    found = looked_at(section(POWER[:2], weight=0.7), harm())
    assert [i.signal for i in found.issues] == ["section_weights"]
    assert found.scores["coverage"] is not None
    assert found.scores["coverage"] < 1.0


def test_in_other_languages_what_does_not_apply_is_not_measured() -> None:
    texts = ("Das Kraftwerk wurde 1966 eröffnet.", "Es ist großartig und wird vom QZRB betrieben.")
    found = looked_at(section(texts, title="Leistung"), language="de")
    unknown = {s.name for s in found.signals if s.value is None}
    assert {"promotional", "one_sided", "incoherence", "undefined_abbreviation", "sub_questions"} <= unknown
    assert found.scores["objectivity"] is None
    assert not found.complete
    assert {s.name for s in found.signals if s.value is not None} >= {"verdicts", "repetition", "contradiction"}


def test_a_table_is_no_prose() -> None:
    rows = ("| Rance | QZRB | world-class |", "| Rance | QZRB | world-class |")
    found = looked_at(section(POWER), harm(), section(rows, id="s3", kind="table", queries=()))
    assert not [i for i in found.issues if i.signal not in ("section_weights",)]


# ---- nothing bad raises a score

BAD: tuple[Row, ...] = (
    ("The Rance is a world-class tidal power station with 24 turbines.", Verdict.SUPPORTED),
    ("Unfortunately tidal power is little used for electricity.", Verdict.SUPPORTED),
    ("The tidal station of the QZRB produces electricity.", Verdict.SUPPORTED),
    ("The station produces about 620 gigawatt hours of electricity a year.", Verdict.SUPPORTED),
    ("The Rance tidal power station in Brittany opened in 1971.", Verdict.PARTIAL),
    ("The Rance tidal power station in Brittany was opened in 1966.", Verdict.SUPPORTED),
    ("Mozart composed forty symphonies for orchestras at Vienna and Salzburg.", Verdict.SUPPORTED),
    ("The workers of tidal stations earn good salaries and pensions.", Verdict.UNSUPPORTED),
    ("The Quiet Zone Review Board (QZRB) watches the capacity in megawatts.", Verdict.CONTRADICTED),
)
ANY: tuple[Row, ...] = (
    *((t, Verdict.SUPPORTED) for t in (*POWER, *HARM)),
    ("It produces electricity at night, and the turbines turn slowly.", Verdict.SUPPORTED),
    ("However, the region uses more electricity than before.", Verdict.PARTIAL),
    ("The QZRB counts the fish in the estuary every year.", Verdict.SUPPORTED),
    ("Bridges carry the road across the barrage.", Verdict.SUPPORTED),
    *BAD,
)
drafts = st.lists(st.sampled_from(ANY), min_size=1, max_size=9)  # what is at fault depends on the company
scores = st.builds(
    Scores, accuracy=st.floats(0, 1), coverage=st.floats(0, 1), clarity=st.floats(0, 1), objectivity=st.floats(0, 1)
)


def _reviewed(first: Sequence[Row], second: Sequence[Row], proposed: Scores) -> Review:
    queries = ("tidal station capacity megawatts", "salaries and pensions of the workers")
    parts = [section(first, queries=queries), harm(second)]
    found = measured(parts, {}, question=QUESTION, language="en")
    return judge(proposed, [], parts, iteration=1, cap=3, measured=found)


def _no_higher(after: Review, before: Review) -> None:
    for dimension in Scores.model_fields:
        assert getattr(after.scores, dimension) <= getattr(before.scores, dimension), dimension
    assert before.verdict is ReviewVerdict.PASS or after.verdict is not ReviewVerdict.PASS


ABOUT_OUTPUT = next(row for row in BAD if "gigawatt" in row[0])
BEST = Scores(accuracy=1, coverage=1, clarity=1, objectivity=1)


@settings(max_examples=150, deadline=None)
@given(drafts, drafts, scores, st.sampled_from(BAD), st.integers(0, 9))
@example(
    [("However, the region uses more electricity than before.", Verdict.PARTIAL), ABOUT_OUTPUT],
    [BAD[1]],
    BEST,
    ABOUT_OUTPUT,
    0,
)
@example([BAD[2], (POWER[1], Verdict.SUPPORTED), ABOUT_OUTPUT], [BAD[1]], BEST, ABOUT_OUTPUT, 1)
def test_a_bad_sentence_raises_no_score(
    first: list[Row], second: list[Row], proposed: Scores, bad: Row, place: int
) -> None:
    if bad[1] in (Verdict.SUPPORTED, Verdict.PARTIAL) and not _is_bad(
        [*first[:place], bad, *first[place:]], second, bad
    ):
        return
    before = _reviewed(first, second, proposed)
    _no_higher(_reviewed([*first[:place], bad, *first[place:]], second, proposed), before)


def _is_bad(first: Sequence[Row], second: Sequence[Row], bad: Row) -> bool:
    """Whether the sentence is at fault in this company: what contradicts or repeats needs the other one there."""
    found = looked_at(section(first), harm(second))
    return any(i.sentence == bad[0] and i.section == "s1" for i in found.issues)


@settings(max_examples=100, deadline=None)
@given(drafts, drafts, scores, st.integers(0, 8))
def test_a_citation_that_is_taken_away_raises_no_score(
    first: list[Row], second: list[Row], proposed: Scores, at: int
) -> None:
    at %= len(first)
    bare = [(t, Verdict.UNSUPPORTED) if n == at else (t, v) for n, (t, v) in enumerate(first)]
    if first[at][1] is Verdict.CONTRADICTED:
        return
    _no_higher(_reviewed(bare, second, proposed), _reviewed(first, second, proposed))


@settings(max_examples=100, deadline=None)
@given(drafts, scores)
def test_the_floor_lifts_no_score_above_what_was_measured(first: list[Row], proposed: Scores) -> None:
    parts = [section(first), harm()]
    found = measured(parts, {}, question=QUESTION, language="en")
    review = judge(proposed, [], parts, iteration=1, cap=3, measured=found)
    for dimension in Scores.model_fields:
        bound = found.scores[dimension]
        assert bound is not None
        assert getattr(review.scores, dimension) <= bound + 1e-9
        assert getattr(review.scores, dimension) <= max(
            getattr(proposed, dimension), getattr(THRESHOLDS, dimension) if bound >= THRESHOLDS.clarity else 0.0
        )


@pytest.mark.parametrize(
    ("texts", "issues", "verdict"),
    [
        (POWER, [], ReviewVerdict.PASS),  # no fault is named and none is found: there is nothing to act on
        (POWER, [Issue(kind=IssueKind.LOGIC_ERROR, severity="low", section="s1", detail="muddled")],
         ReviewVerdict.QUALITY_FAIL),
        ((*POWER, "The Rance tidal power station in Brittany opened in 1971."), [], ReviewVerdict.QUALITY_FAIL),
    ],
)  # fmt: skip
def test_a_low_score_that_names_no_fault_is_lifted_only_where_all_is_sound(
    texts: tuple[str, ...], issues: list[Issue], verdict: ReviewVerdict
) -> None:
    parts = [section(texts), harm()]
    low = Scores(accuracy=0.9, coverage=0.9, clarity=0.3, objectivity=0.9)
    assert judge(low, issues, parts, iteration=1, cap=3, measured=looked_at(*parts)).verdict is verdict


def test_without_measurements_no_score_is_lifted() -> None:
    low = Scores(accuracy=0.9, coverage=0.9, clarity=0.3, objectivity=0.9)
    assert judge(low, [], [section(POWER)], iteration=1, cap=3).scores.clarity == 0.3


def test_a_contradiction_inside_a_section_sends_it_back_with_the_sentence() -> None:
    parts = [section([*POWER, "The Rance tidal power station in Brittany opened in 1971."]), harm()]
    high = Scores(accuracy=1, coverage=1, clarity=1, objectivity=1)
    review = judge(high, [], parts, iteration=1, cap=3, measured=looked_at(*parts))
    assert review.verdict is ReviewVerdict.QUALITY_FAIL
    assert review.sections == ("s1",)
    assert any("1971" in i.instruction for i in review.issues)
    assert review.signals
