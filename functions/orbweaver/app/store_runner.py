"""Run workers over a store on this machine, as Lambda and its event sources do on AWS.

Rules
- A process has one worker, which processes `BATCHES` batches at once. It takes further messages of
  crawls with a delay, up to `PACED_MAX`, because these mostly wait for their hosts. Each of these
  messages is a batch, so that no host waits for another one. Host slots, claims and counters are in
  the store, so they apply to all processes and crawls. Processes share the queue
  (adapters/sqlite/messages.py).
- A failed message becomes visible after `RETRY_S`, up to `receive_max` times. Then it becomes a
  dead letter.
- Messages of a killed process become visible as soon as another process finds it dead. This
  includes packs that the killed process sent and processed without receiving them
  (worker/rounds.py). Each process holds a lock on a file of its own, which the kernel releases when
  the process ends. A process that ends normally releases its messages itself.
- A process that is no longer needed finishes its current requests, for up to `END_S`. It requeues
  the other URLs of its batches. After an interrupt it finishes its requests for up to
  `INTERRUPTED_S`, and then requeues them as well.
- Further processes (app/further_processes.py) begin when this process has work for several: a batch
  of a crawl without a delay, or more than `PACED_ALONE` messages of crawls with a delay.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.adapters.local.heap import use_one_heap
from orbweaver.adapters.sqlite.messages import QueueName, Sharing
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.adapters.sqlite.receiving import deliveries_of
from orbweaver.adapters.sqlite.store import StoreUnusable
from orbweaver.app.proxy_guard import ProxyGuard
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.wiring import worker_of
from orbweaver.fetching.proxy_config import DIRECT, ProxyConfig, config_in
from orbweaver.fetching.proxy_pool import PoolError
from orbweaver.model.address_policy import THIS_MACHINE
from orbweaver.model.errors import PortError
from orbweaver.model.settings import PREFIX, Settings, SettingsError

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.messages import ReceivedMessage
    from orbweaver.adapters.sqlite.receiving import SqliteInbox
    from orbweaver.extraction.extract import Extractor

_log = logging.getLogger(__name__)

LANES = (QueueName.EXPRESS, QueueName.SEEDS, QueueName.CRAWL)
BATCHES, BATCH_MESSAGES = 3, 10
# Maximum number of messages in further batches: one for each of about a hundred hosts.
PACED_MAX = 120
# Number of these messages that one process serves without the help of further processes.
PACED_ALONE = 30
# Time limit of a batch, and visibility timeout of its messages.
BATCH_S, HIDDEN_S = 180.0, 600.0
RETRY_S = 10.0
# Interval between checks for new messages, and a longer one after POLLS_TO_IDLE checks without any.
# A new process begins with FIRST_POLL_S, doubled each time, because its seeds arrive in a moment.
FIRST_POLL_S, POLL_S, IDLE_POLL_S, POLLS_TO_IDLE = 0.002, 0.02, 0.25, 100
# Interval between beats of this process and between checks for dead processes. One of LOOKS_TO_REAP
# checks deletes expired data. The next check continues if it deleted rows, because a short crawl
# deletes only once otherwise.
TEND_S, LOOKS_TO_REAP = 1.0, 60
# Time limits for current requests: at the end of a process, and after an interrupt.
END_S, INTERRUPTED_S = 10.0, 3.0
DEFAULTS = {
    "ALLOW_ADDRESSES": THIS_MACHINE,
    "SEGMENT_WAIT_S": "0.5",
    # A machine has more memory than a function.
    "SEGMENT_BYTES_MAX": "16777216",
    "LARGE_BODIES": "12",
    "WAITING_BYTES_MAX": "67108864",
    "HELD_BYTES_MAX": "268435456",
    "PAGES_SHARDS": "1",
    # Only the time limit of a batch ends the visit of a host. If all hosts' visits ended together,
    # their commits would keep the process busy, and the hosts idle.
    "ROUND_S": "3600",
    # On a person's machine, people kill a process more often than pages do.
    "STRIKES_MAX": "6",
}


def store_settings(environment: Mapping[str, str], extractor: str = "") -> Settings:
    """Read the settings of a process that works on a store, from `ORBWEAVER_*` variables.

    `extractor` is the default for the module of extractor functions.
    """
    given = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    own = {"EXTRACTOR": extractor} if extractor else {}
    values = {PREFIX + name: value for name, value in (DEFAULTS | own).items()}
    return Settings.from_environment(values | given)


def store_proxies(environment: Mapping[str, str], settings: Settings) -> ProxyConfig:
    """Return the proxies of a process without options. Raises SettingsError for invalid ones."""
    if settings.names.proxy_secret:
        return ProxyConfig(secret=settings.names.proxy_secret)
    try:
        return config_in(environment)
    except PoolError as error:
        raise SettingsError(str(error)) from None


def check_others(folder: Path, proxies: ProxyConfig) -> None:
    """Raise StoreUnusable if a process with other proxies works on a store.

    Processes share all crawls of a store, so it would request pages without these proxies.
    """
    for pid, mark in StoreProcesses(folder).marks().items():
        if mark != proxies.mark:
            fix = "end it first, give both the same proxies, or give another --store"
            raise StoreUnusable(f"process {pid} works on this store with other proxies: {fix}")


class WaitingProcesses(Protocol):
    """Processes that begin to work on the store when `begin` is called first."""

    begun: bool

    @property
    def pids(self) -> tuple[int, ...]: ...

    def begin(self) -> None: ...

    def replace_ended(self) -> None: ...

    def count_alive(self) -> int: ...


class StoreRunner:
    """Runs the worker of one process on a store."""

    def __init__(
        self,
        ports: StorePorts,
        processes: StoreProcesses,
        further: WaitingProcesses | None = None,
    ) -> None:
        """`processes` work on the store. `further` wait until this process has work for them."""
        self._ports = ports
        self._processes = processes
        self._worker = worker_of(ports, ports.underway)
        self._guard = ProxyGuard(ports)
        self._batches = 0
        # Time limit of requests in progress after the block of `running` ends.
        self.patience_s = END_S
        # Messages in work of batches that hold no place of the `BATCHES`.
        self._paced = 0
        self._inboxes = [ports.inbox(queue) for queue in LANES]
        self._further = further
        self._sharing = Sharing(processes=self._alive, held_max=BATCHES * BATCH_MESSAGES)
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Process the queue until `end` is called."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._maintain())
            for _ in range(BATCHES):
                group.create_task(self._work(group))

    def drain(self) -> None:
        """Take no new batch, and start no further request of current batches."""
        self._ended.set()
        self._worker.drain()

    def end(self) -> None:
        """Abort current requests and requeue them."""
        self._ended.set()
        self._worker.end()

    def _alive(self) -> int:
        """Count the processes that share the queue, including starting ones."""
        try:
            begun = self._processes.count_alive()
        except OSError:  # too many open files: count only this process
            return 1
        if self._further is None or not self._further.begun:
            return begun
        return max(begun, 1 + self._further.count_alive())

    async def _work(self, group: asyncio.TaskGroup) -> None:
        polls, poll_s = 0, FIRST_POLL_S
        while not self._ended.is_set():
            try:
                worked = await self._work_once(group)
            except PortError as error:
                _log.warning("store.out_of_reach", extra={"error": str(error)})
                worked, polls = False, POLLS_TO_IDLE
            polls = 0 if worked else polls + 1
            if not worked:
                await self._pause(poll_s if polls < POLLS_TO_IDLE else IDLE_POLL_S)
                poll_s = min(POLL_S, 2 * poll_s)

    async def _work_once(self, group: asyncio.TaskGroup) -> bool:
        """Process one batch of the first queue with messages. Return False if all queues are empty.

        Batches of crawls with a delay run in their own tasks: the method does not wait for them.
        """
        for inbox in self._inboxes:
            taken = await inbox.receive(BATCH_MESSAGES, HIDDEN_S, sharing=self._sharing)
            if not taken:
                continue
            if await self._is_paced(taken) and self._paced + len(taken) <= PACED_MAX:
                # Counted here, because the next batch is taken before the tasks begin.
                self._paced += len(taken)
                self._begin_further(is_needed=self._paced > PACED_ALONE)
                for part in _apart(taken):
                    group.create_task(self._process_paced(inbox, part))
            else:
                self._begin_further(is_needed=True)
                await self._process(inbox, taken)
            return True
        return False

    def _begin_further(self, *, is_needed: bool) -> None:
        if is_needed and self._further is not None:
            self._further.begin()

    async def _is_paced(self, taken: Sequence[ReceivedMessage]) -> bool:
        """Return True if all messages belong to crawls with a delay."""
        try:
            crawls = [await self._ports.crawls.get(one) for one in {one.group for one in taken}]
        except PortError:
            return False
        return all(crawl is not None and crawl.delay_ms for crawl in crawls)

    async def _process_paced(self, inbox: SqliteInbox, taken: Sequence[ReceivedMessage]) -> None:
        try:
            await self._process(inbox, taken)
        except PortError as error:
            _log.warning("store.out_of_reach", extra={"error": str(error)})
        finally:
            self._paced -= len(taken)

    async def _process(self, inbox: SqliteInbox, taken: Sequence[ReceivedMessage]) -> None:
        try:
            await self._guard.check(one.group for one in taken)
        except PortError:  # unknown whether direct requests are permitted
            await inbox.settle(taken, {one.id for one in taken}, RETRY_S)
            raise
        until_ms = self._ports.clock.now_ms() + round(BATCH_S * 1000)
        self._batches += 1
        try:
            failed = set(await self._worker.run(deliveries_of(taken, inbox.queue), until_ms))
        finally:
            self._batches -= 1
        await inbox.settle(taken, failed, RETRY_S)
        self._worker.flush()

    async def _maintain(self) -> None:
        """Requeue the messages of killed processes, and delete expired data from time to time."""
        looks = deleted = 0
        while not self._ended.is_set():
            self._processes.beat()
            if self._further is not None:
                self._further.replace_ended()
            try:
                for ended in self._processes.ended():
                    self._ports.take_back(ended)
                if looks % LOOKS_TO_REAP == 0:
                    self._keep_time()
                    await self._ports.delete_expired_files()
                if looks % LOOKS_TO_REAP == 0 or deleted:
                    deleted = await self._ports.reaper.reap()
            except PortError as error:
                _log.warning("store.out_of_reach", extra={"error": str(error)})
            looks += 1
            await self._pause(TEND_S)

    def _keep_time(self) -> None:
        """Let the store adopt the machine's time, unless a batch is being processed."""
        if not self._batches and self._ports.keep_time(lambda: self._processes.count_alive() - 1):
            # Caches of the worker hold times from before the move.
            self._worker = worker_of(self._ports, self._ports.underway)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)


