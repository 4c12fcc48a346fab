"""A writer's Markdown to a draft of sentences with their citations, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from marg_ray.grounding.apparatus import without_apparatus
from marg_ray.grounding.citations import find_marks, mask, unfold, unmask
from marg_ray.grounding.markdown import RawBlock, join_row, raw_blocks, row_cells, table_rule
from marg_ray.grounding.sentences import sentence_spans
from marg_ray.records import Block, Draft, Sentence, UnknownCitation

_MAX_LEVEL = 4
_LABEL = re.compile(r"(\*\*|__)(?=\S)((?:(?!\1).){1,120}?)\1\s*[:：]?", re.DOTALL)
_SOURCE_COLUMN = re.compile(
    r"\W*(?:sources?|refs?|references?|citations?|evidence|quellen?|fuentes?|来源|出典)\W*", re.IGNORECASE
)


def parse_draft(
    markdown: str,
    cards: Mapping[int, str],
    *,
    section: str,
    section_title: str,
    revision: int,
    prompted: Sequence[str] | None = None,
    incomplete: bool = False,
) -> Draft:
    """Read what a model wrote for one section.

    Args:
        cards: evidence number, as the writer was shown it, to evidence id.
        prompted: evidence ids the writer saw; all of `cards` by default.

    Marks that name no card are taken out and listed; the sentence around them stays. What code writes itself (title,
    contents, references) is dropped, headings are counted from just below the section's title.
    """
    reader = _Reader(cards)
    raw = without_apparatus(raw_blocks(markdown), section_title)
    blocks = reader.read(raw)
    return Draft(
        section=section,
        revision=revision,
        blocks=tuple(blocks),
        unknown_citations=tuple(UnknownCitation(mark=f"[{n}]", section=section) for n in reader.unknown),
        incomplete=incomplete,
        prompted=tuple(dict.fromkeys(cards.values() if prompted is None else prompted)),
    )


def render_draft(draft: Draft, numbers: Mapping[str, Sequence[int]]) -> str:
    """The draft as Markdown with [n] marks.

    Args:
        numbers: evidence id to the number or numbers that cite it. Evidence without one is not marked.
    """
    pieces: list[str] = []
    was_list = False
    for block in draft.blocks:
        is_list = block.kind in ("bullet", "ordered")
        if pieces:
            pieces.append("\n" if is_list and was_list else "\n\n")
        pieces.append(_rendered(block, numbers))
        was_list = is_list
    return "".join(pieces)


# ---- reading


@dataclass
class _Reader:
    cards: Mapping[int, str]

    def __post_init__(self) -> None:
        self.unknown: list[int] = []

    def read(self, raw: Sequence[RawBlock]) -> list[Block]:
        levels = sorted({b.level for b in raw if b.kind == "heading"})
        blocks: list[Block] = []
        inherited: tuple[str, ...] = ()
        for one in raw:
            block = self._block(one, levels)
            if block is None:
                continue
            if block.kind in ("bullet", "ordered"):
                block = _in_list(block, blocks, inherited)
            elif not any(s.text for s in block.sentences) and block.sentences:
                _cite_last(blocks, block.sentences[0].citations)
                continue
            else:
                last = block.sentences[-1] if block.sentences else Sentence(text="")
                inherited = last.citations if last.text.endswith((":", "：")) else ()
            blocks.append(block)
        return blocks

    def _block(self, raw: RawBlock, levels: Sequence[int]) -> Block | None:
        match raw.kind:
            case "code" | "formula":
                return Block(kind=raw.kind, text=raw.source, language=raw.language)
            case "table":
                return self._table(raw)
            case "heading":
                text, _ = self._marked(_one_line(raw.source))
                text = re.sub(r"\A(\*\*|__)(.*)\1\Z", r"\2", text.strip()).strip()
                level = min(levels.index(raw.level) + 1, _MAX_LEVEL)
                return Block(kind="heading", text=text, level=level) if text else None
        label = _LABEL.fullmatch(raw.source.strip()) if raw.kind == "paragraph" else None
        if label and not label[2].rstrip().endswith((".", "!", "。")) and not self._cites(label[2]):
            return Block(kind="label", text=label[2].strip().rstrip(":："))
        sentences = self._sentences(raw.source)
        return Block(kind=raw.kind, sentences=tuple(sentences), level=raw.level) if sentences else None

    def _cites(self, text: str) -> bool:
        return bool(find_marks(mask(unfold(text))[0], self.cards))

    def _sentences(self, source: str) -> list[Sentence]:
        """Sentences without marks. Marks alone give one sentence without text."""
        masked, spans = mask(unfold(_without_tags(_one_line(source))))
        text, marks = self._split_marks(masked)
        found: list[Sentence] = []
        cuts = sentence_spans(text)
        at = 0
        for number, (start, end) in enumerate(cuts):
            last = number == len(cuts) - 1
            cited: list[str] = []
            while at < len(marks) and (last or marks[at][0] <= end):
                cited += marks[at][1]
                at += 1
            words = unmask(text[start:end], spans)
            found.append(Sentence(text=words, citations=tuple(dict.fromkeys(cited))))
        if not cuts and marks:
            found.append(Sentence(text="", citations=tuple(dict.fromkeys(i for _, ids in marks for i in ids))))
        found = _balanced(found)
        if found and found[0].text:
            found[0] = found[0].model_copy(update={"text": _line_start(found[0].text)})
        return found

    def _table(self, raw: RawBlock) -> Block | None:
        grid: list[list[str]] = []
        cites: list[tuple[str, ...]] = []
        for row in raw.rows:
            pairs = [self._marked(_without_tags(cell)) for cell in row_cells(row)]
            grid.append([text for text, _ in pairs])
            cites.append(tuple(dict.fromkeys(i for _, ids in pairs for i in ids)))
        for column in reversed(range(len(grid[0]))):  # a column that held nothing but marks
            if _SOURCE_COLUMN.fullmatch(grid[0][column]) and not any(
                r[column : column + 1] not in ([], [""]) for r in grid[1:]
            ):
                grid = [r[:column] + r[column + 1 :] for r in grid]
        rows = [
            Sentence(text=join_row(cells), citations=own or cites[0])
            for cells, own in zip(grid[1:], cites[1:], strict=True)
            if any(cells)
        ]
        header = join_row(grid[0])
        return Block(kind="table", text=header, sentences=tuple(rows)) if rows or any(grid[0]) else None

    def _marked(self, source: str) -> tuple[str, list[str]]:
        """Text without its marks, and the evidence they name."""
        masked, spans = mask(unfold(source))
        text, marks = self._split_marks(masked)
        return unmask(text, spans).strip(), [i for _, ids in marks for i in ids]

    def _split_marks(self, masked: str) -> tuple[str, list[tuple[int, list[str]]]]:
        """The text without marks, and each mark's place in it with the evidence it names."""
        text, groups = _stand_ins(masked, self.cards)
        out: list[str] = []
        length = 0
        marks: list[tuple[int, list[str]]] = []
        for piece in re.split(rf"(\s*{_STAND_INS}+)", _mended(text)):
            letters = piece.strip()
            if letters and all(_is_stand_in(c) for c in letters):
                ids = [n for c in letters for n in groups[ord(c) - _FIRST]]
                self.unknown += [n for n in ids if n not in self.cards]
                if known := [self.cards[n] for n in ids if n in self.cards]:
                    marks.append((length, known))
                continue
            piece = piece.lstrip() if not length else piece
            out.append(piece)
            length += len(piece)
        return "".join(out), marks


