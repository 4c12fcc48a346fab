"""Putting a report together: one numbering, nothing cited that is not there, nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marg_ray.records import (
    Analysis,
    Answerability,
    Block,
    Contradiction,
    ContradictionSide,
    Draft,
    Plan,
    ReportStatus,
    RequestClass,
    Role,
    Section,
    Sentence,
    Usage,
    Verdict,
)
from marg_ray.report.assemble import QUOTED, build_report
from marg_ray.report.model import Report, to_json
from tests.report_sample import EVIDENCE, SOURCES, TEXTS, inputs, said, snapshot
from tests.shared import SHARED

IDS = sorted(EVIDENCE)


def test_offsets_of_the_evidence_give_its_quotes() -> None:
    for e in build_report(inputs()).evidence:
        assert snapshot(e.source)[e.start : e.end] == e.quote


def test_references_are_numbered_in_order_of_first_use_summary_first() -> None:
    report = build_report(inputs())
    assert [r.number for r in report.references] == list(range(1, len(report.references) + 1))
    assert report.references[0].source == SOURCES["rance"].id
    assert report.summary[0].numbers == (1,)
    first_use = list(dict.fromkeys(n for s in report.sentences() for n in s.numbers))
    assert first_use == [r.number for r in report.references]


def test_an_independent_check_finds_no_fault(tmp_path: Path) -> None:
    script = SHARED / "tools" / "check_report.py"
    if not script.exists():
        pytest.skip("the independent check is not beside the project")
    for number, text in enumerate(TEXTS.values()):
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    show = tmp_path / "show.py"
    show.write_text(
        "import hashlib, pathlib, sys\n"
        "for p in pathlib.Path(__file__).parent.glob('*.txt'):\n"
        "    if hashlib.sha256(p.read_bytes()).hexdigest() == sys.argv[1]:\n"
        "        sys.stdout.buffer.write(p.read_bytes())\n",
        "utf-8",
    )
    report = tmp_path / "report.json"
    report.write_text(to_json(build_report(inputs())), "utf-8")
    done = subprocess.run(
        [sys.executable, "-X", "utf8", script, report, sys.executable, show],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "faults 0" in done.stdout


def test_the_same_inputs_give_the_same_bytes_whatever_the_order_of_mappings() -> None:
    turned = inputs(
        evidence=dict(reversed(EVIDENCE.items())),
        sources={s.id: s for s in reversed(list(SOURCES.values()))},
        usage_by_role=dict(reversed(list(inputs().usage_by_role.items()))),
    )
    assert to_json(build_report(turned)) == to_json(build_report(inputs()))


def test_only_what_is_used_is_listed_as_evidence_but_everything_read_as_a_source() -> None:
    report = build_report(
        inputs(analysis=Analysis(), summary=None, drafts={"s4": inputs().drafts["s4"]}, section_evidence={})
    )
    assert [e.quote for e in report.evidence] == ["تبلغ قدرتها 240 ميغاواط."]
    assert len(report.sources) == len(SOURCES)
    assert report.sources[0].id == report.references[0].source


def test_a_citation_without_evidence_or_source_goes_and_the_sentence_stays() -> None:
    lost = Sentence(text="Words stay.", citations=("e-none", IDS[0]), verdict=Verdict.SUPPORTED)
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=(lost,)),))
    source = EVIDENCE[IDS[0]].source
    without = {s.id: s for s in SOURCES.values() if s.id != source}
    report = build_report(inputs(drafts={"s1": draft}, summary=None, sources=without, analysis=Analysis()))
    sentence = report.sections[0].sentences[0]
    assert (sentence.text, sentence.citations, sentence.numbers) == ("Words stay.", (), ())
    assert any(n.kind == "unknown_citation" and "e-none" in n.text for n in report.notes)


def test_without_a_summary_the_first_supported_sentences_stand_in() -> None:
    report = build_report(inputs(summary=None))
    texts = [s.text for s in report.summary]
    assert texts[0] == "The Rance station near Saint-Malo opened in 1966."
    assert len(texts) == 4  # of the four written sections
    assert all(s.verdict is Verdict.SUPPORTED and s.numbers for s in report.summary)
    assert [b.kind for b in report.summary_blocks] == ["bullet"] * 4


def test_a_section_without_a_draft_shows_its_passages_word_for_word() -> None:
    report = build_report(inputs(drafts={}, summary=None))
    first = report.sections[0]
    assert first.quoted_only
    assert [b.kind for b in first.blocks] == ["bullet", "bullet"]
    for sentence in first.sentences:
        assert EVIDENCE[sentence.citations[0]].quote == sentence.text
        assert sentence.numbers
        assert sentence.reason == QUOTED
    assert not report.summary


def test_a_section_without_anything_is_a_gap() -> None:
    report = build_report(inputs(drafts={}, section_evidence={}, gaps={"s5": "no document gives a price"}))
    assert {g.section: g.reason for g in report.gaps}["s5"] == "no document gives a price"
    assert len(report.gaps) == 5


def test_a_disagreement_needs_two_sides_that_can_be_shown() -> None:
    sides = (ContradictionSide(value="1", evidence=IDS[0]), ContradictionSide(value="2", evidence="e-none"))
    analysis = Analysis(contradictions=(Contradiction(subject="x", sides=sides),))
    assert not build_report(inputs(analysis=analysis)).contradictions


def test_signs_that_no_format_can_hold_are_cleaned() -> None:
    plan = Plan(
        title="A\x00B\ud800 \u202egnp.exe\nsecond line",
        request_class=RequestClass.FULL_RESEARCH,
        language="en",
        sections=(Section(id="s1", title="", weight=1, queries=()),),
    )
    report = build_report(inputs(plan=plan))
    assert report.title == "AB\ufffd gnp.exe second line"
    assert report.sections[0].title == "s1"
    to_json(report).encode()


def test_a_report_with_an_unsupported_sentence_never_says_passed() -> None:
    report = build_report(inputs(status=ReportStatus.PASSED))
    assert report.status is ReportStatus.QUALITY_WARNING
    assert any(n.kind == "status" for n in report.notes)
    sound = {k: d for k, d in inputs().drafts.items() if k in ("s3", "s4")}
    assert build_report(inputs(status=ReportStatus.PASSED, drafts=sound)).status is ReportStatus.PASSED


def test_a_figure_that_is_no_number_does_not_lose_the_report() -> None:
    report = build_report(
        inputs(
            answerability=Answerability(cosine=float("nan")),
            usage_by_role={Role.PLANNER: Usage(calls=1, cost=float("inf"))},
            wall_seconds=float("nan"),
        )
    )
    assert "NaN" not in to_json(report)
    assert "Infinity" not in to_json(report)


@st.composite
def drafts(draw: st.DrawFn) -> dict[str, Draft]:
    cited = st.lists(st.sampled_from([*IDS, "e-none"]), max_size=4)
    made = {}
    for section in ("s1", "s2", "s3"):
        sentences = tuple(
            Sentence(text=f"{section} {n}.", citations=tuple(c), verdict=draw(st.sampled_from(Verdict)))
            for n, c in enumerate(draw(st.lists(cited, max_size=5)))
        )
        made[section] = Draft(section=section, revision=1, blocks=(Block(kind="paragraph", sentences=sentences),))
    return made


@settings(max_examples=60, deadline=None)
@given(drafts(), st.booleans())
def test_numbers_and_references_always_fit(made: dict[str, Draft], summarised: bool) -> None:
    report = build_report(inputs(drafts=made, summary=made["s2"] if summarised else None))
    _holds(report)


def _holds(report: Report) -> None:
    used = list(dict.fromkeys(n for s in report.sentences() for n in s.numbers))
    assert [r.number for r in report.references] == list(range(1, len(report.references) + 1))
    assert set(used) == {r.number for r in report.references}
    assert len({r.source for r in report.references}) == len(report.references)
    evidence = {e.id: e for e in report.evidence}
    numbers = {r.source: r.number for r in report.references}
    for sentence in report.sentences():
        assert {numbers[evidence[c].source] for c in sentence.citations} == set(sentence.numbers)
    for section in report.sections:
        held = [i for b in section.blocks for i in range(b.start, b.end)]
        assert held == list(range(len(section.sentences)))


def test_a_sentence_that_repeats_a_citation_cites_once() -> None:
    twice = said("Twice.", EVIDENCE[IDS[0]], EVIDENCE[IDS[0]])
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=(twice,)),))
    report = build_report(inputs(drafts={"s1": draft}, summary=None))
    assert report.sections[0].sentences[0].citations == (IDS[0],)
