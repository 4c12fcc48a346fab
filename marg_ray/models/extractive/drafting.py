"""Writing a section: which quotations, in which order, as Markdown with a mark after every sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.cards import Card, bare_title, card_of, plain_sentences, without
from marg_ray.models.extractive.clauses import Kind
from marg_ray.models.extractive.facets import (
    COMPARISON,
    OVERVIEW,
    Facet,
    addresses_others,
    answer_fit,
    contrast,
    defines,
    facet,
    names_item,
    path_fit,
    same_heading,
    speaks_of,
    subject_fit,
    title_fit,
    word_fit,
)  # fmt: skip
from marg_ray.models.extractive.printing import print_section, walked
from marg_ray.models.extractive.reading import embedded_text
from marg_ray.models.extractive.runs import STEPWISE
from marg_ray.models.extractive.words import (
    contained,
    same_statement,
    squeeze,
    term_set,
    word_count,
)
from marg_ray.models.tasks import DraftSection, FreeText
from marg_ray.seams import Vectors

CARDS = 30  # that are worth an embedding
FLOOR = 0.74  # of the mean of the best five
ASIDE = 1.06  # of the floor, for a card that only speaks of the subject
LENIENT = 0.85  # of the floor, for siblings under a heading that fits and while there is little text
LEAST = 0.62  # of the best card's score
OWN = 0.5
_TOLD = frozenset({Kind.CAUSE, Kind.HOW, Kind.HOW_TO, Kind.RESPONSE})  # no row of a table answers these
FACTOID_FLOOR = 0.88
DEFINITIONS = 2  # of one thing, of different sources


@dataclass(frozen=True)
class Drafting:
    """What drafting prepared for the embedder: the query, its topic, the other sections', then every sentence."""

    facet: Facet
    cards: tuple[Card, ...]
    mine: Facet  # as the other sections see this one, by its title
    others: tuple[Facet, ...]  # of the other sections, by their titles
    definitions: tuple[Facet, ...]  # those of them that ask what something is
    houses: tuple[str, ...]  # headings that other sections are named after
    words: int
    texts: tuple[str, ...]


def prepare(task: DraftSection) -> Drafting:
    """Take the evidence apart and leave out what a review found fault with. Pure CPU."""
    wanted = facet(task.question, task.section_title, task.queries, tuple({c.source_title: 0 for c in task.evidence}))
    banned = _banned(task)
    cards = [c for c in (card_of(e, banned) for e in task.evidence) if c.sentences]
    cards = _on_subject(cards, wanted)
    if wanted.item and COMPARISON in task.other_sections:
        cards = [c for c in cards if not (c.rows or _compares(c, wanted))] or cards  # stands in that section
    if wanted.item:
        cards = [c for c in cards if not _only_lists(c, wanted)] or cards
    if len(cards) > CARDS:
        cards.sort(key=lambda c: -_by_words(wanted, c))
        cards = cards[:CARDS]
    rivals = () if wanted.item or wanted.compared else _others(task, wanted)
    others = tuple(f for f in rivals if not f.defined)  # whatever is said of X is near "What is X"
    definitions = tuple(f for f in rivals if f.defined)
    mine = facet(
        task.question, task.section_title, (task.section_title,), tuple({c.source_title: 0 for c in task.evidence})
    )
    texts = (
        wanted.query,
        wanted.topic or wanted.query,
        mine.query,
        *(f.query for f in others),
        *(embedded_text(c.heading, s) for c in cards for s in c.sentences),
    )
    all_ = wanted.title == OVERVIEW and not wanted.heading
    houses = tuple(f.heading for f in (_others(task, wanted, all_=True) if all_ else rivals) if f.heading)
    return Drafting(wanted, tuple(cards), mine, others, definitions, houses, task.words, texts)


def _others(task: DraftSection, wanted: Facet, all_: bool = False) -> tuple[Facet, ...]:
    """The facets that may claim evidence. What the question asks goes before what a source's heading offers."""
    titles = tuple({c.source_title: 0 for c in task.evidence})
    found = (facet(task.question, t, (t,), titles) for t in task.other_sections if t != task.section_title)
    open_ended = all_ or wanted.heading or (wanted.kind is Kind.WHAT and not wanted.item)
    return tuple(f for f in found if f.defined or open_ended or not f.heading)


