"""Workers over a store on this machine: what Lambda and its event sources do on AWS.

Rules
- A process has one worker, which works on `BATCHES` batches at once: while one of them waits for a
  host, another goes on. Host slots, claims and counters are the store's, and so hold over all
  processes and crawls. Processes share what is queued (adapters/sqlite/messages.py).
- A message that failed is seen again after `RETRY_S`, as often as `receive_max` says; then it is a
  dead letter.
- What a killed process had taken, and what it had sent and taken on without receiving it
  (worker/rounds.py), is seen again as soon as another one looks: each process holds a lock on a
  file of its own, which the kernel gives back however the process ends. One that ends in order
  gives it back itself.
- A process that is no longer wanted finishes what it is asking for, for up to `END_S`, and requeues
  the rest of its batches; one that is interrupted or told to end (SIGTERM) requeues what it is
  asking for as well.
- Further processes may be started before there is a store to work on: they import what they need
  until they are told to begin. They end when the one that started them does: their standard input
  is a pipe from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import QueueName, Sharing
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.adapters.sqlite.receiving import deliveries_of
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.wiring import keep_made, worker_of
from orbweaver.model.address_policy import THIS_MACHINE
from orbweaver.model.errors import PortError
from orbweaver.model.settings import PREFIX, Settings

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor

_log = logging.getLogger(__name__)

LANES = (QueueName.EXPRESS, QueueName.SEEDS, QueueName.CRAWL)
BATCHES, BATCH_MESSAGES = 3, 10
# How long a batch has, and for how long its messages are held back from others.
BATCH_S, HIDDEN_S = 60.0, 360.0
RETRY_S = 10.0
# How often a process looks for messages that others have sent, and for those that died.
POLL_S, IDLE_POLL_S, POLLS_TO_IDLE = 0.02, 0.25, 100
TEND_S, LOOKS_TO_REAP = 1.0, 60
END_S = 10.0
DEFAULTS = {
    "ALLOW_ADDRESSES": THIS_MACHINE,
    "SEGMENT_WAIT_S": "0.5",
    # A machine has more memory than a function is given.
    "SEGMENT_BYTES_MAX": "16777216",
    "LARGE_BODIES": "12",
    "WAITING_BYTES_MAX": "67108864",
    "HELD_BYTES_MAX": "268435456",
    "PAGES_SHARDS": "1",
    # A process on a person's machine is killed by people more often than by pages.
    "STRIKES_MAX": "6",
}


def store_settings(environment: Mapping[str, str], extractor: str = "") -> Settings:
    """Read the settings of a process over a store; every `ORBWEAVER_*` variable counts."""
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    own = {"EXTRACTOR": extractor} if extractor else {}
    values = {PREFIX + name: value for name, value in (DEFAULTS | own).items()}
    return Settings.from_environment(values | given)


class StoreRunner:
    """One process's worker."""

    def __init__(
        self,
        ports: StorePorts,
        processes: StoreProcesses,
        further: FurtherProcesses | None = None,
    ) -> None:
        """Take the open store, the processes that work on it, and those that are yet to begin."""
        self._ports = ports
        self._processes = processes
        self._worker = worker_of(ports, ports.underway)
        self._inboxes = [ports.inbox(queue) for queue in LANES]
        self._further = further
        self._sharing = Sharing(processes=self._alive, held_max=BATCHES * BATCH_MESSAGES)
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Work on what is queued until `end` is called."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tend())
            for _ in range(BATCHES):
                group.create_task(self._work())

    def rest(self) -> None:
        """Take no more batches, and begin no more requests in those that are in work."""
        self._ended.set()
        self._worker.rest()

    def end(self) -> None:
        """Give up what is being asked for, and requeue it."""
        self._ended.set()
        self._worker.end()

    def _alive(self) -> int:
        """Count the processes that share what is queued, those that are still importing too."""
        try:
            begun = self._processes.alive()
        except OSError:  # no more files can be opened just now: as if it were alone
            return 1
        return begun if self._further is None else max(begun, 1 + self._further.alive())

    async def _work(self) -> None:
        polls = 0
        while not self._ended.is_set():
            try:
                worked = await self._work_once()
            except PortError as error:
                _log.warning("store.out_of_reach", extra={"error": str(error)})
                worked, polls = False, POLLS_TO_IDLE
            polls = 0 if worked else polls + 1
            if not worked:
                await self._pause(POLL_S if polls < POLLS_TO_IDLE else IDLE_POLL_S)

    async def _work_once(self) -> bool:
        """Work on a batch of the first queue of `LANES` that has messages; whether one has."""
        for inbox in self._inboxes:
            taken = await inbox.receive(BATCH_MESSAGES, HIDDEN_S, sharing=self._sharing)
            if not taken:
                continue
            until_ms = self._ports.clock.now_ms() + round(BATCH_S * 1000)
            failed = set(await self._worker.run(deliveries_of(taken, inbox.queue), until_ms))
            await inbox.settle(taken, failed, RETRY_S)
            self._worker.flush()
            return True
        return False

    async def _tend(self) -> None:
        """Take back what killed processes held, and now and then delete what has expired."""
        looks = 0
        while not self._ended.is_set():
            try:
                for ended in self._processes.ended():
                    self._ports.take_back(ended)
                if looks % LOOKS_TO_REAP == 0:
                    await self._ports.reaper.reap()
            except PortError as error:
                _log.warning("store.out_of_reach", extra={"error": str(error)})
            looks += 1
            await self._pause(TEND_S)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)


