from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from marg_ray.cli.account import Closing, closing_stats
from marg_ray.grounding.canon import counts, dropped, originals, repeats, without
from marg_ray.messages import DraftGrounded
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.testing import CannedModel
from marg_ray.records import (
    Block,
    Draft,
    Evidence,
    Grounding,
    Plan,
    ReportStatus,
    Request,
    RequestClass,
    Section,
    Sentence,
    SentenceVerdict,
    Source,
    SourceKind,
    Verdict,
)
from marg_ray.report.assemble import ReportInputs, build_report
from marg_ray.report.markdown import to_markdown
from marg_ray.report.wording import citation_text
from marg_ray.seams import in_thread
from marg_ray.sections import judged
from marg_ray.tasks import GroundTask
from tests.flow import TIDES, World, engine_over, page

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RANCE = "The Rance tidal power station in Brittany opened in 1966 and has 24 turbines with a capacity of 240 megawatts."
SILT = "Silt has collected in the estuary of the Rance since the barrage was closed, and some fish became rare."
OTHER = (
    "With its 24 turbines, the plant on the Rance reaches 240 megawatts; the Rance tidal power station opened in 1966."
)


def source(name: str, location: str = "", published: str = "") -> Source:
    place = location or f"https://{name}.test/page"
    return Source(
        id=name, title=f"About {name}", location=place, kind=SourceKind.WEB, fetched_at=NOW, published=published
    )


def passage(name: str, quote: str, source_id: str = "") -> Evidence:
    return Evidence(id=name, source=source_id or f"s{name}", quote=quote, start=0, end=len(quote))


@pytest.mark.parametrize(
    ("copy", "repeated"),
    [
        (RANCE, True),
        (RANCE.replace(" and has", ", and has").replace(".", " ."), True),
        (RANCE.split(" and has")[0] + ".", True),  # says less, in the same words
        (RANCE.replace("240", "254"), False),  # another figure is no repeat
        (OTHER, False),  # the same facts in another writer's words
        (SILT, False),
        ("The Rance.", False),
    ],
)
def test_a_passage_repeats_what_says_the_same_in_the_same_words(copy: str, repeated: bool) -> None:
    found = repeats((passage("a", RANCE), passage("b", copy)), {})
    assert found == ({"b": "a"} if repeated else {})


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (source("sa", published="2024-05-02"), source("sb", published="2023"), "b"),
        (source("sa", published="2023"), source("sb", published="2023-05-02"), "a"),  # neither is known to be older
        (source("sa", "https://www.msn.com/x"), source("sb"), "b"),
        (source("sa"), source("sb", "https://energy.gov/rance"), "b"),
        (source("sa"), source("sb", "https://www.univ.ac.uk/rance"), "b"),
        (source("sa", published="2020"), source("sb", "https://energy.gov/rance", "2021"), "a"),  # dates come first
        (source("sa"), source("sb"), "a"),
    ],
)
def test_the_original_is_the_earlier_the_primary_or_the_first(first: Source, second: Source, kept: str) -> None:
    pair = (passage("a", RANCE), passage("b", RANCE))
    assert [e.id for e in originals(pair, {"sa": first, "sb": second})] == [kept]


def test_one_source_does_not_repeat_itself_and_a_chain_leads_to_its_root() -> None:
    assert not repeats((passage("a", RANCE, "s"), passage("b", RANCE, "s")), {})
    assert repeats(tuple(passage(n, RANCE) for n in "abc"), {}) == {"b": "a", "c": "a"}


def test_a_short_original_is_not_dropped_for_the_longer_text_that_took_it_over() -> None:
    pair = (passage("a", RANCE), passage("b", f"{SILT} {RANCE}"))
    dated = {"sa": source("sa", published="2020-01-01"), "sb": source("sb", published="2021-01-01")}
    assert not repeats(pair, dated)
    assert repeats(pair, {}) == {"a": "b"}


EVIDENCE = {
    e.id: e
    for e in (
        passage("a", RANCE),
        passage("b", OTHER),
        passage("c", SILT),
        passage("d", RANCE),
    )
}
OPENED = "The Rance tidal power station in Brittany opened in 1966."
BOTH = (
    "The Rance tidal power station opened in 1966, and silt has collected in the estuary since the barrage was closed."
)


