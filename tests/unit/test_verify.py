from __future__ import annotations

import re
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.grounding.drafts import parse_draft
from marg_ray.grounding.verify import coverage, verify_draft, verify_sentence
from marg_ray.records import Evidence, SentenceVerdict, Verdict
from marg_ray.seams import Vectors, in_thread

QUOTE = (
    "The Rance station at Saint-Malo has produced 540 GWh a year since 1966. Its 24 turbines reach 240 MW. "
    "In May 2019 the operator EDF renewed the gates, which cost about $1.2 million; output rose by 3.5 % afterwards. "
    "Some fish may return to the basin."
)


def evidence(quote: str = QUOTE, number: int = 1) -> Evidence:
    return Evidence(id=f"e{number}", source=f"s{number}", quote=quote, start=0, end=len(quote))


def verdict(text: str, quote: str = QUOTE, **more: object) -> SentenceVerdict:
    return verify_sentence(text, [evidence(quote)], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "Its 24 turbines reach 240 MW.",
        "The Rance station has produced **540 GWh** a year since 1966.",
        "Since 1966 the Rance station at Saint-Malo has produced 540 GWh a year.",
        "EDF, the operator, renewed the gates in May 2019.",
        "Renewing the gates cost about $1.2 million.",
        "After that output rose by 3.5 percent.",
        "Some fish may return.",
    ],
)
def test_what_the_passage_says_is_supported(text: str) -> None:
    assert verdict(text).verdict is Verdict.SUPPORTED, verdict(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Its 41 turbines reach 240 MW.", "41"),
        ("Its 24 turbines reach 250 MW.", "250 MW"),
        ("Its 24 turbines reach 240 GW.", "240 MW"),
        ("In June 2019 the operator EDF renewed the gates.", "June 2019"),
        ("In May 2018 the operator EDF renewed the gates.", "May 2018"),
        ("In May 2019 the operator Engie renewed the gates.", "Engie"),
        ("The gates were renewed in May 2019 and output fell by 3.5 %.", "fell"),
        ("In May 2019 the operator EDF did not renew the gates.", "not"),
        ("Fish return to the basin.", "may"),
        ("Only some fish may return to the basin.", "only"),
        ("Renewing the gates cost about $1.3 million.", "1.3 million"),
    ],
)
def test_one_changed_fact_is_named_and_never_supported(text: str, words: str) -> None:
    found = verdict(text)
    assert found.verdict in (Verdict.PARTIAL, Verdict.UNSUPPORTED, Verdict.CONTRADICTED), found
    assert words in found.reason


def test_a_negated_or_reversed_statement_is_contradicted() -> None:
    assert verdict("In May 2019 the operator EDF did not renew the gates.").verdict is Verdict.CONTRADICTED
    assert verdict("Output fell by 3.5 % afterwards.").verdict is Verdict.CONTRADICTED


def test_a_quotation_out_of_a_denial_is_not_supported() -> None:
    assert (
        verdict("The dam has failed twice.", "It is not true that the dam has failed twice.").verdict
        is not Verdict.SUPPORTED
    )


@pytest.mark.parametrize(
    ("text", "quote", "expected"),
    [
        ("It cost 1.2 million.", "It cost 1,200,000 in all.", Verdict.SUPPORTED),
        ("About 1,200,000 people came.", "1,203,411 people came.", Verdict.PARTIAL),
        ("It has twelve gates.", "It has 12 gates.", Verdict.SUPPORTED),
    ],
)
def test_a_figure_in_another_notation_is_the_same_and_a_rounded_one_is_not(
    text: str, quote: str, expected: Verdict
) -> None:
    assert verdict(text, quote).verdict is expected


def test_dates_in_another_notation_count() -> None:
    quote = "The gates were opened on 2019-05-03 by the mayor of Saint-Malo."
    found = verdict("The mayor of Saint-Malo opened the gates on 3 May 2019.", quote)
    assert found.verdict is Verdict.PARTIAL or found.verdict is Verdict.SUPPORTED
    assert verdict("The mayor of Saint-Malo opened the gates on 4 May 2019.", quote).verdict is Verdict.CONTRADICTED


@pytest.mark.parametrize(
    "text",
    [
        "Why did output rise?",
        "The documents do not say how high the gates are.",
        "None of the sources mentions a cost.",
        "This section describes the gates.",
        "The main points are as follows:",
        "In summary,",
        "Costs",
        "Die Quellen nennen keine Kosten.",
        "现有文献未提及成本。",
        "***",
    ],
)
def test_what_states_nothing_is_not_factual(text: str) -> None:
    assert verify_sentence(text, []).verdict is Verdict.NOT_FACTUAL


@pytest.mark.parametrize(
    "text",
    [
        "The sources do not mention deaths, but 41 people died.",
        "The articles were not published.",
        "The evidence shows that gates rust.",
        "Gates rust.",
        "No data were lost when the gate broke.",
        "There were 41 turbines:",
    ],
)
def test_what_looks_like_a_remark_but_states_something_is_checked(text: str) -> None:
    found = verify_sentence(text, [])
    assert (found.verdict, found.reason) == (Verdict.UNSUPPORTED, "cites nothing")


