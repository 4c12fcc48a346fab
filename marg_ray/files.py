"""Files in a folder, local or at an fsspec URL: a reader finds a whole one or none."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Protocol

from marg_ray.errors import UsageError


class Folder(Protocol):
    """Where files lie by name; a name may hold slashes."""

    def size(self, name: str) -> int | None:
        """Bytes of a file; None where there is none."""

    def put(self, name: str, data: bytes) -> None:
        """Store a file, in the place of one that has its name."""

    def get(self, name: str) -> bytes:
        """A file's bytes.

        Raises:
            FileNotFoundError: there is none of this name.
        """


def folder(place: Path | str) -> Folder:
    """The folder at a path, or at a URL that fsspec knows ("s3://bucket/prefix", "memory://", "file:///path").

    Raises:
        UsageError: the URL's protocol is not known, or its package is not installed.
    """
    if isinstance(place, Path) or "://" not in place:
        return LocalFolder(Path(place))
    if place.startswith("file://"):
        return LocalFolder(Path(place.removeprefix("file://")))
    return RemoteFolder(place)


class LocalFolder:
    def __init__(self, root: Path) -> None:
        self.root = root

    def size(self, name: str) -> int | None:
        try:
            return (self.root / name).stat().st_size
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        write_whole(self.root / name, data)

    def get(self, name: str) -> bytes:
        return (self.root / name).read_bytes()


class RemoteFolder:
    """A folder of an object store. A file is written by one request, which such a store carries out whole or not."""

    def __init__(self, url: str) -> None:
        import fsspec  # type: ignore[import-untyped]

        try:
            self._files: Any
            self._files, self._root = fsspec.url_to_fs(url)
        except (ValueError, ImportError) as exc:  # an unknown protocol; s3fs, gcsfs ... are packages of their own
            raise UsageError(f"files cannot be kept at {url.split('://')[0]}://: {exc}", "see store.files") from None

    def size(self, name: str) -> int | None:
        try:
            return int(self._files.info(self._path(name))["size"])
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        self._files.pipe_file(self._path(name), data)

    def get(self, name: str) -> bytes:
        return bytes(self._files.cat_file(self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


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