@asynccontextmanager
async def connect_store(
    settings: Settings,
    folder: Path,
    extractors: Mapping[str, Extractor] | None = None,
    *,
    writes: bool = True,
) -> AsyncIterator[StorePorts]:
    """Open the store of a folder, or make it; see `StorePorts`."""
    ports = StorePorts(
        settings, folder, environment=os.environ, extractors=extractors, writes=writes
    )
    try:
        yield ports
    finally:
        await ports.aclose()


@asynccontextmanager
async def running(
    ports: StorePorts, further: FurtherProcesses | None = None
) -> AsyncIterator[StoreRunner]:
    """Have this process work on a store for the length of a block, beside those it started."""
    processes = StoreProcesses(ports.folder)
    with processes.taking_part() as own:
        ports.held_by(own)
        runner = StoreRunner(ports, processes, further)
        task = asyncio.create_task(runner.run())
        try:
            yield runner
            runner.rest()
            await asyncio.wait({task}, timeout=END_S)
        finally:
            runner.end()
            await asyncio.wait({task}, timeout=END_S)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            with contextlib.suppress(PortError):  # or they come back when they are due
                ports.take_back(own)


class FurtherProcesses:
    """Further processes that a command has started, and tells to begin."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.processes = processes
        self.begun = False

    def begin(self) -> None:
        """Have them work on their store, which is there now."""
        self.begun = True
        for process in self.processes:
            assert process.stdin is not None  # noqa: S101 - asked for
            with contextlib.suppress(BrokenPipeError):  # one that has died: the others go on
                process.stdin.write(b"\n")
                process.stdin.flush()

    def alive(self) -> int:
        """Count those that have not ended."""
        return sum(process.poll() is None for process in self.processes)

    def end(self, *, at_once: bool) -> None:
        """Have them end, and wait for it; `at_once` without finishing what they are asking for."""
        for process in self.processes:
            if at_once:
                process.terminate()
            assert process.stdin is not None  # noqa: S101 - asked for
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self.processes:
            try:
                process.wait(3 * END_S)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def further_processes(number: int, folder: Path, settings: Settings) -> Iterator[FurtherProcesses]:
    """Have further processes for the length of a block; they work on a store once they are told."""
    own = {PREFIX + "EXTRACTOR": settings.extractor} if settings.extractor else {}
    words = [sys.executable, "-m", __name__, str(folder)]
    with contextlib.ExitStack() as stack:
        further = FurtherProcesses(
            [
                stack.enter_context(
                    subprocess.Popen(  # noqa: S603 - this program
                        words,
                        stdin=subprocess.PIPE,
                        env={**os.environ, **own},
                        start_new_session=True,  # Ctrl-C is for the process that it is typed at
                    )
                )
                for _ in range(number)
            ]
        )
        at_once = True
        try:
            yield further
            at_once = not further.begun
        finally:
            further.end(at_once=at_once)


def import_worker() -> None:
    """Import most of what a worker needs, while there is no store for one to work on."""
    import orbweaver.adapters.local.reader
    import orbweaver.adapters.web.client
    import orbweaver.worker.batch  # noqa: F401


def main() -> int:
    """Work on a store once the standard input says so, and until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    settings = store_settings(os.environ)
    import_worker()
    keep_made()
    if not sys.stdin.buffer.readline():
        return 0  # there was nothing to work on

    async def work() -> None:
        loop, ended, told = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def wait() -> None:
            with contextlib.suppress(OSError):
                sys.stdin.buffer.read()
            with contextlib.suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(ended.set)

        def tell() -> None:
            told.set()
            ended.set()

        loop.add_signal_handler(signal.SIGTERM, tell)
        threading.Thread(target=wait, name="parent", daemon=True).start()
        async with connect_store(settings, folder) as ports, running(ports) as runner:
            await ended.wait()
            if told.is_set():
                runner.end()

    asyncio.run(work())
    return 0


if __name__ == "__main__":
    sys.exit(main())
