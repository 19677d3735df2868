"""MiniStack as a child process: started, found again, and stopped with its children.

- There is one instance per port, in its own folder: `.local/instances/<port>/` with `pid.json`,
  `emulator.log`, `state/`, `s3/` and `tmp/` (code of its Lambda functions).
- A kept instance (`keep`) writes its state only when it is stopped. If it is killed, the next start
  uses the state of its last orderly stop. An instance that is not kept leaves no files.
- A new instance stops when the process that started it ends, even by SIGKILL. It continues only
  after a call of `release` (see `guard`).
- An orderly stop removes `pid.json`. If an instance is killed, the file exists until the next
  start. It contains the time from which on the state is lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from localstack import guard, layout, processes
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


PORT = 4566
START_S_MAX = 60.0
STOP_S_MAX = 20.0  # an orderly stop waits 3 s for open requests, then writes the state
LOG_LINES_SHOWN = 15
_POLL_S = 0.05
HOST = "127.0.0.1"
# Ports for instances. They are below the ephemeral ports, because another program could get an
# ephemeral port while the instance is stopped.
_PORTS = range(20_000, 32_000)
# Variables that an emulator inherits, including those for certificates, because functions use TLS.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


@dataclass(slots=True, kw_only=True)
class Emulator:
    """An emulator. `lost_since_s` is set if the previous instance was killed.

    Then its state is lost from that time on.
    """

    port: int
    directory: Path
    keep: bool
    process: processes.Identity
    since_s: float
    released: bool = False
    lost_since_s: float | None = None
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _leash: int | None = field(default=None, repr=False)

    @property
    def endpoint_url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "emulator.log"

    def environment(self) -> dict[str, str]:
        """Return a complete environment for clients of this emulator."""
        return layout.client_environment(self.endpoint_url)

    def is_healthy(self) -> bool:
        return processes.is_running(self.process) and answers(self.endpoint_url)

    def release(self) -> None:
        """Let the emulator continue when the process that started it ends."""
        self.released = True
        self.write_note()
        self.hand_over()

    def hand_over(self) -> None:
        """Do not stop or wait for the child process any more, because another process stops it."""
        self._drop_leash()
        if self._child is not None and self._child.poll() is None:
            self._child.returncode = 0  # keeps Popen from waiting for it or warning about it
        self._child = None

    def stop(self) -> None:
        """Stop the emulator and its functions.

        If `keep`, the state is written, else it is removed.
        """
        if self.keep and processes.is_running(self.process):
            guard.end_functions(self.process.pid)
        processes.stop_group(self.process, grace_s=STOP_S_MAX if self.keep else 0)
        if self._child is not None:
            self._child.wait()
        self._drop_leash()
        shutil.rmtree(self.directory / "tmp", ignore_errors=True)
        if not self.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def write_note(self) -> None:
        """Write `pid.json`, with which other processes find this emulator."""
        noted = {
            "pid": self.process.pid,
            "started": self.process.started,
            "keep": self.keep,
            "since_s": self.since_s,
            "released": self.released,
        }
        draft = self.directory / f"{guard.NOTE}.new"
        draft.write_text(json.dumps(noted))
        draft.replace(self.directory / guard.NOTE)

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
) -> Emulator:
    """Start an emulator and wait until it answers.

    Port 0 means a free port. With `keep`, the state is written at a stop. `fresh` deletes the
    existing state. `settings` are further environment variables for MiniStack and its functions.
    """
    if not layout.EMULATOR_PYTHON.exists():
        raise LocalStackError("The emulator is not installed: run `make setup`")
    port = port or free_port()
    directory = layout.INSTANCES / str(port)
    directory.mkdir(parents=True, exist_ok=True)
    with guard.locked(directory / "lock"):  # only one process at a time starts an instance
        return _start(port, directory, keep=keep, fresh=fresh, settings=settings or {})


def find(port: int = PORT) -> Emulator | None:
    """Return the running emulator of a port, or None. Cleans up the files of a killed emulator."""
    noted = _noted(layout.INSTANCES / str(port))
    if noted is not None and not processes.is_running(noted.process):
        noted.stop()
        return None
    return noted


def find_all() -> list[Emulator]:
    return [found for one in _folders(guard.NOTE) if (found := find(int(one.name)))]


def stopped() -> list[int]:
    """Return the ports of stopped emulators that have a state, most recently used first."""
    used = {
        int(folder.name): folder.stat().st_mtime
        for folder in _folders("state")
        if any((folder / "state").iterdir()) and find(int(folder.name)) is None
    }
    return sorted(used, key=lambda port: -used[port])


def lost_data() -> list[str]:
    """Describe the data that killed emulators have lost, with one text per emulator."""
    noted = [found for one in _folders(guard.NOTE) if (found := _noted(one))]
    killed = [one for one in noted if one.keep and not processes.is_running(one.process)]
    return [describe_loss(one.port, one.since_s) for one in killed]


def describe_loss(port: int, since_s: float) -> str:
    since = datetime.fromtimestamp(since_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"the emulator on port {port} was killed, or the machine went down: what its tables"
        f" and queues got since {since} is lost, crawls that had finished too (files in its"
        " bucket and exported files are not). To keep records, export a crawl when it has"
        " ended (`orbweaver export --crawl ID`), and stop the emulator with"
        " `orbweaver local down`, which writes its state"
    )


def _folders(part: str) -> list[Path]:
    """Return the folders of instances that contain the file or folder `part`, by port."""
    found = layout.INSTANCES.glob(f"*/{part}")
    return sorted((one.parent for one in found), key=lambda folder: int(folder.name))


def _noted(directory: Path) -> Emulator | None:
    """Return the emulator that the file `pid.json` of a folder names, running or not."""
    try:
        noted = json.loads((directory / guard.NOTE).read_text())
        return Emulator(
            port=int(directory.name),
            directory=directory,
            keep=noted["keep"],
            process=processes.Identity(pid=noted["pid"], started=noted["started"]),
            since_s=noted.get("since_s", 0.0),
            released=noted.get("released", True),  # earlier versions do not write this
        )
    except (OSError, ValueError, KeyError):
        return None


def _start(
    port: int, directory: Path, *, keep: bool, fresh: bool, settings: Mapping[str, str]
) -> Emulator:
    running = find(port)
    if running is not None:
        raise LocalStackError(
            f"An emulator of this checkout runs on port {port} already (process"
            f" {running.process.pid}): use it, or stop it with"
            f" `python -m localstack down --port {port}`"
        )
    if is_taken(port):
        raise LocalStackError(
            f"Port {port} is taken by another program: choose another one with --port"
            " (0 takes a free one), or stop that program"
        )
    killed = None if fresh or not keep else _noted(directory)
    if fresh or not keep:
        for name in ("state", "s3"):
            shutil.rmtree(directory / name, ignore_errors=True)
    for name in ("state", "s3", "tmp"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    child, leash = spawn(directory, environment(port, directory, keep=keep) | dict(settings))
    emulator = Emulator(
        port=port,
        directory=directory,
        keep=keep,
        process=processes.identify(child.pid) or processes.Identity(pid=child.pid, started=""),
        since_s=time.time(),
        lost_since_s=None if killed is None else killed.since_s,
        _child=child,
        _leash=leash,
    )
    try:
        emulator.write_note()
        _wait_healthy(emulator, child)
    except BaseException:
        emulator.stop()
        if killed is not None:
            killed.write_note()  # so that the next start reports the loss
        raise
    return emulator


def _wait_healthy(emulator: Emulator, child: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + START_S_MAX
    # Check the process first: another process could answer on this port.
    while child.poll() is None:
        if answers(emulator.endpoint_url):
            return
        if time.monotonic() > deadline_s:
            break
        time.sleep(_POLL_S)
    reason = "ended while starting" if child.poll() is not None else "did not answer in time"
    tail = "\n".join(emulator.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:])
    raise LocalStackError(f"The emulator on port {emulator.port} {reason}. Its last words:\n{tail}")


def spawn(directory: Path, variables: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start the guard in an instance's folder.

    Return the process, and this process's end of the leash.
    """
    leash_end, leash = os.pipe()
    try:
        with (directory / "emulator.log").open("wb") as log:
            child = subprocess.Popen(
                [layout.EMULATOR_PYTHON, guard.__file__, str(leash_end)],
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[leash_end],
                start_new_session=True,  # its own group, which Ctrl-C does not reach
            )
    except BaseException:
        os.close(leash)
        raise
    finally:
        os.close(leash_end)
    return child, leash