@pytest.mark.parametrize(
    ("text", "cited", "verdict", "gone"),
    [
        (OPENED, "a", Verdict.SUPPORTED, {}),
        (OPENED, "ab", Verdict.SUPPORTED, {"b": "adds_nothing"}),
        (OPENED, "ca", Verdict.SUPPORTED, {"c": "adds_nothing"}),
        (OPENED, "ad", Verdict.SUPPORTED, {"d": "repeats"}),
        (BOTH, "ac", Verdict.SUPPORTED, {}),  # each says a part
        (OPENED.replace("1966", "1976"), "ac", Verdict.CONTRADICTED, {}),  # nothing to spare where nothing holds
        (OPENED, "ab", Verdict.NOT_CHECKED, {}),
        ("Is it so?", "ab", Verdict.NOT_FACTUAL, {}),
    ],
)
def test_of_a_supported_sentence_the_smallest_set_stays(
    text: str, cited: str, verdict: Verdict, gone: dict[str, str]
) -> None:
    sentence = Sentence(text=text, citations=tuple(cited))
    found = dropped([sentence], [verdict], EVIDENCE, titles={}, sources={})
    assert {d.evidence: d.reason for d in found} == gone
    assert all(d.kept in cited and d.kept not in gone for d in found)


def test_what_is_left_still_holds_and_its_precision_is_whole() -> None:
    sentences = (Sentence(text=OPENED, citations=("c", "d", "a", "b")), Sentence(text=BOTH, citations=("a", "c", "d")))
    draft = Draft(section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=sentences),))
    holds = [Verdict.SUPPORTED] * 2
    before = counts(((s.text, s.citations, Verdict.SUPPORTED) for s in sentences), EVIDENCE, {})
    pared = without(draft, dropped(sentences, holds, EVIDENCE, titles={}, sources={}))
    after = counts(((s.text, s.citations, Verdict.SUPPORTED) for s in pared.sentences), EVIDENCE, {})
    assert before.precision is not None
    assert before.precision < 1.0
    assert after.precision == 1.0
    assert after.coverage == before.coverage == 1.0
    assert [len(s.citations) for s in pared.sentences] == [1, 2]


@pytest.mark.parametrize(
    ("verdict", "cited", "coverage", "precision"),
    [
        (Verdict.SUPPORTED, ("a",), 1.0, 1.0),
        (Verdict.SUPPORTED, ("a", "c"), 1.0, 0.5),  # the silt has no part in it
        (Verdict.UNSUPPORTED, ("c",), 0.0, 0.0),
        (Verdict.PARTIAL, ("a",), 0.0, 0.0),
        (Verdict.NOT_CHECKED, ("a",), 0.0, 0.0),
        (Verdict.SUPPORTED, (), 0.0, None),  # what cites nothing is not supported by what it cites
        (Verdict.NOT_FACTUAL, ("a",), None, None),
    ],
)
def test_coverage_and_precision(
    verdict: Verdict, cited: tuple[str, ...], coverage: float | None, precision: float | None
) -> None:
    found = counts([(OPENED, cited, verdict)], EVIDENCE, {})
    assert (found.coverage, found.precision) == (coverage, precision)


def test_the_fold_takes_away_what_the_critic_dropped_and_no_other_citation() -> None:
    sentences = (Sentence(text=OPENED, citations=("a", "b")), Sentence(text=BOTH, citations=("a", "b")))
    draft = Draft(section="s1", revision=1, blocks=tuple(Block(kind="bullet", sentences=(s,)) for s in sentences))
    gone = dropped(sentences[:1], [Verdict.SUPPORTED], EVIDENCE, titles={}, sources={})
    verdicts = (SentenceVerdict(verdict=Verdict.SUPPORTED),) * 2
    found = judged(draft, Grounding(section="s1", revision=1, verdicts=verdicts, coverage=1.0, dropped=gone))
    assert [s.citations for s in found.sentences] == [("a",), ("a", "b")]


async def test_the_critic_drops_and_checks_again() -> None:
    from marg_ray.actors.critic import Critic

    draft = Draft(
        section="s1",
        revision=1,
        blocks=(Block(kind="paragraph", sentences=(Sentence(text=OPENED, citations=("c", "b", "a")),)),),
    )
    task = GroundTask(id="g", session_id="S", section="s1", draft=draft, evidence=EVIDENCE, titles={})
    critic = Critic(model=CannedModel(), embedder=HashingEmbedder(), light=in_thread)
    reply = await critic.handle(task)
    assert isinstance(reply, DraftGrounded)
    found = reply.grounding
    left = judged(draft, found).sentences[0]
    assert found.verdicts[0].verdict is Verdict.SUPPORTED
    assert left.citations == ("a",)
    assert found.verdicts[0].evidence == "a"  # what decided is still cited


