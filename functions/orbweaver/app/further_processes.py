"""Start further worker processes for a store, and end them with their parent.

Rules
- A further process waits for a line on standard input, a pipe from its parent. Then it opens the
  store and works on it. It ends when the pipe closes, so also if its parent is killed.
- A parent with one thread and without an event loop imports the modules of a worker and forks. Such
  a process takes 0.1 s of CPU, and a new interpreter 0.35 s, in a crawl of 100 pages.
- A fork copies only the calling thread. If another thread held a lock, the copy would wait forever.
  So a parent with several threads starts new interpreters, and so does a system without `/proc`.
- A process that ends early is reported, and a new interpreter replaces it, because its parent has
  threads and an event loop by then. After `REPLACED_MAX` replacements within `REPLACED_S` it is not
  replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TypeAlias

from orbweaver.adapters.local.logs import logging_to_stderr
from orbweaver.app.store_runner import (
    END_S,
    INTERRUPTED_S,
    connect_store,
    running,
    store_settings,
)
from orbweaver.app.wiring import keep_made
from orbweaver.fetching.proxy_config import DIRECT, ProxyConfig
from orbweaver.model import amounts
from orbweaver.model.settings import PREFIX, Settings

_log = logging.getLogger(__name__)

THREADS = Path("/proc/self/task")
STDIN = 0
LOOK_S = 0.005
# More than `STRIKES_MAX`, after which a page that kills its processes is not requested again.
REPLACED_MAX, REPLACED_S = 10, 3_600.0
SIGNALS = {one.value: one.name for one in signal.Signals}


class ForkedProcess:
    """A child process that runs a function in a copy of this program. Has methods of `Popen`."""

    def __init__(self, work: Callable[[], int], siblings: Sequence[ForkedProcess]) -> None:
        """Start a process. `work` returns its exit code. `siblings` were started before."""
        read, write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            _run_in_child(work, read, [write, *(one.stdin.fileno() for one in siblings)])
        os.close(read)
        self.stdin: IO[bytes] = os.fdopen(write, "wb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        until_s = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until_s:
                raise subprocess.TimeoutExpired("", timeout)
            time.sleep(LOOK_S)
        return code

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:  # otherwise another process may have the id
            os.kill(self.pid, number)


def _run_in_child(work: Callable[[], int], stdin: int, pipes: Sequence[int]) -> None:
    """Run `work` and exit, without the rest of the parent's program."""
    code = 1
    try:
        os.setsid()  # only the parent receives Ctrl-C
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        if stdin != STDIN:  # equal if the parent's standard input is closed
            os.dup2(stdin, STDIN)
            os.close(stdin)
        # A pipe closes only after all copies of its end are closed.
        for pipe in pipes:
            os.close(pipe)
        code = work()
    except KeyboardInterrupt:
        pass
    except BaseException:  # noqa: BLE001 - no error may reach the parent's program
        traceback.print_exc()
    finally:
        os._exit(code)


Process: TypeAlias = "subprocess.Popen[bytes] | ForkedProcess"


