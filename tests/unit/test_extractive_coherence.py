"""A report that reads as one text: nothing leans on what is not there, nothing is said twice, every part answers."""

from __future__ import annotations

import pytest

from marg_ray.models.client import Call
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.extractive import ExtractiveModel, rules
from marg_ray.models.extractive.cards import clean, without
from marg_ray.models.extractive.enumerations import items
from marg_ray.models.extractive.facets import addresses_others, facet, is_on_topic
from marg_ray.models.extractive.printing import ONLY
from marg_ray.models.extractive.summarising import marked_lines
from marg_ray.models.tasks import AnalyseEvidence, EvidenceCard, ReviewReport, SectionText, SummariseReport
from marg_ray.seams import in_thread
from tests.unit.test_extractive_sections import document, draft, draft_task, quotes

CALL = Call(session_id="s", task_id="t")


def card(number: int, quote: str, *, source: str = "a", title: str = "Tides", heading: str = "") -> EvidenceCard:
    return EvidenceCard(
        number=number, quote=quote, source_title=title, source_id=source, start=100 * number,
        end=100 * number + len(quote), heading=heading, relevance=0.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "alone"),
    [
        ("The minister used this as an example of what was to come.", False),
        ("Critics of the plan called it a waste of public money.", False),
        ("The owners of the barrage did so in 2011.", False),
        ("Fishermen from the estuary preferred the latter.", False),
        ("The purpose of this is to keep the silt out.", False),
        ("The barrage made it possible to cross the river.", True),
        ("When the pump failed, the crew used this as an excuse.", True),
        ("If a package provides a shell, maintainers call it a virtual package.", True),
        ("12 were injured when the wall collapsed.", False),
        ("Another 30 were hurt in the next village.", False),
        ("12 people were injured when the wall collapsed.", True),
        ("2023 was the hottest year that was ever measured.", True),
        ("The total was 240 megawatts in 1966.", False),
        ("The total number of victims was 240 in 1966.", True),
        ("In February he left the company for good.", False),
        ("In February Ada Lovelace left her estate for good.", True),
        ("In 1966 the engineer left his country for good.", True),
        ("Throughout 2021 she ran the barrage alone.", False),
    ],
)
def test_what_leans_on_the_sentence_before(sentence: str, alone: bool) -> None:
    assert rules.stands_alone(sentence) is alone


LONG = (
    "The minister of climate change of Ruritania said that the northern and the southern province had received far "
    "more rain than in any August since measurements began, with rivers that rose above their banks in ten districts, "
    "roads that were washed away in nine of them, and more than two hundred villages that could be reached "
    "by boat only, and that the response of the states of the world had been slow, small and late in coming."
)


async def test_a_sentence_too_long_to_open_is_quoted_with_the_one_that_needs_it() -> None:
    assert rules.is_junk(LONG)
    rest = "## Geography\nThe valleys of Ruritania are narrow. The Strel is the longest river of all the land."
    response = f"{LONG} The envoy used this as an example of how the world responds."
    text = f"# 2022 Ruritania floods\n## Response\n{response}\n{rest}"
    found = await quotes(document(text), "How did the world respond?")
    assert any("far more rain" in q and "used this" in q for q in found)
    assert not any("used this" in q and "far more rain" not in q for q in found)


async def test_a_sentence_too_long_to_open_is_not_quoted_by_itself() -> None:
    text = f"# 2022 Ruritania floods\n## Response\n{LONG} The envoy of Syldavia sent boats and tents in response."
    assert not any(q.startswith("The minister") for q in await quotes(document(text), "How did the world respond?"))


@pytest.mark.parametrize(
    ("gone", "kept"),
    [
        ({"A stands."}, ("C stands too.",)),
        ({"C stands too."}, ("A stands.", "It was built on B.")),
        (set(), ("A stands.", "It was built on B.", "C stands too.")),
    ],
)
def test_what_leaned_on_a_sentence_goes_with_it(gone: set[str], kept: tuple[str, ...]) -> None:
    assert without(["A stands.", "It was built on B.", "C stands too."], gone) == kept


