"""Attaching to a Ray, or starting one on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves the machine unasked
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray

from marg_ray.errors import RuntimeUnavailable

log = logging.getLogger(__name__)


def connect(address: str, namespace: str) -> None:
    """Attach to the Ray at `address`, or start one on this machine where none is named.

    Raises:
        RuntimeUnavailable: it does not answer, or did not start.
    """
    if ray.is_initialized():
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    _silence_raylet()
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": logging.ERROR}
    if address:
        look_for(address)
        use_token_at_hand()
        options["address"] = address
    else:
        # A process that parses and checks has loaded its libraries: Ray would end it after a second without work.
        os.environ.setdefault("RAY_idle_worker_killing_time_threshold_ms", "600000")
        os.environ.setdefault("RAY_worker_niceness", "0")  # a command's own work, not a batch queue's
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": 256 * 2**20}
    for tries_left in (0,) if address else (1, 0):  # on a busy machine a start may run out of its own time
        try:
            ray.init(**options)
            return
        except Exception as exc:  # Ray raises plain exceptions here
            ray.shutdown()
            if not tries_left:
                raise RuntimeUnavailable(address, " ".join(str(exc).split())[-300:]) from None


def address_here() -> str:
    """Where other processes of this machine reach the Ray that this one is connected to."""
    return str(ray.get_runtime_context().gcs_address)


def look_for(address: str) -> None:
    """See at once whether anything listens there: Ray itself tries for more than a minute."""
    host, _, port = address.rpartition("://")[2].partition(":")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as exc:
            raise RuntimeUnavailable(address, exc.strerror or str(exc)) from None


def use_token_at_hand() -> None:
    """Authenticate with the machine's token where there is one: Ray looks for it by itself only at "auto"."""
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private.authentication import authentication_token_setup as setup

        setup.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _silence_raylet() -> None:
    """Keep the remarks of Ray's node (many processes were started, a task failed) off standard output, which is ours.

    They go to this module's log; what concerns a session is told by our own errors. Ray has no public switch.
    """

    def to_log(data: dict[str, Any], ignore_prefix: bool = False) -> None:
        log.info("%s", " ".join(map(str, data.get("lines", ()))))

    worker: Any = ray._private.worker
    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = to_log
