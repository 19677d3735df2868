"""Worker processes of the run's emulator, and the process that holds a connection.

A worker is a child of the emulator that runs the runtime's script in the folder of the function
(MiniStack: `…/ministack-lambda-<function>-<random>/_worker.py`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localstack.processes import Identity, identify, is_running

if TYPE_CHECKING:
    from asyncio import BaseTransport
    from collections.abc import Callable, Iterable

    Find = Callable[[BaseTransport], Identity | None]  # Worker at the other end of a connection.

PROC = Path("/proc")
SCRIPT = "_worker.py"
LOOPBACK = "0100007F"  # 127.0.0.1 in the kernel's format, least significant byte first.


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A line of the process table."""

    pid: int
    parent: int
    words: tuple[str, ...]


def table(proc: Path = PROC) -> list[Process]:
    """Return the process table without processes that end meanwhile."""
    found = []
    for entry in proc.glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # proc(5): "pid (name) state ppid …"; the name may contain any character.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found.append(
                Process(pid=int(entry.name), parent=int(fields[1]), words=tuple(words[:-1]))
            )
    return found


def workers(processes: Iterable[Process], emulator: int, function: str) -> list[int]:
    """Return the ids of an emulator's workers that run a function, in order."""
    return sorted(
        process.pid
        for process in processes
        if process.parent == emulator and _runs(process.words, function)
    )


def _runs(words: tuple[str, ...], function: str) -> bool:
    script = Path(words[-1]) if words else Path()
    return script.name == SCRIPT and script.parent.name.startswith(f"ministack-lambda-{function}-")


def socket_of(connections: str, port: int, remote: int) -> str | None:
    """Return the inode of the socket from a local port to a remote one, in /proc/net/tcp.

    The local port alone is ambiguous: several connections to different ports may share it, and a
    closed one stays listed for a minute.
    """
    wanted = [f"{LOOPBACK}:{port:04X}", f"{LOOPBACK}:{remote:04X}"]
    for line in connections.splitlines()[1:]:
        fields = line.split()
        if fields[1:3] == wanted:
            return fields[9]
    return None


def holder(port: int, remote: int, candidates: Iterable[int], proc: Path = PROC) -> Identity | None:
    inode = socket_of((proc / "net" / "tcp").read_text(), port, remote)
    for pid in candidates:
        with contextlib.suppress(OSError):
            links = (str(link.readlink()) for link in (proc / str(pid) / "fd").iterdir())
            if f"socket:[{inode}]" in links:
                return identify(pid)
    return None


def ends(transport: BaseTransport) -> tuple[int, int]:
    """Return local and remote port of a connection, as the process at its other end sees them."""
    return transport.get_extra_info("peername")[1], transport.get_extra_info("sockname")[1]


def kill(process: Identity | None) -> bool:
    """Kill a process; False if it does not run any more."""
    if process is None or not is_running(process):
        return False
    try:
        os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
