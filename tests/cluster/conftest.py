from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marg_ray.client import Marg
from marg_ray.settings import load

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "examples" / "library"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One state folder per module, so that the example library is indexed once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
async def marg(home: Path) -> AsyncIterator[Marg]:
    """A real Ray with every actor, without model or network."""
    async with Marg(load(home=home, model="extractive"), offline=True) as started:
        yield started
