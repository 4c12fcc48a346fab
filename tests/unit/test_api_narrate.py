"""Every kind of log entry as a public event: complete, small, and without what is nobody's business."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from marg_ray.api.narrate import MOST_LETTERS, EventOut, public
from marg_ray.messages import (
    AnalysisReady,
    DraftGrounded,
    DraftReady,
    LimitReached,
    Message,
    PlanDecided,
    PlanEdited,
    PlanReady,
    ReportReady,
    ReviewDecided,
    ReviewDone,
    SearchDone,
    SessionCancelled,
    SessionPaused,
    SessionResumed,
    SessionStarted,
    SourceRead,
    Steered,
    TaskFailed,
)
from marg_ray.records import (
    Analysis,
    Block,
    Draft,
    Evidence,
    Grounding,
    Hit,
    Limits,
    Plan,
    ReportStatus,
    Request,
    RequestClass,
    Review,
    ReviewVerdict,
    Role,
    Scores,
    Section,
    Sentence,
    SentenceVerdict,
    Source,
    SourceChoice,
    SourceKind,
    Usage,
    Verdict,
)
from marg_ray.store.protocol import LogEntry

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
PATH = "/srv/marg/knowledge/0123456789abcdef/tides of Brittany.pdf"
SECTION = Section(id="s1", title="Output", weight=1.0, queries=("How much?",))
SOURCE = Source(id="a" * 64, title="La Rance", location=PATH, kind=SourceKind.LIBRARY, fetched_at=AT)
QUOTE = "The station opened in 1966 and this passage stays in the evidence."
EVIDENCE = Evidence(id="e1", source=SOURCE.id, quote=QUOTE, start=0, end=len(QUOTE))
SCORES = Scores(accuracy=0.9, coverage=0.8, clarity=1.0, objectivity=0.7)
PLAN = Plan(title="Tides", request_class=RequestClass.FULL_RESEARCH, language="en", sections=(SECTION,))
DRAFT = Draft(
    section="s1", revision=1, blocks=(Block(kind="paragraph", sentences=(Sentence(text="Five words in this one."),)),)
)
VERDICTS = (SentenceVerdict(verdict=Verdict.SUPPORTED), SentenceVerdict(verdict=Verdict.UNSUPPORTED))

MESSAGES: tuple[Message, ...] = (
    SessionStarted(
        task_id="S/start",
        session_id="S",
        request=Request(question="How much?", sources=SourceChoice(folders=("/srv/marg/knowledge",))),
        started_at=AT.isoformat(),
    ),
    PlanReady(task_id="t", plan=PLAN, usage=Usage(tokens_in=100, tokens_out=20, cost=0.001), seconds=1.25),
    PlanEdited(task_id="t", revision=1, sections=(SECTION,)),
    PlanDecided(task_id="t", approved=True, revision=2, note="good"),
    SearchDone(
        task_id="t", section="s1", query="How much?", hits=(Hit(location=PATH, title="x", kind=SourceKind.LIBRARY),)
    ),
    SourceRead(task_id="t", section="s1", location=PATH, status="read", source=SOURCE, evidence=(EVIDENCE,)),
    SourceRead(task_id="t", section="s1", location=PATH, status="unavailable", reason=f"{PATH}: it is empty"),
    DraftReady(task_id="t", draft=DRAFT),
    DraftGrounded(task_id="t", grounding=Grounding(section="s1", revision=1, verdicts=VERDICTS, coverage=0.5)),
    AnalysisReady(task_id="t", analysis=Analysis(unknowns=("costs",))),
    ReviewDone(task_id="t", review=Review(iteration=1, scores=SCORES, verdict=ReviewVerdict.PASS)),
    ReviewDecided(task_id="t", decision="approve", round=1),
    ReportReady(task_id="t", artefact="b" * 64, status=ReportStatus.PASSED, words=900),
    TaskFailed(
        task_id="t", role=Role.RESEARCHER, stage="read", target=PATH, error="Unreadable", detail=f"{PATH}: no text"
    ),
    Steered(task_id="t", action="pin", hit=Hit(location=PATH, title="x", kind=SourceKind.LIBRARY)),
    Steered(task_id="t", action="ban", location=PATH),
    Steered(task_id="t", action="raise", limits=Limits(usd=2)),
    LimitReached(task_id="t", limit="seconds", detail="the limit of 60 s is spent", hard=True),
    SessionPaused(task_id="t"),
    SessionCancelled(task_id="t"),
    SessionResumed(task_id="t"),
)


def event(message: Message, seq: int = 3) -> dict[str, Any]:
    return public(LogEntry(seq=seq, at=AT, message=message))


def test_every_kind_is_told() -> None:
    assert {type(message) for message in MESSAGES} == set(get_args(Message))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.kind)
def test_an_event_is_plain_json_with_the_fields_that_are_documented(message: Message) -> None:
    told = event(message)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    out = EventOut.model_validate(told)
    assert (out.seq, out.at, out.kind) == (3, AT, message.kind)
    assert out.text
    assert out.role in {*Role, "owner", "clock"}


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.kind)
def test_no_event_tells_where_files_lie_or_what_a_passage_says(message: Message) -> None:
    told = json.dumps(event(message))
    assert "/srv" not in told
    assert QUOTE not in told


def test_documents_go_by_name_and_pages_by_address() -> None:
    read = SourceRead(task_id="t", section="s1", location=PATH, status="unavailable", reason="it is empty")
    assert event(read)["location"] == "tides of Brittany.pdf"
    assert event(read)["text"] == "could not read tides of Brittany.pdf: it is empty"
    url = "https://tides.test/rance?year=1966"
    page = SourceRead(task_id="t", section="s1", location=url, status="read", evidence=(EVIDENCE,))
    assert event(page)["location"] == url
    assert event(page)["evidence"] == 1


def test_what_a_step_took_and_whose_section_it_is() -> None:
    plan, draft = event(MESSAGES[1]), event(DraftReady(task_id="t", draft=DRAFT))
    assert (plan["seconds"], plan["tokens"], plan["cost"], plan["role"]) == (1.25, 120, 0.001, "planner")
    assert (draft["section"], draft["words"]) == ("s1", 5)


def test_odd_numbers_are_told_as_none() -> None:
    odd = SessionPaused(task_id="t", seconds=float("nan"), usage=Usage(cost=float("inf")))
    assert (event(odd)["seconds"], event(odd)["cost"]) == (0.0, 0.0)


def test_a_text_of_any_length_is_told_in_one_line_of_bounded_length() -> None:
    long = SearchDone(task_id="t", section="s1", query="tides\r\n\u2028" * 100_000)
    told = event(long)
    assert len(told["text"]) == len(told["query"]) == MOST_LETTERS
    assert not set(told["query"]) & set("\r\n\u2028")
    assert len(json.dumps(told)) < 4 * MOST_LETTERS
