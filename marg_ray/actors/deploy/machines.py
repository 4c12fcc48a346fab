"""A Ray of several machines: actors share no disk by themselves.

The log is in a database, snapshots and reports lie in a folder or a bucket, a library's index and the vectors under
`MARG_HOME`. On one machine all of that is one folder. On several, `store.url` has to name a database server, and the
folders have to be the same everywhere; whoever attaches is told what is not so.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from marg_ray.actors.deploy.placement import Node

if TYPE_CHECKING:
    from marg_ray.settings import Settings

log = logging.getLogger(__name__)

SEEN_WITHIN_S = 60.0  # by all machines


def hosts(nodes: Iterable[Node]) -> set[str]:
    return {node.host for node in nodes}


def is_file(url: str) -> bool:
    """Whether the database is a file of one machine: empty stands for the one in `MARG_HOME`."""
    return not url or url.startswith("sqlite")


def stays_together(settings: Settings, nodes: Sequence[Node]) -> bool:
    """Whether every actor has to be on the machine that the database's file is on."""
    return is_file(settings.store.url) and (settings.runtime.autoscaled or len(hosts(nodes)) > 1)


def together_warning(settings: Settings) -> str:
    from marg_ray.actors.assembly import Places

    return (
        "this Ray has several machines, or may have, and the sessions are kept in a file of this one "
        f"({Places.of(settings).store_url}): actors without a place of their own stay here. To use the others, set "
        "MARG_STORE__URL to a PostgreSQL database and MARG_STORE__FILES to a bucket or a folder that all machines share"
    )


def shared_folders(settings: Settings) -> list[Path]:
    """The folders that have to be the same on every machine."""
    files = settings.store.files
    if not files or "://" in files:
        return [settings.home]
    return [settings.home, Path(files).expanduser()]


def unshared(folders: Sequence[Path], nodes: Sequence[Node], here: str) -> dict[Path, list[str]]:
    """Folders that other machines than the one of the node `here` do not have, with those machines.

    A file is put into each and looked for from every machine. One that does not answer in time is not counted.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    mine = {node.host for node in nodes if node.id == here}
    others = {node.host: node.id for node in nodes if node.host not in mine}
    marks = [folder / f".seen-{uuid.uuid4().hex}" for folder in folders]
    look = ray.remote(num_cpus=0, max_retries=0)(_there)
    try:
        for mark in marks:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        asked = {
            look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id, soft=False)).remote(marks): host
            for host, id in others.items()
        }
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=SEEN_WITHIN_S) if asked else ([], [])
        answers = [(asked[ref], ray.get(ref)) for ref in ready]
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)
    found = {folder: sorted(host for host, seen in answers if not seen[n]) for n, folder in enumerate(folders)}
    return {folder: missing for folder, missing in found.items() if missing}


def _there(marks: Sequence[Path]) -> list[bool]:
    return [mark.exists() for mark in marks]


def say_unshared(settings: Settings, nodes: Sequence[Node], here: str) -> None:
    """Warn of folders that not all machines have."""
    try:
        found = unshared(shared_folders(settings), nodes, here)
    except Exception as exc:  # a node left, Ray is going down, the folder cannot be written: other errors tell of it
        log.debug("whether folders are shared cannot be seen: %s", exc)
        return
    for folder, missing in found.items():
        what = "snapshots, reports and library indexes" if folder == settings.home else "snapshots and reports"
        if folder == settings.home and settings.store.files:
            what = "library indexes"
        log.warning("%s is not the same folder on %s: %s are not found there", folder, ", ".join(missing), what)
