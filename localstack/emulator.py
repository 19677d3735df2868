"""MiniStack as a child process: started, found again, and stopped with its children.

- There is one instance per port, in its own folder: `.local/instances/<port>/` with `pid.json`,
  `emulator.log`, `state/`, `s3/` and `tmp/` (code of its Lambda functions).
- A kept instance (`keep`) writes its state only when it is stopped, so a killed one falls back to
  its last orderly stop. An instance that is not kept leaves no files.
- A new instance stops when its starter ends, even by SIGKILL, unless `release` releases it (see
  `guard`) or another command uses it (see `lending`).
- After a kill, the next command finds the left-over `pid.json`. It marks the lost state
  (`lost.json`), which is reported until the next start.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localstack import guard, inflight, launch, layout, lost, processes
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PORT = 4566
START_S_MAX = 60.0
STOP_S_MAX = 20.0  # an orderly stop waits 3 s for open requests, then writes the state
LOG_LINES_SHOWN = 15
_POLL_S = 0.05
_PORT_TRIES = 5


@dataclass(slots=True, kw_only=True)
class Emulator:
    """A running emulator. `ends_with` names its owner: see `guard`."""

    port: int
    directory: Path
    keep: bool
    process: processes.Identity
    since_s: float = 0.0
    ends_with: str = guard.STARTER
    missing: lost.Lost | None = None
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _leash: int | None = field(default=None, repr=False)

    @property
    def endpoint_url(self) -> str:
        return f"http://{launch.HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "emulator.log"

    def environment(self) -> dict[str, str]:
        """Return a complete environment for clients of this emulator."""
        return layout.client_environment(self.endpoint_url)

    def is_healthy(self) -> bool:
        return processes.is_running(self.process) and launch.answers(self.endpoint_url)

    def release(self) -> None:
        """Let the emulator run on after this process and all commands that use it."""
        if self.ends_with != guard.DOWN:
            self.ends_with = guard.DOWN
            _note(self)
        if self._leash is not None:
            os.write(self._leash, guard.RELEASED)
        self.hand_over()

    def lend(self) -> None:
        """Let the emulator end with the last command that uses it: see `lending`."""
        self.ends_with = guard.USER
        _note(self)

    def hand_over(self) -> None:
        """Leave the emulator to its guard, which waits for the commands that use it."""
        self._drop_leash()
        if self._child is not None and self._child.poll() is None:
            self._child.returncode = 0  # keeps Popen from waiting for it or warning about it
        self._child = None

    def stop(self) -> None:
        """Stop the emulator and its functions. The state is written if kept, else removed."""
        if self.keep and processes.is_running(self.process):
            guard.end_functions(self.process.pid)
        processes.stop_group(self.process, grace_s=STOP_S_MAX if self.keep else 0)
        if self._child is not None:
            self._child.wait()
        self._drop_leash()
        if (self.directory / guard.NOTE).exists():  # an orderly stop removes this file last
            if self.keep:
                lost.mark(self.directory, self.since_s)
            (self.directory / guard.NOTE).unlink(missing_ok=True)
        shutil.rmtree(self.directory / "tmp", ignore_errors=True)
        if not self.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _drop_leash(self) -> None:
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None


def start(
    *,
    port: int = PORT,
    keep: bool = True,
    fresh: bool = False,
    settings: Mapping[str, str] | None = None,
    instances: Path = layout.INSTANCES,
) -> Emulator:
    """Start an emulator and wait until it answers.

    Port 0 takes a free one. `keep` keeps the state over a stop, `fresh` discards a kept state.
    `settings` are further environment variables for MiniStack and its functions.
    """
    if not layout.EMULATOR_PYTHON.exists():
        raise LocalStackError("The emulator is not installed: run `make setup`")
    for tries_left in range(_PORT_TRIES if port == 0 else 1, 0, -1):
        chosen = port or launch.free_port(instances)
        try:
            with _locked(instances / str(chosen)) as directory:
                return _start(chosen, directory, keep=keep, fresh=fresh, settings=settings or {})
        except LocalStackError:
            if tries_left == 1:
                raise
    raise AssertionError  # a range from 1 up is never empty


def find(port: int = PORT, *, instances: Path = layout.INSTANCES) -> Emulator | None:
    """Return the running emulator of a port, or None. Cleans up after an emulator that has died."""
    directory = instances / str(port)
    try:
        noted = json.loads((directory / guard.NOTE).read_text())
        process = processes.Identity(pid=noted["pid"], started=noted["started"])
        found = Emulator(
            port=port,
            directory=directory,
            keep=noted["keep"],
            process=process,
            since_s=noted.get("since_s", 0.0),
            ends_with=noted.get("ends_with", guard.DOWN),
        )
    except (OSError, ValueError, KeyError):
        return None
    if processes.is_running(process):
        return found
    found.stop()
    return None


def find_all(*, instances: Path = layout.INSTANCES) -> list[Emulator]:
    ports = sorted(int(file.parent.name) for file in instances.glob(f"*/{guard.NOTE}"))
    return [found for port in ports if (found := find(port, instances=instances))]


def stopped(*, instances: Path | None = None) -> list[int]:
    """Return the ports of stopped emulators with a kept state, most recently used first."""
    states = (layout.INSTANCES if instances is None else instances).glob("*/state")
    used = {
        int(state.parent.name): state.parent.stat().st_mtime
        for state in states
        if any(state.iterdir()) and not (state.parent / guard.NOTE).exists()
    }
    return sorted(used, key=lambda port: -used[port])


def _start(
    port: int, directory: Path, *, keep: bool, fresh: bool, settings: Mapping[str, str]
) -> Emulator:
    running = find(port, instances=directory.parent)
    if running is not None:
        raise LocalStackError(
            f"An emulator of this checkout runs on port {port} already (process"
            f" {running.process.pid}): use it, or stop it with"
            f" `python -m localstack down --port {port}`"
        )
    if launch.is_taken(port):
        raise LocalStackError(
            f"Port {port} is taken by another program: choose another one with --port"
            " (0 takes a free one), or stop that program"
        )
    missing = None if fresh else lost.of(directory)
    if fresh or not keep:
        for name in ("state", "s3"):
            shutil.rmtree(directory / name, ignore_errors=True)
    for name in ("state", "s3", "tmp"):
        (directory / name).mkdir(exist_ok=True)
    inflight.make_visible(directory / "state", time.time())
    child, leash = launch.spawn(
        directory, launch.environment(port, directory, keep=keep) | dict(settings)
    )
    process = processes.identify(child.pid) or processes.Identity(pid=child.pid, started="")
    emulator = Emulator(
        port=port,
        directory=directory,
        keep=keep,
        process=process,
        since_s=time.time(),
        missing=missing,
        _child=child,
        _leash=leash,
    )
    try:
        _note(emulator)
        _wait_healthy(emulator, child)
    except BaseException:
        emulator.stop()
        raise
    lost.unmark(directory)
    return emulator


def _note(emulator: Emulator) -> None:
    noted = {
        "pid": emulator.process.pid,
        "started": emulator.process.started,
        "keep": emulator.keep,
        "since_s": emulator.since_s,
        "ends_with": emulator.ends_with,
    }
    file = emulator.directory / guard.NOTE
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps(noted))
    draft.replace(file)


def _wait_healthy(emulator: Emulator, child: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    # Check the process first: another process could answer on this port.
    while child.poll() is None:
        if launch.answers(emulator.endpoint_url):
            return
        if time.monotonic() > deadline_s:
            break
        time.sleep(_POLL_S)
    reason = "ended while starting" if child.poll() is not None else "did not answer in time"
    tail = "\n".join(emulator.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:])
    raise LocalStackError(f"The emulator on port {emulator.port} {reason}. Its last words:\n{tail}")


@contextlib.contextmanager
def _locked(directory: Path) -> Iterator[Path]:
    """Hold the lock that lets one process at a time start a port's instance."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield directory
