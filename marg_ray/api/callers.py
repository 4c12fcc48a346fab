"""Who calls, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

from fastapi import Depends, Request

from marg_ray.api.refusals import Forbidden
from marg_ray.records import Record


class Scope(StrEnum):
    READ = "read"  # sessions, reports, library lists
    RESEARCH = "research"  # start, decide, steer, cancel, ask
    LIBRARY = "library"  # add and remove documents
    ADMIN = "admin"  # figures over all owners


class Caller(Record):
    """`owner` is whose sessions, library, memory and cache entries it may touch: no others, whatever the scope."""

    owner: str
    key_id: str = ""  # empty: no key was needed (loopback)
    scopes: frozenset[Scope] = frozenset(Scope)


async def caller(request: Request) -> Caller:
    """The caller of a request, as the middleware found it.

    Raises:
        Unauthorized: no key, or one that is not known.
    """
    found: Caller = request.state.caller
    return found


Called = Annotated[Caller, Depends(caller)]


def needs(scope: Scope) -> Callable[[Caller], Awaitable[Caller]]:
    """For routes: `Depends(needs(Scope.RESEARCH))`; gives the caller.

    Raises:
        Forbidden: the caller's key has not got the scope.
    """

    async def check(who: Called) -> Caller:
        if scope not in who.scopes:
            raise Forbidden(scope.value)
        return who

    return check
