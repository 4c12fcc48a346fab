"""Asking a session's owner in the terminal: the plan before research begins, the draft before delivery."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from marg_ray.cli.words import clean
from marg_ray.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from marg_ray.actors.owner import Decision
    from marg_ray.records import Block, OutlineEntry, Sentence
    from marg_ray.state import ResearchState

ANSWERS = {
    "plan": ("approve", "edit", "reject", "cancel"),
    "review": ("approve", "reject", "extend", "cancel"),
}
MEANINGS = {
    "approve": "go on",
    "edit": "change sections and queries",
    "extend": "one more round of research and writing",
    "cancel": "end the session",
}


class Elsewhere(Exception):
    """It was decided in another way while the owner was asked here."""


class Keyboard:
    """Lines typed at a terminal, without keeping the event loop from its work."""

    def __init__(self, fd: int = 0) -> None:
        self._fd, self._typed = fd, b""

    async def line(self) -> str:
        """The next line.

        Raises:
            EOFError: there is none any more.
        """
        loop = asyncio.get_running_loop()
        while b"\n" not in self._typed:
            ready = asyncio.Event()
            loop.add_reader(self._fd, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._fd)
            more = os.read(self._fd, 4096)
            if not more:
                raise EOFError
            self._typed += more
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def rest(self) -> str:
        """What was typed after the last line, once there is no more."""
        rest, self._typed = self._typed, b""
        return rest.decode("utf-8", "replace").strip()


def can_ask() -> bool:
    """Whether somebody sits at a terminal here: both ends are one, and this process is in front."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    with contextlib.suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return True


class Prompt:
    """The conversation at one gate. `elsewhere` comes back when the session has gone on without an answer from here."""

    def __init__(
        self, console: Console, keyboard: Keyboard, state: ResearchState, elsewhere: Callable[[], Awaitable[None]]
    ) -> None:
        self._console, self._keyboard, self._state, self._elsewhere = console, keyboard, state, elsewhere

    async def ask(self, gate: str, until: str = "") -> Decision | None:
        """The owner's decision; None: the session is to be cancelled. `until` says what happens when, otherwise.

        Raises:
            Elsewhere: somebody else decided, or a rule.
            EOFError: the terminal was closed.
        """
        from marg_ray.actors.owner import Decision

        state = self._state
        for line in plan_lines(state) if gate == "plan" else draft_lines(state):
            self._console.print(line, highlight=False, soft_wrap=False)
        on = state.plan_revision if gate == "plan" else state.iteration
        while True:
            answer, note = await self._answer(gate, until)
            if answer == "cancel":
                return None
            if answer == "edit":
                outline = await self._edited()
                if outline:
                    return Decision(what="edit", on=on, outline=outline)
                continue
            if answer == "reject" and not note:
                note = await self._line("What should be different? ")
                if not note:
                    continue
            return Decision.model_validate({"what": answer, "on": on, "note": note})

    async def _answer(self, gate: str, until: str) -> tuple[str, str]:
        choices = ANSWERS[gate]
        question = f"{' / '.join(choices)}? {f'({until}) ' if until else ''}"
        while True:
            word, _, note = (await self._line(question)).partition(" ")
            fitting = [c for c in choices if word and c.startswith(word.casefold())]
            if len(fitting) == 1:
                return fitting[0], note.strip()
            for choice in choices:
                meaning = MEANINGS.get(choice, "plan anew" if gate == "plan" else "write it again, after your note")
                self._console.print(Text(f"  {choice:8} {meaning}", style="dim"))

    async def _edited(self) -> tuple[OutlineEntry, ...]:
        from marg_ray.cli.outline import edited

        assert self._state.plan is not None
        try:
            outline = await edited(self._state.plan)
        except UsageError as exc:
            self._console.print(Text(f"{exc}. {exc.hint}", style="yellow"))
            return ()
        if not outline:
            self._console.print(Text("nothing was changed", style="dim"))
        return outline

    async def _line(self, question: str) -> str:
        """A typed line, unless the session goes on first."""
        self._console.print(Text(question, style="bold"), end="", soft_wrap=True)
        typed = asyncio.ensure_future(self._keyboard.line())
        gone = asyncio.ensure_future(self._elsewhere())
        try:
            await asyncio.wait({typed, gone}, return_when=asyncio.FIRST_COMPLETED)
            if typed.done():
                return typed.result()
            gone.result()  # its error, if it has one
            self._console.print()
            raise Elsewhere
        finally:
            for waiting in (typed, gone):
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await waiting


def plan_lines(state: ResearchState) -> Iterator[Text]:
    """The plan, for its owner to judge."""
    assert state.plan is not None
    revision = f" (revision {state.plan_revision})" if state.plan_revision > 1 else ""
    yield Text(f"\nThe plan: {clean(state.plan.title)}{revision}", style="bold")
    for section in state.plan.sections:
        yield Text(f"  {section.id:4}{clean(section.title)}")
        for query in section.queries:
            if clean(query) != clean(section.title):
                yield Text(f"        {clean(query)}", style="dim")


def draft_lines(state: ResearchState) -> Iterator[Text]:
    """The draft with what the check found, then the critic's issues and scores."""
    yield Text("\nThe draft", style="bold")
    for section in state.sections.values():
        yield Text(f"\n{section.section.id}  {clean(section.section.title)}", style="bold")
        if section.draft is None:
            yield Text(f"  {clean(section.gap) or 'nothing was written'}", style="yellow")
            continue
        verdicts = section.grounding.verdicts if section.grounding else ()
        found = iter(verdicts)
        for block in section.draft.blocks:
            marks = [
                f" [{v.verdict}]" if (v := next(found, None)) and _doubtful(v.verdict) else "" for _ in block.sentences
            ]
            yield _block(block, marks)
    review = state.reviews[-1] if state.reviews else None
    if review is None:
        yield Text("\nno review was made", style="yellow")
        return
    yield Text(f"\nReview, round {review.iteration}: {review.verdict}", style="bold")
    for issue in review.issues:
        where = f"{issue.section}: " if issue.section else ""
        yield Text(f"  {issue.severity:6} {where}{clean(issue.detail)} ({issue.kind})")
    scores = " · ".join(f"{name} {value:.2f}" for name, value in review.scores.model_dump().items())
    yield Text(f"  {scores}")


def _doubtful(verdict: str) -> bool:
    return verdict not in ("supported", "not_factual")


def _block(block: Block, marks: list[str]) -> Text:
    def said(sentence: Sentence, mark: str) -> str:
        return clean(sentence.text) + mark

    text = " ".join(said(s, m) for s, m in zip(block.sentences, marks, strict=True)) or clean(block.text)
    lead = "  - " if block.kind in ("bullet", "ordered") else "  "
    return Text(lead + text)