class TestOnly:
    SENTENCE = "Fishermen said that the barrage had driven the sole and the plaice out of the estuary."

    @pytest.mark.parametrize(
        ("title", "said"),
        [
            ("What problems did the barrage cause?", True),
            ("What is the barrage?", False),
            ("Who drove the sole out of the estuary?", False),
            ("How many fish left the estuary?", False),
        ],
    )
    async def test_one_sentence_where_more_is_expected_is_announced(self, title: str, said: bool) -> None:
        text = await draft(draft_task(title, (card(1, self.SENTENCE),), question=title))
        assert text.startswith(f"**{ONLY}") is said

    async def test_not_before_more_than_one(self) -> None:
        title = "What problems did the barrage cause?"
        more = "The barrage caused problems with silt at first. The barrage caused problems with fish later on."
        assert ONLY not in await draft(draft_task(title, (card(1, more),), question=title))

    def test_it_is_no_name_of_anything(self) -> None:
        (line,) = marked_lines(0, f"**{ONLY}**\n\n{self.SENTENCE} [1]")
        assert (line.label, line.about) == ("", "")


async def test_a_thing_is_defined_once_by_a_source_and_twice_in_all() -> None:
    question = "What do Depends, Recommends and Suggests mean?"
    says = "Recommends is a strong dependency of one package on another, number {}."
    evidence = tuple(
        card(n, says.format(word), source=source, heading="Recommends", title=f"Manual {source}")
        for n, (source, word) in enumerate(
            [("a", "alpha beta gamma"), ("a", "delta epsilon zeta"), ("b", "eta theta iota"), ("c", "kappa mu nu")], 1
        )
    )
    text = await draft(draft_task("Recommends", evidence, question=question))
    assert text.count("strong dependency") == 2
    assert ("[1]" in text) != ("[2]" in text)


def summary_task(*texts: str, words: int = 150) -> SummariseReport:
    sections = tuple(SectionText(id=f"s{n}", title=f"Part {n}", text=text) for n, text in enumerate(texts, 1))
    return SummariseReport(question="What is known of tides?", language="en", sections=sections, words=words)


async def summary(task: SummariseReport) -> list[str]:
    model = ExtractiveModel(HashingEmbedder(), in_thread)
    return (await model.run(task, CALL)).output.markdown.splitlines()


class TestBrief:
    async def test_every_section_has_its_bullet_when_words_run_out(self) -> None:
        kinds = ["barrages", "lagoons", "turbines", "harbours", "salt pans", "mussel banks", "mills", "causeways"]
        places = ["the Severn", "Brittany", "Fundy", "Korea", "Essex", "Jutland", "Galicia", "Maine"]
        texts = [
            f"The {kind} of {place} were studied for {n} years by engineers from abroad, whose work was paid for by "
            f"the fishermen of {place} and by no government. [{n}] All {kind} closed in that year. [{n}]"
            for n, (kind, place) in enumerate(zip(kinds, places, strict=True), 1)
        ]
        found = await summary(summary_task(*texts))
        assert [f"[{n}]" in line for n, line in enumerate(found, 1)] == [True] * 8

    async def test_a_section_without_a_good_sentence_gives_the_best_it_has(self) -> None:
        found = await summary(summary_task("As we described above, the tide rises twice a day. [1]"))
        assert found == []
        found = await summary(summary_task("In our experience the tide rises twice a day. [1]"))
        assert len(found) == 1

    async def test_signposts_never(self) -> None:
        assert await summary(summary_task("More information on the tide can be found at the harbour office. [1]")) == []


