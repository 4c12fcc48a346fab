"""Who answers a conversation: a session, a report that is there, or a finished report's evidence."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from marg_ray.api.asking import ask
from marg_ray.api.callers import Caller
from marg_ray.api.following import Outcome, outcome_of
from marg_ray.api.narrate import place
from marg_ray.api.openai.asked import EARLIER, Asked
from marg_ray.api.openai.errors import BadParameter
from marg_ray.api.service import Answer, Service, Turn
from marg_ray.api.sessions import session_of
from marg_ray.errors import MargError
from marg_ray.memory.spaces import Space, key_of
from marg_ray.records import ReportStatus, Usage
from marg_ray.report.model import Report
from marg_ray.text import one_line

SPACE = "conversation"
REMEMBERED_S = 30 * 86_400.0  # that an answer leads to its report
NEW = "The report of this conversation does not answer the question, so it was researched."


@dataclass(frozen=True)
class Taken:
    """A question that a session answers; `cached`: it did so before."""

    session_id: str
    cached: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Said:
    """An answer that is ready. `limited`: a limit ended the work before it was done."""

    session_id: str
    status: str
    content: str
    created: int  # seconds since 1970
    usage: Usage
    limited: bool = False
    follow_up: bool = False


async def begin(service: Service, who: Caller, asked: Asked, key: str = "") -> Said | Taken:
    """Answer from the report that the conversation is about, where its evidence does; else begin to research.

    Raises:
        SessionNotFound: the report that is named is not there.
        MargError: the question cannot be taken on.
    """
    about = await _about(service, who, asked)
    if about is not None:
        answer = await _from_evidence(service, who, about, asked)
        if answer is not None:
            return answer
    notes = (NEW,) if about is not None else (EARLIER,) if asked.earlier else ()
    taken = await ask(service, who, asked.research, key)
    return Taken(taken.id, taken.cached, (*notes, *asked.notes))


async def said_by(service: Service, who: Caller, taken: Taken) -> Said:
    """What the session says in the end.

    Raises:
        MargError: it ended without an answer.
    """
    outcome = await outcome_of(service, taken.session_id)
    said = Said(
        session_id=taken.session_id,
        status=outcome.row.status,
        content=content_of(outcome, taken.notes),
        created=int(outcome.row.created_at.timestamp()),
        usage=outcome.spent if not taken.cached else Usage(),
        limited=outcome.row.status == ReportStatus.BUDGET_STOPPED,
    )
    if not outcome.refused:
        await remember(service, who, said)
    return said


def content_of(outcome: Outcome, notes: Sequence[str]) -> str:
    """The report. What a reader would otherwise take for granted comes first."""
    told = [n for n in notes if n in (EARLIER, NEW)]
    return "".join(f"> {note}\n\n" for note in told) + outcome.markdown


# ---- conversations


async def remember(service: Service, who: Caller, said: Said) -> None:
    """Note which report an answer came from, so that who sends the answer back is known to talk about it."""
    await _space(service).write(_key(who, said.content), said.session_id)


async def _about(service: Service, who: Caller, asked: Asked) -> Outcome | None:
    """The finished report that the conversation is about: the one it names, or that its latest answer came from."""
    if asked.session_id:
        if service.assistant is None:
            raise BadParameter("session_id", "this server answers no questions about reports", "leave session_id out")
        return await outcome_of(service, (await session_of(service, who, asked.session_id)).id)
    if service.assistant is None:
        return None
    for turn in reversed(asked.earlier):
        session_id = await _space(service).read(_key(who, turn.text), str) if turn.role == "assistant" else None
        if session_id is not None:
            with contextlib.suppress(MargError):  # its report is gone
                return await outcome_of(service, (await session_of(service, who, session_id)).id)
            return None
    return None


async def _from_evidence(service: Service, who: Caller, outcome: Outcome, asked: Asked) -> Said | None:
    """An answer from the report's evidence; None where it does not answer the question, and was not named."""
    assert service.assistant is not None
    if outcome.refused:
        return None
    session_id, question = outcome.row.id, asked.research.question
    answer = await service.assistant.answer(who.owner, session_id, question, _short(asked.earlier))
    if not answer.known and not asked.session_id:
        return None
    said = Said(
        session_id=session_id,
        status=outcome.row.status,
        content=answer_markdown(answer, outcome.report),
        created=int(outcome.row.created_at.timestamp()),
        usage=Usage(),
        follow_up=True,
    )
    await remember(service, who, said)
    return said


def answer_markdown(answer: Answer, report: Report) -> str:
    """An answer's sentences with the numbers that the report gives its sources, and the list of those."""
    passages = {p.id: (p.source or p.id, p.title, p.location) for p in answer.passages}
    sources = {s.id: (s.id, s.title, s.location) for s in report.sources}
    cited = {e.id: sources[e.source] for e in report.evidence if e.source in sources} | passages
    number_of = {r.source: r.number for r in report.references}
    used: dict[str, int] = {}
    sentences: list[str] = []
    lines: dict[int, str] = {}
    for sentence in answer.sentences:
        marks = []
        for source, title, location in dict.fromkeys(cited[c] for c in sentence.citations if c in cited):
            if source not in used:
                used[source] = number_of.get(source, max([0, *number_of.values(), *used.values()]) + 1)
                named = " — ".join(t for t in (one_line(title), place(location)) if t)
                lines[used[source]] = f"- [{used[source]}] {named or source}"
            marks.append(f"[{used[source]}]")
        sentences.append(one_line(sentence.text) + (f" {''.join(marks)}" if marks else ""))
    text = " ".join(sentences)
    return f"{text}\n\n" + "\n".join(lines[n] for n in sorted(lines)) if lines else text


def _short(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """The latest turns; the report itself is known to who answers."""
    return tuple(t.model_copy(update={"text": t.text[:2000]}) for t in turns[-6:])


def _space(service: Service) -> Space:
    return Space(service.store, SPACE, REMEMBERED_S)


def _key(who: Caller, content: str) -> str:
    """Clients trim and wrap: only the words count."""
    return key_of(who.owner, hashlib.sha256(" ".join(content.split()).encode("utf-8", "surrogatepass")).hexdigest())
