"""Finished things (reports as JSON) in a folder, named by their SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from marg_ray.errors import SessionNotFound, Unreadable
from marg_ray.files import folder


class Artefacts:
    """Content-addressed texts in a local folder, or at an fsspec URL. A file is whole or absent."""

    def __init__(self, root: Path | str) -> None:
        self._files = folder(root)

    def put(self, text: str) -> str:
        """Store a text; return its id."""
        data = text.encode("utf-8")
        name = hashlib.sha256(data).hexdigest()
        if self._files.size(f"{name}.json") != len(data):  # absent, or cut off by a full disk
            self._files.put(f"{name}.json", data)
        return name

    def get(self, name: str) -> str:
        """The text stored under `name`.

        Raises:
            SessionNotFound: nothing is stored there.
            Unreadable: what is stored there is not what was: the file is damaged.
        """
        try:
            data = self._files.get(f"{name}.json")
        except (FileNotFoundError, ValueError):  # a name with a NUL is nobody's
            raise SessionNotFound(name) from None
        if hashlib.sha256(data).hexdigest() != name:
            raise Unreadable(f"{name}.json", "damaged, its content has another SHA-256 than its name says")
        return data.decode("utf-8")
