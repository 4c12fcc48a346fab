"""Writing files so that a reader finds a whole one or none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write `data` beside `path` and move it into place; the folder is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(new, path)
    except BaseException:
        Path(new).unlink(missing_ok=True)
        raise
