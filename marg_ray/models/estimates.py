"""What a call will use: the most it may, for money, and what such calls did use, for tokens."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from marg_ray.grounding.snapshots import Document
from marg_ray.models.client import Call, ModelClient, ModelTask
from marg_ray.models.prompting import estimate_tokens
from marg_ray.records import Usage

TEMPLATE_TOKENS = 700  # of a prompt's fixed text, for the estimate
MESSAGE_TOKENS = 64  # at most what a server adds around a message


class Estimate(Protocol):
    """What one try of a task uses; `text` is its `asked`, where that was made already."""

    def __call__(self, task: ModelTask[Any], text: str = "", /) -> Usage: ...


@runtime_checkable
class Quoting(Protocol):
    """A model that knows what a task will cost."""

    async def quote(self, task: ModelTask[Any], call: Call) -> Usage:
        """The first try of `task`: its tokens as estimated, with the longest answer; its cost at most."""


def estimate(task: ModelTask[Any], text: str = "") -> Usage:
    """About what one try of `task` uses at most, for a model that does not quote. `text` is `asked`, if known."""
    tokens_in = estimate_tokens(text or asked(task)) + TEMPLATE_TOKENS
    return Usage(calls=1, tokens_in=tokens_in, tokens_out=task.max_tokens)


def free(_: ModelTask[Any], text: str = "") -> Usage:
    """The estimate for a model that costs nothing."""
    return Usage()


async def quote(
    model: ModelClient, task: ModelTask[Any], call: Call, otherwise: Estimate = estimate, text: str = ""
) -> Usage:
    """What the first try of `task` is to reserve, as the model says itself where it can."""
    return await model.quote(task, call) if isinstance(model, Quoting) else otherwise(task, text)


def asked(task: ModelTask[Any]) -> str:
    """The task's fields as JSON text; a whole document is named by its source id."""
    documents = {name for name in type(task).model_fields if isinstance(getattr(task, name), Document)}
    try:
        fields = task.model_dump_json(exclude=documents)
    except ValueError:  # half of a surrogate pair, which that writer does not know
        fields = json.dumps(task.model_dump(mode="json", exclude=documents), ensure_ascii=False)
    return fields + "".join(f' {name}="{getattr(task, name).source_id}"' for name in sorted(documents))


def most_tokens(texts: Iterable[str]) -> int:
    """An upper bound of the tokens of messages: no tokenizer makes more than one of a byte of UTF-8."""
    return sum(MESSAGE_TOKENS + len(text.encode("utf-8", "surrogatepass")) for text in texts)


def beyond(needed: Usage, reserved: Usage) -> Usage:
    """What of `needed` is not reserved yet."""
    return Usage(**{n: max(type(v)(0), v - getattr(reserved, n)) for n, v in needed})


@contextmanager
def carrying(spent: Usage) -> Iterator[None]:
    """Adds what was spent before to the `spent` of an error that passes."""
    try:
        yield
    except BaseException as exc:
        exc.spent = (getattr(exc, "spent", None) or Usage()) + spent  # type: ignore[attr-defined]
        raise


class Allowance:
    """What a call has reserved so far; asks for more before a further try needs it.

    `needed` counts everything from the call's beginning: what its tries have used, and the most the next one may.
    """

    def __init__(self, reserved: Usage, allow: Callable[[Usage], Awaitable[None]] | None) -> None:
        self._reserved, self._allow = reserved, allow

    async def need(self, needed: Usage) -> None:
        """See that `needed` is reserved.

        Raises:
            BudgetExceeded: the session's limits leave no room for it.
        """
        more = beyond(needed, self._reserved)
        if self._allow is None or more == Usage():
            return
        await self._allow(more)
        self._reserved += more


class Calibration:
    """How many of the estimated tokens calls really used, per model and kind of task: the ninth of ten of the last.

    Only tokens are calibrated. Money is reserved at its upper bound, so that no error of an estimate can lead beyond
    a session's money limit.
    """

    LEAST, KEPT, QUANTILE = 3, 50, 0.9

    def __init__(self) -> None:
        self._ratios: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=self.KEPT))

    def expected(self, model: str, kind: str, estimated: Usage) -> Usage:
        """The estimate with the tokens that are to be expected; as it is until enough calls were seen."""
        seen = self._ratios.get((model, kind), ())
        if len(seen) < self.LEAST:
            return estimated
        ratio = sorted(seen)[min(len(seen) - 1, int(self.QUANTILE * len(seen)))]
        tokens = {"tokens_in": round(estimated.tokens_in * ratio), "tokens_out": round(estimated.tokens_out * ratio)}
        return estimated.model_copy(update=tokens)

    def saw(self, model: str, kind: str, estimated: Usage, used: Usage) -> None:
        """A call that was estimated so used that, in `used.calls` tries."""
        if (tokens := estimated.tokens_in + estimated.tokens_out) and used.calls:
            ratio = (used.tokens_in + used.tokens_out) / (tokens * used.calls)
            self._ratios[model, kind].append(ratio)
