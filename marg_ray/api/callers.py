"""Who calls, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from marg_ray.api.refusals import Forbidden, Unauthorized
from marg_ray.kinds import Scope as Scope
from marg_ray.records import Record
from marg_ray.store.protocol import ApiKey


class Caller(Record):
    """`owner` is whose sessions, library, memory and cache entries it may touch: no others, whatever the scope."""

    owner: str
    key_id: str = ""  # empty: no key was needed (loopback)
    scopes: frozenset[Scope] = frozenset(Scope)

    @classmethod
    def with_key(cls, key: ApiKey) -> Caller:
        return cls(owner=key.owner, key_id=key.id, scopes=frozenset(s for s in Scope if s in key.scopes))


async def caller(request: Request) -> Caller:
    """The caller of a request, as the guards found it.

    Raises:
        Unauthorized: none is known.
    """
    found = getattr(request.state, "caller", None)
    if not isinstance(found, Caller):
        raise Unauthorized
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
