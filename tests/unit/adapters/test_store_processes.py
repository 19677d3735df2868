"""Processes of a store: a process is alive while it locks its file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orbweaver.adapters.sqlite.processes import FOLDER, StoreProcesses
from orbweaver.adapters.sqlite.store import StoreUnusable
from tests.unprivileged import unwritable

# A process of the store that runs until it is killed.
MEMBER = """
import pathlib, sys
from orbweaver.adapters.sqlite.processes import StoreProcesses
with StoreProcesses(pathlib.Path(sys.argv[1])).taking_part() as own:
    print(own, flush=True)
    sys.stdin.read()
"""


@contextmanager
def member_of(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a process of the store; yield it with its name."""
    words = [sys.executable, "-c", MEMBER, str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as member:
        assert member.stdout is not None
        yield member, member.stdout.readline().decode().strip()


def test_process_ending_normally_leaves_no_file(tmp_path: Path) -> None:
    processes, other = StoreProcesses(tmp_path), StoreProcesses(tmp_path)
    assert (other.count_alive(), list(other.ended())) == (0, [])
    with processes.taking_part() as own:
        assert processes.own == own
        assert (processes.count_alive(), other.count_alive()) == (1, 1)
        assert list(other.ended()) == []
    assert list((tmp_path / FOLDER).iterdir()) == []
    assert (processes.own, other.count_alive()) == ("", 0)


def test_store_with_a_file_as_processes_is_refused(tmp_path: Path) -> None:
    (tmp_path / FOLDER).touch()
    processes = StoreProcesses(tmp_path)
    with pytest.raises(StoreUnusable, match="it must be a folder"):
        processes.count_alive()
    with pytest.raises(StoreUnusable, match="Move the file away"), processes.taking_part():
        pass


def test_process_of_other_user_counts_as_alive(open_folder: Path) -> None:
    """The file of the process cannot be opened, so its end cannot be proven."""
    (open_folder / FOLDER).mkdir()
    (open_folder / FOLDER / "1-other").touch(0)
    with unwritable(open_folder):
        assert StoreProcesses(open_folder).count_alive() == 1


def test_stopped_process_is_alive(tmp_path: Path) -> None:
    processes = StoreProcesses(tmp_path)
    with member_of(tmp_path) as (member, _):
        member.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, member.pid, os.WSTOPPED | os.WNOWAIT)
        assert (processes.count_alive(), list(processes.ended())) == (1, [])
        member.kill()


def test_store_is_silent_since_last_beat_of_killed_processes(tmp_path: Path) -> None:
    processes, wall_ms = StoreProcesses(tmp_path), 1_795_251_600_000
    assert processes.silent_ms(wall_ms) == 0
    with processes.taking_part() as own:
        for name, ago_s in ((own, 400), ("1-dead", 90), ("2-dead", 60)):
            (tmp_path / FOLDER / name).touch()
            os.utime(tmp_path / FOLDER / name, (0, wall_ms // 1000 - ago_s))
        processes.beat()
        assert (tmp_path / FOLDER / own).stat().st_mtime != wall_ms // 1000 - 400
        assert processes.silent_ms(wall_ms) == 0
    assert processes.silent_ms(wall_ms) == 60_000


def test_killed_process_is_found_ended_once(tmp_path: Path) -> None:
    processes = StoreProcesses(tmp_path)
    with member_of(tmp_path) as (member, own):
        assert (processes.count_alive(), list(processes.ended())) == (1, [])
        member.kill()
        member.wait()
        assert processes.count_alive() == 0
        assert list(processes.ended()) == [own]
        assert list(processes.ended()) == []
