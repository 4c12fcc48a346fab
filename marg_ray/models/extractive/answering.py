"""Answering a question in quotations: the sentences that say it, with those that they need to be understood."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.cards import Card, card_of
from marg_ray.models.extractive.clauses import Kind
from marg_ray.models.extractive.drafting import sentence_words
from marg_ray.models.extractive.facets import Facet, contrast, facet, path_fit, subject_fit
from marg_ray.models.extractive.reading import embedded_text
from marg_ray.models.extractive.words import asked_terms, figures, is_english, names, same_statement, term_set
from marg_ray.models.tasks import AnswerQuestion, FreeText
from marg_ray.seams import Vectors

EMBEDDED = 60  # sentences, the best by words
LONGEST_RUN = 4  # sentences
NEXT = 0.85  # of the best score, for the sentences right behind it
SECOND = 0.93  # for a second run, from elsewhere
COVERED = 0.6  # share of what is asked, weighted by rarity, from which quotations are an answer
OWN = 0.6  # the same, of what is asked beside the subject, in the sentences alone
UNKNOWN = "UNKNOWN: only the nearest passages"


@dataclass(frozen=True)
class Line:
    """A sentence of a card: `place` in `cards[card].sentences`."""

    card: int
    place: int
    text: str
    words: float  # how well it fits by words


@dataclass(frozen=True)
class Answering:
    """What was prepared for the embedder: question, its topic, then the lines."""

    facet: Facet
    cards: tuple[Card, ...]
    lines: tuple[Line, ...]
    texts: tuple[str, ...]
    near: bool


def prepare(task: AnswerQuestion) -> Answering:
    """Take the cards apart; the best lines by words are worth a vector. Pure CPU."""
    titles = tuple({c.source_title: 0 for c in task.evidence})
    wanted = facet(task.question, task.question, (task.question,), titles)
    english = is_english(task.question)
    cards = tuple(c for c in (card_of(e, frozenset()) for e in task.evidence) if c.sentences)
    lines = [
        Line(
            n, k, text, sentence_words(wanted, f"{card.label} {text}") + 0.13 * path_fit(wanted, card.path, card.title)
        )
        for n, card in enumerate(cards)
        for k, text in enumerate(card.sentences)
        if card.rows or not rules.is_junk(text, english=english, labelled=bool(card.label))
    ]
    lines.sort(key=lambda line: -line.words)
    kept = tuple(lines[:EMBEDDED])
    texts = (wanted.query, wanted.topic or wanted.query)
    return Answering(
        wanted, cards, kept, (*texts, *(embedded_text(cards[x.card].heading, x.text) for x in kept)), task.near
    )


def compose(work: Answering, vectors: Vectors) -> FreeText:
    """The best run of sentences, and a second one that is nearly as good. Pure CPU."""
    cosines = (vectors[2:] @ vectors[:2].T).tolist()
    scores: dict[tuple[int, int], float] = {}
    for line, row in zip(work.lines, cosines, strict=True):
        card = work.cards[line.card]
        about = subject_fit(work.facet, f"{card.title} {card.heading} {line.text}")
        score = 0.60 * contrast(row[0], row[1]) + line.words - 0.12 * (1 - about) + 0.03 * card.relevance
        scores[line.card, line.place] = score
    ranked = sorted(scores, key=lambda place: -scores[place])
    if not ranked:
        return FreeText(markdown="UNKNOWN: the passages say nothing of this.")
    best = scores[ranked[0]]
    runs: list[list[tuple[int, int]]] = []
    for place in ranked:
        if len(runs) == 2 or scores[place] < SECOND * best:
            break
        if not _said(place, runs, work):
            runs.append(_run(place, scores, work, best))
    text = " ".join(_marked(work.cards[c].sentences[k], work.cards[c].number) for run in runs for c, k in run)
    answers = not work.near and _answers(work, runs)
    return FreeText(markdown=text if answers else f"{UNKNOWN}\n\n{text}")


def _run(
    place: tuple[int, int], scores: dict[tuple[int, int], float], work: Answering, best: float
) -> list[tuple[int, int]]:
    """A sentence with those before it that it refers to, and those behind it that go on."""
    card, first = place
    last, sentences = first, work.cards[card].sentences
    english = work.facet.english
    while first > 0 and last - first < 2 and not rules.stands_alone(sentences[first], english):
        first -= 1
    while (
        last + 1 < len(sentences)
        and last + 1 - first < LONGEST_RUN
        and scores.get((card, last + 1), 0.0) >= NEXT * best
    ):
        last += 1
    return [(card, k) for k in range(first, last + 1)]


def _said(place: tuple[int, int], runs: list[list[tuple[int, int]]], work: Answering) -> bool:
    """Whether a sentence is in a run already, or says what one of them says."""
    text = work.cards[place[0]].sentences[place[1]]
    return any(
        place == other or same_statement(text, work.cards[other[0]].sentences[other[1]])
        for run in runs
        for other in run
    )


def _answers(work: Answering, runs: list[list[tuple[int, int]]]) -> bool:
    """Whether the quotations hold most of what is asked, what is rare above all; a figure, where one is asked for.

    Titles say of what a passage speaks; what is asked of it must stand in the sentences.
    """
    wanted = asked_terms(work.facet.title)
    everything = [term_set(s) for c in work.cards for s in c.sentences]
    often = Counter(t for terms in everything for t in terms & wanted)
    weights = {t: math.log1p(len(everything) / (1 + often[t])) for t in wanted}
    held = frozenset[str]()
    for run in runs:
        card = work.cards[run[0][0]]
        held |= term_set(
            f"{card.title} {' '.join(card.path)} {card.label} {' '.join(card.sentences[k] for _, k in run)}"
        )
    said = f"{_labels(work, runs)} " + " ".join(work.cards[c].sentences[k] for run in runs for c, k in run)
    if work.facet.kind is Kind.NUMBER and not figures(said):
        return False
    own = wanted - term_set(" ".join(names(work.facet.title)))
    return _share(wanted, held, weights) >= COVERED and _share(own, term_set(said), weights) >= OWN


def _labels(work: Answering, runs: list[list[tuple[int, int]]]) -> str:
    cards = [work.cards[run[0][0]] for run in runs]
    return " ".join(f"{c.label} {c.heading if c.heading != c.title else ''}" for c in cards)


def _share(wanted: frozenset[str], held: frozenset[str], weights: dict[str, float]) -> float:
    total = sum(weights[t] for t in wanted)
    return sum(weights[t] for t in wanted & held) / total if total else 1.0


def _marked(sentence: str, number: int) -> str:
    """The sentence with its mark before the closing stop."""
    stop = re.search(r"(?<=[^\s.!?…])[.!?]\Z|[。！？]\Z", sentence)
    return f"{sentence[: stop.start()]} [{number}]{stop.group()}" if stop else f"{sentence} [{number}]."
