"""Who works on a session: the name a runtime writes beside the sessions it has taken over.

`host/pid/started/namespace/ray address`: enough to tell whether the process still runs, and to reach its actors. For
a Ray that runs by itself (a cluster) the first three are empty.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holder:
    host: str = ""
    pid: int = 0
    started: str = ""
    namespace: str = ""
    address: str = ""  # of its Ray

    def __str__(self) -> str:
        return "/".join((self.host, str(self.pid or ""), self.started, self.namespace, self.address))

    @classmethod
    def parse(cls, name: str) -> Holder:
        host, pid, started, namespace, address = (*name.split("/", 4), "", "", "", "", "")[:5]
        return cls(host, int(pid) if pid.isdigit() else 0, started, namespace, address)


def this_process(address: str = "", namespace: str = "") -> str:
    """Names this process so that another one on the same machine can tell whether it still runs."""
    return str(Holder(socket.gethostname()[:30], os.getpid(), _started(os.getpid()), namespace, address))


def cluster(address: str, namespace: str) -> str:
    """Names the actors of a Ray that does not end with any one process."""
    return str(Holder(address=address, namespace=namespace))


def is_alive(name: str) -> bool:
    """Whether the process of a holder runs. One on another machine, or a cluster, counts as alive."""
    holder = Holder.parse(name)
    if not holder.pid or holder.host != socket.gethostname()[:30]:
        return bool(name)
    return holder.started == _started(holder.pid)


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
