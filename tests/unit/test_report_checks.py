"""Every sentence of a report says what its check found: in its data, on the page, and for `marg show --checks`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from lxml import html as lxml_html

from marg_ray.cli.checks import lines
from marg_ray.records import Block, ClaimVerdict, Draft, Grounding, Sentence, SentenceVerdict, Verdict
from marg_ray.report.assemble import build_report
from marg_ray.report.html import to_html
from marg_ray.report.model import Report, from_json, to_json
from marg_ray.report.wording import FIGURES_ONLY
from marg_ray.sections import judged
from tests.report_sample import E1, E5, inputs

TEXT = "Annapolis Royal had 20 MW and was shut in 2019."
CLAIMS = (
    ClaimVerdict(text="Annapolis Royal had 20 MW.", verdict=Verdict.SUPPORTED, evidence=E5.id, span=(0, 25)),
    ClaimVerdict(
        text="Annapolis Royal was shut in 2019.",
        verdict=Verdict.PARTIAL,
        reason="only part of this",
        evidence="gone",
        span=(1, 3),
    ),
)
FOUND = SentenceVerdict(
    verdict=Verdict.PARTIAL,
    reason="the words",
    evidence=E5.id,
    span=(0, 25),
    probability=0.5,
    claims=CLAIMS,
    checked_by="scorer",
)


def report(found: SentenceVerdict = FOUND) -> Report:
    draft = Draft(
        section="s1",
        revision=1,
        blocks=(Block(kind="paragraph", sentences=(Sentence(text=TEXT, citations=(E5.id, E1.id)),)),),
    )
    grounding = Grounding(section="s1", revision=1, verdicts=(found,), coverage=0.5)
    given = inputs()
    return build_report(replace(given, drafts={**given.drafts, "s1": judged(draft, grounding)}))


def test_the_data_of_a_report_holds_what_was_found() -> None:
    again = from_json(to_json(report()))
    (sentence,) = next(s for s in again.sections if s.id == "s1").sentences
    assert (sentence.verdict, sentence.reason, sentence.probability) == (Verdict.PARTIAL, "the words", 0.5)
    assert (sentence.evidence, sentence.span, sentence.checked_by) == (E5.id, (0, 25), "scorer")
    assert [(c.verdict, c.span, c.evidence) for c in sentence.claims] == [
        (Verdict.SUPPORTED, (0, 25), E5.id),
        (Verdict.PARTIAL, None, ""),  # what the report does not hold is not pointed at
    ]


def test_a_report_and_a_log_of_before_are_read() -> None:
    old = json.loads(to_json(report()))
    for section in old["sections"]:
        for sentence in section["sentences"]:
            for name in ("probability", "evidence", "span", "claims", "checked_by"):
                del sentence[name]
    (sentence,) = next(s for s in from_json(json.dumps(old)).sections if s.id == "s1").sentences
    assert (sentence.span, sentence.claims, sentence.checked_by) == (None, (), None)
    verdict = SentenceVerdict.model_validate({"verdict": "partial", "reason": "r", "evidence": "e"})
    assert (verdict.span, verdict.claims, verdict.probability, verdict.checked_by) == (None, (), None, "words")
    assert Sentence.model_validate({"text": "t", "verdict": "partial"}).check is None


def test_the_page_sets_off_the_words_that_decided() -> None:
    page = lxml_html.fromstring(to_html(report()))
    marks = [m.text for m in page.xpath("//figure[@class='quote']//mark")]
    assert "Annapolis Royal had 20 MW" in marks
    boxes = [b for b in page.xpath("//div[@class='passage']") if "Annapolis Royal had 20 MW" in b.text_content()]
    assert E5.quote in boxes[0].text_content()


@pytest.mark.parametrize(
    ("span", "parts"),
    [
        (None, [(E5.quote, False)]),
        ((0, len(E5.quote)), [(E5.quote, True)]),
        ((3, 9), [(E5.quote[:3], False), (E5.quote[3:9], True), (E5.quote[9:], False)]),
    ],
)
def test_a_quotation_is_cut_and_nothing_of_it_lost(span: tuple[int, int] | None, parts: list[tuple[str, bool]]) -> None:
    from marg_ray.report.html_views import _parts

    made = report(FOUND.model_copy(update={"span": span, "claims": ()}))
    (sentence,) = next(s for s in made.sections if s.id == "s1").sentences
    evidence = next(e for e in made.evidence if e.id == E5.id)
    assert list(_parts(evidence, [sentence])) == parts


def test_the_page_says_where_only_figures_were_compared() -> None:
    assert FIGURES_ONLY in to_html(report(FOUND.model_copy(update={"checked_by": "figures"})))
    assert FIGURES_ONLY not in to_html(report())


def test_overlapping_stretches_are_marked_once() -> None:
    from marg_ray.report.html_views import _parts

    claims = tuple(
        c.model_copy(update={"evidence": E5.id, "span": s}) for c, s in zip(CLAIMS, [(5, 12), (2, 7)], strict=True)
    )
    made = report(FOUND.model_copy(update={"span": (4, 8), "claims": claims}))
    (sentence,) = next(s for s in made.sections if s.id == "s1").sentences
    evidence = next(e for e in made.evidence if e.id == E5.id)
    parts = _parts(evidence, [sentence])
    assert "".join(text for text, _ in parts) == E5.quote
    assert "".join(text for text, decides in parts if decides) == E5.quote[2:12]


def test_the_terminal_lists_every_sentence_with_its_reason_and_words() -> None:
    told = list(lines(report()))
    at = told.index(f"partial 0.50: {TEXT}")
    assert told[at + 1].strip() == "the words"
    assert "Annapolis Royal had 20 MW" in told[at + 2]
    assert told[at + 3].strip() == "- supported: Annapolis Royal had 20 MW."
    assert sum(not line.startswith((" ", "#")) for line in told) == len(report().sentences())
