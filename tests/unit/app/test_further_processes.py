"""Further worker processes that a command starts for a store."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.app import further_processes as module
from orbweaver.app.further_processes import FurtherProcesses, further_processes
from orbweaver.app.store_ports import FILE, StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.fetching.proxy_config import ProxyConfig

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 60.0
# Forks, prints whether it did, and the ids of the processes. Then it waits for a line.
FORKS = """
import sys
from pathlib import Path
from orbweaver.app.further_processes import ForkedProcess, further_processes
from orbweaver.app.store_runner import connect_store, store_settings
import asyncio
folder, settings = Path(sys.argv[1]), store_settings({})
with further_processes(2, folder, settings, {"PATH": ""}) as further:
    assert all(isinstance(process, ForkedProcess) for process in further.processes)
    async def make():
        async with connect_store(settings, folder):
            pass
    asyncio.run(make())
    if "begin" in sys.argv:
        further.begin()
    print(*(process.pid for process in further.processes), flush=True)
    if sys.stdin is not None:
        sys.stdin.readline()
assert [process.returncode for process in further.processes] == [int(sys.argv[2])] * 2
"""


def until(happened: Callable[[], bool]) -> None:
    limit_s = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < limit_s
        time.sleep(0.01)


@pytest.fixture
def _spawns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start new interpreters, as in a process with several threads."""
    monkeypatch.setattr(module, "_can_fork", lambda: False)


@pytest.mark.usefixtures("_spawns")
def test_processes_never_begun_make_no_store(tmp_path: Path) -> None:
    with further_processes(2, tmp_path / "store", store_settings({})) as further:
        assert further.count_alive() == 2
    assert further.count_alive() == 0
    assert not (tmp_path / "store").exists()


@pytest.mark.usefixtures("_spawns")
def test_further_processes_work_from_begin_to_release(tmp_path: Path) -> None:
    settings = store_settings({})
    proxies = ProxyConfig(urls=("http://me:w0rd@127.0.0.1:1",))
    with further_processes(1, tmp_path, settings, proxies=proxies) as further:
        time.sleep(0.1)
        assert not (tmp_path / FILE).exists()
        ports = StorePorts(settings, tmp_path)
        asyncio.run(ports.queue.dead_letter("{}", "nothing"))
        further.begin()
        until(lambda: StoreProcesses(tmp_path).count_alive() == 1)
        assert further.count_alive() == 1
        shown = Path(f"/proc/{further.processes[0].pid}")
        assert b"w0rd" not in (shown / "cmdline").read_bytes() + (shown / "environ").read_bytes()
        further.release()
        until(lambda: (further.count_alive(), StoreProcesses(tmp_path).count_alive()) == (0, 0))
    assert ports.inbox(QueueName.DEAD_LETTERS).depth().waiting == 1
    asyncio.run(ports.aclose())


@pytest.mark.usefixtures("_spawns")
def test_dead_process_is_not_counted_and_delays_no_other(tmp_path: Path) -> None:
    def kill(further: FurtherProcesses, number: int) -> None:
        further.processes[number].kill()
        further.processes[number].wait(WAIT_S)

    with further_processes(2, tmp_path, store_settings({})) as further:
        kill(further, 0)
        assert further.count_alive() == 1
        further.begin()
        until(lambda: StoreProcesses(tmp_path).count_alive() == 1)
        kill(further, 1)
    assert further.count_alive() == 0


def test_ended_process_is_reported_and_replaced_within_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crawl must not silently become slower after the kernel kills a process."""
    monkeypatch.setattr(module, "REPLACED_MAX", 1)
    said: list[str] = []
    with further_processes(2, tmp_path, store_settings({})) as further:
        further.warn = said.append
        further.begin()
        further.replace_ended()
        assert said == []
        killed, other = further.processes
        killed.kill()
        until(lambda: further.count_alive() == 1)
        further.replace_ended()
        replacement = further.processes[-1]
        until(lambda: {*StoreProcesses(tmp_path).pids()} == {other.pid, replacement.pid})
        replacement.terminate()
        until(lambda: further.count_alive() == 1)
        further.replace_ended()
        further.replace_ended()
        assert further.pids == (other.pid,)
        other.kill()
        until(lambda: further.count_alive() == 0)
        further.release()
        further.replace_ended()
    again = "its open requests are sent again"
    alone = "after 1 replacement the others continue without it"
    first, second = f"worker process {killed.pid}", f"worker process {replacement.pid}"
    assert said == [
        f"{first} was killed by SIGKILL: {again}; process {replacement.pid} replaces it",
        f"{second} ended with exit status 0: {again}; {alone}",
    ]


def test_released_processes_do_not_begin(tmp_path: Path) -> None:
    """A worker may find work for them while its command already writes files."""
    with further_processes(1, tmp_path, store_settings({})) as further:
        further.release()
        further.begin()
    assert not further.begun


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize("ending", ["killed", "ended"])
def test_forked_processes_end_with_their_parent(tmp_path: Path, ending: str, begins: bool) -> None:
    """A sibling must not keep the pipe of a process open."""
    # Processes that never begin end by SIGTERM, and others by the end of their pipe.
    words = [sys.executable, "-c", FORKS, str(tmp_path), "0" if begins else "-15"]
    parent = subprocess.Popen(
        [*words, *(["begin"] if begins else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        until(lambda: all(os.getsid(pid) == pid for pid in pids))
        if begins:
            until(lambda: {*StoreProcesses(tmp_path).pids()} == {*pids})
        if ending == "killed":
            parent.send_signal(signal.SIGKILL)
        else:
            parent.stdin.write("\n")
            parent.stdin.flush()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
        assert parent.wait(WAIT_S) == (-signal.SIGKILL if ending == "killed" else 0)
    assert not list(StoreProcesses(tmp_path).ended())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")
def test_forked_processes_need_no_standard_input(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKS, str(tmp_path), "0", "begin"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *words],
        stdout=subprocess.PIPE,
        timeout=WAIT_S,
        check=True,
    )
    assert len(done.stdout.split()) == 2


async def test_process_with_event_loop_does_not_fork() -> None:
    """The child would share the loop's file descriptors."""
    assert not module._can_fork()
