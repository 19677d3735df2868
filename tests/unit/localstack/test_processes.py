"""Detection of ended processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from localstack import processes

# The main thread ends and another one stays, as in a killed process with slow threads.
LEADER_ENDS = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
threading.Thread(target=libc.sleep, args=(60,)).start()
ctypes.PyDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="threads are counted in /proc")
def test_process_is_running_until_last_thread_ends() -> None:
    """Its ports and files stay open although the main thread is a zombie."""
    child = subprocess.Popen([sys.executable, "-c", LEADER_ENDS], start_new_session=True)
    try:
        status = Path(f"/proc/{child.pid}/stat")
        deadline_s = time.monotonic() + 60
        while status.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        found = processes.identify(child.pid)
        assert found is not None
        assert processes.members(child.pid) == [child.pid]
        processes.kill_group(child.pid)
        assert not processes.is_running(found)
    finally:
        child.kill()
        child.wait()
