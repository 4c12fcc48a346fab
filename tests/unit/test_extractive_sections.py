"""Reading a document and writing a section: what is quoted, in which order, how it is printed."""

from __future__ import annotations

import pickle
import re
from typing import Any, Literal

import pytest

from marg_ray.grounding.drafts import parse_draft
from marg_ray.grounding.snapshots import Document, Part
from marg_ray.models.client import Call
from marg_ray.models.embeddings import HashingEmbedder
from marg_ray.models.extractive import ExtractiveModel, drafting, reading
from marg_ray.models.extractive.measures import measure
from marg_ray.models.extractive.words import squeeze
from marg_ray.models.tasks import (
    AnalyseEvidence,
    DraftSection,
    EvidenceCard,
    ExtractClaims,
    Passage,
    ReviewReport,
    RewriteQuery,
    SectionText,
    SummariseReport,
)
from marg_ray.seams import in_thread

CALL = Call(session_id="s", task_id="t")
Kind = Literal["heading", "paragraph", "list_item", "table_row", "quote", "code", "caption"]

FLOOD = """# 2022 Ruritania floods
The 2022 Ruritania floods were a series of floods in the valleys of Ruritania. They killed 117 people in all.
## Background
The immediate cause of the floods was three weeks of rain on frozen ground. \
Deforestation of the upper valleys was another factor.
## Impact
### Northern province
Floods in the northern province killed 71 people and destroyed 4,200 houses. The bridge at Strelsau collapsed on 3 May.
### Southern province
In the southern province 46 people died, and 800 houses were damaged. Its railway was closed until June.
## Response
The government of Ruritania declared a state of emergency on 4 May. \
Neighbouring states sent boats, tents and medicine for the victims.
More information can be found at the ministry's page on the disaster and its relief.
"""
QUESTION = "What caused the 2022 Ruritania floods, what damage did they do and how did the government respond?"


def document(source: str, title: str = "") -> Document:
    """A document from lines: `#` headings, `-` list items, `~` table rows, `term:: text`, all else paragraphs."""
    text = ""
    parts: list[Part] = []

    def add(kind: Kind, words: str, **more: Any) -> None:
        nonlocal text
        text += ("\n" if kind == "table_row" and parts and parts[-1].kind == kind else "\n\n") if text else ""
        parts.append(Part(kind=kind, start=len(text), end=len(text) + len(words), **more))
        text += words

    for line in filter(None, source.splitlines()):
        if match := re.match(r"(#+) (.*)", line):
            add("heading", match[2], level=len(match[1]))
        elif line.startswith("- "):
            add("list_item", line[2:])
        elif line.startswith("~ "):
            add("table_row", line[2:])
        elif match := re.match(r"([\w-]+):: (.*)", line):
            add("paragraph", match[1])
            add("paragraph", match[2], term=match[1])
        else:
            add("paragraph", line)
    return Document(title=title or next(text[p.start : p.end] for p in parts), text=text, parts=tuple(parts))


def claims_task(doc: Document, title: str, question: str = QUESTION, **more: Any) -> ExtractClaims:
    passages = tuple(
        Passage(text=doc.text[p.start : p.end], start=p.start, end=p.end, score=0.5)
        for p in doc.parts
        if p.kind != "heading"
    )
    return ExtractClaims(
        question=question,
        section_title=title,
        queries=more.pop("queries", (title,)),
        source_title=doc.title,
        passages=passages,
        document=doc,
        **more,
    )


def model() -> ExtractiveModel:
    return ExtractiveModel(HashingEmbedder(), in_thread)


async def quotes(doc: Document, title: str, question: str = QUESTION, **more: Any) -> list[str]:
    output = (await model().run(claims_task(doc, title, question, **more), CALL)).output
    assert all(c.quote in doc.text for c in output.claims)
    return [c.quote for c in output.claims]


def cards(doc: Document, found: list[str], first: int = 1) -> tuple[EvidenceCard, ...]:
    return tuple(
        EvidenceCard(
            number=n,
            quote=quote,
            source_title=doc.title,
            source_id=doc.source_id,
            start=doc.text.index(quote),
            end=doc.text.index(quote) + len(quote),
            heading=doc.heading_path(doc.text.index(quote)),
            relevance=0.5,
        )
        for n, quote in enumerate(found, first)
    )


def draft_task(title: str, evidence: tuple[EvidenceCard, ...], question: str = QUESTION, **more: Any) -> DraftSection:
    return DraftSection(
        question=question,
        report_title=question,
        section_title=title,
        queries=more.pop("queries", (title,)),
        other_sections=more.pop("other_sections", ()),
        evidence=evidence,
        language="en",
        words=more.pop("words", 300),
        **more,
    )