def _apart(taken: Sequence[ReceivedMessage]) -> list[Sequence[ReceivedMessage]]:
    """Return one batch per message, and one batch of all messages that may have killed a process.

    A worker processes the suspects of a batch one by one.
    """
    from orbweaver.frontier.messages import Pack, decode

    suspects: list[ReceivedMessage] = []
    others: list[Sequence[ReceivedMessage]] = []
    for one in taken:
        message = decode(one.body)
        if one.receives > 1 or (isinstance(message, Pack) and message.failures):
            suspects.append(one)
        else:
            others.append([one])
    return [suspects, *others] if suspects else others


@asynccontextmanager
async def connect_store(
    settings: Settings,
    folder: Path,
    extractors: Mapping[str, Extractor] | None = None,
    *,
    writes: bool = True,
    proxies: ProxyConfig = DIRECT,
) -> AsyncIterator[StorePorts]:
    """Open or create the store of a folder; see `StorePorts`."""
    ports = StorePorts(
        settings, folder, environment=os.environ, extractors=extractors, writes=writes
    )
    ports.proxies = proxies
    try:
        yield ports
    finally:
        await ports.aclose()


@asynccontextmanager
async def running(
    ports: StorePorts, further: WaitingProcesses | None = None
) -> AsyncIterator[StoreRunner]:
    """Run a worker in this process and in further processes while the block runs."""
    use_one_heap()
    processes = StoreProcesses(ports.folder)
    with contextlib.suppress(OSError):  # too many open files
        ports.silent_ms = processes.silent_ms(SystemClock().now_ms())
    with processes.taking_part(ports.proxies.mark) as own:
        ports.held_by(own)
        ports.own_pids = lambda: (os.getpid(), *(further.pids if further is not None else ()))
        runner = StoreRunner(ports, processes, further)
        task = asyncio.create_task(runner.run())
        try:
            yield runner
        except BaseException:
            runner.patience_s = INTERRUPTED_S
            raise
        finally:
            runner.drain()
            await asyncio.wait({task}, timeout=runner.patience_s)
            runner.end()
            await asyncio.wait({task}, timeout=END_S)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            with contextlib.suppress(
                PortError
            ):  # otherwise they become visible after their timeout
                ports.take_back(own)
