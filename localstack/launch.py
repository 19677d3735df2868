"""The emulator's process: port, variables, and the guard that runs it."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING

from localstack import guard, layout
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HOST = "127.0.0.1"
# Ports for instances. They are below the ephemeral ports, because another program could get an
# ephemeral port while the instance is stopped.
_PORTS = range(20_000, 32_000)
# Variables that an emulator inherits, including those for certificates, because functions use TLS.
_INHERITED = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


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


def free_port(instances: Path) -> int:
    """Return a free port that belongs to no instance."""
    for _ in range(100):
        port = random.choice(_PORTS)  # noqa: S311 - not a secret
        if not (instances / str(port)).exists() and not is_taken(port):
            return port
    raise LocalStackError(f"No free port found: remove old instances under {instances}")
