"""Writes an answer from passages and checks each sentence against what it cites, as it comes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from marg_ray.actors.material import Material
from marg_ray.errors import BudgetExceeded, ModelError
from marg_ray.grounding.drafts import parse_draft
from marg_ray.grounding.links import without_links
from marg_ray.grounding.markdown import row_cells
from marg_ray.grounding.terms import content_stems
from marg_ray.grounding.verify import check_sentence, plain_text, verify_draft
from marg_ray.memory.chat import Answer, Cited, Turn
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.tasks import AnswerQuestion, EvidenceCard, FreeText
from marg_ray.records import Block, Draft, Evidence, Sentence, Verdict, Zone
from marg_ray.report.labels import labels
from marg_ray.seams import Embedder, Offload, in_thread
from marg_ray.sources.answerability import query_terms

SECTION = "answer"
KEPT = (Verdict.SUPPORTED, Verdict.PARTIAL)
UNKNOWN = re.compile(r"^\W*UNKNOWN\s*[:：]\s*(?P<what>.*)$", re.MULTILINE)
_LONGEST = 6000  # characters of an answer that are read


@dataclass(frozen=True)
class Question:
    """What is asked, understood by itself, and what the answer is to mind."""

    text: str
    language: str
    history: tuple[Turn, ...] = ()
    remembered: tuple[str, ...] = ()
    words: int = 120


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Answers questions from material. `plain` answers where the model cannot: it quotes, and costs nothing."""

    model: ModelClient
    plain: ModelClient
    embedder: Embedder
    light: Offload = in_thread

    async def write(self, question: Question, material: Material, call: Call) -> AsyncGenerator[Cited | Answer, None]:
        """The sentences as they pass their check, and at the end the whole answer.

        What the passages do not carry is left out; where nothing is left, or they were no answer to begin with, the
        answer says that it is not known, and what is missing. Where the model is away, or too dear, it quotes.
        """
        book = _Book(question, material, self.embedder, self.light)
        if not material.evidence or material.answerability.zone is Zone.NOTHING:
            for sentence in book.unknown():
                yield sentence
            yield book.answer()
            return
        try:
            async with aclosing(self._streamed(self.model, book, call)) as sentences:
                async for sentence in sentences:
                    yield sentence
        except (ModelError, BudgetExceeded) as exc:
            book.notes.append(f"answered in quotations: {exc}")
            if not book.kept:
                async with aclosing(self._streamed(self.plain, book, call)) as sentences:
                    async for sentence in sentences:
                        yield sentence
        for sentence in book.closing():
            yield sentence
        yield book.answer()

    async def _streamed(self, model: ModelClient, book: _Book, call: Call) -> AsyncGenerator[Cited, None]:
        pieces: asyncio.Queue[str | None] = asyncio.Queue()
        said: list[str] = []

        async def heard(piece: str) -> None:
            pieces.put_nowait(piece)

        asking = asyncio.ensure_future(model.run(book.asked(), replace(call, on_delta=heard)))
        asking.add_done_callback(lambda _: pieces.put_nowait(None))
        try:
            while (piece := await pieces.get()) is not None:
                said.append(piece)
                for sentence in await book.read("".join(said), whole=False):
                    yield sentence
            reply = await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        output: FreeText = reply.output
        for sentence in await book.read(output.markdown, whole=True, left_out=reply.left_out):
            yield sentence


