"""How a model judges the sentences that words leave open, beside the rules, on public sets that people labelled.

    python -m benchmarks.judge --data PATH --model http://127.0.0.1:8000/v1:NAME [--rows 60] [--record FOLDER]
    python -m benchmarks.judge --data PATH --model replay --record FOLDER

Asked is what a run would ask: claims of one sentence in the middle band, without a complaint, with the windows of their
passages, eight in a call. Printed is balanced accuracy for "supported" of the same claims, by the rules and by the
judge, with the rules where it gave no answer; the 95 % interval of the difference is from 1,000 resamples. With
`--record` answers are kept, and `--model replay` reads them back.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.grounding import balanced
from benchmarks.verification_sets import SETS, Row
from marg_ray.actors.judging import ModelJudge, batches
from marg_ray.grounding.judging import RULED, Asked, Ruling, asked
from marg_ray.grounding.sentences import split_sentences
from marg_ray.grounding.verify import check_sentence, plain_text
from marg_ray.models.client import Call, ModelClient
from marg_ray.models.select import EXTRACTIVE, Choice, build_model
from marg_ray.models.tape import Tape, TapedModel, begin, choice_of
from marg_ray.records import Evidence, Usage, Verdict
from marg_ray.settings import Settings

Pair = tuple[bool, bool, bool]  # what people say, the rules, the judge


@dataclass(frozen=True)
class Open:
    """A claim in the middle band."""

    asked: Asked
    truth: bool
    rules: bool


def middle(rows: list[Row]) -> list[Open]:
    found: list[Open] = []
    for row in rows:
        text = plain_text(row.claim)
        if len(split_sentences(text)) != 1:
            continue
        evidence = [Evidence(id=f"e{n}", source=f"s{n}", quote=t, start=0, end=len(t)) for n, t in enumerate(row.texts)]
        check = check_sentence(text, evidence)
        if check.is_middle:
            one = asked(len(found), text, evidence, check.doubt)
            found.append(Open(one, row.supported, check.verdict is Verdict.SUPPORTED))
    return found


async def judged(model: ModelClient, items: list[Open], name: str) -> tuple[list[Pair], int, Usage, int]:
    """The pairs, how many were answered, what it cost, and the calls that failed."""
    answers: dict[int, Ruling] = {}
    usage, failed = Usage(), 0
    for batch in batches([o.asked for o in items]):
        judge = ModelJudge(model=model, calls=1, call=Call(session_id=f"judge-{name}", task_id="judge"))
        answers.update(await judge(batch))
        usage, failed = usage + judge.usage, failed + any(n.kind == "judge_failed" for n in judge.notes)
    pairs = []
    for one in items:
        ruling = answers.get(one.asked.number)
        said = one.rules if ruling is None else RULED[ruling.opinion][0] is Verdict.SUPPORTED
        pairs.append((one.truth, one.rules, said))
    return pairs, len(answers), usage, failed


def accuracy(pairs: list[Pair], which: int) -> float:
    return balanced([p[which] for p in pairs], [p[0] for p in pairs])


def interval(pairs: list[Pair], rounds: int = 1000) -> tuple[float, float]:
    """95 % of the gain of the judge over the rules."""
    dice = random.Random(1)
    gains = []
    for _ in range(rounds):
        some = [dice.choice(pairs) for _ in pairs]
        gains.append(accuracy(some, 2) - accuracy(some, 1))
    gains.sort()
    return gains[int(0.025 * rounds)], gains[int(0.975 * rounds)]


def model_of(args: argparse.Namespace) -> ModelClient:
    settings = Settings()
    if args.model == "replay":
        tape = Tape(args.record, replays=True)
        return TapedModel(tape, None, name=choice_of(args.record).spec_fast)
    choice = Choice(args.model, args.model, "it is named")
    if args.model == EXTRACTIVE:
        raise SystemExit("the rules judge themselves: name a model")
    model = build_model(choice, settings, extractive_factory=lambda: None, env=os.environ)  # type: ignore[arg-type,return-value]
    if args.record is None:
        return model
    tape = Tape(args.record, replays=False)
    begin(tape, choice)
    return TapedModel(tape, model)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", required=True, help="provider:model, URL:model, or replay")
    parser.add_argument("--rows", type=int, default=60, help="of each set")
    parser.add_argument("--record", type=Path, help="folder that answers are kept in, or read from")
    args = parser.parse_args()
    model = model_of(args)
    every: list[Pair] = []
    spent, unanswered = Usage(), 0
    print(f"{'set':14}{'middle':>7}{'of':>5}{'base':>6}{'rules':>7}{'judge':>7}{'answered':>10}{'failed':>8}")
    for name, read in SETS.items():
        rows = list(read(args.data))
        random.Random(7).shuffle(rows)
        items = middle(rows[: args.rows])
        if not items:
            continue
        pairs, answered, usage, failed = await judged(model, items, name)
        every += pairs
        spent, unanswered = spent + usage, unanswered + len(items) - answered
        base = 100 * sum(p[0] for p in pairs) / len(pairs)
        print(
            f"{name:14}{len(pairs):>7}{min(args.rows, len(rows)):>5}{base:>6.0f}{accuracy(pairs, 1):>7.1f}"
            f"{accuracy(pairs, 2):>7.1f}{answered:>10}{failed:>8}",
            flush=True,
        )
    low, high = interval(every)
    print(
        f"all {len(every)} claims: rules {accuracy(every, 1):.1f}, judge {accuracy(every, 2):.1f} "
        f"(difference {low:+.1f} to {high:+.1f}), {unanswered} without an answer; {spent.calls} calls, "
        f"{spent.tokens_in:,} tokens in, {spent.tokens_out:,} out"
    )
    if (close := getattr(model, "aclose", None)) is not None:
        await close()


if __name__ == "__main__":
    asyncio.run(main())
