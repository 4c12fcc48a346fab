"""Printing a section: paragraphs, run-in names, lists and tables, with a mark after every sentence."""

from __future__ import annotations

import re

from marg_ray.grounding.sentences import split_sentences
from marg_ray.models.extractive import rules
from marg_ray.models.extractive.cards import Card, bare_title
from marg_ray.models.extractive.facets import Facet, names_item, path_fit, same_heading
from marg_ray.models.extractive.words import (
    asked_terms,
    contained,
    figures,
    short_title,
    term_set,
    unnumbered,
)

SHORT = 32  # words below which a paragraph joins its neighbour
PARAGRAPH = 130  # words
COLUMNS = 6  # of a table, at most
ONLY = "The documents say only"


def print_section(cards: list[Card], wanted: Facet) -> str:
    """The chosen cards, in this order, as Markdown."""
    labels = _labels(cards, wanted)
    paragraphs: list[str] = [f"**{ONLY}:**"] if _is_all(cards, wanted) else []
    size = 0
    previous: Card | None = None
    for at, (card, label) in enumerate(zip(cards, labels, strict=True)):
        if card.rows and at and cards[at - 1].rows and cards[at - 1].source == card.source:
            continue  # stands in the table above
        if card.rows:
            same = [c for c in cards[at:] if c.rows and c.source == card.source]
            paragraphs.append(_rows(same, label, wanted))
            previous, size = None, 0
            continue
        if card.items:
            paragraphs.append(_listed(card, label))
            previous, size = None, 0
            continue
        text = _marked(card.sentences, card.number)
        joins = (
            previous is not None and not label and not card.label and not previous.label
            and previous.source == card.source and size + card.size <= PARAGRAPH
            and (previous.path == card.path or card.size < SHORT or size < SHORT)
        )  # fmt: skip
        if joins:
            paragraphs[-1] += " " + text
            size += card.size
        else:
            paragraphs += [f"**{label}**", text] if label else [text]
            size = card.size
        previous = card
    return "\n\n".join(paragraphs)


def _is_all(cards: list[Card], wanted: Facet) -> bool:
    """Whether one sentence stands where a reader expects more than one fact: then he should know that it is all."""
    short = len(cards) == 1 and len(cards[0].sentences) == 1 and not (cards[0].rows or cards[0].label)
    return (
        short
        and wanted.english
        and not (wanted.factoid or wanted.defined or wanted.item or wanted.heading or wanted.compared)
    )


def _labels(cards: list[Card], wanted: Facet) -> list[str]:
    """The bold run-in name before each card, "" where none is needed."""
    named = _source_labels(cards, wanted)
    siblings = walked(cards, wanted)
    out: list[str] = []
    last = ("", "")
    for card in cards:
        label = ""
        if card.label and card.label.casefold() != wanted.title.casefold():
            label = card.label
        elif (card.source, card.heading) in siblings or (wanted.document and _below(card, wanted)):
            label = unnumbered(card.heading)
        elif card.source != last[0]:
            label = named.get(card.source, "")
        if label and (card.source, label) == last:
            label = ""
        last = (card.source, label or (last[1] if card.source == last[0] else ""))
        out.append(label.replace("*", "").strip(" .:"))
    return out


def _below(card: Card, wanted: Facet) -> bool:
    """Whether a card stands under a heading of its own below the one the section is named after."""
    return any(same_heading(h, wanted.heading) for h in card.path[:-1])


def walked(cards: list[Card], wanted: Facet) -> set[tuple[str, str]]:
    """(source, heading) of cards that stand under sibling headings of one parent that fits the facet."""
    families: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for card in cards:
        if len(card.path) >= 3:
            families.setdefault((card.source, card.path[:-1]), set()).add(card.heading)
    return {
        (source, heading)
        for (source, parent), below in families.items()
        if len(below) >= 2 and (path_fit(wanted, parent, "") >= 0.6 or len(parent) >= 3)
        for heading in below
    }


def _source_labels(cards: list[Card], wanted: Facet) -> dict[str, str]:
    """What each source is called before its paragraphs, where they stand beside others.

    Where a source is about something else than the question, only its title says whose dam "the dam" is; a source
    that comes after one so named needs a name too. Sources that disagree are told apart by their dates as well.
    """
    first: dict[str, Card] = {}
    for card in cards:
        first.setdefault(card.source, card)
    if len(first) < 2:
        return {}
    out: dict[str, str] = {}
    told = False
    apart = not wanted.compared
    for source, card in first.items():
        mine = [c for c in cards if c.source == source]
        name = short_title(card.title) or unnumbered(bare_title(card.title))
        if any(_disagrees(c, cards) for c in mine):
            out[source] = f"{name} ({card.published[:10]})" if card.published else name
        elif not all(c.rows for c in mine) and (told or (apart and _is_strange(name, card, wanted))):
            out[source] = name
        told = told or source in out
    return out