async def draft(task: DraftSection) -> str:
    return (await model().run(task, CALL)).output.markdown


class TestReading:
    async def test_a_clause_gets_the_passages_that_answer_it(self) -> None:
        found = await quotes(document(FLOOD), "What caused the 2022 Ruritania floods?")
        assert any("three weeks of rain" in q for q in found[:2])
        assert not any("sent boats" in q for q in found)

    async def test_the_children_of_a_fitting_heading_are_all_walked(self) -> None:
        found = " ".join(await quotes(document(FLOOD), "What damage did the 2022 Ruritania floods do?"))
        assert "71 people" in found
        assert "46 people" in found

    async def test_signposts_are_not_evidence(self) -> None:
        found = await quotes(document(FLOOD), "How did the government respond?")
        assert any("state of emergency" in q for q in found)
        assert not any("More information" in q for q in found)

    async def test_no_quote_starts_with_what_it_refers_to(self) -> None:
        for title in ("What caused the 2022 Ruritania floods?", "What damage did the 2022 Ruritania floods do?"):
            assert not any(q.startswith(("They ", "Its ")) for q in await quotes(document(FLOOD), title))

    async def test_a_document_on_something_else_gives_nothing(self) -> None:
        other = document("# Tea\nTea is a drink made of leaves. It was damaged by rain and floods in the plantation.")
        assert await quotes(other, "What damage did the 2022 Ruritania floods do?") == []

    async def test_never_more_than_asked_for(self) -> None:
        assert len(await quotes(document(FLOOD), "What damage did the 2022 Ruritania floods do?", max_claims=2)) == 2

    async def test_a_section_named_after_a_heading_takes_what_stands_there(self) -> None:
        doc = document(FLOOD)
        found = await quotes(doc, "Response", queries=("2022 Ruritania floods: Response",))
        assert found
        assert all(doc.heading_path(doc.text.index(q)).endswith("Response") for q in found)
        titled = await quotes(doc, "Response (Another document)", queries=("Another document: Response",))
        assert titled == []

    async def test_a_definition_keeps_its_term(self) -> None:
        doc = document(
            "# Relations\n## Dependencies\nDepends:: This declares an absolute dependency. It is checked first.\n"
            "Suggests:: This declares that a package is useful with others. It is never checked by the tool."
        )
        question = "What is the difference between Depends and Suggests?"
        (found, *_) = await quotes(doc, "Suggests", question)
        assert found.startswith("Suggests\n\nThis declares that")
        assert "absolute" not in found

    async def test_a_whole_list_with_its_announcement(self) -> None:
        doc = document(
            "# Barrages\n## Building a barrage\nTo build a barrage, take these steps in their order:\n"
            "- Close the estuary with a dam of stone.\n- Put the turbines into the gaps of the dam.\n- Open the gates."
        )
        found = await quotes(doc, "How do I build a barrage?", "How do I build a barrage?")
        assert found[0].startswith("To build a barrage")
        assert found[0].endswith("Open the gates.")

    async def test_rows_that_match_are_quoted_together(self) -> None:
        rows = ["North; Year: 2021", "North; Year: 2022", "South; Year: 2022", "South; Year: 2023"]
        doc = document("# Sales\n" + "\n".join(f"~ Region: {r}; Revenue: {n}00" for n, r in enumerate(rows, 1)))
        question = "What was the revenue of each region in 2022?"
        found = await quotes(doc, question, question)
        assert found[0] == ("Region: North; Year: 2022; Revenue: 200\nRegion: South; Year: 2022; Revenue: 300")

    async def test_rows_of_a_table(self) -> None:
        doc = document("# Barrages\n~ Name: La Rance; Capacity: 240 MW\n~ Name: Sihwa; Capacity: 254 MW")
        found = await quotes(doc, "What capacity do barrages have?", "What capacity do barrages have?")
        assert "Capacity: 240 MW" in found[0]

    @pytest.mark.parametrize(
        "text",
        [
            "Die Gezeitenkraftwerke nutzen Ebbe und Flut. Das Kraftwerk La Rance hat eine Leistung von 240 Megawatt.",
            "潮汐发电站利用潮汐发电。拉朗斯潮汐发电站的装机容量为240兆瓦。",
        ],
    )
    async def test_other_languages(self, text: str) -> None:
        question = "Welche Leistung hat das Kraftwerk La Rance?" if "Ebbe" in text else "潮汐发电站的装机容量是多少？"
        assert await quotes(document(f"# Titel\n{text}"), question, question)

    async def test_odd_documents(self) -> None:
        for text in ("", " ", "x", "?" * 500, "\n\n\n", "a " * 3000):
            doc = Document(title="", text=text, parts=())
            output = (await model().run(claims_task(doc, "What?"), CALL)).output
            assert all(c.quote in text for c in output.claims)

    def test_the_work_can_cross_a_process(self) -> None:
        prepared = reading.prepare(claims_task(document(FLOOD), "How did the government respond?"))
        assert pickle.loads(pickle.dumps(prepared)) == prepared
        assert len(prepared.texts) <= 2 + prepared.rivals + reading.EMBEDDED


