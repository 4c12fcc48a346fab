"""A report's title as the name of a file, on every system and in every download."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

from marg_ray.text import one_line

MAX_BYTES = 255  # of a name, on every file system in use
FALLBACK = "report"
_UNSAFE = re.compile(r"[/\\:*?\"<>|%$`;&~]+")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufe00-\ufe0f]")
_RESERVED = re.compile(r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?:\.|$)", re.IGNORECASE)


def safe_name(title: str, ending: str, mark: str = "") -> str:
    """A name for a file about `title`: no path, nothing a shell or system gives a meaning, at most 255 bytes.

    `ending` is the file's, with its dot. `mark` goes in front of it and survives any cutting.
    """
    stem = _INVISIBLE.sub("", one_line(title))
    stem = "".join(c for c in unicodedata.normalize("NFC", stem) if unicodedata.category(c)[0] != "C")
    stem = re.sub(r"\s+", " ", _UNSAFE.sub(" ", stem)).strip(" .-_'")
    if _RESERVED.match(stem):
        stem = f"{FALLBACK} {stem}"
    room = MAX_BYTES - len((mark + ending).encode())
    return (_cut(stem, room) or FALLBACK) + mark + ending


def unique_name(title: str, ending: str, taken: Collection[str]) -> str:
    """A safe name that none of `taken` equals, also where letters' case makes no difference."""
    used = {_folded(name) for name in taken}
    name, number = safe_name(title, ending), 1
    while _folded(name) in used:
        number += 1
        name = safe_name(title, ending, f" ({number})")
    return name


def reserve(folder: Path, title: str, ending: str) -> Path:
    """Create an empty file for `title` in `folder` under a name of its own; nothing is overwritten.

    Where the locale's file names know no other letters, they are ASCII.
    """
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        path = folder / unique_name(title, ending, os.listdir(folder))
        try:
            os.fsencode(path)
        except UnicodeEncodeError:
            path = folder / unique_name(_ascii(title), ending, os.listdir(folder))
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            continue
        return path


def content_disposition(name: str) -> str:
    """The header value that offers a download as `name` (RFC 6266): for old clients in ASCII, for others exactly."""
    name = one_line(name)
    stem, ending = (_ascii(part) for part in os.path.splitext(name))
    plain = (stem.strip("_. ") or FALLBACK) + ending
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _ascii(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^\w .()+,=@#!-]", "_", plain)


def _cut(text: str, room: int) -> str:
    """As many whole letters as fit, with the marks that belong to them."""
    data = text.encode()
    if len(data) <= room:
        return text
    cut = len(data[:room].decode("utf-8", "ignore"))
    while cut and (unicodedata.combining(text[cut]) or text[cut - 1] == "\u200d" or text[cut] == "\u200d"):
        cut -= 1
    return text[:cut].rstrip(" .")


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
