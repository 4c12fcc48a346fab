"""Doubles for the model seam: one replays a script, one computes sensible answers from each task's input."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from marg_ray.models import canned
from marg_ray.models.client import Call, ModelTask, OutT, Reply
from marg_ray.models.tasks import (
    AnalyseEvidence,
    AnswerQuestion,
    DraftSection,
    ExtractClaims,
    FreeText,
    JudgeClaims,
    MakePlan,
    PlanTurn,
    ReviewReport,
    RewriteQuery,
    SummariseReport,
)
from marg_ray.records import Usage

Task = ModelTask[Any]
Step = BaseModel | Reply[Any] | BaseException | Callable[[Task], BaseModel]
Script = Iterable[Step] | Mapping[type[Task], Iterable[Step]]
Hook = Callable[[Any, Any], BaseModel]


class ScriptedModel:
    """Replays a script and keeps what it was asked. Running dry is a test failure.

    The script is a list (answers in order, whatever is asked) or a mapping from task type to a list. A step
    is an output, a whole `Reply`, an exception to raise, or a function of the task.
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        self.name = name
        self.calls: list[tuple[Task, Call]] = []
        self._any: deque[Step] = deque()
        self._by_type: dict[type[Task], deque[Step]] = {}
        if isinstance(script, Mapping):
            self._by_type = {kind: deque(steps) for kind, steps in script.items()}
        else:
            self._any = deque(script)

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        self.calls.append((task, call))
        steps = self._by_type.get(type(task), self._any)
        assert steps, f"call {len(self.calls)} ({type(task).__name__}) is not in the script"
        step = steps.popleft()
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, Reply):
            return cast("Reply[OutT]", step)
        output = step if isinstance(step, BaseModel) else step(task)
        assert isinstance(output, task.output), (
            f"{type(task).__name__} is answered with {task.output.__name__}, not {type(output).__name__}"
        )
        return Reply(output=cast(OutT, output), usage=Usage(calls=1), model=self.name)

    def assert_finished(self) -> None:
        left = [*self._any, *(s for steps in self._by_type.values() for s in steps)]
        assert not left, f"{len(left)} scripted answers were never asked for; first: {left[0]!r}"

    def asked(self, kind: type[Task]) -> list[Task]:
        """The tasks of one type, in the order they came."""
        return [task for task, _ in self.calls if type(task) is kind]


class Misbehave:
    """Faults for `CannedModel`: each is a hook that spoils a good answer the way real models do."""

    @staticmethod
    def unknown_citation(task: DraftSection, good: FreeText) -> FreeText:
        return FreeText(markdown=f"{good.markdown}\n\nThis much is certain [{len(task.evidence) + 90}].")

    @staticmethod
    def uncited_claim(task: DraftSection, good: FreeText) -> FreeText:
        return FreeText(markdown=f"{good.markdown}\n\nExactly 987,654 visitors came in 1871.")

    @staticmethod
    def wrong_number(task: DraftSection, good: FreeText) -> FreeText:
        first = task.evidence[0].number if task.evidence else 1
        return FreeText(markdown=f"{good.markdown}\n\nThe total was 987,654 in 1871 [{first}].")

    @staticmethod
    def typed_url(task: DraftSection, good: FreeText) -> FreeText:
        return FreeText(markdown=f"{good.markdown}\n\nSee https://invented.example/page (Smith, 2020).")

    @staticmethod
    def cut(task: DraftSection, good: FreeText) -> FreeText:
        return FreeText(markdown=good.markdown[: len(good.markdown) * 2 // 3], incomplete=True)


class CannedModel:
    """Answers every task from its own input, so that a whole run works without a model.

    `hooks` maps a task type to a function of (task, good answer) that returns what is answered instead, or
    raises. `before` is awaited at the start of every call: tests hold calls there and let them go.
    """

    def __init__(
        self,
        hooks: Mapping[type[Task], Hook] | None = None,
        *,
        before: Callable[[Task, Call], Awaitable[None]] | None = None,
        name: str = "canned",
    ) -> None:
        self.name = name
        self.calls: list[tuple[Task, Call]] = []
        self._hooks = dict(hooks or {})
        self._before = before

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        self.calls.append((task, call))
        if self._before is not None:
            await self._before(task, call)
        output = answer(task)
        if (hook := self._hooks.get(type(task))) is not None:
            output = hook(task, output)
        text = output.model_dump_json()
        if call.on_delta is not None and isinstance(output, FreeText):
            await call.on_delta(output.markdown)
        usage = Usage(calls=1, tokens_in=len(task.model_dump_json()) // 4, tokens_out=len(text) // 4)
        return Reply(output=cast(OutT, output), usage=usage, model=self.name)

    def asked(self, kind: type[Task]) -> list[Task]:
        """The tasks of one type, in the order they came."""
        return [task for task, _ in self.calls if type(task) is kind]

    def count(self) -> dict[str, int]:
        """How often each type was asked."""
        counts: dict[str, int] = defaultdict(int)
        for task, _ in self.calls:
            counts[type(task).__name__] += 1
        return dict(counts)


def answer(task: Task) -> BaseModel:
    """A good answer to `task`."""
    match task:
        case MakePlan():
            return canned.plan(task)
        case RewriteQuery():
            return canned.rewritten(task)
        case ExtractClaims():
            return canned.claims(task)
        case DraftSection():
            return canned.section(task)
        case SummariseReport():
            return canned.summary(task)
        case AnalyseEvidence():
            return canned.analysis(task)
        case JudgeClaims():
            return canned.judgement(task)
        case ReviewReport():
            return canned.review(task)
        case PlanTurn():
            return canned.turn(task)
        case AnswerQuestion():
            return canned.answered(task)
        case _:
            raise AssertionError(f"there is no canned answer to {type(task).__name__}")
