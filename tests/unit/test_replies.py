"""From reply text to typed answers: reasoning, drafts, near-JSON, cuts."""

from __future__ import annotations

import base64
import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marg_ray.models import near_json
from marg_ray.models.replies import (
    CutShort,
    Unreadable,
    VisibleText,
    answer_text,
    check,
    ends_mid_sentence,
    join,
    opens_inside_reasoning,
    read,
    whole_sentences,
)
from marg_ray.models.tasks import AnalysisIdea, ClaimIdeas, FreeText, PlanIdea, QueryIdea, ReviewIdea
from tests.plans import as_plan
from tests.shared import DATA, case_lines, needs_shared

PLAN = '{"title": "Tides", "sections": [{"title": "Sites", "queries": ["tidal sites"]}]}'
LONG = "One fact stands here at such length that it is known again [1]."
DRAFT = '{"title": "Waves", "sections": [{"title": "Draft", "queries": ["waves"]}]}'


def plan_title(content: str, finish: str = "stop") -> str:
    return read(content, PlanIdea, finish).title


class TestReasoning:
    @needs_shared
    def test_a_rejected_draft_is_never_the_plan(self) -> None:
        cases = case_lines("LLM-01", "replies.jsonl")
        assert len(cases) == 6
        for case in cases:
            plan = read(as_plan(case["body"]["choices"][0]["message"]["content"]), PlanIdea)
            assert plan.title == "Tidal power outlook", case["name"]
            assert len(plan.sections) == 3
            assert plan.sections[0].queries == ["tidal power stations in operation"]

    @pytest.mark.parametrize(
        "content",
        [
            f"<think>{DRAFT}</think>{PLAN}",
            f"<thinking>{DRAFT}</thinking>\n{PLAN}",
            f"{DRAFT} no, tides.</think>\n{PLAN}",
            f"<|channel|>analysis<|message|>{DRAFT}<|end|><|channel|>final<|message|>{PLAN}<|return|>",
            f"◁think▷{DRAFT}◁/think▷{PLAN}",
            f"[THINK]{DRAFT}[/THINK]{PLAN}",
            f"Draft:\n{DRAFT}\n\nFinal:\n{PLAN}",
            f"```python\nprint({DRAFT!r})\n```\n```json\n{PLAN}\n```",
            f"~~~json\n{PLAN}\n~~~",
            f"```\n{PLAN}\n```\nDone.",
            f"[{PLAN}]",
            json.dumps({"plan": json.loads(PLAN)}),
        ],
    )
    def test_the_answer_is_found(self, content: str) -> None:
        assert plan_title(content) == "Tides"

    def test_a_block_that_never_closes_holds_no_answer(self) -> None:
        with pytest.raises(Unreadable):
            read(f"<think>first {PLAN}", PlanIdea)

    def test_a_list_of_draft_and_plan_is_not_a_plan(self) -> None:
        with pytest.raises(Unreadable):
            read(f"[{DRAFT}, {PLAN}]", PlanIdea)

    def test_a_tag_inside_a_value_stays(self) -> None:
        content = '{"query": "what <think> tags </think> mean"}'
        assert read(content, QueryIdea).query == "what <think> tags </think> mean"

    @pytest.mark.parametrize("content", [None, "", "  \n", "<think>all of it</think>", "I cannot help with that."])
    def test_no_answer_is_no_plan(self, content: str | None) -> None:
        with pytest.raises(Unreadable):
            read(content, PlanIdea)

    def test_text_before_a_closing_tag_is_reasoning(self) -> None:
        assert read("The user wants birds. Draft: it fell.</think>It rose [1].", FreeText).markdown == "It rose [1]."
        with pytest.raises(Unreadable):
            read(f"{PLAN} is my draft</think>I cannot answer.", PlanIdea)

    def test_markdown_loses_reasoning_fence_and_preamble(self) -> None:
        assert read("<think>hm</think>Here is the section:\n\nIt rose [1].", FreeText).markdown == "It rose [1]."
        assert read("```markdown\nIt rose [1].\n```", FreeText).markdown == "It rose [1]."
        assert read('{"markdown": "It rose [1]."}', FreeText).markdown == "It rose [1]."
        code = "Run this:\n\n```sh\nls\n```"
        assert read(code, FreeText).markdown == code

    def test_a_page_is_no_section(self) -> None:
        with pytest.raises(Unreadable, match="web page"):
            read("<html><body>Please sign in.</body></html>", FreeText)


