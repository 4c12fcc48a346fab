from __future__ import annotations

from tests.postgres import postgres as postgres
