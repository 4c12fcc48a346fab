"""What a writer that lies gets through: reports by a model that changes facts of its evidence, checked as always.

    python benchmarks/honesty.py --data PATH [--home DIR] [--only wiki] [--first N] [--hashing] [--seed 1]

PATH holds `freshwiki`. The same 30 questions are answered twice, over the whole way of a report: by the model without
a model, which quotes, and by one that takes real sentences of its evidence and changes each: a figure, a date, a name,
a unit, the direction, who did what to whom; that denies it, cites another passage for it, adds something, or makes it
up; and leaves some as they are or only says them in other words. A review sends sections back, and it lies again.

Printed for each kind: sentences written, sentences in the finished reports, and how many of these are marked as
supported. Gate: none of the kinds number, date, entity, negation.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.edits import KINDS
from benchmarks.reports import Desk, arguments, libraries, questions
from marg_ray.models.client import Call, ModelClient, ModelTask, OutT, Reply
from marg_ray.models.embeddings import HashingEmbedder, MiniLM
from marg_ray.models.extractive import ExtractiveModel
from marg_ray.models.extractive.cards import card_of
from marg_ray.models.extractive.summarising import marked_lines
from marg_ray.models.extractive.words import contained, squeeze, term_set
from marg_ray.models.tasks import DraftSection, EvidenceCard, FreeText, SummariseReport
from marg_ray.records import Usage, Verdict
from marg_ray.report.model import Report, ReportSentence
from marg_ray.seams import Embedder, in_thread

FAITHFUL = ("verbatim", *(k for k, (kept, _) in KINDS.items() if kept))
FALSE = tuple(k for k, (kept, _) in KINDS.items() if not kept)
MUST_BE_CAUGHT = ("number", "date", "entity", "negation")
SENTENCES = 8  # of a section
_INVENTED = (
    "Officials later put the total cost of {topic} at 4.7 billion dollars.",
    "A parliamentary inquiry in 2019 cleared everyone who had to do with {topic}.",
    "Professor Ingrid Halvorsen of the University of Tromsø called {topic} unprecedented.",
    "More than 83,000 people signed a petition about {topic} within a week.",
)


@dataclass(frozen=True)
class Written:
    """A sentence as the liar wrote it, and what it was made of."""

    kind: str
    text: str
    original: str
    passage: str  # of the evidence it cites


@dataclass
class Liar:
    """Plans, reads and reviews like the model without a model; what it writes, it changes. The seed decides how."""

    honest: ExtractiveModel
    seed: int = 1
    written: dict[str, Written] = field(default_factory=dict)  # by the sentence's words

    @property
    def name(self) -> str:
        return "liar"

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        if isinstance(task, DraftSection):
            text = self._section(task)
        elif isinstance(task, SummariseReport):
            text = self._summary(task)
        else:
            return await self.honest.run(task, call)
        return Reply(output=cast(OutT, FreeText(markdown=text)), usage=Usage(calls=1), model=self.name)

    def _section(self, task: DraftSection) -> str:
        dice = self._dice(task.question, task.section_title, task.previous, *task.feedback)
        places = [(card, s) for card in task.evidence for s in card_of(card, frozenset()).sentences if _usable(s)]
        dice.shuffle(places)
        pool = [s for _, s in places]
        lines = [self._changed(card, s, task, dice, pool) for card, s in places[:SENTENCES]]
        invented = dice.choice(_INVENTED).format(topic=task.section_title.rstrip("?").lower())
        if places:
            lines.append(self._kept("invented", invented, "", dice.choice(task.evidence)))
        return "\n\n".join(lines)

    def _changed(
        self, card: EvidenceCard, sentence: str, task: DraftSection, dice: random.Random, pool: list[str]
    ) -> str:
        """One sentence with a change that it allows, the rarer kinds first."""
        order = sorted(["verbatim", "source", *KINDS], key=lambda k: (self._so_far(k), dice.random()))
        if len(pool) < 31:  # the changes draw from it
            pool = (pool * 31)[:31]
        for kind in order:
            if kind == "verbatim":
                return self._kept(kind, sentence, sentence, card)
            if kind == "source":
                others = [c for c in task.evidence if not _says(c.quote, sentence)]
                if others:
                    return self._kept(kind, sentence, sentence, dice.choice(others))
                continue
            text = squeeze(KINDS[kind][1](sentence, dice, pool))
            if text and text != sentence and not (kind == "other" and _says(card.quote, text)):
                if kind == "added" and _says(card.quote, text.removeprefix(sentence.rstrip(". "))):
                    continue
                return self._kept(kind, text, sentence, card)
        return self._kept("verbatim", sentence, sentence, card)

    def _so_far(self, kind: str) -> int:
        return sum(w.kind == kind for w in self.written.values())

    def _kept(self, kind: str, text: str, original: str, card: EvidenceCard) -> str:
        text = text if text.endswith((".", "!", "?", '."', ".”", ".)")) else f"{text}."
        self.written[_key(text)] = Written(kind, text, original, card.quote)
        return f"{text} [{card.number}]"

    def _summary(self, task: SummariseReport) -> str:
        """A sentence of each section, some with a figure changed once more."""
        dice = self._dice(task.question, "summary", *(s.text for s in task.sections))
        out: list[str] = []
        for number, section in enumerate(task.sections):
            found = [x for x in marked_lines(number, section.text) if _usable(x.text)]
            if not found:
                continue
            line = dice.choice(found)
            before = self.written.get(_key(line.text))
            text = KINDS["number"][1](line.text, dice, [])
            if text and before and before.kind in FAITHFUL:
                self.written[_key(text)] = Written("number", text, line.text, before.passage)
                out.append(f"- {text} {line.marks}")
            else:
                out.append(f"- {line.text} {line.marks}")
        return "\n".join(out)

    def _dice(self, *about: str) -> random.Random:
        return random.Random(self.seed * 1_000_003 + zlib.crc32("\n".join(about).encode()))


def _usable(sentence: str) -> bool:
    return 8 <= len(sentence.split()) <= 45 and sentence[:1].isalnum()


def _says(quote: str, sentence: str) -> bool:
    return contained(term_set(sentence), term_set(quote)) > 0.6


def _key(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


@dataclass
class Tally:
    shipped: Counter[str] = field(default_factory=Counter)
    verdicts: dict[str, Counter[Verdict]] = field(default_factory=dict)
    passed: list[tuple[Written, ReportSentence, Report]] = field(default_factory=list)

    def add(self, report: Report, written: dict[str, Written]) -> None:
        for sentence in report.sentences():
            known = written.get(_key(sentence.text))
            kind = known.kind if known else "unknown"
            if known and kind in ("source", "other") and self._stands(report, sentence):
                kind = "true as cited"
            self.shipped[kind] += 1
            self.verdicts.setdefault(kind, Counter())[sentence.verdict] += 1
            if known and kind in (*FALSE, "source", "invented") and sentence.verdict is Verdict.SUPPORTED:
                self.passed.append((known, sentence, report))

    @staticmethod
    def _stands(report: Report, sentence: ReportSentence) -> bool:
        """Whether a sentence that was cited wrongly when it was written stands in what the report cites for it."""
        quotes = [_key(e.quote) for e in report.evidence if e.id in sentence.citations]
        return any(_key(sentence.text) in quote for quote in quotes)


async def honest(args: argparse.Namespace, home: Path, embedder: Embedder, folders: dict[str, Path]) -> None:
    desk = Desk(home / ("hashing" if args.hashing else "index"), embedder, depth=args.depth)
    verdicts: Counter[Verdict] = Counter()
    for folder in folders.values():
        await desk.index(folder)
    for name, question, folder in asked(args, folders):
        report, _ = await desk.report(f"{name}/honest", question, folder)
        verdicts.update(s.verdict for s in report.sentences())
    total = sum(verdicts.values())
    print(f"quoting: {total} sentences, {verdicts[Verdict.SUPPORTED] / max(1, total):.3f} supported;", dict(verdicts))


def asked(args: argparse.Namespace, folders: dict[str, Path]) -> list[tuple[str, str, Path]]:
    chosen = {n: f for n, f in folders.items() if not args.only or args.only == n}
    return [
        (f"{name}{number}", question, folder)
        for name, folder in chosen.items()
        for number, question in enumerate(questions()[name][: args.first], 1)
    ]


async def run(args: argparse.Namespace, home: Path) -> int:
    embedder: Embedder = HashingEmbedder() if args.hashing else MiniLM()
    folders = libraries(args.data, home)
    await honest(args, home, embedder, folders)
    liars: list[Liar] = []

    def make(known: Embedder) -> ModelClient:
        liars.append(Liar(ExtractiveModel(known, in_thread), args.seed))
        return liars[-1]

    tally = Tally()
    desk = Desk(home / ("hashing" if args.hashing else "index"), embedder, make, args.depth)
    statuses: Counter[str] = Counter()
    for name, question, folder in asked(args, folders):
        report, _ = await desk.report(f"{name}/liar", question, folder)
        tally.add(report, liars[0].written)
        statuses[str(report.status)] += 1
    print("lying: reports by status", dict(statuses))
    return told(tally, liars[0].written)


def told(tally: Tally, written: dict[str, Written]) -> int:
    made = Counter(w.kind for w in written.values())
    print(f"{'kind':16} {'written':>8} {'in reports':>10} {'supported':>10} {'partial':>8} {'flagged':>8}")
    for kind in (*FALSE, "source", "true as cited", "invented", *FAITHFUL, "unknown"):
        found = tally.verdicts.get(kind, Counter())
        good, half, all_ = found[Verdict.SUPPORTED], found[Verdict.PARTIAL], tally.shipped[kind]
        print(f"{kind:16} {made[kind]:8} {all_:10} {good:10} {half:8} {all_ - good - half:8}")
    kept = sum(tally.verdicts.get(k, Counter())[Verdict.SUPPORTED] for k in FAITHFUL)
    print(f"faithful ones marked as supported: {kept} of {sum(tally.shipped[k] for k in FAITHFUL)}")
    for known, sentence, report in tally.passed:
        quotes = [e.quote for e in report.evidence if e.id in sentence.citations]
        print(f"\n{known.kind}: {sentence.text}\n   made of: {known.original}\n   cited:   {' | '.join(quotes)[:900]}")
    wrong = sum(tally.verdicts.get(k, Counter())[Verdict.SUPPORTED] for k in MUST_BE_CAUGHT)
    print(f"\n{'FAIL' if wrong else 'PASS'} marked as supported with a change of {', '.join(MUST_BE_CAUGHT)}: {wrong}")
    return wrong


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    home = args.home or Path(tempfile.mkdtemp(prefix="honesty-"))
    sys.exit(1 if asyncio.run(run(args, home.absolute())) else 0)


if __name__ == "__main__":
    main()