STEPS = """# Barrage manual
## Upgrading the turbines
Upgrading the turbines is a task of many days, and operators usually have every upgrade planned for the autumn.
To upgrade the turbines, take these steps:
- Close the gates at high tide and wait for slack water.
- Replace the blades of each turbine and test its bearings.
- Open the gates again when all turbines have been upgraded.
## History
The turbines of the barrage were upgraded for the first time in 1996. It took ten years to upgrade the turbines.
"""


async def test_how_to_is_answered_by_the_steps() -> None:
    title = "How do I upgrade the turbines?"
    found = await quotes(document(STEPS), title, question=title)
    assert found[0].startswith("To upgrade the turbines, take these steps:")
    assert "Open the gates again" in found[0]


@pytest.mark.parametrize(
    ("question", "text", "other"),
    [
        ("How do I upgrade the system?", "Maintainers upload the upgrade to stable.", True),
        ("How do I upgrade the system?", "Upgrade the packages of the system first.", False),
        ("How do maintainers upgrade a package?", "Maintainers upload the upgrade to stable.", False),
        ("Who upgrades the system?", "Maintainers upload the upgrade to stable.", False),
    ],
)
def test_advice_for_others(question: str, text: str, other: bool) -> None:
    assert addresses_others(facet(question, question, (question,)), text) is other


async def test_what_is_asked_of_one_of_several_things_and_nobody_answers() -> None:
    question = "How did authorities prepare for Storm Ada, Storm Bob and Storm Cyd, and what damage did each cause?"
    evidence = (
        card(1, "Schools were closed and people evacuated before Storm Ada. Storm Ada destroyed 40 houses."),
        card(2, "Before Storm Bob, ferries were suspended and shelters opened.", source="b"),
    )
    task = AnalyseEvidence(question=question, language="en", hypotheses=(), evidence=evidence)
    model = ExtractiveModel(HashingEmbedder(), in_thread)
    unknowns = (await model.run(task, CALL)).output.unknowns
    assert [u.split(":")[0] for u in unknowns if ":" in u and u.startswith("Storm")] == [
        "Storm Bob",
        "Storm Cyd",
        "Storm Cyd",
    ]


class TestRevision:
    QUESTION = "What problems did the barrage cause?"
    FIRST = "The barrage caused problems with silt in the estuary at first."
    SECOND = "The barrage caused problems with fish in later years."
    THIRD = "Problems with the paint of the gates were caused by the salt of the sea."

    async def test_what_is_named_goes_and_nothing_else_comes(self) -> None:
        evidence = (card(1, f"{self.FIRST} {self.SECOND}"), card(2, self.THIRD, source="b"))
        task = draft_task(
            self.QUESTION, evidence, question=self.QUESTION,
            previous=f"{self.FIRST[:-1]} [1]. {self.SECOND[:-1]} [1].",
            feedback=(f"Leave out: {self.SECOND}",),
        )  # fmt: skip
        text = await draft(task)
        assert self.FIRST in text
        assert self.SECOND not in text
        assert self.THIRD not in text

    async def test_what_only_the_evidence_has_stands_in_for_a_draft_that_goes_whole(self) -> None:
        evidence = (card(1, self.SECOND), card(2, self.THIRD, source="b"))
        task = draft_task(
            self.QUESTION, evidence, question=self.QUESTION, previous=f"{self.SECOND[:-1]} [1].",
            feedback=(f"Leave out: {self.SECOND}",),
        )  # fmt: skip
        text = await draft(task)
        assert self.SECOND not in text
        assert self.THIRD in text


@pytest.mark.parametrize(
    "sentence",
    [
        "For a guide to the turbines, read The Barrage Handbook by Ada Green.",
        "Here is a list of the turbines and a summary of what they are for.",
    ],
)
def test_more_signposts(sentence: str) -> None:
    assert rules.is_pointer(sentence)


def test_a_command_that_was_shown_and_is_gone() -> None:
    assert rules.is_junk("To display the state of the turbines, run the command.")
    assert not rules.is_junk("To display the state of the turbines, run the command twice a day.")


