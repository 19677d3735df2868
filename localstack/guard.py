"""Runs MiniStack, and makes sure that none of its processes outlive its owner.

- The emulator's interpreter starts this file by path, as leader of its own process group, in the
  instance's folder. The argument is the reading end of a pipe (leash).
- A byte on the pipe releases the emulator (`local up` has succeeded). If the pipe closes without a
  byte, the starter has ended, and the emulator stops. If other commands use it (see `lending`), it
  stops after the last one.
- An orderly end writes the state and then removes `pid.json`. If that file is left, the emulator
  was killed.
- MiniStack (1.5.33) does not end its Lambda processes, so the last step kills the process group.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

RELEASED = b"r"
GRACE_S = 10.0
# Time in which functions requeue their work while the emulator still serves them.
FUNCTIONS_S, ASKED_EVERY_S = 2.0, 0.1
# The emulator's owner: its starter, the last command that uses it, or `local down`.
STARTER, USER, DOWN = "starter", "user", "down"
# Files of an instance: a lock for entering and leaving, a lock of its users, and its process.
GATE, USERS, NOTE = "gate", "users", "pid.json"


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a file's lock during the block. Waits for the lock."""
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def take(opened: TextIO) -> bool:
    """Take a file's lock if it is free. Return whether it was."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def watch(leash: int, folder: Path) -> None:
    """Wait for the starter's byte. Stop this process if the pipe closes without one."""
    if os.read(leash, 1) == RELEASED:
        os.close(leash)
        return
    with contextlib.ExitStack() as locks:
        with contextlib.suppress(OSError):  # the folder may be gone already
            if _ends_with(folder) != STARTER:
                wait_unused(folder, locks)
                if _ends_with(folder) == DOWN:
                    return
        end_functions(os.getpid())
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_S)
        os.killpg(0, signal.SIGKILL)


def _ends_with(folder: Path) -> str:
    return str(json.loads((folder / NOTE).read_text())["ends_with"])


def wait_unused(folder: Path, locks: contextlib.ExitStack) -> None:
    """Wait until no command uses the emulator. Then `locks` hold the gate, so none can start to."""
    users = locks.enter_context((folder / USERS).open("a"))
    gate = locks.enter_context((folder / GATE).open("a"))
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)
        fcntl.flock(gate, fcntl.LOCK_EX)
        if take(users):
            return
        fcntl.flock(gate, fcntl.LOCK_UN)


def end_functions(emulator: int) -> None:
    """Send SIGTERM to an emulator's functions until they end or the time is over."""
    # As in Lambda, an idle function exits. A worker first finishes its batch, and exits at the next
    # SIGTERM.
    told = _children(emulator)
    until_s = time.monotonic() + FUNCTIONS_S
    while told and time.monotonic() < until_s:
        for pid in told:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(ASKED_EVERY_S)
        told &= _children(emulator)


def _children(parent: int) -> set[int]:
    """Return the ids of a process's running children. Empty without /proc."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # proc(5): "pid (name) state ppid …"; the name may contain anything.
            state, ppid = entry.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state not in "ZX":
                found.add(int(entry.parent.name))
    return found


def main() -> None:
    """Run MiniStack until it is stopped, then kill the whole process group."""
    leash, folder = int(sys.argv.pop(1)), Path.cwd()
    threading.Thread(target=watch, args=(leash, folder), daemon=True).start()
    try:
        from ministack.app import main as serve
    except ImportError:
        _unlink(folder / NOTE)
        raise
    try:
        serve()
    finally:
        _unlink(folder / NOTE)
        sys.stdout.flush()
        sys.stderr.flush()
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)


def _unlink(note: Path) -> None:
    with contextlib.suppress(OSError):
        note.unlink()


if __name__ == "__main__":
    main()