def environment(port: int, directory: Path, *, keep: bool) -> dict[str, str]:
    """Return all environment variables of an emulator. They contain no AWS account and no proxy."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    kept = "1" if keep else "0"
    return inherited | {
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": HOST,
        "MINISTACK_REGION": layout.REGION,
        "MINISTACK_ACCOUNT_ID": layout.ACCOUNT,
        "AWS_DEFAULT_REGION": layout.REGION,
        "PERSIST_STATE": kept,
        "STATE_DIR": str(directory / "state"),
        "S3_PERSIST": kept,
        "S3_DATA_DIR": str(directory / "s3"),
        "TMPDIR": str(directory / "tmp"),
        "HOME": str(directory / "tmp"),  # functions must not read the caller's AWS profiles
        "LOG_LEVEL": "WARNING",  # INFO writes a line per request
        "SFTP_ENABLED": "0",  # SFTP uses fixed ports, so two instances would collide
        "IOT_MTLS_ENABLED": "0",
        "DOCKER_HOST": f"unix://{directory}/no-docker",  # missing: prevents a search for Docker
        "PYTHONUNBUFFERED": "1",
    }


def answers(endpoint_url: str) -> bool:
    """Return whether an emulator answers at this URL. Configured proxies are not used."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{endpoint_url}/_ministack/health", timeout=2) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (OSError, urllib.error.URLError):
        return False


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return True
    return False


def free_port() -> int:
    """Return a free port that belongs to no instance."""
    for _ in range(100):
        port = random.choice(_PORTS)  # noqa: S311 - not a secret
        if not (layout.INSTANCES / str(port)).exists() and not is_taken(port):
            return port
    raise LocalStackError(f"No free port found: remove old instances under {layout.INSTANCES}")
