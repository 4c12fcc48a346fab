"""A store in memory: the double for tests, held to the same contract as the others."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from marg_ray.budget import larger
from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.messages import Message, ReportReady, SessionStarted, SourceRead, Steered
from marg_ray.records import Limits, Usage
from marg_ray.seams import CallKey
from marg_ray.store.protocol import (
    Account,
    ApiKey,
    CacheCount,
    CacheRow,
    CallRow,
    LogEntry,
    SessionRow,
    ShardRow,
    SnapshotRow,
)
from marg_ray.store.talk import MemoryTalk


@dataclass
class _Cached:
    row: CacheRow
    expires_at: float


class MemoryStore:
    def __init__(self) -> None:
        self._rows: dict[str, SessionRow] = {}
        self._logs: dict[str, list[LogEntry]] = {}
        self._writers: dict[str, list[int]] = {}  # the epoch of each entry
        self._snapshots: dict[str, dict[str, SnapshotRow]] = {}
        self._calls: dict[tuple[str, str], CallRow] = {}
        self._metrics: dict[str, str] = {}
        self._keys: dict[tuple[str, str], tuple[str, str]] = {}
        self._api_keys: dict[str, ApiKey] = {}
        self._tallies: Counter[tuple[str, int]] = Counter()
        self._shards: dict[tuple[str, int], ShardRow] = {}
        self._cache: dict[tuple[str, str], _Cached] = {}
        self.talk = MemoryTalk()

    async def close(self) -> None:
        return None

    # ---- sessions and their logs

    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        now = datetime.now(UTC)
        row = SessionRow(
            id=session_id, owner=owner, question=question, created_at=now, updated_at=now, status="running", seq=0
        )
        if session_id not in self._rows:
            self._rows[session_id] = row
            self._logs[session_id], self._writers[session_id], self._snapshots[session_id] = [], [], {}

    async def take_over(
        self, session_id: str, *, holder: str = "", shard: int = 0, expected_epoch: int | None = None
    ) -> int:
        row = self._row(session_id)
        if expected_epoch is not None and expected_epoch != row.epoch:
            raise StaleEpoch(session_id, expected_epoch, row.epoch)
        self._change(session_id, holder=holder, shard=shard, epoch=row.epoch + 1)
        return row.epoch + 1

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        row = self._row(session_id)
        if row.epoch != epoch:
            raise StaleEpoch(session_id, epoch, row.epoch)
        log, writers = self._logs[session_id], self._writers[session_id]
        if row.seq != expected_seq:
            if row.seq == expected_seq + 1 and writers[-1] == epoch and log[-1].message == message:
                return log[-1]
            raise StoreConflict(session_id, expected_seq, row.seq)
        entry = LogEntry(seq=expected_seq + 1, epoch=epoch, at=datetime.now(UTC), message=message)
        log.append(entry)
        writers.append(epoch)
        self._change(session_id, seq=entry.seq, updated_at=entry.at, status=status)
        self._note(session_id, message)
        return entry

    def _note(self, session_id: str, message: Message) -> None:
        match message:
            case SessionStarted(request=request):
                self._change(session_id, limits=request.limits)
            case Steered(action="raise", limits=Limits() as limits):
                self._change(session_id, limits=self._row(session_id).limits.raised(limits))
            case ReportReady(artefact=artefact):
                self._change(session_id, artefact=artefact)
            case SourceRead(source=source) if source is not None:
                row = SnapshotRow(source_id=source.id, location=source.location, kind=source.kind, title=source.title)
                self._snapshots[session_id].setdefault(source.id, row)
            case _:
                pass

    async def read(self, session_id: str, *, after: int = 0, most: int | None = None) -> list[LogEntry]:
        return self._logs.get(session_id, [])[after:][:most]

    async def session(self, session_id: str) -> SessionRow:
        return self._row(session_id)

    async def sessions(
        self, *, limit: int = 100, status: str = "", holder: str = "", shard: int | None = None, owner: str = ""
    ) -> list[SessionRow]:
        rows = sorted(self._rows.values(), key=lambda r: r.created_at, reverse=True)
        return [
            row
            for row in rows
            if (not status or row.status == status)
            and (not holder or row.holder == holder)
            and (shard is None or row.shard == shard)
            and (not owner or row.owner == owner)
        ][:limit]

    async def session_counts(self) -> dict[str, int]:
        return dict(Counter(row.status for row in self._rows.values()))

    async def fence(self, session_id: str, epoch: int) -> None:
        if epoch and self._row(session_id).epoch != epoch:
            raise StaleEpoch(session_id, epoch, self._row(session_id).epoch)

    async def snapshots(self, session_id: str) -> list[SnapshotRow]:
        return list(self._snapshots.get(session_id, {}).values())

    # ---- paid calls

    async def begin_call(self, call: CallKey, reserved: Usage | None = None) -> CallRow:
        await self._fence_call(call)
        known = self._calls.get((call.session_id, call.key))
        if known is not None and known.status == "settled":
            return known
        begun_at = known.begun_at if known is not None else datetime.now(UTC)
        row = CallRow(call=call, status="begun", reserved=reserved or Usage(), begun_at=begun_at)
        if known is not None:
            died = known.status == "begun"
            if died and call.attempt and known.call.attempt == call.attempt:
                row = known.model_copy(update={"reserved": larger(known.reserved, row.reserved)})
                self._calls[call.session_id, call.key] = row
                return row
            lost = known.lost + known.reserved if died else known.lost
            row = row.model_copy(update={"lost": lost, "begun": known.begun + died})
        self._calls[call.session_id, call.key] = row
        return row

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        await self._fence_call(call)
        began = datetime.now(UTC) - timedelta(seconds=usage.seconds)
        unknown = CallRow(call=call, status="begun", begun_at=began)
        known = self._calls.get((call.session_id, call.key), unknown)
        if known.status != "settled":
            done = {"status": "settled", "result": result, "usage": usage, "reserved": Usage()}
            self._calls[call.session_id, call.key] = known.model_copy(update=done)

    async def release_call(self, call: CallKey) -> None:
        known = self._calls.get((call.session_id, call.key))
        if known is not None and known.status == "begun":
            given_back = known.model_copy(update={"status": "released", "reserved": Usage()})
            self._calls[call.session_id, call.key] = given_back

    async def call(self, session_id: str, key: str) -> CallRow | None:
        return self._calls.get((session_id, key))

    async def calls(self, session_id: str) -> list[CallRow]:
        return [row for (sid, _), row in self._calls.items() if sid == session_id]

    async def account(self, session_id: str) -> Account:
        limits, rows = self._row(session_id).limits, await self.calls(session_id)
        return Account(
            limits=limits,
            spent=sum((row.usage for row in rows), Usage()),
            lost=sum((row.lost for row in rows), Usage()),
        )

    async def _fence_call(self, call: CallKey) -> None:
        if call.session_id in self._rows:
            await self.fence(call.session_id, call.epoch)

    # ---- by key

    async def put_metrics(self, session_id: str, metrics: str) -> None:
        self._metrics[session_id] = metrics

    async def metrics(self, session_id: str) -> str:
        return self._metrics.get(session_id, "")

    async def claim_key(self, owner: str, key: str, body: str, session_id: str) -> tuple[str, str]:
        return self._keys.setdefault((owner, key), (session_id, body))

    async def put_api_key(self, key: ApiKey) -> None:
        self._api_keys.setdefault(key.id, key)

    async def api_key(self, key_id: str) -> ApiKey | None:
        return self._api_keys.get(key_id)

    async def api_keys(self, owner: str = "") -> list[ApiKey]:
        rows = [row for row in self._api_keys.values() if not owner or row.owner == owner]
        return sorted(rows, key=lambda row: (row.created_at, row.id))

    async def revoke_api_key(self, key_id: str) -> bool:
        row = self._api_keys.get(key_id)
        if row is not None and row.revoked_at is None:
            self._api_keys[key_id] = row.model_copy(update={"revoked_at": datetime.now(UTC)})
        return row is not None

    async def touch_api_key(self, key_id: str, at: datetime) -> None:
        if (row := self._api_keys.get(key_id)) is not None:
            self._api_keys[key_id] = row.model_copy(update={"used_at": at})

    async def tally(self, name: str, period: int, since: int) -> dict[int, int]:
        self._tallies[name, period] += 1
        for place in [place for place in self._tallies if place[1] < since]:
            del self._tallies[place]
        return {when: number for (whose, when), number in self._tallies.items() if whose == name}

    async def beat(self, holder: str, shard: int) -> None:
        self._shards[holder, shard] = ShardRow(holder=holder, shard=shard, beat_at=datetime.now(UTC))

    async def shards(self, holder: str = "") -> list[ShardRow]:
        rows = [row for row in self._shards.values() if not holder or row.holder == holder]
        return sorted(rows, key=lambda row: (row.shard, row.holder))

    async def cache_get(self, space: str, key: str) -> CacheRow | None:
        found = self._cache.get((space, key))
        if found is None or found.expires_at <= time.time():
            return None
        found.row = found.row.model_copy(update={"hits": found.row.hits + 1})
        return found.row

    async def cache_put(self, space: str, key: str, value: str, ttl_s: float) -> None:
        old = self._cache.get((space, key))
        row = CacheRow(value=value, stored_at=datetime.now(UTC), hits=old.row.hits if old else 0)
        self._cache[space, key] = _Cached(row, time.time() + ttl_s)

    async def cache_drop(self, space: str = "", *, expired: bool = True) -> int:
        now = time.time()
        gone = [
            place
            for place, found in self._cache.items()
            if space in ("", place[0]) and (not expired or found.expires_at <= now)
        ]
        for place in gone:
            del self._cache[place]
        return len(gone)

    async def cache_counts(self) -> list[CacheCount]:
        entries, hits = Counter[str](), Counter[str]()
        for (space, _), found in self._cache.items():
            entries[space] += 1
            hits[space] += found.row.hits
        return [CacheCount(space=space, entries=entries[space], hits=hits[space]) for space in sorted(entries)]

    # ---- inside

    def _row(self, session_id: str) -> SessionRow:
        if session_id not in self._rows:
            raise SessionNotFound(session_id)
        return self._rows[session_id]

    def _change(self, session_id: str, **changes: object) -> None:
        self._rows[session_id] = self._rows[session_id].model_copy(update=changes)
