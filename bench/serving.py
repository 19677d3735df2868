"""Start applications and servers for a benchmark, and commands of Orbweaver that use them."""

from __future__ import annotations

import contextlib
import gzip
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

PROJECT = Path(__file__).resolve().parents[1]
HOME = PROJECT / ".local" / "yield"
ROOT = HOME / "root"  # unpacked packages
PYTHONS = HOME / "python"  # virtual environments
ADDRESS = "127.0.0.1"
READY_S, STOP_S = 120.0, 10.0
STEP_LIMIT_S = 600.0
SAID_CHARS = 800
TRIPLET = sysconfig.get_config_var("MULTIARCH") or ""
LIBRARIES = os.pathsep.join(
    str(ROOT / folder) for folder in (f"usr/lib/{TRIPLET}", f"lib/{TRIPLET}", "usr/lib", "lib")
)


class Unavailable(Exception):
    """An application or crawler is not available here. The message contains the reason."""


def identity() -> dict[str, Any]:
    """Return the servers' user: the caller, or `nobody` for root, as Apache requires."""
    if os.geteuid():
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


# For processes that run as the caller, because `nobody` cannot use an interpreter in root's home.
CALLER: dict[str, Any] = {"user": None, "group": None, "extra_groups": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An application's folder, and the processes started in it."""

    name: str
    home: Path = HOME
    user: Mapping[str, Any] = field(default_factory=identity)  # who runs its processes
    open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def folder(self) -> Path:
        return self.home / "apps" / self.name

    def path(self, name: str) -> Path:
        return self.folder / name

    def write(self, name: str, text: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def renew(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.hand_over()

    def hand_over(self) -> None:
        """Make the servers' user the owner of the folder."""
        if user := identity():
            for folder, names, files in os.walk(self.folder):
                for name in (".", *names, *files):
                    os.chown(Path(folder, name), user["user"], user["group"], follow_symlinks=False)

    def run(
        self,
        words: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        text: str = "",
        **more: Any,
    ) -> str:
        """Run a command and return its output. Raises Unavailable with its last output."""
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [str(word) for word in words],
            env=self._surroundings(words[0], environment or {}),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=STEP_LIMIT_S,
            **{"cwd": self.folder, **self.user, **more},
        )
        if done.returncode:
            said = (done.stdout + done.stderr)[-SAID_CHARS:]
            raise Unavailable(f"`{Path(words[0]).name} …` ended with {done.returncode}: {said}")
        return done.stdout

    def start(
        self,
        words: Sequence[str | Path],
        *,
        port: int,
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> subprocess.Popen[bytes]:
        """Start a server that ends with the place. Returns when it listens on its port."""
        log = self.open.enter_context(self.path(f"{Path(words[0]).name}.out").open("ab"))
        process = subprocess.Popen(
            [str(word) for word in words],
            env=self._surroundings(words[0], environment or {}),
            stdout=log,
            stderr=log,
            process_group=0,  # so that Ctrl-C reaches this process first
            **{"cwd": self.folder, "stdin": subprocess.DEVNULL, **self.user, **more},
        )
        self.open.callback(stop, process)
        _until_listening(process, port, Path(log.name))
        return process

    def _surroundings(self, program: str | Path, more: Mapping[str, str]) -> dict[str, str]:
        found = {**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        # Environments of PyPI packages do not get the unpacked packages' build of Python's library.
        if not Path(program).is_relative_to(PYTHONS):
            found["LD_LIBRARY_PATH"] = LIBRARIES
        return {**found, **more}


def installed(requirements: tuple[str, ...], name: str) -> Path:
    """Install PyPI packages into their own virtual environment. Return its interpreter."""
    folder = PYTHONS / name
    python = folder / "bin" / "python"
    stamp = folder / ".installed"
    if not stamp.is_file():
        for words in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", *requirements],
        ):
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Unavailable(f"PyPI cannot give {requirements}: {done.stderr[-300:]}")
        stamp.touch()
    return python


def stop(process: subprocess.Popen[Any]) -> None:
    """Stop a server with all processes of its group."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until_s = time.monotonic() + READY_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((ADDRESS, port), 1):
            return
        time.sleep(0.05)
    said = log.read_text(errors="replace")[-SAID_CHARS:]
    raise Unavailable(f"{log.stem} does not listen on port {port}: {said}")


def orbweaver(
    *words: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    limit_s: float | None = None,
    watch: Callable[[subprocess.Popen[str]], None] | None = None,
) -> tuple[int, str]:
    """Run a command of Orbweaver. Return its code and output. `watch` runs in a thread."""
    process = subprocess.Popen(
        [sys.executable, "-m", "orbweaver.cli.main", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if watch is not None:
        threading.Thread(target=watch, args=(process,), daemon=True).start()
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        text, _ = process.communicate()
    return process.returncode, text


def unpacked(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield all files below a folder with their content, unpacked."""
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path, gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