_FIRST = 0x100000  # each mark stands as one private letter while the text around it is mended
_STAND_INS = "[\U00100000-\U0010fffd]"
_EMPTY_BRACKETS = re.compile(
    rf"\s*[(（]\s*(?:(?:see|cf\.?|e\.g\.,?|sources?:?|refs?\.?|siehe|vgl\.|voir|ver|见|参见)\s*(?:also\s*)?)?"
    rf"({_STAND_INS}(?:[\s,;，、]|and|&)*(?:{_STAND_INS}(?:[\s,;，、]|and|&)*)*)[)）]",
    re.IGNORECASE,
)
_SEPARATED = re.compile(rf"(?<={_STAND_INS})\s*(?:[,;，、；&]|\b(?:and|und|et|y)\b|和)?\s*(?={_STAND_INS})")
_ACCORDING = re.compile(
    rf"(?:(?<=\A)|(?<=[.!?]\s))(?:according to|as (?:noted|shown|reported|described|stated|seen) (?:in|by)|per|in)"
    rf"\s+({_STAND_INS}+)\s*,\s*(\w+)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    rf"\b((?:reported|stated|described|shown|noted|found|according|documented|detailed|seen|published|cited)"
    rf"\s+(?:in|by|to))\s+({_STAND_INS}+)",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"(?:(?<=\A)|(?<=[.!?]\s))({_STAND_INS}+)\s+(?=(?:reports?|states?|says?|notes?|shows?|found|finds?|describes?|"
    rf"argues?|suggests?|indicates?|explains?|estimates?|claims?|confirms?|lists?|gives?|adds?|puts?)\b)"
)


def _stand_ins(masked: str, known: Mapping[int, str]) -> tuple[str, list[tuple[int, ...]]]:
    out: list[str] = []
    groups: list[tuple[int, ...]] = []
    at = 0
    for found in find_marks(masked, known):
        out += [masked[at : found.start], chr(_FIRST + len(groups))]
        groups.append(found.numbers)
        at = found.end
    out.append(masked[at:])
    return "".join(out), groups


def _mended(text: str) -> str:
    """Take care of the words and brackets that would stand empty once the marks are gone."""
    text = _SEPARATED.sub("", _EMPTY_BRACKETS.sub(r" \1", text))
    text = _ACCORDING.sub(lambda m: f"{m[2][0].upper()}{m[2][1:]}{m[1]}", text)
    text = _REPORTED.sub(r"\1 a source\2", text)
    return _SUBJECT.sub(r"One source\1 ", text)


def _is_stand_in(char: str) -> bool:
    return ord(char) >= _FIRST


def _one_line(source: str) -> str:
    source = re.sub(r"(?<=[\u2e80-\u9fff。，、；：！？])[ \t]*\n\s*(?=[\u2e80-\u9fff])", "", source)
    return re.sub(r"\\?\s*\n\s*", " ", source).strip()


def _without_tags(text: str) -> str:
    masked, spans = mask(text)
    masked = re.sub(r"<br\s*/?>", " ", masked, flags=re.IGNORECASE)
    tag = r"</?(?:b|strong|i|em|u|p|div|span|small|font|center|mark|ins|details|summary)(?:\s[^<>]*)?>"
    return unmask(re.sub(tag, "", masked, flags=re.IGNORECASE), spans).strip()


def _line_start(text: str) -> str:
    """No list, heading or quotation by accident once a leading mark is gone."""
    if re.match(r"\d{1,9}[.)](?:\s|\Z)", text):
        return re.sub(r"\A(\d+)", r"\1\\", text)
    return "\\" + text if re.match(r"(?:#{1,6}|[-+*])(?:\s|\Z)|>|\||~~~|```|(?:---+|===+)\s*\Z", text) else text


_BOLD = re.compile(r"(?<![\\*])\*\*(?!\*)")


def _balanced(sentences: list[Sentence]) -> list[Sentence]:
    """Bold that spans sentences becomes bold of each."""
    if sum(len(_BOLD.findall(s.text)) for s in sentences) % 2:
        return sentences
    out: list[Sentence] = []
    is_open = False
    for sentence in sentences:
        text = ("**" if is_open else "") + sentence.text
        is_open = len(_BOLD.findall(text)) % 2 == 1
        out.append(sentence.model_copy(update={"text": text + ("**" if is_open else "")}))
    return out


def _in_list(block: Block, blocks: Sequence[Block], inherited: tuple[str, ...]) -> Block:
    """A list item: no deeper than one below its predecessor; cites what the lead-in cites unless it cites itself."""
    before = blocks[-1] if blocks else None
    deepest = before.level + 1 if before and before.kind in ("bullet", "ordered") else 0
    sentences = block.sentences
    if inherited and not any(s.citations for s in sentences):
        sentences = tuple(s.model_copy(update={"citations": inherited}) for s in sentences)
    return block.model_copy(update={"level": min(block.level, deepest), "sentences": sentences})


def _cite_last(blocks: list[Block], cited: Iterable[str]) -> None:
    """A paragraph of marks alone cites for the block before it: for all its sentences where none of them cites."""
    if not blocks or not blocks[-1].sentences:
        return
    *before, last = blocks[-1].sentences
    if not any(s.citations for s in (*before, last)):
        before = [s.model_copy(update={"citations": tuple(cited)}) for s in before]
    last = last.model_copy(update={"citations": tuple(dict.fromkeys((*last.citations, *cited)))})
    blocks[-1] = blocks[-1].model_copy(update={"sentences": (*before, last)})


# ---- writing


def _rendered(block: Block, numbers: Mapping[str, Sequence[int]]) -> str:
    match block.kind:
        case "heading":
            return f"{'#' * min(block.level + 2, 6)} {block.text}"
        case "label":
            return f"**{block.text}**"
        case "code":
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
            return f"{fence}{block.language}\n{block.text}\n{fence}"
        case "formula":
            return f"$$\n{block.text}\n$$"
        case "table":
            rows = (_with_marks(s, numbers, before="|") for s in block.sentences)
            return "\n".join((block.text, table_rule(block.text), *rows))
    prose = " ".join(_with_marks(s, numbers) for s in block.sentences)
    lead = {"bullet": "    " * block.level + "- ", "ordered": "    " * block.level + "1. ", "quote": "> "}
    return lead.get(block.kind, "") + prose


def _with_marks(sentence: Sentence, numbers: Mapping[str, Sequence[int]], before: str = "") -> str:
    """The sentence with its marks in front of its closing stop (or of `before`)."""
    cited = dict.fromkeys(n for i in sentence.citations for n in numbers.get(i, ()))
    marks = "".join(f"[{n}]" for n in cited)
    if not marks:
        return sentence.text
    if before:
        return f"{sentence.text.rstrip().removesuffix(before).rstrip()} {marks} {before}"
    stop = re.search(r"(?<=[^\s.!?…])[.!?]\Z|[。！？।۔؟]\Z", sentence.text)
    if stop is None:
        return f"{sentence.text} {marks}"
    space = "" if re.search(r"[\u2e80-\u9fff）】」』”]\Z", sentence.text[: stop.start()]) else " "
    return f"{sentence.text[: stop.start()]}{space}{marks}{stop.group()}"
