"""Runs MiniStack, and makes sure that none of its processes outlive its owner.

- The emulator's interpreter runs this file by its path, as leader of its own process group, in the
  instance's folder. The argument is the reading end of a pipe (leash).
- If the pipe closes, the process that started the emulator has ended. Then the emulator stops,
  unless `released` is true in its `pid.json`. A successful `local up` sets that.
- An orderly end writes the state and then removes `pid.json`. If that file exists afterwards, the
  emulator was killed.
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

GRACE_S = 10.0
# Time in which functions can requeue their messages while the emulator still answers them.
FUNCTIONS_S, ASKED_EVERY_S = 2.0, 0.1
NOTE = "pid.json"  # contains the process of an instance, see `emulator`


@contextlib.contextmanager
def locked(file: Path, mode: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold a lock on a file during the block. Waits for the lock, unless `mode` has LOCK_NB."""
    with file.open("a") as opened:
        fcntl.flock(opened, mode)
        yield


def watch(leash: int, folder: Path) -> None:
    """Wait until the starting process ends. Then stop this process, unless it is released."""
    os.read(leash, 1)
    with contextlib.suppress(OSError):  # the folder might not exist any more
        if json.loads((folder / NOTE).read_text())["released"]:
            return
    end_functions(os.getpid())
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def end_functions(emulator: int) -> None:
    """Send SIGTERM to the functions of an emulator until they end, for at most `FUNCTIONS_S`."""
    # As in Lambda, an idle function exits at SIGTERM. A worker first finishes its batch, and exits
    # at the next SIGTERM.
    told = running_with(1, emulator)
    until_s = time.monotonic() + FUNCTIONS_S
    while told and time.monotonic() < until_s:
        for pid in told:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        time.sleep(ASKED_EVERY_S)
        told &= running_with(1, emulator)


def running_with(place: int, value: int) -> set[int]:
    """Return the ids of running processes by a field of their `stat` files.

    Fields are numbered from 0 after the name: 1 is the parent, 2 the group. The set is empty
    without /proc.
    """
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = fields_of(entry)
            if int(fields[place]) == value and not is_gone(fields):
                found.add(int(entry.parent.name))
    return found


def fields_of(stat: Path) -> list[str]:
    # proc(5): "pid (name) state ppid …". The name can contain any character.
    return stat.read_text().rpartition(")")[2].split()


def is_gone(fields: list[str]) -> bool:
    """Return whether all threads of a process have ended."""
    return fields[0] in "ZX" and int(fields[17]) <= 1


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
