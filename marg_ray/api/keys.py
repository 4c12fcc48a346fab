"""API keys: how they are made, and how the one that a request brings is known again.

A key is `marg_<id>_<secret>`. The secret is 256 random bits, and the store has its SHA-256. A slow, salted hash is for
secrets that people think up: here there is nothing to guess, and it would cost every request tens of milliseconds.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from marg_ray.errors import MargError, UsageError
from marg_ray.kinds import Scope
from marg_ray.masking import KEY
from marg_ray.store.protocol import ApiKey

log = logging.getLogger(__name__)

KNOWN_S = 5.0  # how long the store is not asked again, and so how long a revoked key may live on
USED_EVERY = timedelta(hours=1)  # so exactly it is kept when a key was last used
MOST = 10_000  # keys that are remembered
MAX_NAME = 200
ALL_BUT_ADMIN = (Scope.READ, Scope.RESEARCH, Scope.LIBRARY)


class KeyStore(Protocol):
    """The part of a `Store` that keys stand on."""

    async def api_key(self, key_id: str) -> ApiKey | None: ...

    async def touch_api_key(self, key_id: str, at: datetime) -> None: ...


def new_key(
    owner: str, scopes: Iterable[str] = ALL_BUT_ADMIN, *, name: str = "", expires_at: datetime | None = None
) -> tuple[str, ApiKey]:
    """A key's text, which is seen this once, and what the store keeps of it.

    Raises:
        UsageError: the owner or the name is empty, too long or not printable, a scope is not known, or the key would
            be over already.
    """
    now = datetime.now(UTC)
    given = tuple(dict.fromkeys(scopes))
    unknown = [scope for scope in given if scope not in set(Scope)]
    if unknown or not given:
        what = f"there is no scope {unknown[0]!r}" if unknown else "a key needs a scope"
        raise UsageError(what, f"the scopes are {', '.join(Scope)}")
    if expires_at is not None and expires_at <= now:
        raise UsageError("the key would be over already", "give a moment to come")
    secret, key_id = secrets.token_hex(32), secrets.token_hex(6)
    key = ApiKey(
        id=key_id,
        owner=_name("owner", owner, needed=True),
        name=_name("name", name),
        scopes=given,
        digest=digest(secret),
        created_at=now,
        expires_at=expires_at,
    )
    return f"marg_{key_id}_{secret}", key


def _name(what: str, text: str, *, needed: bool = False) -> str:
    name = " ".join(unicodedata.normalize("NFC", text).split())
    if needed and not name:
        raise UsageError(f"a key needs an {what}", "whose sessions, documents and reports it is for")
    if len(name) > MAX_NAME or any(unicodedata.category(c)[0] == "C" for c in name):
        raise UsageError(f"the {what} is not one line of up to {MAX_NAME} printable letters")
    return name


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def is_good(key: ApiKey, now: datetime) -> bool:
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


class KeyRing:
    """The keys of those who ask, each looked up once in a few seconds."""

    def __init__(self, store: KeyStore, *, known_s: float = KNOWN_S, clock: Callable[[], float] = time.monotonic):
        self.known_s = known_s
        self._store, self._clock = store, clock
        self._known: OrderedDict[str, tuple[ApiKey | None, float]] = OrderedDict()

    async def find(self, text: str) -> ApiKey | None:
        """The key, if it is one of ours, neither revoked nor over.

        Raises:
            StoreUnavailable: nobody can say.
        """
        found = KEY.fullmatch(text)
        if found is None:
            return None
        key = await self._look_up(found[1])
        same = hmac.compare_digest(digest(found[2]), key.digest if key is not None else digest(""))
        return key if key is not None and same and is_good(key, datetime.now(UTC)) else None

    async def still_good(self, key_id: str) -> bool:
        """Whether a key that was found before has not ended meanwhile."""
        key = await self._look_up(key_id)
        return key is not None and is_good(key, datetime.now(UTC))

    async def _look_up(self, key_id: str) -> ApiKey | None:
        key, until = self._known.get(key_id, (None, 0.0))
        if self._clock() < until:
            return key
        key = await self._store.api_key(key_id)
        if key is not None:
            key = await self._used(key)
        self._known[key_id] = key, self._clock() + self.known_s
        self._known.move_to_end(key_id)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return key

    async def _used(self, key: ApiKey) -> ApiKey:
        now = datetime.now(UTC)
        if not is_good(key, now) or (key.used_at is not None and now - key.used_at < USED_EVERY):
            return key
        try:
            await self._store.touch_api_key(key.id, now)
        except MargError as exc:
            log.warning("when the key %s was used could not be noted: %s", key.id, exc)
        return key.model_copy(update={"used_at": now})
