"""Making a task's input fit into a model's window: whole pieces by relevance, and a record of what stayed out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from marg_ray.models.client import ModelTask
from marg_ray.models.prompting import Prompt, by_source, estimate_tokens, render
from marg_ray.models.tasks import EvidenceCard, Passage, ScoutHit, SectionText
from marg_ray.records import Note

TaskT = TypeVar("TaskT", bound=ModelTask[Any])
PieceT = TypeVar("PieceT")
FIELDS = ("evidence", "passages", "scout", "sections")  # the fields whose items may be left out
TAG_TOKENS = 12  # of the tag around a piece or a source, without its attributes
NUMBER_TOKENS = 2  # in front of each sentence of a passage
TRIES = 3  # of choosing pieces, each with less room, where their tokens were estimated too low


@dataclass(frozen=True, kw_only=True)
class Packed(Generic[TaskT]):
    """A task whose prompt is within the budget, if `fits`. `left_out` numbers the evidence cards that are not in it."""

    task: TaskT
    prompt: Prompt
    fits: bool
    left_out: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class _Piece:
    item: int  # index in the field
    paragraph: int  # of a section's text; 0 elsewhere
    tokens: int
    rank: float  # higher is kept first
    source: int = 0  # neighbours of one source share its tag
    source_tokens: int = 0  # of that tag, once for all of them


def pack(task: TaskT, budget: int, *, section: str = "") -> Packed[TaskT]:
    """Leave out the least relevant pieces until the prompt is at most `budget` tokens. A piece is never cut.

    Evidence, passages and search results go by relevance. Of the sections of a report, whole paragraphs are left
    out from their ends, so that each section keeps its beginning. Input that is needed whole is never touched.
    """
    prompt = render(task)
    if prompt.tokens <= budget:
        return Packed(task=task, prompt=prompt, fits=True)
    field = next((name for name in FIELDS if getattr(task, name, ())), "")
    if not field:
        return Packed(task=task, prompt=prompt, fits=False)
    items = getattr(task, field)
    bare = render(task.model_copy(update={field: _emptied(items)})).tokens
    pieces, room = _pieces(items), budget - bare
    for _ in range(TRIES):
        kept = _choose(pieces, room)
        smaller = _keep(items, kept)
        packed = task.model_copy(update={field: smaller})
        prompt = render(packed)
        if prompt.tokens <= budget:
            break
        room -= prompt.tokens - budget
    return Packed(
        task=packed,
        prompt=prompt,
        fits=prompt.tokens <= budget and (bool(kept) or field == "scout"),
        left_out=_missing_numbers(items, smaller),
        notes=_notes(task, field, items, kept, budget, section),
    )


def _pieces(items: Sequence[Any]) -> list[_Piece]:
    pieces: list[_Piece] = []
    cards = [item for item in items if isinstance(item, EvidenceCard)]
    for source, run in enumerate(by_source(cards)):
        tag = _cost(run[0].source_title, run[0].published)
        for card in run:
            pieces.append(_Piece(len(pieces), 0, _cost(card.quote, card.heading), card.relevance, source, tag))
    for n, item in enumerate(items):
        match item:
            case Passage():
                numbers = NUMBER_TOKENS * len(item.numbered)
                pieces.append(_Piece(n, 0, _cost(item.text, item.heading) + numbers, item.score))
            case ScoutHit():
                texts = (item.title, item.snippet, *item.headings)
                pieces.append(_Piece(n, 0, _cost(*texts), item.relevance))
            case SectionText():
                for k, paragraph in enumerate(item.text.split("\n\n")):
                    pieces.append(_Piece(n, k, estimate_tokens(paragraph) + 1, -k))
    return pieces


def _cost(*texts: str) -> int:
    return TAG_TOKENS + sum(estimate_tokens(text) for text in texts)


def _choose(pieces: list[_Piece], room: int) -> set[tuple[int, int]]:
    """The best pieces that fit together: by rank, in the given order where it is equal."""
    kept: set[tuple[int, int]] = set()
    sources: set[int] = set()
    for piece in sorted(pieces, key=lambda p: -p.rank):
        whole_before = piece.paragraph == 0 or (piece.item, piece.paragraph - 1) in kept
        needed = piece.tokens + (0 if piece.source in sources else piece.source_tokens)
        if needed <= room and whole_before:
            kept.add((piece.item, piece.paragraph))
            sources.add(piece.source)
            room -= needed
    return kept


def _keep(items: Sequence[PieceT], kept: set[tuple[int, int]]) -> tuple[PieceT, ...]:
    smaller: list[Any] = []
    for n, item in enumerate(items):
        if isinstance(item, SectionText):
            paragraphs = [p for k, p in enumerate(item.text.split("\n\n")) if (n, k) in kept]
            smaller.append(item.model_copy(update={"text": "\n\n".join(paragraphs)}))
        elif (n, 0) in kept:
            smaller.append(item)
    return tuple(smaller)


def _emptied(items: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(i.model_copy(update={"text": ""}) for i in items if isinstance(i, SectionText))


def _missing_numbers(items: Iterable[Any], smaller: Iterable[Any]) -> tuple[int, ...]:
    there = {item.number for item in smaller if isinstance(item, EvidenceCard)}
    return tuple(i.number for i in items if isinstance(i, EvidenceCard) and i.number not in there)


def _notes(
    task: ModelTask[Any],
    field: str,
    items: Sequence[Any],
    kept: set[tuple[int, int]],
    budget: int,
    section: str,
) -> tuple[Note, ...]:
    out = [p for p in _pieces(items) if (p.item, p.paragraph) not in kept]
    if not out or field == "scout":
        return ()
    names = Counter(_label(items[p.item], task) for p in out)
    listed = "; ".join(f"{name} ({count})" if count > 1 else name for name, count in names.items())
    what = {"evidence": "pieces of evidence", "passages": "passages", "sections": "paragraphs"}[field]
    total = len(out) + len(kept)
    text = f"{len(out)} of {total} {what} did not fit into {budget} tokens of context and were left out: {listed}"
    return (Note(kind="left_out", text=text, section=section),)


def _label(item: Any, task: ModelTask[Any]) -> str:
    match item:
        case EvidenceCard():
            return item.source_title
        case SectionText():
            return item.title
        case _:
            return str(getattr(task, "source_title", ""))
