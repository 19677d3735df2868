"""Processes told apart by more than their number, and stopped by group.

Rules
- A process id alone says nothing after a while: ids are used again. An identity is the id and the
  moment of its start, from /proc on Linux and from ps elsewhere.
- A zombie is gone: it runs no more and cannot be stopped. One whose threads still end is not gone:
  what it has open, a port as well, stays open until the last of them has ended.
- Only a process that leads its own group is stopped with its group, so no other group is touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.02
_KILL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process: its id, and the moment it was started as the system spells it."""

    pid: int
    started: str


def identify(pid: int) -> Identity | None:
    """Return who runs under a process id now, or None."""
    status = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # proc(5): "pid (name) state ppid … starttime"; the name may hold anything.
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if _is_gone(fields) else Identity(pid=pid, started=fields[19])
    shown = subprocess.run(
        ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split(maxsplit=1)
    if not shown or shown[0].startswith("Z"):
        return None
    return Identity(pid=pid, started=shown[1].strip())


def is_running(process: Identity) -> bool:
    """Tell whether exactly this process still runs."""
    return identify(process.pid) == process


def members(group: int) -> list[int]:
    """Return the ids of a group's processes that still run; empty where /proc is not there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and not _is_gone(fields):
                found.append(int(entry.parent.name))
    return found


def _is_gone(fields: list[str]) -> bool:
    """Tell from the fields of `stat` after the name whether no thread of a process is left."""
    return fields[0] in "ZX" and int(fields[17]) <= 1


def stop_group(leader: Identity, *, grace_s: float) -> None:
    """Stop a group leader, asking first where there is time, then kill what is left of its group.

    The leader alone is asked: it ends its children in its own order. A group id stays taken while
    the group has a member, so what is left of a dead leader's group can be told from the group of
    a process that was given its id later.
    """
    if is_running(leader):
        if grace_s > 0:
            _signal(leader.pid, signal.SIGTERM)
            wait_gone(leader, timeout_s=grace_s)
    elif identify(leader.pid) is not None or not members(leader.pid):
        return
    kill_group(leader.pid)
    _wait_until(lambda: not is_running(leader), timeout_s=_KILL_S)


def kill_group(group: int) -> None:
    """Kill a group, and wait until none of it runs: a signal is on its way when it is sent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    _wait_until(lambda: not members(group), timeout_s=_KILL_S)


def wait_gone(process: Identity, *, timeout_s: float) -> bool:
    """Wait until a process has ended; False when it still runs after the time given."""
    return _wait_until(lambda: not is_running(process), timeout_s=timeout_s)


def _wait_until(holds: Callable[[], bool], *, timeout_s: float) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_POLL_S)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