@pytest.mark.parametrize(
    ("text", "quote", "good"),
    [
        ("潮汐电站的年产量上升了3.5%。", "报告指出，潮汐电站的年产量在2019年上升了3.5%。", True),
        ("潮汐电站的年产量上升了4.5%。", "报告指出，潮汐电站的年产量在2019年上升了3.5%。", False),
        ("潮汐电站没有上升。", "潮汐电站的产量上升。", False),
        ("Die Erzeugung stieg um 3,5 %.", "Nach Angaben des Betreibers stieg die Erzeugung um 3,5 %.", True),
        ("Die Erzeugung sank um 3,5 %.", "Nach Angaben des Betreibers stieg die Erzeugung um 3,5 %.", False),
        ("ارتفع الإنتاج في المحطة.", "قال المشغل: ارتفع الإنتاج في المحطة.", True),
        ("यह बांध 1966 में बना।", "यह बांध 1966 में बना।", True),
    ],
)
def test_other_languages(text: str, quote: str, good: bool) -> None:
    assert (verdict(text, quote).verdict is Verdict.SUPPORTED) is good, verdict(text, quote)


def test_titles_may_name_the_subject() -> None:
    text = "The Rance station reaches 240 MW."
    quote = "The station reaches 240 MW."
    assert verdict(text, quote).verdict is not Verdict.SUPPORTED
    assert verdict(text, quote, titles=["Rance tidal power"]).verdict is Verdict.SUPPORTED


def test_facts_may_come_from_two_passages() -> None:
    cited = [evidence("Its 24 turbines reach 240 MW."), evidence("The gates were renewed in 2019.", 2)]
    found = verify_sentence("The gates were renewed in 2019; the 24 turbines reach 240 MW.", cited)
    assert found.verdict is Verdict.SUPPORTED, found


@given(st.text(max_size=120), st.text(max_size=200))
def test_every_text_gets_a_verdict_and_figures_are_backed(text: str, quote: str) -> None:
    found = verdict(text, quote)
    if found.verdict is Verdict.SUPPORTED:
        for figure in re.findall(r"[0-9][0-9,.]*", text):
            digits = figure.replace(",", "").rstrip(".")
            assert digits in quote.replace(",", "") or any(c.isdigit() for c in quote)


class _Same:
    """An embedder to which all texts mean the same."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.ones((len(texts), 1), dtype=np.float32)


async def test_embeddings_move_only_the_middle() -> None:
    text = (
        "Its 24 turbines reach 240 MW [1]. Marine engines supply decent amounts of current [1]. "
        "Its 41 turbines reach 240 MW [1]."
    )
    quote = "Its 24 turbines reach 240 MW. Sea engines supply plentiful amounts of electricity."
    draft = parse_draft(text, {1: "e1"}, section="s1", section_title="T", revision=2)
    known = {"e1": evidence(quote)}
    without = await verify_draft(draft, known, titles={}, embedder=None, offload=in_thread)
    embedder = _Same()
    grounding = await verify_draft(draft, known, titles={}, embedder=embedder, offload=in_thread)
    assert [v.verdict for v in without.verdicts][1] is not Verdict.SUPPORTED
    assert grounding.verdicts[1].verdict is Verdict.SUPPORTED
    assert [grounding.verdicts[n] for n in (0, 2)] == [without.verdicts[n] for n in (0, 2)]
    assert embedder.asked == ["Marine engines supply decent amounts of current.", quote]
    assert (grounding.section, grounding.revision) == ("s1", 2)


async def test_coverage_counts_partial_half_and_forgets_what_is_not_factual() -> None:
    kinds = [Verdict.SUPPORTED, Verdict.PARTIAL, Verdict.UNSUPPORTED, Verdict.NOT_FACTUAL]
    assert coverage([SentenceVerdict(verdict=k) for k in kinds]) == pytest.approx(0.5)
    assert coverage([]) == 1


async def test_a_long_report_is_checked_in_a_fraction_of_a_second() -> None:
    sentences = [f"Station {n} at Port{n} produced {n * 7} MW in {1900 + n % 100} [{n % 40 + 1}]." for n in range(200)]
    known = {f"e{n}": evidence(f"Station {n} at Port{n} produced {n * 7} MW. " + QUOTE, n) for n in range(1, 41)}
    draft = parse_draft(
        " ".join(sentences), {n: f"e{n}" for n in range(1, 41)}, section="s", section_title="T", revision=0
    )
    assert len(draft.sentences) == 200
    start = time.perf_counter()
    sum(len(re.findall(r"\w+", QUOTE)) for _ in range(20_000))
    yardstick = time.perf_counter() - start
    start = time.perf_counter()
    grounding = await verify_draft(draft, known, titles={}, embedder=None, offload=in_thread)
    assert time.perf_counter() - start < 20 * yardstick
    assert len(grounding.verdicts) == 200