def test_links_to_what() -> None:
    assert not rules.stands_alone("There should be links to them from the examples of the package.")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("How do simple and complex febrile seizures differ?", ("simple febrile seizures", "complex febrile seizures")),
        ("Compare Storm Eunice and Hurricane Hilary.", ("Storm Eunice", "Hurricane Hilary")),
    ],
)
def test_the_things_that_are_compared(question: str, names: tuple[str, ...]) -> None:
    found = items(question)
    assert found is not None
    assert found.names == names


async def test_a_sentence_on_a_list_of_all_things_stands_under_none() -> None:
    question = "What do Depends, Recommends and Suggests mean?"
    listed = "Apart from Depends, other fields are Recommends, Suggests and Breaks."
    own = "Recommends is used for what would be found together with the package in all but unusual installations."
    text = await draft(draft_task("Recommends", (card(1, listed), card(2, own, source="b")), question=question))
    assert "unusual installations" in text
    assert "Apart from" not in text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Storm Eunice () was a storm.", "Storm Eunice was a storm."),
        ("Storm Eunice (; born 1) was.", "Storm Eunice (; born 1) was."),
        ("The main() function is called.", "The main() function is called."),
    ],
)
def test_brackets_that_lost_what_was_in_them(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    ("text", "on"),
    [
        ("Speak Now (Taylor's Version) was praised by critics.", False),
        ("Tributes to Hawkins came from all over. Taylor had been the drummer.", True),
        ("The critics praised the drummer.", False),
    ],
)
def test_half_a_name_is_somebody_else(text: str, on: bool) -> None:
    wanted = facet(
        "Who was Taylor Hawkins and how did others respond?", "How did others respond?",
        ("how did others respond Taylor Hawkins",),
    )  # fmt: skip
    assert is_on_topic(wanted, text) is on


@pytest.mark.parametrize(
    ("texts", "giving", "severity"),
    [
        (
            ("The tide rises twice a day here. [1]", "The tide rises twice a day here. [2] Silt gathers. [3]"),
            "s2",
            "high",
        ),
        (
            ("The tide rises twice a day here. [1] Silt gathers. [3]", "The tide rises twice a day here. [2]"),
            "s1",
            "high",
        ),
        (("The tide rises twice a day here. [1]", "The tide rises twice a day here. [2]"), "s2", "low"),
    ],
)
async def test_the_fuller_section_gives_way(texts: tuple[str, str], giving: str, severity: str) -> None:
    sections = tuple(SectionText(id=f"s{n}", title=f"What is part {n}?", text=t) for n, t in enumerate(texts, 1))
    task = ReviewReport(question="What is known of tides?", language="en", sections=sections)
    review = (await ExtractiveModel(HashingEmbedder(), in_thread).run(task, CALL)).output
    (issue,) = [i for i in review.issues if "Already said" in i.detail]
    assert (issue.section, issue.severity, bool(issue.instruction)) == (giving, severity, severity == "high")


def test_a_name_counts_in_its_own_letters() -> None:
    title = "How did regulators respond?"
    wanted = facet(
        f"Why did Silicon Valley Bank collapse? {title}", title, ("how did regulators respond Silicon Valley Bank",)
    )
    assert is_on_topic(wanted, "The regulators closed Silicon Valley Bank.")


async def test_what_stands_below_another_section_s_heading_is_left_to_it() -> None:
    below = card(
        1,
        "The network is set up by a daemon on every new system of this kind.",
        heading="Manual > Network setup > Desktop",
    )
    own = card(2, "The network of a system is started by the service manager at boot.", heading="Manual > Starting")
    question = "How do I set up the network?"
    other = ("Network setup",)
    text = await draft(
        draft_task("Overview", (below, own), question=question, queries=(question,), other_sections=other)
    )
    assert "[2]" in text
    assert "[1]" not in text