def _banned(task: DraftSection) -> frozenset[str]:
    """Sentences of the evidence that the feedback names. Where it names any, nothing new comes in their place.

    A revision only takes away: what an earlier round left out would come back, and be sent back again.
    """
    if not task.feedback:
        return frozenset()
    said = [squeeze(f).casefold() for f in task.feedback]
    evidence = [s for e in task.evidence for s in card_of(e, frozenset()).sentences]
    texts = dict.fromkeys(squeeze(s) for s in (*plain_sentences(task.previous), *evidence))
    named = frozenset(s for s in texts if len(s) > 12 and any(s.rstrip(".").casefold() in f for f in said))
    if not named or not task.previous:
        return named
    before = _flat(task.previous)
    fresh = frozenset(s for s in evidence if _flat(s) not in before)
    return named | fresh if any(s not in named and s not in fresh for s in evidence) else named


def _flat(text: str) -> str:
    """Letters and digits without marks."""
    return re.sub(r"[\W_]+", "", re.sub(r"\[\d+\]", "", text)).casefold()


def _on_subject(cards: list[Card], wanted: Facet) -> list[Card]:
    """Where a source is titled as the question's subject, another source must name that subject itself."""
    if len(wanted.subject) > 1:
        said: dict[str, str] = {}
        for c in cards:
            said[c.source] = f"{said.get(c.source, c.title)} {' '.join(c.path)} {c.label} {c.text}"
        fits = {source: subject_fit(wanted, text) for source, text in said.items()}
        least = 0.99 if max(fits.values(), default=0.0) >= 0.99 else 0.5
        cards = [c for c in cards if fits[c.source] >= least]
    asked = f"{wanted.query} {wanted.title}".casefold()
    own = {c.source for c in cards if len(bare_title(c.title)) > 3 and bare_title(c.title).casefold() in asked}
    if not own:
        return cards
    subject = wanted.subject or term_set(" ".join(bare_title(c.title) for c in cards if c.source in own))
    return [
        c for c in cards
        if c.source in own or contained(subject, term_set(f"{c.title} {' '.join(c.path)} {c.text}")) >= 0.99
    ]  # fmt: skip


def _compares(card: Card, wanted: Facet) -> bool:
    names = (wanted.item, *wanted.siblings)
    return len(card.sentences) == 1 and sum(names_item(card.text, n) for n in names) > 1


def _only_lists(card: Card, wanted: Facet) -> bool:
    """Whether a sentence names the things one after the other: it would stand under each, and says nothing of any."""
    return len(card.sentences) == 1 and sum(names_item(card.text, n) for n in (wanted.item, *wanted.siblings)) > 2


def _by_words(wanted: Facet, card: Card) -> float:
    return sentence_words(wanted, f"{card.label} {card.text}") + 0.13 * path_fit(wanted, card.path, card.title)


def compose(work: Drafting, vectors: Vectors) -> FreeText:
    """Choose, order and print. Pure CPU."""
    cards = _scored(work, vectors)
    chosen = _choose(cards, work)
    if not chosen:
        return FreeText(markdown="")
    return FreeText(markdown=print_section(_ordered(chosen, work.facet), work.facet))


