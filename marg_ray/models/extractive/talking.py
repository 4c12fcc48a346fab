"""Conversation without a model: what a message asks by itself, and what it says of its writer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from marg_ray.grounding.sentences import split_sentences
from marg_ray.models.extractive.words import asked_terms, names, squeeze
from marg_ray.models.tasks import PlanTurn, Turn, TurnIdea

LONGEST_FACT = 300  # characters
_REFERS = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|those|these|this|"
    r"(?<!is )(?<!are )(?<!was )(?<!were )there|"
    r"the (?:same|former|latter|others?|first|second|third|last)(?: one)?)\b",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(r"^\s*(?:and|but|or|what about|how about|same for|also)\b[\s,]*", re.IGNORECASE)
_QUESTION = re.compile(r"(?:what|who|whom|whose|which|when|where|why|how|is|are|was|were|do|does|did|can)\b", re.I)
_ABOUT_ME = re.compile(
    r"^(?:please\s+)?(?:"
    r"i(?:['’]m| am| was| work| live| study| teach| prefer| like| dislike| love| hate| speak| read| own| use|"
    r"['’]ve| have| need| want (?:all|every|answers|figures|you to always))\b"
    r"|my (?:[\w-]+ ){1,4}(?:is|are|was|were)\b"
    r"|we(?:['’]re| are| work| live| use| prefer| speak)\b|our (?:[\w-]+ ){1,4}(?:is|are)\b"
    r"|call me\b|(?:from now on,? )?(?:always|never)\b"
    r")",
    re.IGNORECASE,
)


def plan(task: PlanTurn) -> TurnIdea:
    """The message made whole with what was said before; after a search in vain, one with its names and terms alone."""
    question = standalone(task.question, task.history)
    queries = [question[:400]]
    if task.tried:
        bare = squeeze(" ".join([*names(question), *(w for w in _words(question) if w not in names(question))]))
        queries = [bare[:400]] if bare and bare not in task.tried else []
    return TurnIdea(question=question[:1000] or "?", queries=queries, facts=facts(task.question))


def facts(message: str) -> list[str]:
    """Sentences in which the writer speaks of himself or herself, or wishes something of every answer."""
    found = [squeeze(s) for s in split_sentences(message)]
    return [s for s in found if _ABOUT_ME.match(s) and not s.endswith(("?", "？")) and len(s) <= LONGEST_FACT][:5]


def standalone(question: str, history: Sequence[Turn]) -> str:
    """A question that refers to the one before it, with the words that it leaves out."""
    text = squeeze(question)
    before = next((t.text for t in reversed(history) if t.role == "user" and _may_be_meant(t.text)), "")
    if not before:
        return text
    cut = _ELLIPSIS.match(text)
    text = text[cut.end() :] if cut else text
    if cut and not _refers(text) and not _QUESTION.match(text):
        new = text.rstrip("?. ")
        others = [w for w in squeeze(before).rstrip("?. ").split() if not any(w.strip(",") in n for n in names(before))]
        return squeeze(f"{' '.join(others)} {new}?") if names(new) else squeeze(f"{before.rstrip('?. ')} {new}?")
    if _refers(text) or len(asked_terms(text)) < 2:
        subject = ", ".join(n for n in names(before) if n.casefold() not in text.casefold()) or " ".join(_words(before))
        return squeeze(f"{text.rstrip('?. ')} ({subject})?") if subject else text
    return text


def _may_be_meant(message: str) -> bool:
    """Whether a later question may be about the same: what the writer told of himself is not meant."""
    return len(asked_terms(message)) > 1 and ("?" in message or not facts(message))


def _refers(question: str) -> bool:
    """Whether a word stands for something outside: with two terms before it, it stands for one of those."""
    found = _REFERS.search(question)
    return found is not None and len(asked_terms(question[: found.start()])) < 2


def _words(question: str) -> list[str]:
    """The words that carry what is asked, as they stand."""
    wanted = asked_terms(question)
    return [w for w in re.findall(r"[\w'’-]+", question) if asked_terms(w) & wanted]
