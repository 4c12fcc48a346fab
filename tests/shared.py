"""Finds the failure cases and data sets that lie beside the project, where they do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("MARG_SHARED") or ROOT.parent / "shared")
CASES = SHARED / "cases" / "files"
DATA = SHARED / "data"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the cases and data sets are not beside the project")


def case_file(case: str, name: str) -> Path:
    """One input of a failure case; skips the calling test where the cases are not at hand."""
    path = CASES / case / name
    if not path.exists():
        pytest.skip(f"case file {case}/{name} is not at hand")
    return path


def case_lines(case: str, name: str) -> list[dict[str, Any]]:
    """The objects of a JSON-lines case file."""
    return [json.loads(line) for line in case_file(case, name).read_text("utf-8").splitlines() if line.strip()]
