"""Evidence taken apart for printing: sentences, the term before them, rows of a table, items of a list."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace

from marg_ray.grounding.sentences import sentence_spans
from marg_ray.models.extractive import rules
from marg_ray.models.extractive.words import squeeze, word_count
from marg_ray.models.tasks import EvidenceCard

_ROW = re.compile(r"^[^\n:;]{1,80}: [^\n;]*(?:; [^\n:;]{1,80}: [^\n;]*)+$")


@dataclass(frozen=True)
class Card:
    """A piece of evidence taken apart for printing."""

    number: int
    source: str
    title: str
    path: tuple[str, ...]
    start: int
    end: int
    sentences: tuple[str, ...]
    label: str = ""  # a defined term that stood before the sentences
    rows: bool = False  # the sentences are table rows
    items: int = 0  # so many sentences at the end are items of a list
    score: float = 0.0
    published: str = ""
    housed: bool = False  # another section is about just this
    aside: bool = False  # on the subject, but neither words nor heading answer what is asked
    relevance: float = 0.0

    @property
    def heading(self) -> str:
        return self.path[-1] if self.path else ""

    @property
    def text(self) -> str:
        return " ".join(self.sentences)

    @property
    def size(self) -> int:
        return word_count(self.text)


def plain_sentences(markdown: str) -> list[str]:
    """The sentences of a draft without marks, labels and bullets."""
    out: list[str] = []
    for line in markdown.splitlines():
        text = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", line)
        text = re.sub(r"^\*\*[^*]+\*\*\s*", "", text)
        pieces = re.split(r"(?:\s*\[\d+\])+\s*", text)
        out.extend(squeeze(p) for p in pieces if p.strip())
    return out


# What an encyclopaedia's editors put between the words: its own reference marks would read as ours.
_MARKS = re.compile(
    r"\s*[\[［](?:\d{1,3}(?:\s*[,–-]\s*\d{1,3})*|[a-z]{1,2}|(?:note|nb|n|ref)\s?\d+|citation needed|update|"
    r"when\?|who\?|which\?|by whom\?|needs update|clarification needed|according to whom\?|sic)[\]］]",
    re.I,
)


_EMPTY = re.compile(r"\s+\(\s*[,;]?\s*\)(?=\s|[.,;])")  # not the "()" of a function's name


def clean(text: str) -> str:
    """White space as single spaces, the source's own reference marks and brackets that lost their content taken out."""
    return squeeze(_EMPTY.sub("", _MARKS.sub("", text)))


def card_of(evidence: EvidenceCard, banned: frozenset[str]) -> Card:
    """Take a quotation apart; `banned` sentences are left out."""
    path = tuple(h for h in evidence.heading.split(" > ") if h)
    base = Card(
        evidence.number, evidence.source_id, evidence.source_title, path, evidence.start, evidence.end, (),
        published=evidence.published, relevance=evidence.relevance,
    )  # fmt: skip
    lines = [clean(x) for x in evidence.quote.split("\n") if x.strip()]
    if lines and all(_ROW.match(x) for x in lines):
        return replace(base, sentences=tuple(x for x in lines if x not in banned), rows=True)
    blocks = [b for b in re.split(r"\n\s*\n", evidence.quote) if b.strip()]
    label = ""
    if len(blocks) > 1 and _is_label(blocks[0]):
        label, blocks = clean(blocks[0]), blocks[1:]
    if len(blocks) > 1 and blocks[0].rstrip().endswith(":"):
        head, *rest = [clean(b) for b in blocks]
        return replace(base, sentences=(*_sentences(head), *rest), items=len(rest), label=label)
    sentences = [s for b in blocks for s in _sentences(b)]
    return replace(base, sentences=without(sentences, banned), label=label)


def _is_label(block: str) -> bool:
    """Whether a line is a term that the next paragraph explains."""
    short = word_count(block) <= 3 or (word_count(block) <= 7 and not rules.has_verb(block))
    return short and not rules.ends_properly(block) and block.rstrip()[-1] not in ":,;"


def _sentences(text: str) -> list[str]:
    return [clean(text[a:b]) for a, b in sentence_spans(text)]


def without(sentences: Iterable[str], banned: Container[str]) -> tuple[str, ...]:
    """Drop banned sentences, and those that would then start without what they refer to."""
    kept: list[str] = []
    broken = False
    for sentence in sentences:
        if sentence in banned or sentence.rstrip(".") in banned:
            broken = True
            continue
        if broken and not rules.stands_alone(sentence):
            continue
        broken = False
        kept.append(sentence)
    return tuple(kept)


def bare_title(title: str) -> str:
    return clean(re.sub(r"\s*\([^)]*\)\s*$", "", title))
