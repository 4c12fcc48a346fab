"""A store in memory: the double for tests, held to the same contract as the others."""

from __future__ import annotations

from datetime import UTC, datetime

from marg_ray.errors import SessionNotFound, StaleEpoch, StoreConflict
from marg_ray.messages import Message, ReportReady
from marg_ray.records import Usage
from marg_ray.seams import CallKey
from marg_ray.store.protocol import CallRow, LogEntry, SessionRow


class MemoryStore:
    def __init__(self) -> None:
        self._rows: dict[str, SessionRow] = {}
        self._epochs: dict[str, int] = {}
        self._logs: dict[str, list[LogEntry]] = {}
        self._calls: dict[tuple[str, str], CallRow] = {}

    async def create(self, session_id: str, *, owner: str, question: str) -> None:
        now = datetime.now(UTC)
        row = SessionRow(
            id=session_id, owner=owner, question=question, created_at=now, updated_at=now, status="running", seq=0
        )
        if session_id not in self._rows:
            self._rows[session_id], self._epochs[session_id], self._logs[session_id] = row, 0, []

    async def take_over(self, session_id: str, *, holder: str = "") -> int:
        row = await self.session(session_id)
        self._rows[session_id] = row.model_copy(update={"holder": holder})
        self._epochs[session_id] += 1
        return self._epochs[session_id]

    async def append(
        self, session_id: str, message: Message, *, expected_seq: int, epoch: int, status: str
    ) -> LogEntry:
        row = await self.session(session_id)
        if self._epochs[session_id] != epoch:
            raise StaleEpoch(session_id, epoch, self._epochs[session_id])
        if row.seq != expected_seq:
            raise StoreConflict(session_id, expected_seq, row.seq)
        entry = LogEntry(seq=expected_seq + 1, at=datetime.now(UTC), message=message)
        artefact = message.artefact if isinstance(message, ReportReady) else row.artefact
        changes = {"seq": entry.seq, "updated_at": entry.at, "status": status, "artefact": artefact}
        self._rows[session_id] = row.model_copy(update=changes)
        self._logs[session_id].append(entry)
        return entry

    async def read(self, session_id: str, *, after: int = 0) -> list[LogEntry]:
        return self._logs.get(session_id, [])[after:]

    async def session(self, session_id: str) -> SessionRow:
        if session_id not in self._rows:
            raise SessionNotFound(session_id)
        return self._rows[session_id]

    async def sessions(self, *, limit: int = 100, status: str = "", holder: str = "") -> list[SessionRow]:
        rows = sorted(self._rows.values(), key=lambda r: r.created_at, reverse=True)
        return [r for r in rows if (not status or r.status == status) and (not holder or r.holder == holder)][:limit]

    async def begin_call(self, call: CallKey) -> CallRow:
        known = self._calls.get((call.session_id, call.key))
        if known is None:
            known = CallRow(call=call, status="begun")
        elif known.status == "begun":
            known = known.model_copy(update={"begun": known.begun + 1})
        self._calls[call.session_id, call.key] = known
        return known

    async def settle_call(self, call: CallKey, result: str, usage: Usage) -> None:
        known = self._calls.get((call.session_id, call.key))
        if known is not None and known.status == "begun":
            settled = known.model_copy(update={"status": "settled", "result": result, "usage": usage})
            self._calls[call.session_id, call.key] = settled

    async def calls(self, session_id: str) -> list[CallRow]:
        return [row for (sid, _), row in self._calls.items() if sid == session_id]

    async def close(self) -> None:
        return None