class TestNearJson:
    @needs_shared
    def test_the_evident_values(self) -> None:
        cases = {c["name"]: c["content"] for c in case_lines("LLM-03", "replies.jsonl")}
        plan = {name: read(as_plan(text), PlanIdea) for name, text in cases.items() if "list" not in name}
        assert plan["trailing-commas"].sections[0].queries == ["heat pump cost"]
        assert plan["python-dict"].sections[0].title == "Owner's view"
        assert plan["inner-quotes"].title == 'The "smart" meter'
        assert plan["inner-quotes"].sections[0].title == 'Screens of 32" and up'
        assert plan["latex-escapes"].title == r"Growth \upcite{a1} and \alpha"
        assert plan["duplicate-key"].sections[0].title == "Keep me"
        assert plan["raw-newline-in-string"].title == "Two\nlines"
        assert plan["comment-in-json"].sections[0].queries == ["https://example.org/a//b"]
        assert plan["smart-quotes"].title == "Heat pumps"
        assert plan["nan-score"].sections[0].queries == ["q1"]
        assert near_json.parse(cases["inner-quotes-in-list"])["queries"] == ['pumps of 2" size', "valves"]
        assert near_json.parse(cases["doubled-quotes-list"]) == ["How do heat pumps work?", "What do they cost?"]

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('{"a": [1, NaN, -Infinity, 1e999]}', {"a": [1, None, None, None]}),
            ('{"a": "x\\u0000\\u0007y"}', {"a": "xy"}),
            (r'{"t": "\frac{a}{b} \beta"}', {"t": r"\frac{a}{b} \beta"}),
            (r'{"t": "line\nnext"}', {"t": "line\nnext"}),
            ('{"a": "x", /* note */ "b": "http://h//p" } ', {"a": "x", "b": "http://h//p"}),
            ("{'a': 'it''s', 'b': None}", {"a": "it''s", "b": None}),
            ('{"a": "6\' 2\\" tall", "b": "x",}', {"a": "6' 2\" tall", "b": "x"}),
            ('{a: "x", b: true}', {"a": "x", "b": True}),
        ],
    )
    def test_mended(self, text: str, value: object) -> None:
        assert near_json.parse(text) == value

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": "x", "a": "y"}',  # two values, one key: which?
            '{"city": "New York, "kind": "town"}',  # a repair would swallow an entry
            '{"title": "A", "sections": ["q1"] and also "hypotheses": ["h"]}',  # ... would lose words
            '{"q": "one", "two", "three"}',
            '[{"key": "value"}][{"key": "other"}]',
            '{"a": ["x" "y" z]}',  # ... would make an entry of a fragment
            '{"key":value "key2":"value2" }',
            "[" * 5000,
            '{"a": ' * 100 + "1" + "}" * 100,
            "not json at all",
            "",
        ],
    )
    def test_refused_rather_than_guessed(self, text: str) -> None:
        with pytest.raises(near_json.NotJson):
            near_json.parse(text)

    @needs_shared
    def test_the_public_suite_of_json_texts(self) -> None:
        cases = json.loads((DATA / "json_suites" / "JSONTestSuite_parsing.json").read_text("utf-8"))
        ambiguous = {"y_object_duplicated_key.json"}  # two different values under one key
        for case in cases:
            text = base64.b64decode(case["bytes_b64"]).decode("utf-8", "replace")
            try:
                value = near_json.parse(text)
            except near_json.NotJson:
                assert case["expect"] != "accept" or case["name"] in ambiguous, case["name"]
            else:
                json.dumps(value, allow_nan=False).encode("utf-8")

    @needs_shared
    def test_the_pairs_of_the_repair_library(self) -> None:
        """Most come out as there; where we differ we ask again or keep every word."""
        pairs = json.loads((DATA / "json_suites" / "json_repair_pairs.json").read_text("utf-8"))
        same = refused = 0
        for pair in pairs:
            try:
                value = near_json.parse(pair["input"])
            except near_json.NotJson:
                assert not pair["input_is_valid_json"], pair["input"]
                refused += 1
            else:
                same += value == pair["expected"]
        assert same >= 0.55 * len(pairs)  # a text that was cut off is refused here, and completed there
        assert same + refused >= 0.94 * len(pairs)

    json_values = st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"])),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
        max_leaves=12,
    )

    @given(json_values)
    def test_json_comes_back_as_it_was(self, value: Any) -> None:
        kept = near_json.parse(json.dumps(value))
        assert json.dumps(kept, sort_keys=True) == json.dumps(near_json._clean(value), sort_keys=True)

    @given(st.text("{}[]\",:\\'a1 \n/*#“”", max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        with contextlib.suppress(near_json.NotJson):
            near_json.parse(text)
        near_json.ends_inside(text)
        assert all(start < end for start, end in near_json.spans(text))


class TestShape:
    def test_wrong_and_optional_is_dropped_or_shortened(self) -> None:
        plan = check(
            {
                "title": " Tides ",
                "sections": [{"title": "One", "queries": ["q"] * 9, "weight": None}],
                "hypotheses": ["a", "b", "c", "d", "e"],
                "request_class": "Full Research",
                "extra": 1,
            },
            PlanIdea,
        )
        assert (plan.title, len(plan.sections[0].queries), len(plan.hypotheses)) == ("Tides", 5, 3)

    def test_a_bare_list_stands_for_the_only_field(self) -> None:
        assert read('[{"claim": "c", "quote": "q"}]', ClaimIdeas).claims[0].quote == "q"
        assert read('{"claims": []}', ClaimIdeas).claims == []

    @pytest.mark.parametrize(
        ("content", "output", "field"),
        [
            ('{"title": "x"}', PlanIdea, "sections"),
            ('{"title": "x", "sections": []}', PlanIdea, "sections"),
            ('{"title": "  ", "sections": [{"title": "a", "queries": ["b"]}]}', PlanIdea, "title"),
            (
                '{"scores": {"accuracy": 7, "coverage": 0.5, "clarity": 0.5, "objectivity": 0.5}}',
                ReviewIdea,
                "accuracy",
            ),
            (
                '{"scores": {"accuracy": NaN, "coverage": 0.5, "clarity": 0.5, "objectivity": 0.5}}',
                ReviewIdea,
                "accuracy",
            ),
            ('{"findings": [{"text": "x"}]}', AnalysisIdea, "evidence"),
        ],
    )
    def test_the_complaint_names_the_field(self, content: str, output: type[Any], field: str) -> None:
        with pytest.raises(Unreadable, match=field):
            read(content, output)

    def test_no_infinite_number_passes(self) -> None:
        plan = read('{"title": "x", "sections": [{"title": "a", "queries": ["b"], "weight": Infinity}]}', PlanIdea)
        assert math.isfinite(plan.sections[0].weight)


class TestCuts:
    @needs_shared
    @pytest.mark.parametrize("name", ["plan-cut-in-string", "plan-cut-but-valid", "plan-cut-but-router-says-stop"])
    def test_a_cut_plan_is_no_plan(self, name: str) -> None:
        (case,) = [c for c in case_lines("LLM-04", "replies.jsonl") if c["name"] == name]
        choice = case["body"]["choices"][0]
        with pytest.raises(CutShort):
            read(as_plan(choice["message"]["content"]), PlanIdea, choice["finish_reason"])

    @given(st.integers(1, len(PLAN) - 1), st.sampled_from(["", "```json\n", "Here you are:\n"]))
    def test_no_beginning_of_a_plan_is_a_plan(self, size: int, before: str) -> None:
        """Whatever the server says about the end."""
        with pytest.raises((CutShort, Unreadable)):
            read(before + PLAN[:size], PlanIdea, "stop")

    def test_a_draft_does_not_stand_in_for_a_cut_answer(self) -> None:
        with pytest.raises(CutShort):
            read(f"First: {DRAFT}\nFinal: {PLAN[:50]}", PlanIdea)

    def test_a_section_cut_in_mid_sentence(self) -> None:
        text = "It opened in 1966 [1].\n\nIts turbines work in both directions, which means that the"
        for finish in ("length", "stop"):
            with pytest.raises(CutShort) as caught:
                read(text, FreeText, finish)
            assert caught.value.args[0] == text
        assert whole_sentences(text) == "It opened in 1966 [1]."

    @pytest.mark.parametrize(
        ("text", "cut"),
        [
            ("It rose by half within a year, as the agency had expected [1].", False),
            ("- an entry of a list that has no closing punctuation at all", False),
            ("| a | b |", False),
            ("Short title", False),
            ("The plant was built by the company that later also built the", True),
            ("Three things matter here, namely,", True),
            ("潮汐发电站的成本仍然很高。", False),
            ('He said that it was "a long and winding road to follow"', False),
        ],
    )
    def test_ends_mid_sentence(self, text: str, cut: bool) -> None:
        assert ends_mid_sentence(text) is cut

    @pytest.mark.parametrize(
        ("first", "more", "seen", "whole"),
        [
            ("this means that the", " basin can be emptied [2].", "", "this means that the basin can be emptied [2]."),
            ("this means that the", "basin can be emptied [2].", "", "this means that the basin can be emptied [2]."),
            ("which means that the", "the basin is full.", "", "which means that the basin is full."),
            ("all of the gener", "ators work.", "two generators", "all of the generators work."),
            ("It rose [1].", "Then it fell [2].", "", "It rose [1]. Then it fell [2]."),
            ("It rose [1]", ".", "", "It rose [1]."),
            ("It rose, and then it fell", "and then it fell again.", "", "It rose, and then it fell again."),
            (f"{LONG} Two", f"{LONG} Two and three.", "", f"{LONG} Two and three."),
            ("It rose", "", "", "It rose"),
            ("It rose [1].", "\n\nA paragraph.", "", "It rose [1].\n\nA paragraph."),
        ],
    )
    def test_join(self, first: str, more: str, seen: str, whole: str) -> None:
        assert join(first, more, seen) == whole

    @given(st.lists(st.sampled_from(["alpha", "beta", "gamma"]), min_size=4, max_size=30), st.data())
    def test_a_text_cut_between_words_is_joined_again(self, words: list[str], data: st.DataObject) -> None:
        words = [f"{word}{n}" for n, word in enumerate(words)]
        at = data.draw(st.integers(1, len(words) - 1))
        first, more = " ".join(words[:at]), " ".join(words[at:])
        assert join(first, more) == join(first, f" {more}") == " ".join(words)


class TestVisibleText:
    @given(st.lists(st.integers(1, 7), max_size=40))
    def test_reasoning_never_shows_however_it_is_cut(self, sizes: list[int]) -> None:
        text = "Sure. <think>secret {plan}</think>It rose [1] by <5 %.\n"
        visible, shown, at = VisibleText(), "", 0
        for size in [*sizes, len(text)]:
            shown += visible.feed(text[at : at + size])
            at += size
        assert shown + visible.rest() == "Sure. It rose [1] by <5 %.\n"

    def test_a_block_opened_in_the_prompt_stays_hidden(self) -> None:
        assert opens_inside_reasoning("secret </think> It rose.")
        assert not opens_inside_reasoning("<think>secret</think> It rose.")
        assert not opens_inside_reasoning("It rose.")
        visible = VisibleText(inside=True)
        assert visible.feed("secret </thi") + visible.feed("nk>It rose.") + visible.rest() == "It rose."

    def test_an_answer_without_tags_passes_at_once(self) -> None:
        assert VisibleText().feed("It rose.") == "It rose."


def test_answer_text_of_plain_text_is_the_text() -> None:
    assert answer_text("  It rose [1].\n") == "It rose [1]."