@dataclass
class _Book:
    """One answer as it is written: what was read of it, what was kept, what was dropped."""

    question: Question
    material: Material
    embedder: Embedder
    light: Offload
    kept: list[Cited] = field(default_factory=list)
    dropped: list[Cited] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    told: list[Cited] = field(default_factory=list)  # what code itself says
    unsaid: str | None = None  # what the writer says is not known
    only_near: bool = False  # it says so before all else: what follows is no answer
    _read: int = 0  # sentences
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._by_number = dict(enumerate(self.material.evidence, 1))
        self._say = labels(self.question.language)

    def asked(self) -> AnswerQuestion:
        titles = self.material.titles
        return AnswerQuestion(
            question=self.question.text,
            language=self.question.language,
            evidence=tuple(_card(n, e, titles.get(e.source, "")) for n, e in self._by_number.items()),
            history=self.question.history,
            remembered=self.question.remembered,
            words=self.question.words,
            near=self.material.answerability.zone is Zone.NEAREST,
        )

    async def read(self, markdown: str, *, whole: bool, left_out: Sequence[int] = ()) -> list[Cited]:
        """The sentences that are new in what was written so far; the last one waits for its end, unless this is all."""
        text = markdown[:_LONGEST]
        if not whole:
            text = _finished(text)
        first: list[Cited] = []
        if (found := UNKNOWN.search(text)) and (whole or "\n" in text[found.end() :]) and self.unsaid is None:
            self.unsaid = found["what"]
            self.only_near = self.material.answerability.zone is not Zone.ANSWER or not text[: found.start()].strip()
            if not self.kept and self.only_near and text[found.end() :].strip():
                first = self.tell(self._say["nearest_text"])
        cards = {n: e.id for n, e in self._by_number.items() if n not in left_out}
        draft = await self.light(
            parse_draft, without_links(UNKNOWN.sub("", text)), cards, section=SECTION, section_title="", revision=1
        )
        sentences = [s for block in draft.blocks for s in _spoken(block)]
        new = sentences[self._read :] if whole else sentences[self._read : -1]
        self._read += len(new)
        checked = await self._checked([s for s in new if self._is_new(s)])
        return [*first, *checked]

    def _is_new(self, sentence: Sentence) -> bool:
        """A model that was asked again may begin anew: what was said is not said twice."""
        key = " ".join(sentence.text.split()).casefold()
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    async def _checked(self, sentences: Sequence[Sentence]) -> list[Cited]:
        if not sentences:
            return []
        evidence = {e.id: e for e in self.material.evidence}
        draft = Draft(section=SECTION, revision=1, blocks=(Block(kind="paragraph", sentences=tuple(sentences)),))
        grounding = await verify_draft(
            draft, evidence, titles=self.material.titles, embedder=self.embedder, offload=self.light
        )
        kept: list[Cited] = []
        for sentence, found in zip(sentences, grounding.verdicts, strict=True):
            cited = Cited(
                text=plain_text(sentence.text), citations=sentence.citations, verdict=found.verdict, reason=found.reason
            )
            if found.verdict not in KEPT and found.verdict is not Verdict.NOT_FACTUAL:
                cited = await self.light(_cited_anew, cited, self.material.evidence, self.material.titles)
            if cited.verdict in KEPT:
                cited = await self.light(self._as_quoted, cited)
            if any(_is_heading(cited.text, e.quote) for e in self.material.evidence):
                continue
            if cited.verdict in KEPT or (found.verdict is Verdict.NOT_FACTUAL and cited.text.endswith((":", "："))):
                kept.append(cited)
            elif found.verdict is not Verdict.NOT_FACTUAL:
                self.dropped.append(cited)
        self.kept += kept
        return kept

    def _as_quoted(self, sentence: Cited) -> Cited:
        named = dict.fromkeys(self.material.cited_as(sentence.text, c) for c in sentence.citations)
        return sentence.model_copy(update={"citations": tuple(named)})

    def tell(self, text: str) -> list[Cited]:
        """Something that code says: nothing to check in it."""
        sentence = Cited(text=text, verdict=Verdict.NOT_FACTUAL)
        self.told.append(sentence)
        self.kept.append(sentence)
        return [sentence]

    @property
    def known(self) -> bool:
        states = any(s.verdict in KEPT for s in self.kept)
        return states and not self.only_near

    @property
    def missing(self) -> tuple[str, ...]:
        return self.material.answerability.missing_terms

    def unknown(self) -> list[Cited]:
        """That it is not known, and what is missing."""
        said = self.tell(self._say["insufficient_evidence_text"])
        if self.missing:
            said += self.tell(self._say["missing"].format(terms=", ".join(self.missing)))
        if nearest := self.material.answerability.nearest:
            said += self.tell(f"{self._say['nearest']}: {'; '.join(nearest)}.")
        return said

    def closing(self) -> list[Cited]:
        """What is said after the sentences: that nothing held, or what they leave open."""
        if not any(s.verdict in KEPT for s in self.kept):
            return self.unknown()
        if self.unsaid and self.known and (rest := _only_of(self.unsaid, self.question.text)):
            return self.tell(f"{self._say['unanswered']}: {rest}.")
        return []

    def answer(self) -> Answer:
        cited = dict.fromkeys(c for s in self.kept for c in s.citations)
        if any(e.tainted for e in self.material.quoted if e.id in cited):
            self.notes.append("a source of this answer held instructions to a model; they were cut out")
        return Answer(
            sentences=tuple(self.kept),
            known=self.known,
            dropped=tuple(self.dropped),
            missing=() if self.known else self.missing,
            passages=tuple(self.material.passages[c] for c in cited if c in self.material.passages),
            notes=tuple(self.notes),
        )


def _finished(text: str) -> str:
    """What was written so far without a mark that has only begun."""
    open_at = max(text.rfind("["), text.rfind("【"))
    return text[:open_at] if open_at >= 0 and not re.search(r"[\]】]", text[open_at:]) else text


def _spoken(block: Block) -> list[Sentence]:
    """A block's sentences; a table's row says what its columns are."""
    if block.kind != "table":
        return [s for s in block.sentences if s.text.strip()]
    heads = row_cells(block.text)
    spoken = []
    for row in block.sentences:
        cells = row_cells(row.text)
        named = [f"{h}: {c}" if h.strip() else c for h, c in zip(heads, cells, strict=False) if c.strip()]
        spoken.append(row.model_copy(update={"text": "; ".join(named)}))
    return spoken


def _is_heading(text: str, quote: str) -> bool:
    """Whether a sentence is no more than a heading of the passage: a line that does not end like a sentence."""
    bare = text.strip(" .:*").casefold()
    lines = (line.strip(" *") for line in quote.split("\n")[:-1])
    return any(
        line.strip(":").casefold() == bare and not line.endswith((".", "!", "?", "。")) for line in lines if line
    )


def _cited_anew(sentence: Cited, evidence: Sequence[Evidence], titles: Mapping[str, str]) -> Cited:
    """The sentence with the passage that does carry it, where one of those that were shown does."""
    best = None
    for one in evidence:
        check = check_sentence(sentence.text, [one], titles=[titles[one.source]] if one.source in titles else [])
        if check.verdict is Verdict.SUPPORTED and (best is None or check.score > best[0]):
            best = check.score, one.id
    if best is None:
        return sentence
    return sentence.model_copy(update={"citations": (best[1],), "verdict": Verdict.SUPPORTED, "reason": ""})


def _only_of(said: str, question: str) -> str:
    """A writer's words on what is missing, as far as they are the question's: nothing is claimed in passing."""
    line = " ".join(said.split()).strip(" .")[:200]
    asked = set(query_terms(question)) | set(content_stems(question))
    return line if content_stems(line) <= asked else ""


def _card(number: int, evidence: Evidence, title: str) -> EvidenceCard:
    return EvidenceCard(
        number=number,
        quote=evidence.quote,
        source_title=title,
        source_id=evidence.source,
        start=evidence.start,
        end=evidence.end,
        heading=evidence.heading,
        claim=evidence.claim,
        relevance=evidence.relevance,
    )
