"""The job server of a cluster: commands that run there, beside the actors, and their output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from marg_ray.actors.deploy.connection import look_for, use_token_at_hand
from marg_ray.errors import RuntimeUnavailable

T = TypeVar("T")
ADDRESSES = ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")  # Ray takes these before what it is told
LOOK_AGAIN_S, TRIES = 2.0, 5  # after the connection to a job's output broke


class JobsUnavailable(RuntimeUnavailable):
    """The job server of a cluster does not answer, or did not do what it was asked."""

    def __str__(self) -> str:
        where = f"at {self.address}" if self.address else "of the cluster"
        return f"the job server {where} did not take it: {self.reason}"

    @property
    def hint(self) -> str:
        return "it is part of the dashboard of the head node: give its address, --submit http://HEAD:8265"


@dataclass(frozen=True)
class JobState:
    """`code` is the command's exit code, once there is one."""

    status: str  # PENDING, RUNNING, SUCCEEDED, FAILED, STOPPED
    message: str = ""
    code: int | None = None

    @property
    def over(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED", "STOPPED")


class Jobs:
    """Talks to the job server at `url`."""

    def __init__(self, client: Any, url: str) -> None:
        self._client, self.url = client, url

    @classmethod
    async def at(cls, address: str) -> Jobs:
        """The job server at an address of a dashboard, or of a cluster; "auto": of the environment or this machine.

        Raises:
            JobsUnavailable: it does not answer.
        """
        client = await _ask(address, lambda: _client(address))
        return cls(client, str(client.get_address()))

    async def submit(self, entrypoint: str, *, name: str, folder: Path, env: Mapping[str, str]) -> str:
        """Run a shell command there in a copy of `folder`; the job's name."""
        runtime_env = {"working_dir": str(folder), "env_vars": dict(env)}

        def submit() -> str:
            return str(self._client.submit_job(entrypoint=entrypoint, submission_id=name, runtime_env=runtime_env))

        return await _ask(self.url, submit)

    async def state(self, name: str) -> JobState | None:
        """Where a job stands; None: there is no such job."""

        def look() -> JobState | None:
            try:
                info = self._client.get_job_info(name)
            except RuntimeError as exc:
                if "404" in str(exc) or "does not exist" in str(exc):
                    return None
                raise
            return JobState(str(info.status.value), info.message or "", info.driver_exit_code)

        return await _ask(self.url, look)

    async def lines(self, name: str) -> AsyncIterator[str]:
        """A job's output from its first line, until it is over. A connection that breaks is made again.

        Raises:
            JobsUnavailable: the job server is gone.
        """
        told, tries = 0, 0
        while True:
            number, rest = 0, ""
            try:
                async for chunk in self._client.tail_job_logs(name):
                    *whole, rest = (rest + chunk).split("\n")
                    for line in whole:
                        number += 1
                        if number > told:
                            told, tries = number, 0
                            yield line
            except Exception as exc:
                tries += 1
                if tries >= TRIES:
                    raise JobsUnavailable(self.url, _reason(exc)) from None
            state = await self.state(name)
            if state is None or state.over:
                if rest and number >= told:
                    yield rest
                return
            await asyncio.sleep(LOOK_AGAIN_S)

    async def stop(self, name: str) -> None:
        """End a job."""
        await _ask(self.url, lambda: self._client.stop_job(name))


def _client(address: str) -> Any:
    from ray.job_submission import JobSubmissionClient

    logging.getLogger("ray").setLevel(logging.ERROR)
    if address == "auto":
        use_token_at_hand()
        return JobSubmissionClient()
    look_for(address)
    use_token_at_hand()
    with _without(*ADDRESSES):
        return JobSubmissionClient(address)


@contextlib.contextmanager
def _without(*names: str) -> Iterator[None]:
    aside = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(aside)


async def _ask(address: str, work: Callable[[], T]) -> T:
    """Raises:
    JobsUnavailable: the job server did not answer, or did not do it.
    """
    try:
        return await asyncio.to_thread(work)
    except RuntimeUnavailable as exc:
        raise JobsUnavailable(exc.address, exc.reason) from None
    except Exception as exc:  # Ray raises plain exceptions here
        raise JobsUnavailable("" if address == "auto" else address, _reason(exc)) from None


def _reason(exc: BaseException) -> str:
    return " ".join(str(exc).split())[-300:] or type(exc).__name__