def _is_strange(name: str, card: Card, wanted: Facet) -> bool:
    """Whether a title names what neither the question nor the source's first sentence does."""
    item = wanted.item.casefold()
    if item and (
        names_item(card.sentences[0], wanted.item)
        or any(t.casefold().startswith(item) for t in (card.title, *card.path))
    ):
        return False
    terms, said = asked_terms(name), term_set(card.sentences[0])
    if wanted.subject and contained(wanted.subject, said) >= 0.99:
        return False
    return contained(terms, wanted.everything) < 0.99 and contained(terms, said) < 0.99


def _disagrees(card: Card, cards: list[Card]) -> bool:
    """Whether another source says nearly the same with other figures."""
    for other in cards:
        if other.source == card.source:
            continue
        for mine in card.sentences:
            for theirs in other.sentences:
                a, b = term_set(mine), term_set(theirs)
                close = max(contained(a, b), contained(b, a)) >= 0.7 and min(len(a), len(b)) >= 5
                if close and figures(mine) - figures(theirs) and figures(theirs) - figures(mine):
                    return True
    return False


def _marked(sentences: tuple[str, ...], number: int) -> str:
    return " ".join(f"{s if rules.ends_properly(s) else s + '.'} [{number}]" for s in sentences)


def _listed(card: Card, label: str) -> str:
    head = f"**{label}**\n\n" if label else ""
    intro = card.sentences[: len(card.sentences) - card.items]
    rest = card.sentences[len(intro) :]
    lead = " ".join(f"{s} [{card.number}]" for s in intro)
    return f"{head}{lead}\n\n" + "\n".join(_bullet(item, card.number) for item in rest)


def _bullet(item: str, number: int) -> str:
    """One item of a list; where it has several sentences, each is marked."""
    text = " ".join(f"{sentence} [{number}]" for sentence in split_sentences(item))
    return text if re.match(r"\d+[.)]\s", text) else "- " + re.sub(r"^[-*•‣◦]\s+", "", text)


def _rows(cards: list[Card], label: str, wanted: Facet) -> str:
    """Rows of one source as a table, or as a list where they do not fit one."""
    head = f"**{label}**\n\n" if label else ""
    rows = [(row, card.number) for card in cards for row in card.sentences]
    if wanted.compared:  # in the question's order
        rows.sort(key=lambda r: next((i for i, n in enumerate(wanted.compared) if names_item(r[0], n)), 99))
    return head + (_table(rows, wanted) or "\n".join(_bullet(row, number) for row, number in rows))


def _table(rows: list[tuple[str, int]], wanted: Facet) -> str:
    """Rows of one table as a table, the mark in the last cell; "" where they do not fit one.

    Of many columns those stay that the section asks for, and then the first ones.
    """
    pairs = [[tuple(cell.split(": ", 1)) for cell in row.split("; ")] for row, _ in rows]
    if len(pairs) < 2 or any(len(cell) != 2 for row in pairs for cell in row):
        return ""
    grid = [{cell[0]: cell[1] for cell in row} for row in pairs]
    longest = max(pairs, key=len)
    headers = list(dict.fromkeys(cell[0] for row in (longest, *pairs) for cell in row))
    if len(headers) < 2 or len({row[0][0] for row in pairs}) > 1 or any(2 * len(r) < len(headers) for r in grid):
        return ""
    kept = _columns(headers, wanted)
    lines = [kept, ["---"] * len(kept), *([row.get(h, "") for h in kept] for row in grid)]
    cells = [[c.replace("|", "\\|") for c in line] for line in lines]
    for line, (_, number) in zip(cells[2:], rows, strict=True):
        line[-1] = f"{line[-1]} [{number}]".strip()
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _columns(headers: list[str], wanted: Facet) -> list[str]:
    if len(headers) <= COLUMNS:
        return headers
    asked = [h for h in headers[1:] if asked_terms(h) & (wanted.own | wanted.cues)]
    kept = dict.fromkeys([headers[0], *asked, *headers])
    chosen = set(list(kept)[:COLUMNS])
    return [h for h in headers if h in chosen]