def _scored(work: Drafting, vectors: Vectors) -> list[Card]:
    """Cards with their scores, without the ends that belong to another section."""
    wanted, n = work.facet, 3 + len(work.others)
    cosines = (vectors[n:] @ vectors[:n].T).tolist()
    top = max((c.relevance for c in work.cards), default=0.0) or 1.0
    out: list[Card] = []
    at = 0
    for card in work.cards:
        rows = cosines[at : at + len(card.sentences)]
        at += len(card.sentences)
        values = []
        for sentence, row in zip(card.sentences, rows, strict=True):
            values.append(
                0.60 * contrast(row[0], row[1], [x - 0.02 for x in row[3:]]) + sentence_words(wanted, sentence)
            )
        foreign = max((_fit_of(f, card, [row[3 + i] for row in rows]) for i, f in enumerate(work.others)), default=-1.0)
        foreign -= _fit_of(work.mine, card, [row[2] for row in rows])
        elsewhere = [_belongs_elsewhere(work, text, row) for text, row in zip(card.sentences, rows, strict=True)]
        foreign += 0.10 * (2 * sum(elsewhere) >= len(elsewhere))
        if wanted.heading and any(same_heading(h, wanted.heading) for h in card.path):
            foreign, elsewhere = -1.0, [False] * len(elsewhere)  # it stands under this very heading
        card, values = _trimmed(card, values, elsewhere)
        best = sorted(values, reverse=True)[:2]
        score = 0.55 * sum(best) / len(best) + 0.45 * sum(values) / len(values) + 0.035 * min(2, len(values) - 1)
        score += _card_bonus(wanted, card) + 0.06 * card.relevance / top - (foreign + 0.02 if foreign > 0.02 else 0.0)
        housed = _stands_under_another(card, work) or any(
            all(defines(f, s) for s in card.sentences) for f in work.definitions
        )
        place = max(path_fit(wanted, card.path, card.title), title_fit(wanted, card.title))
        aside = not speaks_of(wanted, f"{card.label} {card.text}", place)
        aside = aside or (wanted.factoid and answer_fit(wanted, card.text) < 0)  # no place, no date, no figure
        out.append(replace(card, score=score - 0.10 * aside, aside=aside, housed=housed))
    return out


def _stands_under_another(card: Card, work: Drafting) -> bool:
    """Whether the nearest heading that a section is named after is another section's."""
    for heading in reversed(card.path):
        if work.facet.heading and same_heading(heading, work.facet.heading):
            return False
        if any(same_heading(heading, house) for house in work.houses):
            return True
    return False


def _fit_of(one: Facet, card: Card, cosines: list[float]) -> float:
    """How well a card fits any one section, by the same measure for all: the best section is where it belongs."""
    best = sorted(cosines, reverse=True)[:2]
    fit = 0.60 * sum(best) / len(best) + 0.13 * path_fit(one, card.path, card.title) + sentence_words(one, card.text)
    return fit + 0.10 * bool(one.heading and any(same_heading(h, one.heading) for h in card.path))


def sentence_words(wanted: Facet, text: str) -> float:
    own, everything, cues = word_fit(wanted, text, {})
    return 0.15 * own + 0.10 * everything + 0.08 * cues + 0.05 * answer_fit(wanted, text) + 0.20 * defines(wanted, text)


def _card_bonus(wanted: Facet, card: Card) -> float:
    place = path_fit(wanted, card.path, card.title)
    bonus = 0.13 * place
    bonus -= 0.12 * (1 - subject_fit(wanted, f"{card.title} {card.heading} {card.text}"))
    if wanted.heading and any(same_heading(h, wanted.heading) for h in card.path):
        bonus += 0.10
    if wanted.item and not names_item(f"{card.label} {card.title} {' '.join(card.path)} {card.text}", wanted.item):
        bonus -= 0.30
    bonus -= 0.10 * addresses_others(wanted, f"{card.heading} {card.text}")
    if wanted.kind in STEPWISE and card.items > 1 and speaks_of(wanted, card.sentences[0], place):
        bonus += 0.10  # the steps themselves
    if wanted.item and card.label:
        bonus += 0.15 if card.label == wanted.item else -0.30
    return bonus


def _belongs_elsewhere(work: Drafting, sentence: str, row: list[float]) -> bool:
    """Whether a sentence fits another section clearly better than this one."""
    if any(defines(f, sentence) for f in work.definitions):
        return True
    if not work.others:
        return False
    own = 0.60 * row[2] + sentence_words(work.mine, sentence)
    return max(0.60 * row[3 + i] + sentence_words(f, sentence) for i, f in enumerate(work.others)) > own + 0.05