def _inputs(drafts: dict[str, Draft], evidence: dict[str, Evidence]) -> ReportInputs:
    sections = tuple(Section(id=k, title=k, weight=0.5, queries=(k,)) for k in ("s1", "s2"))
    return ReportInputs(
        session_id="S",
        request=Request(question="How does the Rance station work?"),
        plan=Plan(title="Rance", request_class=RequestClass.FULL_RESEARCH, language="en", sections=sections),
        model="canned",
        status=ReportStatus.PASSED,
        drafts=drafts,
        evidence=evidence,
        section_evidence={k: d.prompted for k, d in drafts.items()},
        sources={e.source: source(e.source) for e in evidence.values()},
    )


def test_the_report_cites_the_original_that_another_section_found_and_says_so() -> None:
    def draft(section: str, cited: str, text: str) -> Draft:
        sentence = Sentence(text=text, citations=(cited,), verdict=Verdict.SUPPORTED)
        return Draft(
            section=section, revision=1, prompted=(cited,), blocks=(Block(kind="paragraph", sentences=(sentence,)),)
        )

    wanted = {"a": EVIDENCE["a"], "d": EVIDENCE["d"]}
    drafts = {"s1": draft("s1", "a", OPENED), "s2": draft("s2", "d", "It has 24 turbines with 240 megawatts.")}
    report = build_report(_inputs(drafts, wanted))
    assert [s.citations for section in report.sections for s in section.sentences] == [("a",), ("a",)]
    assert [r.number for r in report.references] == [1]
    assert [(d.section, d.evidence, d.kept, d.reason) for d in report.dropped_citations] == [
        ("s2", "d", "a", "repeats")
    ]
    assert report.citations is not None
    assert (report.citations.coverage, report.citations.precision) == (1.0, 1.0)
    assert "coverage 1.00 (2 of 2 factual sentences), precision 1.00 (2 of 2 cited passages)" in citation_text(report)
    assert citation_text(report) in to_markdown(report).replace("\\", "")


def test_the_report_keeps_a_copy_where_the_original_would_turn_the_verdict() -> None:
    shorter = passage("d", RANCE.replace("in Brittany ", ""))
    sentence = Sentence(text="The station has 24 turbines.", citations=("d",), verdict=Verdict.PARTIAL)
    draft = Draft(section="s2", revision=1, prompted=("d",), blocks=(Block(kind="paragraph", sentences=(sentence,)),))
    report = build_report(_inputs({"s2": draft}, {"a": EVIDENCE["a"], "d": shorter}))
    assert report.sections[1].sentences[0].citations == ("d",)
    assert not report.dropped_citations


def test_a_passage_that_no_writer_was_shown_is_named() -> None:
    sentence = Sentence(text=OPENED, citations=("a",), verdict=Verdict.SUPPORTED)
    draft = Draft(section="s1", revision=1, prompted=("a",), blocks=(Block(kind="paragraph", sentences=(sentence,)),))
    found = _inputs({"s1": draft}, {"a": EVIDENCE["a"], "d": EVIDENCE["d"]})
    report = build_report(_with_evidence(found, ("a", "d")))
    assert [(d.evidence, d.kept, d.reason) for d in report.dropped_citations] == [("d", "a", "not_shown")]


def _with_evidence(inputs: ReportInputs, evidence: tuple[str, ...]) -> ReportInputs:
    return replace(inputs, section_evidence={"s1": evidence})


async def test_a_run_over_a_page_and_another_that_copies_it_cites_the_page(tmp_path: Path) -> None:
    copied = "https://www.msn.com/rance"
    lead = (
        "News of the week from the coasts of Europe, collected for the readers of this portal by its own editors, who "
    )
    lead += (
        "look at many papers every day and choose what is worth the time of a busy person with an interest in power. "
    )
    pages = {copied: ("News of the week", lead + TIDES["https://tides.test/rance"][1]), **TIDES}
    world = World(
        tmp_path,
        pages={url: page(*text) for url, text in pages.items()},
        engines=(engine_over(pages),),
    )
    report = world.report(await world.ask())
    places = {s.location: s.id for s in report.sources}
    evidence = {e.id: e.source for e in report.evidence}
    about = [s for s in report.sentences() if "24 turbines" in s.text]
    assert about
    assert {evidence[c] for s in about for c in s.citations} == {places["https://tides.test/rance"]}
    assert {(d.source, d.kept_source, d.reason) for d in report.dropped_citations} == {
        (places[copied], places["https://tides.test/rance"], "not_shown")
    }
    assert [r.number for r in report.references] == list(range(1, len(report.references) + 1))


def test_the_account_of_a_session_says_how_well_it_is_cited() -> None:
    from rich.console import Console

    console = Console(record=True, width=120, file=io.StringIO())
    console.print(closing_stats(Closing("S", "passed", "canned", 1.0, citations="coverage 0.97, precision 1.00")))
    assert "coverage 0.97, precision 1.00" in console.export_text()
