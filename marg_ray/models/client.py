"""The model seam: a typed task in, its typed output back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Generic, Literal, Protocol, TypeVar, cast

from pydantic import BaseModel

from marg_ray.records import Note, Record, Role, Usage

OutT = TypeVar("OutT", bound=BaseModel)


class Tier(StrEnum):
    FAST = "fast"  # 8B class: plans, reads, judges
    STRONG = "strong"  # 70B class: writes and critiques


class ModelTask(Record, Generic[OutT]):
    """Something a model is asked to do. Subclasses add the input fields that their prompt template shows.

    `template` names `prompts/<template>.md.j2`; `output` is the type of the answer. A task whose output is
    `FreeText` is answered in Markdown, every other one in JSON of that type's schema; or of the schema of `answer`,
    where a language model is better asked in another form than the output has.
    """

    template: ClassVar[str]
    role: ClassVar[Role]
    tier: ClassVar[Tier]
    output: ClassVar[type[BaseModel]]
    answer: ClassVar[type[BaseModel] | None] = None
    max_tokens: ClassVar[int] = 1024

    @classmethod
    def asked_for(cls) -> type[BaseModel]:
        """The type that a language model answers in."""
        return cls.answer or cls.output

    def understood(self, answer: BaseModel) -> OutT:
        """The output that a language model's answer stands for."""
        return cast(OutT, answer)


@dataclass(frozen=True, kw_only=True)
class Call:
    """For whom a task runs. `on_delta` receives pieces of the answer while somebody watches."""

    session_id: str
    task_id: str
    section: str = ""
    epoch: int = 0  # of the coordinator that handed the task out
    allow: Callable[[Usage], Awaitable[None]] | None = None  # asked before a further try; raises BudgetExceeded
    on_delta: Callable[[str], Awaitable[None]] | None = None


class Try(Record):
    """One model's try at a task, where a tier decides who tries."""

    tier: Literal["fast", "strong", "own"]  # own: its role's model
    model: str
    usage: Usage
    raised: bool = False  # made because what was there before failed its check
    fault: str = ""  # why the answer is not good; empty where it passed


@dataclass(frozen=True, kw_only=True)
class Reply(Generic[OutT]):
    """A model's answer, checked against the task's output type."""

    output: OutT
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    notes: tuple[Note, ...] = ()  # e.g. evidence that did not fit, an answer cut by the output limit
    left_out: tuple[int, ...] = ()  # EvidenceCard.number of the cards that no prompt contained
    tries: tuple[Try, ...] = ()  # in order; none where there are no tiers


class ModelClient(Protocol):
    """One call, one reply. Metering, fallback and recording are wrappers with this same face."""

    @property
    def name(self) -> str:
        """What is written on the report, e.g. `openai:gpt-5` or `extractive`."""

    async def run(self, task: ModelTask[OutT], call: Call) -> Reply[OutT]:
        """Carry out `task`.

        Raises:
            ModelUnavailable: no endpoint answered after all retries.
            ParseError: it answered, but three times not in the form that was asked for.
            OutputCut: the answer hit the output limit, twice.
            ContextOverflow: the input does not fit, even when packed as small as it goes.
        """
