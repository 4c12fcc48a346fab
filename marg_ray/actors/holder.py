"""Who works on a session: the name a runtime writes beside the sessions it has taken over."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Names this process so that another one on the same machine can tell whether it still runs."""
    return f"{socket.gethostname()[:30]}/{os.getpid()}/{_started(os.getpid())}"


def is_alive(holder: str) -> bool:
    """Whether the process of `holder` runs. One on another machine, or a cluster, counts as alive."""
    host, _, rest = holder.partition("/")
    pid, _, started = rest.partition("/")
    if not pid.isdigit() or host != socket.gethostname()[:30]:
        return bool(holder)
    return started == _started(int(pid))


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot: a process id that was used again is another process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "" if not _exists(pid) else "?"
    return stat.rpartition(")")[2].split()[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
