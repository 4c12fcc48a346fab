"""Finished things (reports as JSON) in a folder, named by their SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from marg_ray.errors import SessionNotFound
from marg_ray.files import write_whole


class Artefacts:
    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, text: str) -> str:
        """Store a text; return its id. A file is whole or absent."""
        data = text.encode("utf-8")
        name = hashlib.sha256(data).hexdigest()
        path = self.root / f"{name}.json"
        if not path.exists():
            write_whole(path, data)
        return name

    def get(self, name: str) -> str:
        """The text stored under `name`.

        Raises:
            SessionNotFound: nothing is stored there.
        """
        try:
            return (self.root / f"{name}.json").read_bytes().decode("utf-8")
        except (FileNotFoundError, ValueError):
            raise SessionNotFound(name) from None
