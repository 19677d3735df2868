"""Processes identified by id and start time (ids are reused), run and stopped by group.

The start time is read from /proc on Linux and from ps elsewhere. A zombie counts as ended. But a
process counts as running until its last thread has ended, because its files and ports are open
until then. Only a process that leads its own group is stopped with its group.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localstack import guard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RUN_S_MAX = 900.0
PROGRESS_S = 10.0
_POLL_S = 0.02
_GRACE_S = 5.0
_KILL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A process: its id, and its start time in the system's format."""

    pid: int
    started: str


def identify(pid: int) -> Identity | None:
    """Return the identity of the process that has this id now, or None if there is none."""
    status = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = guard.fields_of(status)
        except OSError:
            return None
        return None if guard.is_gone(fields) else Identity(pid=pid, started=fields[19])
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
    """Return whether this process is still running. A new process with its id does not count."""
    return identify(process.pid) == process


def members(group: int) -> list[int]:
    """Return the ids of the running processes of a group. The list is empty without /proc."""
    return sorted(guard.running_with(2, group))


def run(
    command: Sequence[str],
    root: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None] = lambda _: None,
) -> tuple[int, str]:
    """Run a command in its own process group, and report the elapsed time regularly.

    Returns the exit code and the output. When this call ends, also by an interruption or the time
    limit, no process of the group is left.
    """
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for times in itertools.count(1):
                try:
                    output = process.communicate(timeout=PROGRESS_S)[0]
                except subprocess.TimeoutExpired:
                    if times * PROGRESS_S >= RUN_S_MAX:
                        break
                    say(f"  {times * PROGRESS_S:.0f} s so far")
                else:
                    return process.returncode, output
            _end(process)
            output = process.communicate()[0]
            return process.returncode, f"{output}\nstopped after {RUN_S_MAX:.0f} s"
        finally:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_GRACE_S)
    kill_group(process.pid)
    process.wait()


def stop_group(leader: Identity, *, grace_s: float) -> None:
    """Stop a process and its group.

    With `grace_s` > 0, the leader first gets SIGTERM and this time.
    """
    # Only the leader gets SIGTERM, because it ends its children in its own order. The id of a group
    # is not reused while the group has a member, so the signals reach only this group.
    if is_running(leader):
        if grace_s > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader.pid, signal.SIGTERM)
            wait_gone(leader, timeout_s=grace_s)
    elif identify(leader.pid) is not None or not members(leader.pid):
        return
    kill_group(leader.pid)
    _wait_until(lambda: not is_running(leader), timeout_s=_KILL_S)


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
    _wait_until(lambda: not members(group), timeout_s=_KILL_S)


def wait_gone(process: Identity, *, timeout_s: float) -> bool:
    """Wait until a process has ended. Returns False if it still runs after `timeout_s`."""
    return _wait_until(lambda: not is_running(process), timeout_s=timeout_s)


def _wait_until(holds: Callable[[], bool], *, timeout_s: float) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_POLL_S)
    return True
