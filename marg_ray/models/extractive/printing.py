"""Printing a section: paragraphs, run-in names, lists and tables, with a mark after every sentence."""

from __future__ import annotations

import re

from marg_ray.grounding.sentences import split_sentences
from marg_ray.models.extractive import rules
from marg_ray.models.extractive.cards import Card, bare_title
from marg_ray.models.extractive.facets import Facet, path_fit
from marg_ray.models.extractive.words import contained, figures, term_set, unnumbered, word_count

SHORT = 32  # words below which a paragraph joins its neighbour
PARAGRAPH = 130  # words


def print_section(cards: list[Card], wanted: Facet) -> str:
    """The chosen cards, in this order, as Markdown."""
    labels = _labels(cards, wanted)
    paragraphs: list[str] = []
    size = 0
    previous: Card | None = None
    for at, (card, label) in enumerate(zip(cards, labels, strict=True)):
        if card.rows and at and cards[at - 1].rows and cards[at - 1].source == card.source:
            continue  # stands in the table above
        if card.rows:
            paragraphs.append(_rows([c for c in cards[at:] if c.rows and c.source == card.source], label))
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


def _labels(cards: list[Card], wanted: Facet) -> list[str]:
    """The bold run-in name before each card, "" where none is needed."""
    sources = {c.source for c in cards}
    siblings = walked(cards, wanted)
    out: list[str] = []
    last = ("", "")
    for card in cards:
        label = ""
        if card.label and card.label.casefold() != wanted.title.casefold():
            label = card.label
        elif (card.source, card.heading) in siblings:
            label = unnumbered(card.heading)
        elif len(sources) > 1 and card.source != last[0] and _names_source(card, cards):
            label = _source_label(card)
        if label and (card.source, label) == last:
            label = ""
        last = (card.source, label or (last[1] if card.source == last[0] else ""))
        out.append(label.replace("*", "").strip(" .:"))
    return out


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


def _names_source(card: Card, cards: list[Card]) -> bool:
    """Whether a reader needs the source's title: it is short, and the text does not say it."""
    title = bare_title(card.title)
    if any(word_count(unnumbered(bare_title(c.title))) > 6 for c in cards):
        return _disagrees(card, cards)
    return contained(term_set(title), term_set(card.sentences[0])) < 0.99


def _disagrees(card: Card, cards: list[Card]) -> bool:
    """Whether another source says nearly the same with other figures."""
    for other in cards:
        if other.source == card.source:
            continue
        for mine in card.sentences:
            for theirs in other.sentences:
                a, b = term_set(mine), term_set(theirs)
                close = max(contained(a, b), contained(b, a)) >= 0.5 and min(len(a), len(b)) >= 5
                if close and figures(mine) and figures(theirs) and figures(mine) != figures(theirs):
                    return True
    return False


def _source_label(card: Card) -> str:
    title = unnumbered(bare_title(card.title))
    return f"{title} ({card.published[:10]})" if card.published else title


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


def _rows(cards: list[Card], label: str) -> str:
    """Rows of one source as a table, or as a list where they do not fit one."""
    head = f"**{label}**\n\n" if label else ""
    rows = [(row, card.number) for card in cards for row in card.sentences]
    return head + (_table(rows) or "\n".join(_bullet(row, number) for row, number in rows))


def _table(rows: list[tuple[str, int]]) -> str:
    """Rows with the same few headers as a table, the mark in the last cell; "" where they do not fit one."""
    grid = [[tuple(cell.split(": ", 1)) for cell in row.split("; ")] for row, _ in rows]
    if len(grid) < 2 or any(len(cell) != 2 for row in grid for cell in row):
        return ""
    headers = [cell[0] for cell in grid[0]]
    if not 2 <= len(headers) <= 6 or any([c[0] for c in row] != headers for row in grid):
        return ""
    lines = [headers, ["---"] * len(headers), *([c[1] for c in row] for row in grid)]
    cells = [[c.replace("|", "\\|") for c in line] for line in lines]
    for line, (_, number) in zip(cells[2:], rows, strict=True):
        line[-1] += f" [{number}]"
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
