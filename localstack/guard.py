"""Runs MiniStack, and sees to it that nothing of it outlives who it belongs to.

Started by path with the emulator's own interpreter, as the leader of its own process group, with
the reading end of a pipe as its only argument. Rules
- While the pipe is open, the starter lives. A byte on it lets the emulator go its own way
  (`local up` has ended well); its end without a byte means that the starter is gone, however it
  went: the emulator stops.
- MiniStack does not end its Lambda processes when it ends (1.5.33). The last act here is to kill
  the group.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

RELEASED = b"r"
GRACE_S = 10.0


def watch(leash: int) -> None:
    """Wait for the starter's word; stop this process when it ends without one."""
    if os.read(leash, 1) == RELEASED:
        os.close(leash)
        return
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Serve until stopped, then end the whole group."""
    leash = int(sys.argv.pop(1))
    threading.Thread(target=watch, args=(leash,), daemon=True).start()
    from ministack.app import main as serve

    try:
        serve()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