class FurtherProcesses:
    """Child processes of a command. They wait for `begin` before they work on the store."""

    def __init__(
        self,
        processes: Sequence[Process],
        proxies: ProxyConfig,
        start: Callable[[], Process] | None = None,
    ) -> None:
        """The processes get `proxies` by their pipes, because other users can read arguments.

        `start` starts a process that replaces one.
        """
        self.processes = [*processes]
        self.begun = False
        # Receives a text about each process that ended early.
        self.warn: Callable[[str], object] = _log_end
        self._start = start
        # Times of the last replacements.
        self._replaced: deque[float] = deque(maxlen=REPLACED_MAX)
        self._released = False
        self._line = json.dumps(asdict(proxies)).encode() + b"\n"

    def begin(self) -> None:
        """Let the processes start work on their store. A second call has no effect."""
        if self.begun or self._released:
            return
        self.begun = True
        for process in self.processes:
            self._let_begin(process)

    def _let_begin(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - asked for
        with contextlib.suppress(BrokenPipeError):  # this process has died, others continue
            process.stdin.write(self._line)
            process.stdin.flush()

    def replace_ended(self) -> None:
        """Report and replace each process that ended while it should work."""
        if not self.begun or self._released:
            return
        for process in [one for one in self.processes if one.poll() is not None]:
            self.processes.remove(process)
            _close(process)
            then = self._replace()
            with contextlib.suppress(OSError):  # the display is closed, so the command ends
                self.warn(f"{_end_of(process)}: its open requests are sent again; {then}")

    def _replace(self) -> str:
        """Start a process if the limit permits it. Return a text about the effect."""
        now_s = time.monotonic()
        often = len(self._replaced) == REPLACED_MAX and now_s - self._replaced[0] < REPLACED_S
        if self._start is None or often:
            number = amounts.plural(len(self._replaced), "replacement")
            return f"after {number} the others continue without it"
        self._replaced.append(now_s)
        try:
            process = self._start()
        except OSError as error:
            return f"it cannot be replaced: {error}"
        self.processes.append(process)
        self._let_begin(process)
        return f"process {process.pid} replaces it"

    @property
    def pids(self) -> tuple[int, ...]:
        """The system's ids of all processes, including ended ones."""
        return tuple(process.pid for process in self.processes)

    def count_alive(self) -> int:
        """Count running processes."""
        return sum(process.poll() is None for process in self.processes)

    def release(self) -> None:
        """Let the processes finish their requests and end, without waiting for them."""
        self._released = True
        for process in self.processes:
            _close(process)

    def end(self, *, at_once: bool) -> None:
        """End the processes and wait. With `at_once`, requests have only `INTERRUPTED_S` left."""
        if at_once:
            for process in self.processes:
                process.terminate()
        self.release()
        for process in self.processes:
            try:
                process.wait(3 * END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(END_S)


def _close(process: Process) -> None:
    assert process.stdin is not None  # noqa: S101 - asked for
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def _end_of(process: Process) -> str:
    """Describe how an ended process ended."""
    code = process.returncode or 0
    if code < 0:
        return f"worker process {process.pid} was killed by {SIGNALS.get(-code, -code)}"
    return f"worker process {process.pid} ended with exit status {code}"


def _log_end(said: str) -> None:
    _log.warning("process.ended", extra={"text": said})


@contextmanager
def further_processes(
    number: int,
    folder: Path,
    settings: Settings,
    environment: Mapping[str, str] | None = None,
    proxies: ProxyConfig = DIRECT,
) -> Iterator[FurtherProcesses]:
    """Start `number` child processes, which wait for `begin`, and end them after the block."""
    variables = {**(os.environ if environment is None else environment)}
    if settings.function.extractor:
        variables[PREFIX + "EXTRACTOR"] = settings.function.extractor
    start = _forked if _can_fork() else _spawned
    further = FurtherProcesses(
        start(number, folder, variables), proxies, lambda: _spawned(1, folder, variables)[0]
    )
    at_once = True
    try:
        yield further
        at_once = not further.begun
    finally:
        further.end(at_once=at_once)


def _can_fork() -> bool:
    """Return True if a copy of this thread is a whole program."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return False
    try:
        return sum(1 for _ in THREADS.iterdir()) == 1
    except OSError:  # not Linux
        return False


def _forked(number: int, folder: Path, variables: Mapping[str, str]) -> list[Process]:
    if number:
        import_worker()
        keep_made()  # so that a collection of garbage copies no shared memory

    def work() -> int:
        os.environ.clear()
        os.environ.update(variables)
        return work_on(folder)

    started: list[ForkedProcess] = []
    for _ in range(number):
        started.append(ForkedProcess(work, started))
    return [*started]


def _spawned(number: int, folder: Path, variables: Mapping[str, str]) -> list[Process]:
    words = [sys.executable, "-m", __name__, str(folder)]
    return [
        subprocess.Popen(  # noqa: S603 - this program
            words,
            stdin=subprocess.PIPE,
            env=variables,
            start_new_session=True,  # only the parent receives Ctrl-C
        )
        for _ in range(number)
    ]


def import_worker() -> None:
    """Import most modules of a worker before a store exists."""
    import orbweaver.adapters.local.reader
    import orbweaver.adapters.web.client
    import orbweaver.worker.batch  # noqa: F401


def work_on(folder: Path) -> int:
    """Wait for a line on standard input, then work on a store until standard input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = store_settings(os.environ)
    # Not with `sys.stdin`: a forked process has the parent's buffer, and Python aborts at its exit
    # if a thread holds the file lock.
    with os.fdopen(STDIN, "rb", closefd=False) as stdin:
        line = stdin.readline()
    if not line:
        return 0  # the parent ended before it had a store
    given = json.loads(line)
    proxies = ProxyConfig(**{**given, "urls": tuple(given["urls"])})

    async def work() -> None:
        loop, ended, told = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def wait() -> None:
            with contextlib.suppress(OSError):
                while os.read(STDIN, 4_096):
                    pass
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

        def tell() -> None:
            told.set()
            ended.set()

        loop.add_signal_handler(signal.SIGTERM, tell)
        threading.Thread(target=wait, name="parent", daemon=True).start()
        opening = connect_store(settings, folder, proxies=proxies)
        async with opening as ports, running(ports) as runner:
            await ended.wait()
            if told.is_set():
                runner.patience_s = INTERRUPTED_S

    with logging_to_stderr(os.environ):
        asyncio.run(work())
    return 0


def main() -> int:
    """Run a further process in a new interpreter."""
    # Before the imports, which take longer than a user needs for Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import_worker()
    keep_made()
    return work_on(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
