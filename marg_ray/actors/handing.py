"""Handing a task out until it is answered: to whoever is there, again where nobody answers."""

from __future__ import annotations

import asyncio
import logging

from marg_ray.actors.protocol import Dispatch
from marg_ray.errors import MargError, RuntimeUnavailable, StaleEpoch, StoreUnavailable
from marg_ray.messages import Message, TaskFailed
from marg_ray.tasks import Task
from marg_ray.telemetry import events

log = logging.getLogger(__name__)

HANDED_OUT = 2  # how often a task that does not answer is handed out before it counts as failed
DIED_TIMES = 30  # how often a task is handed out whose agent or worker died
PAUSE_S = 2.0  # at most, before such a task is handed out again


async def answer_of(dispatch: Dispatch, task: Task, lease_s: float) -> Message:
    """What was said to `task`; an error becomes a fact too. No answer within `lease_s` seconds counts as none.

    Raises:
        StaleEpoch: the ledger says that another coordinator has the session.
    """
    silent = died = 0
    while True:
        try:
            return await asyncio.wait_for(dispatch(task), lease_s)
        except TimeoutError:
            silent += 1
            if silent >= HANDED_OUT:
                return failure(task, TimeoutError(f"no answer within {lease_s:g} s, {HANDED_OUT} times"))
            events.handed_out_again(task, "silent", silent)
            log.warning("no answer to %s within %g s: handed out again", task.id, lease_s)
        except (RuntimeUnavailable, StoreUnavailable) as exc:  # whoever had it died, or the store is away
            died += 1
            if died >= DIED_TIMES:
                return failure(task, exc)
            events.handed_out_again(task, "died", died)
            await asyncio.sleep(min(PAUSE_S, 0.1 * 2**died))
        except StaleEpoch:
            raise
        except Exception as exc:  # whatever an agent raises becomes a fact; what follows is decided by `apply`
            return failure(task, exc)


def failure(task: Task, exc: Exception) -> TaskFailed:
    """An exception as a fact."""
    known = isinstance(exc, MargError)
    if not known:
        log.error("%s crashed", task.id, exc_info=exc)
    return TaskFailed(
        task_id=task.id,
        role=task.role,
        stage=task.kind,
        section=task.section,
        target=task.target,
        error=type(exc).__name__,
        detail=str(exc) if known else f"{type(exc).__name__}: {str(exc)[:300]}",
        exit_code=exc.exit_code if isinstance(exc, MargError) else 1,
    )
