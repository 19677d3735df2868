"""SFTP server on loopback: OpenSSH's sshd as a child process, with keys and a folder.

It accepts one key for the user who runs the tests, no password, and files only (`internal-sftp`).
It does not use the machine's own SSH files.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

HOST = "127.0.0.1"
ABSENT = "OpenSSH's sshd is not installed: apt-get install openssh-server"
START_S, POLL_S = 20.0, 0.05
# As root, sshd needs a folder that packages create only under a service manager.
SEPARATION = Path("/run/sshd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    """A running server: its port, keys and folder."""

    port: int
    user: str
    key: str
    host_key: str
    folder: Path
    log: Path

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


def program() -> str | None:
    """Find sshd, which is not on most users' PATH."""
    return shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))


@contextmanager
def serving(home: Path, *options: str, internal: str = "") -> Iterator[Sshd]:
    """Run a server for a block; `internal` are options of its SFTP part."""
    sshd = program()
    assert sshd is not None, ABSENT
    home.mkdir(parents=True, exist_ok=True)
    (folder := home / "folder").mkdir(exist_ok=True)
    if os.geteuid() == 0:
        SEPARATION.mkdir(mode=0o755, exist_ok=True)
    host, mine = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    _write(home / "host", host.export_private_key())
    _write(home / "authorized", mine.export_public_key())
    port = _free_port()
    log = home / "log"
    lines = [
        f"ListenAddress {HOST}:{port}",
        f"HostKey {home / 'host'}",
        f"AuthorizedKeysFile {home / 'authorized'}",
        f"PidFile {home / 'pid'}",
        "UsePAM no",
        "StrictModes no",
        "PermitRootLogin prohibit-password",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "LogLevel VERBOSE",
        f"ForceCommand internal-sftp -d {folder} {internal}",
        "Subsystem sftp internal-sftp",
        *options,
    ]
    (home / "config").write_text("\n".join(lines) + "\n")
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(home / "config")], stdout=said, stderr=said
        )
    try:
        _listening(port, process, log)
        yield Sshd(
            port=port,
            user=getpass.getuser(),
            key=mine.export_private_key().decode(),
            host_key=host.export_public_key().decode().strip(),
            folder=folder,
            log=log,
        )
    finally:
        process.terminate()
        process.wait()


def _write(path: Path, body: bytes) -> None:
    path.write_bytes(body)
    path.chmod(0o600)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


def _listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            assert time.monotonic() < end, log.read_text()
            time.sleep(POLL_S)
        else:
            return
