"""Another try at a query that found nothing: fewer words, the telling ones."""

from __future__ import annotations

import re

from marg_ray.models.extractive.clauses import topic_of
from marg_ray.models.extractive.words import ASKING_WORDS, FUNCTION_WORDS, is_english, squeeze
from marg_ray.models.tasks import QueryIdea, RewriteQuery

_TOKEN = re.compile(r"[\w'’.+#/-]+")
KEPT = 6  # words of a simplified query


def rewrite(task: RewriteQuery) -> QueryIdea:
    """The query without quotation marks, operators and asking words; then the section's subject; then half of it."""
    tried = _folded(task.query)
    for option in (
        simpler(task.query, task.question), simpler(f"{task.section_title}", task.question),
        topic_of(task.question), _half(task.query), task.section_title,
    ):  # fmt: skip
        if option and _folded(option) != tried:
            return QueryIdea(query=option[:400])
    return QueryIdea(query=squeeze(task.question)[:400] or task.query[:400])


def simpler(query: str, question: str) -> str:
    """The content words of a query, the question's names first kept."""
    plain = re.sub(r"\b(?:AND|OR|NOT)\b|\b(?:site|filetype|intitle):\S+|[\"“”«»()]", " ", query)
    if not is_english(plain):
        return squeeze(plain)[:400]
    kept = [t for t in _TOKEN.findall(plain) if t.lower() not in FUNCTION_WORDS and t.lower() not in ASKING_WORDS]
    unique = list(dict.fromkeys(kept))
    if len(unique) > KEPT:
        strong = [t for t in unique if t[:1].isupper() or t[:1].isdigit()]
        rest = sorted((t for t in unique if t not in strong), key=len, reverse=True)
        keep = set(strong[:KEPT]) | set(rest[: max(0, KEPT - len(strong[:KEPT]))])
        unique = [t for t in unique if t in keep]
    return " ".join(unique)[:400] or squeeze(question)[:400]


def _half(query: str) -> str:
    tokens = [t for t in _TOKEN.findall(query) if t.lower() not in FUNCTION_WORDS]
    return " ".join(tokens[: max(1, len(tokens) // 2)])


def _folded(text: str) -> str:
    return " ".join(_TOKEN.findall(text.casefold()))