class TestDrafting:
    async def test_every_sentence_is_a_source_s_own_and_cited(self) -> None:
        doc = document(FLOOD)
        title = "What damage did the 2022 Ruritania floods do?"
        evidence = cards(doc, await quotes(doc, title))
        markdown = await draft(draft_task(title, evidence))
        parsed = parse_draft(
            markdown, {c.number: str(c.number) for c in evidence}, section="s1", section_title=title, revision=1
        )
        assert parsed.sentences
        for sentence in parsed.sentences:
            assert sentence.citations
            assert sentence.text.rstrip(".") in squeeze(doc.text)
        assert [b.text for b in parsed.blocks if b.kind == "label"] == ["Northern province", "Southern province"]

    async def test_no_sentence_twice(self) -> None:
        doc = document(FLOOD)
        one = "The immediate cause of the floods was three weeks of rain on frozen ground."
        longer = f"{one} Deforestation of the upper valleys was another factor."
        markdown = await draft(draft_task("What caused the 2022 Ruritania floods?", cards(doc, [one, longer, one])))
        assert markdown.count("three weeks of rain") == 1
        assert "Deforestation" in markdown

    async def test_feedback_takes_a_sentence_out(self) -> None:
        doc = document(FLOOD)
        bad = "Deforestation of the upper valleys was another factor."
        evidence = cards(doc, ["The immediate cause of the floods was three weeks of rain on frozen ground.", bad])
        title = "What caused the 2022 Ruritania floods?"
        previous = await draft(draft_task(title, evidence))
        assert bad in previous
        task = draft_task(title, evidence, previous=previous, feedback=(f'"{bad}": nothing cited says this',))
        again = await draft(task)
        assert bad not in again
        assert "three weeks of rain" in again

    async def test_other_subjects_stay_out(self) -> None:
        doc, other = document(FLOOD), document("# Tea\nFloods destroyed 900 houses and killed people in Tealand.")
        evidence = (
            *cards(doc, ["In the southern province 46 people died, and 800 houses were damaged."]),
            *cards(other, ["Floods destroyed 900 houses and killed people in Tealand."], 2),
        )
        markdown = await draft(draft_task("What damage did the 2022 Ruritania floods do?", evidence))
        assert "46 people" in markdown
        assert "Tealand" not in markdown

    async def test_sources_that_differ_are_named(self) -> None:
        one = document("# Harbour report\nThe harbour of Strelsau handled 120 ships in the year 2020 in all.")
        two = document("# Port survey\nThe harbour of Strelsau handled 150 ships in the year 2020 in all.")
        evidence = (
            *cards(one, ["The harbour of Strelsau handled 120 ships in the year 2020 in all."]),
            *cards(two, ["The harbour of Strelsau handled 150 ships in the year 2020 in all."], 2),
        )
        question = "How many ships did the harbour of Strelsau handle?"
        markdown = await draft(draft_task(question, evidence, question))
        assert "**Harbour report**" in markdown
        assert "**Port survey**" in markdown

    async def test_the_source_s_own_marks_are_not_ours(self) -> None:
        doc = document(
            "# Barrage\nA barrage is a dam across an estuary.[7] It changes the tides of the bay.[citation needed]"
        )
        question = "What is a barrage?"
        markdown = await draft(draft_task(question, cards(doc, [doc.text.partition("\n\n")[2]]), question))
        assert "[7]" not in markdown
        assert "citation" not in markdown
        assert markdown.startswith("A barrage is a dam across an estuary. [1]")

    async def test_the_definition_stays_in_its_section(self) -> None:
        doc = document(
            "# Barrage\nA barrage is a dam across an estuary.\nA barrage is made by closing a river with stone."
        )
        question = "What is a barrage and how is it made?"
        evidence = cards(
            doc, ["A barrage is a dam across an estuary.", "A barrage is made by closing a river with stone."]
        )
        markdown = await draft(
            draft_task("How is a barrage made?", evidence, question, other_sections=("What is a barrage?",))
        )
        assert "closing a river" in markdown
        assert "across an estuary" not in markdown

    async def test_the_definition_comes_first(self) -> None:
        doc = document("# Barrage\nMany birds live at a barrage in winter. A barrage is a dam across an estuary.")
        evidence = cards(doc, ["Many birds live at a barrage in winter.", "A barrage is a dam across an estuary."])
        markdown = await draft(draft_task("What is a barrage?", evidence, "What is a barrage?"))
        assert markdown.startswith("A barrage is a dam")

    async def test_rows_become_a_table(self) -> None:
        doc = document("# Barrages\n~ Name: La Rance; Capacity: 240 MW\n~ Name: Sihwa; Capacity: 254 MW")
        rows = "Name: La Rance; Capacity: 240 MW\nName: Sihwa; Capacity: 254 MW"
        question = "What capacity do barrages have?"
        markdown = await draft(draft_task(question, cards(doc, [rows]), question))
        assert "| Name | Capacity |" in markdown
        assert "| Sihwa | 254 MW [1] |" in markdown

    async def test_rows_of_one_source_share_a_table(self) -> None:
        doc = document("# Barrages\n~ Name: La Rance; Capacity: 240 MW\n~ Name: Sihwa; Capacity: 254 MW")
        evidence = cards(doc, ["Name: La Rance; Capacity: 240 MW", "Name: Sihwa; Capacity: 254 MW"])
        question = "What capacity do barrages have?"
        markdown = await draft(draft_task(question, evidence, question))
        assert markdown.count("| Name | Capacity |") == 1
        assert "240 MW [1] |" in markdown
        assert "254 MW [2] |" in markdown

    async def test_a_wide_table_keeps_what_is_asked(self) -> None:
        rows = [
            f"station: {name}; country: F; type: b; status: s; opened: 19{n}; ended: 20{n}; output (GWh): 5{n}; mode: e"
            for n, name in enumerate(("Sihwa Lake", "La Rance"), 10)
        ]
        doc = document("# stations.csv\n" + "\n".join(f"~ {row}" for row in rows))
        question = "How do La Rance and Sihwa Lake compare in output?"
        task = draft_task("Comparison", cards(doc, ["\n".join(rows)]), question)
        markdown = await draft(task)
        header, _, first, second = markdown.splitlines()
        assert header == "| station | country | type | status | opened | output (GWh) |"
        assert first.startswith("| La Rance |")  # in the question's order
        assert second == "| Sihwa Lake | F | b | s | 1910 | 510 [1] |"
        assert "csv" not in markdown

    async def test_sources_on_something_else_are_named(self) -> None:
        one = document("# The Rance: a first station\nThe dam killed most fish and plants of the closed estuary.")
        two = document("# Annapolis: tides\nThe turbine killed many fish, and the banks were damaged.")
        evidence = (
            *cards(one, ["The dam killed most fish and plants of the closed estuary."]),
            *cards(two, ["The turbine killed many fish, and the banks were damaged."], 2),
        )
        question = "What are the environmental effects of tidal power?"
        markdown = await draft(draft_task("Overview", evidence, question, queries=(question,)))
        assert "**The Rance**\n\nThe dam killed" in markdown
        assert "**Annapolis**\n\nThe turbine killed" in markdown

    async def test_what_is_only_on_the_subject_stays_out(self) -> None:
        doc = document(
            "# Tidal power\nTidal power harms fish and mud flats of an estuary.\n"
            "Tidal power won 122 MW in the three auctions of these years."
        )
        evidence = cards(
            doc,
            ["Tidal power harms fish and mud flats of an estuary.",
             "Tidal power won 122 MW in the three auctions of these years."],
        )  # fmt: skip
        question = "What are the environmental effects of tidal power?"
        markdown = await draft(draft_task("Overview", evidence, question, queries=(question,)))
        assert "mud flats" in markdown
        assert "auctions" not in markdown

    async def test_a_list_is_printed_as_one(self) -> None:
        doc = document(
            "# Barrages\nTo build a barrage, take these steps:\n- Close the estuary.\n"
            "- Open the gates. Wait for the tide."
        )
        question = "How do I build a barrage?"
        quote = "To build a barrage, take these steps:\n\nClose the estuary.\n\nOpen the gates. Wait for the tide."
        markdown = await draft(draft_task(question, cards(doc, [quote]), question))
        assert markdown.endswith("- Close the estuary. [1]\n- Open the gates. [1] Wait for the tide. [1]")

    async def test_within_its_words(self) -> None:
        sentences = [
            f"The barrage number {n} of Ruritania has turbines of the type {n * 7} in its dam." for n in range(40)
        ]
        doc = document("# Barrages\n" + "\n".join(sentences))
        question = "Which turbines do the barrages of Ruritania have?"
        markdown = await draft(draft_task(question, cards(doc, sentences), question, words=100))
        assert 60 <= measure([markdown]).words <= 120

    async def test_nothing_from_nothing(self) -> None:
        assert await draft(draft_task("What?", ())) == ""

    def test_the_work_can_cross_a_process(self) -> None:
        doc = document(FLOOD)
        task = draft_task(
            "How did the government respond?",
            cards(doc, ["In the southern province 46 people died, and 800 houses were damaged."]),
        )
        prepared = drafting.prepare(task)
        assert pickle.loads(pickle.dumps(prepared)) == prepared


