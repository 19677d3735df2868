"""Runs MiniStack, and makes sure that none of its processes outlive its owner.

The emulator's interpreter starts this file by path, as leader of its own process group, in the
instance's folder. The only argument is the reading end of a pipe.

- While the pipe is open, the starter lives. A byte on it releases the emulator (`local up` has
  succeeded). If it closes without a byte, the starter has ended in some way, and the emulator
  stops. A lent emulator stops once no other command uses it (`lending`).
- An orderly end writes the state and then removes the note (`pid.json`). A note left behind means
  that the emulator was killed.
- Functions get SIGTERM before their emulator stops, as in Lambda. An idle function exits. A worker
  finishes its batch first, and exits at the next SIGTERM.
- MiniStack (1.5.33) does not end its Lambda processes when it ends, so the last step kills the
  group.
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
# Time for functions to requeue their work while the emulator still serves them.
FUNCTIONS_S, ASKED_EVERY_S = 2.0, 0.1
# The emulator's owner in its note: its starter, its last user, or `local down`.
STARTER, USER, DOWN = "starter", "user", "down"
# Files in an instance's folder: a gate for users, a lock for users, and the process's note.
GATE, USERS, NOTE = "gate", "users", "pid.json"


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold a file's lock during the block. Waits for the lock."""
    with file.open("a") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def take(opened: TextIO) -> bool:
    """Take a file's lock if it is free."""
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
    """Wait until no command uses the emulator. Then `locks` hold the gate against new ones."""
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
    """Send SIGTERM to an emulator's functions, and give them a moment to end."""
    told = _children(emulator)
    until_s = time.monotonic() + FUNCTIONS_S
    while told and time.monotonic() < until_s:
        for pid in told:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(ASKED_EVERY_S)
        told &= _children(emulator)


def _children(parent: int) -> set[int]:
    """Return the ids of a process's running children, or none without /proc."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # proc(5): "pid (name) state ppid …"; the name may contain anything.
            state, ppid = entry.read_text().rpartition(")")[2].split()[:2]
            if int(ppid) == parent and state not in "ZX":
                found.add(int(entry.parent.name))
    return found


def main() -> None:
    """Serve until stopped, then end the whole group."""
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
