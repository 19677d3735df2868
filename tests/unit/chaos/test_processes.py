"""Search for the worker processes of the test's own emulator."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from localstack.processes import identify
from tests.chaos import processes
from tests.chaos.processes import Process

HEADING = "sl local rem st q t r uid to inode"
EMULATOR = 100
SCRIPT = "/x/tmp/ministack-lambda-Orbweaver-worker-ab12/_worker.py"
TABLE = [
    Process(pid=1, parent=0, words=("init",)),
    Process(pid=EMULATOR, parent=1, words=("python", "/x/guard.py", "4")),
    Process(pid=103, parent=EMULATOR, words=("python", SCRIPT)),
    Process(pid=102, parent=EMULATOR, words=("python", SCRIPT)),
    Process(pid=104, parent=EMULATOR, words=("python", SCRIPT.replace("worker-ab", "exporter-ab"))),
    Process(pid=105, parent=EMULATOR, words=("python", "/x/other.py")),
    Process(pid=106, parent=EMULATOR, words=()),
    Process(pid=203, parent=200, words=("python", SCRIPT)),
]


def test_only_workers_of_own_emulator_are_found() -> None:
    assert processes.workers(TABLE, EMULATOR, "Orbweaver-worker") == [102, 103]
    assert processes.workers(TABLE, EMULATOR, "Orbweaver") == [102, 103, 104]
    assert processes.workers(TABLE, 999, "Orbweaver-worker") == []


def test_process_table_ignores_kernel_threads_and_ended(tmp_path: Path) -> None:
    for pid, stat, words in (
        ("7", "7 (a) b (c)) S 3 7 7", b"python\0-m\0x\0"),
        ("8", "8 (kthread) S 2 0 0", b""),
        ("9", "", b""),
    ):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(stat)
        (tmp_path / pid / "cmdline").write_bytes(words)
    (tmp_path / "10").mkdir()

    found = sorted(processes.table(tmp_path), key=lambda process: process.pid)

    assert found == [
        Process(pid=7, parent=3, words=("python", "-m", "x")),
        Process(pid=8, parent=2, words=()),
    ]


def test_holder_of_connection_is_found() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends = client.getsockname()[1], client.getpeername()[1]
        assert processes.holder(*ends, [1, os.getpid()]) == identify(os.getpid())
        assert processes.holder(*ends, []) is None


def test_unknown_port_has_no_socket() -> None:
    lines = f"{HEADING}\n 0: 0100007F:1F90 0100007F:0050 01 0 0 0 0 0 4242 1"

    assert processes.socket_of(lines, 8080, 80) == "4242"
    assert processes.socket_of(lines, 8081, 80) is None


def test_socket_is_selected_by_both_ports() -> None:
    """A closed connection may have the same local port and come first."""
    closed = " 0: 0100007F:1F90 0100007F:0051 06 0 0 0 0 0 0 3"
    elsewhere = " 1: 0100007F:1F90 0100007F:0052 01 0 0 0 0 0 4141 1"
    meant = " 2: 0100007F:1F90 0100007F:0050 01 0 0 0 0 0 4242 1"
    lines = f"{HEADING}\n{closed}\n{elsewhere}\n{meant}"

    assert processes.socket_of(lines, 8080, 80) == "4242"


def test_only_identified_process_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        meant = identify(child.pid)
        assert meant is not None
        assert not processes.kill(replace(meant, started="another time"))
        assert processes.kill(meant)
        assert child.wait() == -signal.SIGKILL
        assert not processes.kill(meant)
    assert not processes.kill(None)
