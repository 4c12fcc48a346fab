"""What can be measured on a quoted text: the signals that agree with a careful reader, and some that do not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from marg_ray.models.extractive import rules
from marg_ray.models.extractive.summarising import Line, marked_lines
from marg_ray.models.extractive.words import is_english, same_statement, word_count


@dataclass(frozen=True)
class Measures:
    """Shares of the sentences of a text (of its paragraphs, for the last but one)."""

    words: int = 0
    sentences: int = 0
    dangling: float = 0.0  # start with something that refers back, and do not follow their own predecessor
    junk: float = 0.0
    pointers: float = 0.0  # pointers, cross references, words that point into the source's page
    follows: float = 0.0  # stand behind a sentence of the same evidence
    single: float = 0.0  # paragraphs of one sentence
    repeated: float = 0.0  # say what another sentence says


def paragraphs(text: str) -> list[str]:
    return [p for p in re.split(r"\n\s*\n|\n(?=\s*-\s)", text) if p.strip()]


def measure(sections: Sequence[str], titles: Sequence[str] = ()) -> Measures:
    """The measures over the Markdown of all sections. A title that is a mere name labels its first sentence."""
    total = dangling = junk = pointers = follows = repeated = 0
    blocks: list[int] = []
    seen: list[str] = []
    size = 0
    for s, section in enumerate(sections):
        first_seen = False
        for block in paragraphs(section):
            lines = marked_lines(s, block)
            if not lines or block.lstrip().startswith(("- ", "|")):
                size += sum(word_count(x.text) for x in lines)
                continue  # lists and tables are no prose
            blocks.append(len(lines))
            for i, line in enumerate(lines):
                if titles and not first_seen and is_name(titles[s]):
                    line = replace(line, label=line.label or titles[s])
                first_seen = True
                before = lines[i - 1] if i else None
                follow = before is not None and before.marks == line.marks
                total += 1
                size += word_count(line.text)
                follows += follow
                dangling += is_dangling(line, follow)
                english = is_english(line.text)
                junk += rules.is_junk(line.text, english=english, labelled=bool(line.label), inside=follow)
                pointers += english and (
                    rules.is_pointer(line.text) or rules.is_deictic(line.text) or rules.has_cross_reference(line.text)
                )
                repeated += any(same_statement(line.text, t) for t in seen)
                seen.append(line.text)
    if not total:
        return Measures()
    return Measures(
        size, total, dangling / total, junk / total, pointers / total, follows / total,
        sum(1 for b in blocks if b == 1) / len(blocks), repeated / total,
    )  # fmt: skip


def is_name(title: str) -> bool:
    return word_count(title) <= 4 and not title.endswith("?")


def is_dangling(line: Line, follows: bool) -> bool:
    return not follows and not line.label and not rules.stands_alone(line.text, is_english(line.text))