SECTIONS = (
    SectionText(
        id="s1",
        title="What caused the 2022 Ruritania floods?",
        text="They were bad. [1] The immediate cause of the floods was three weeks of rain on frozen ground. [1]",
    ),
    SectionText(
        id="s2",
        title="How did the government respond?",
        text="The government of Ruritania declared a state of emergency on 4 May. [2][3]\n\n- Boats were sent too. [4]",
    ),
)


class TestWhole:
    async def test_the_summary_takes_one_sentence_of_each_section(self) -> None:
        task = SummariseReport(question=QUESTION, language="en", sections=SECTIONS)
        lines = (await model().run(task, CALL)).output.markdown.splitlines()
        assert lines == [
            "- The immediate cause of the floods was three weeks of rain on frozen ground. [1]",
            "- The government of Ruritania declared a state of emergency on 4 May. [2][3]",
        ]

    async def test_the_review_names_what_dangles_and_what_is_repeated(self) -> None:
        twice = SectionText(id="s3", title="What else?", text=SECTIONS[1].text.splitlines()[0])
        task = ReviewReport(question=QUESTION, language="en", sections=(*SECTIONS, twice), gaps=("The cost",))
        review = (await model().run(task, CALL)).output
        details = " ".join(i.detail for i in review.issues)
        assert "Refers to something that is not there: They were bad." in details
        assert "Already said under What else?" in details  # which has nothing else
        assert any(i.fix_query and "The cost" in i.detail for i in review.issues)
        assert review.scores.clarity < 1

    async def test_the_review_counts_verdicts(self) -> None:
        section = SECTIONS[0].model_copy(update={"grounding": "3 supported, 1 unsupported"})
        task = ReviewReport(question=QUESTION, language="en", sections=(section,))
        assert (await model().run(task, CALL)).output.scores.accuracy == 0.75

    async def test_findings_and_unknowns(self) -> None:
        doc = document(FLOOD)
        evidence = cards(doc, ["The immediate cause of the floods was three weeks of rain on frozen ground."])
        question = "What caused the 2022 Ruritania floods and which insurance companies paid?"
        task = AnalyseEvidence(question=question, language="en", hypotheses=(), evidence=evidence)
        analysis = (await model().run(task, CALL)).output
        assert analysis.findings[0].evidence == [1]
        assert any("insurance" in u and "Not found" in u for u in analysis.unknowns)

    async def test_a_word_s_family_answers_for_it(self) -> None:
        doc = document("# Tides\nEnvironmental effects of tidal power on fish are small at this place.")
        evidence = cards(doc, ["Environmental effects of tidal power on fish are small at this place."])
        question = "What does tidal power do to the environment?"
        task = AnalyseEvidence(question=question, language="en", hypotheses=(), evidence=evidence)
        assert not any("Not found" in u for u in (await model().run(task, CALL)).output.unknowns)

    async def test_the_summary_says_whose_effects(self) -> None:
        text = "**La Rance**\n\nThe worst damage came from the construction of the dam itself. [1]"
        task = SummariseReport(
            question="What are the environmental effects of tidal power?",
            language="en",
            sections=(SectionText(id="s1", title="Overview", text=text),),
        )
        assert (await model().run(task, CALL)).output.markdown.startswith("- **La Rance:** The worst damage")

    @pytest.mark.parametrize(
        "query",
        [
            '"tidal barrage" AND cost site:example.org',
            "tidal barrage cost",
            "潮汐发电",
            "a",
            "What does a barrage cost?",
        ],
    )
    async def test_another_query(self, query: str) -> None:
        task = RewriteQuery(question="What does a tidal barrage cost?", section_title="The cost", query=query)
        other = (await model().run(task, CALL)).output.query
        assert other.strip()
        assert other != query