def _trimmed(card: Card, values: list[float], foreign: list[bool]) -> tuple[Card, list[float]]:
    """Cut weak sentences, and those of another section, off the ends of a run, where what is left stands alone."""
    if card.rows or card.items or card.label or len(values) < 2:
        return card, values
    first, last = 0, len(values)
    weak = 0.62 * max(values)
    while last - first > 1 and (values[last - 1] < weak or foreign[last - 1]):
        last -= 1
    while (
        not card.label
        and last - first > 1
        and (values[first] < weak or foreign[first])
        and rules.stands_alone(card.sentences[first + 1])
    ):
        first += 1
    return replace(card, sentences=card.sentences[first:last]), values[first:last]


def _choose(cards: list[Card], work: Drafting) -> list[Card]:
    free = [c for c in cards if not c.housed] or cards
    if not work.facet.compared:
        told = work.facet.kind in _TOLD
        rowless = [c for c in free if not ((c.aside or told) and c.rows)] or free
        direct = [c for c in rowless if not (c.aside and (work.facet.strict or work.facet.factoid))]
        free = direct or rowless
    ranked = sorted(free, key=lambda c: (-c.score, c.number))
    if not ranked:
        return []
    top = [c.score for c in ranked[:5]]
    norm = sum(top) / len(top)
    floor = (FACTOID_FLOOR if work.facet.factoid else FLOOR) * norm
    if work.facet.heading and work.facet.document:
        floor = OWN * norm  # all of it stands under the section's own heading
    siblings = walked(cards, work.facet)
    room = min(work.words, 160) if work.facet.factoid else work.words
    kept: list[Card] = []
    used = 0
    for card in ranked:
        if kept and (used >= room or card.score < min(LEAST * ranked[0].score, floor)):
            break
        lenient = (card.source, card.heading) in siblings or (used < room / 2 and not work.facet.factoid)
        if kept and work.facet.factoid and work.facet.own and not work.facet.own & term_set(card.text):
            continue
        if kept and card.score < floor * (ASIDE if card.aside else LENIENT if lenient else 1.0):
            continue
        if _defined_enough(card, kept, work.facet):
            continue
        fresh = _fresh(card, kept)
        if not fresh.sentences or (kept and used + fresh.size > room * 1.15):
            continue
        kept.append(fresh)
        used += fresh.size
    return kept


def _defined_enough(card: Card, kept: list[Card], wanted: Facet) -> bool:
    """Whether a short definition comes after one of the same source, or after enough others."""
    if len(card.sentences) > 2 or not _says_what_it_is(card, wanted):
        return False
    said = [k for k in kept if _says_what_it_is(k, wanted)]
    return len(said) >= DEFINITIONS or any(k.source == card.source for k in said)


def _says_what_it_is(card: Card, wanted: Facet) -> bool:
    named = replace(wanted, defined=wanted.defined or wanted.item)
    return card.label == wanted.item != "" or defines(named, card.sentences[0])


def _fresh(card: Card, kept: list[Card]) -> Card:
    """The card without what is said already; nothing where its beginning goes."""
    said = [s for k in kept for s in k.sentences]
    repeated = [any(same_statement(s, t) for t in said) for s in card.sentences]
    if not any(repeated):
        return card
    if repeated[0] or card.items:
        rest = without(card.sentences, [s for s, r in zip(card.sentences, repeated, strict=True) if r])
        whole = not card.items and sum(map(word_count, rest)) >= 12
        return replace(card, sentences=rest if whole else (), label=card.label if whole else "")
    return replace(card, sentences=card.sentences[: repeated.index(True)])


def _ordered(cards: list[Card], wanted: Facet) -> list[Card]:
    """Sources by their best card, each in its own order; the short answer to a factoid comes before all."""
    best: dict[str, float] = {}
    for card in cards:
        best[card.source] = max(best.get(card.source, -1.0), card.score)
    ordered = sorted(cards, key=lambda c: (-best[c.source], c.source, c.start))
    if wanted.compared:
        return sorted(ordered, key=lambda c: not c.rows)  # the table of all comes first
    defining = [c for c in cards if c.label == wanted.item != "" or defines(wanted, c.text)]
    if wanted.factoid or defining:
        first = max(defining or cards, key=lambda c: c.score)
        ordered.sort(key=lambda c: (c is not first, c.source != first.source))
    return ordered
