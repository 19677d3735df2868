"""Choose the store of a command: a folder on this machine that holds crawls, without a stack.

The default is `.orbweaver` in the current folder. `--store DIR` names another one. `--target`,
`--port` or an endpoint in the environment names a stack instead. `crawl` and `serve` create a
missing store. If the store is missing, all other commands use a stack.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.stack import ENDPOINT
from orbweaver.frontier.refetch import has_only_seeds
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.settings import STORE
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    import argparse

    from orbweaver.app.further_processes import FurtherProcesses
    from orbweaver.app.store_ports import StorePorts
    from orbweaver.control.crawl_queries import Status
    from orbweaver.extraction.extract import Extractor
    from orbweaver.fetching.proxy_config import ProxyConfig
    from orbweaver.frontier.queues import Depths

POLL_S = 0.2
NO_WORKERS = (
    "No workers running. The same `orbweaver crawl` command continues a crawl,"
    " and `orbweaver serve` works on all crawls."
)
SILENCE_MS_MAX = 60_000


def no_workers(crawl: Crawl | None) -> str:
    """Return a text that no worker runs, with the commands that continue or end `crawl`."""
    if crawl is None or (crawl.retry_of is None and crawl.state is not State.STOPPING):
        return NO_WORKERS
    if crawl.state is State.STOPPING:
        same = "The same `orbweaver crawl` command or " if crawl.retry_of is None else ""
        return f"No workers running. {same}`orbweaver serve` ends {crawl.id}."
    return f"No workers running. {commands_of_retry(crawl)} requests the URLs of {crawl.id}."


def commands_of_retry(run: Crawl) -> str:
    """Return the commands that process an unfinished retry."""
    serve = "`orbweaver serve`"
    return serve if has_only_seeds(run) else f"`orbweaver retry {run.retry_of} --wait` or {serve}"


def store_of(
    arguments: argparse.Namespace,
    here: Path,
    environment: Mapping[str, str],
    *,
    makes: bool = False,
) -> Path | None:
    """Return the folder of a command's store, or None if the command must use a stack.

    `here` is the current folder. `makes` is True for a command that creates a missing store.
    """
    given: Path | None = arguments.store
    names_stack = arguments.target is not None or arguments.port is not None
    if given is not None and names_stack:
        raise UsageError("--store names a store, --target and --port a stack: give one of them")
    if given is None and (names_stack or environment.get(ENDPOINT)):
        return None
    folder = here / (given or STORE)
    if makes or is_store(folder):
        return folder
    if given is not None:
        raise UsageError(f"--store: {given} holds no store: `orbweaver crawl` makes one there")
    from localstack import extras

    if not extras.is_installed("boto3"):
        stack = f"a stack needs {extras.install_words(extras.AWS)}"
        raise UsageError(
            f"there is no store in this folder ({STORE}): `orbweaver crawl` and `orbweaver serve`"
            f" make one, --store DIR names another; {stack}"
        )
    return None


def is_store(folder: Path) -> bool:
    from orbweaver.app.store_ports import FILE

    try:
        return (folder / FILE).is_file()
    except PermissionError:  # opening it gives a better error
        return True


@value_class
class StorePlace:
    """A store: its queues and workers. Implements `ConsolePlace`."""

    ports: StorePorts
    # True if this process has workers.
    works: bool = False
    # Interval in seconds at which a watched crawl is read, and time in ms without an answer after
    # which watching fails.
    poll_s: float = POLL_S
    silence_ms_max: int = SILENCE_MS_MAX
    billed: bool = False
    # By crawl: number of pages that killed processes had in work when this command started.
    left_in_work: Mapping[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"the store {shlex.quote(str(self.ports.folder))}"

    async def depths(self) -> Depths | None:
        from orbweaver.adapters.sqlite.messages import QueueName
        from orbweaver.app.store_runner import LANES
        from orbweaver.frontier.queues import Depths

        found = [self.ports.inbox(queue).depth() for queue in LANES]
        dead = self.ports.inbox(QueueName.DEAD_LETTERS).depth()
        return Depths(
            waiting=sum(depth.waiting for depth in found),
            in_work=sum(depth.in_flight for depth in found),
            delayed=sum(depth.delayed for depth in found),
            dead=dead.waiting + dead.in_flight,
            copies=sum(depth.copies for depth in found),
        )

    async def waiting(self, status: Status) -> tuple[str, ...]:
        """Describe the URLs for which a crawl waits: queued retries, requests without response."""
        counters = status.counters
        if status.crawl.state is State.FINISHED or counters.claimed <= counters.done:
            return ()
        from orbweaver.app.store_waiting import queued_urls
        from orbweaver.control.progress.hosts import words_of

        queued = await queued_urls(self.ports, status.crawl.id)
        request_s = self.ports.settings.fetching.fetch_total_s
        return tuple(words_of(queued, status.at_ms, status.crawl, request_s))

    @property
    def silent_ms(self) -> int:
        """Time without a process before this command."""
        return self.ports.silent_ms

    @property
    def others(self) -> tuple[int, ...]:
        """Ids of the processes of other commands that have workers now."""
        own = Counter(self.ports.own_pids())
        return tuple((Counter(worker_pids(self.ports.folder)) - own).elements())

    def has_others(self) -> bool:
        """Return True if processes of other commands might have active workers."""
        return bool(self.others)

    @property
    def idle(self) -> bool:
        """True if no process has workers."""
        return not self.works and not worker_pids(self.ports.folder)

    async def idle_workers(self, crawl: Crawl | None = None) -> str | None:
        return no_workers(crawl) if self.idle else None

    def reclaimed(self) -> bool:
        """Release the messages of killed processes. Return True if no process has workers."""
        from orbweaver.adapters.sqlite.processes import StoreProcesses

        processes = StoreProcesses(self.ports.folder)
        for ended in processes.ended():
            self.ports.take_back(ended)
        return not self.works and not processes.count_alive()

    async def workers(self) -> None:
        """Return None: a store has no switch."""

    async def alarms(self) -> list[dict[str, Any]]:
        return []

    async def switch(self, *, on: bool) -> None:
        """Return None: a store has no switch."""


def worker_pids(folder: Path) -> tuple[int, ...]:
    """List the ids of the processes that work on a store."""
    from orbweaver.adapters.sqlite.processes import StoreProcesses

    return StoreProcesses(folder).pids()


def option_again(given: Path | None) -> str:
    """Return the option that names a store, or "" for the default."""
    return "" if given is None else f" --store {shlex.quote(str(given))}"


@asynccontextmanager
async def opened_store(  # noqa: PLR0913 - settings of a process
    folder: Path,
    environment: Mapping[str, str],
    *,
    works: int = 0,
    writes: bool = False,
    extractor: str = "",
    extractors: Mapping[str, Extractor] | None = None,
    further: FurtherProcesses | None = None,
    left_in_work: Counter[str] | None = None,
    proxies: ProxyConfig | None = None,
) -> AsyncIterator[StorePorts]:
    """Open a store, and run workers on it if `works` is above 0.

    `works` is the number of worker processes, including this process. `further` are the other
    worker processes, if they already exist: they begin when this process has work for them. Without
    `further`, the other processes begin at once. The numbers of pages that killed processes had in
    work are added to `left_in_work`, by crawl. Without `works` and `writes` the store can be
    read-only. Without `proxies`, the environment names them.
    """
    from orbweaver.app.further_processes import further_processes
    from orbweaver.app.store_runner import (
        check_others,
        connect_store,
        running,
        store_proxies,
        store_settings,
    )
    from orbweaver.app.store_waiting import pages_in_work

    settings = store_settings(environment, extractor)
    if proxies is None:
        proxies = store_proxies(environment, settings)
    if works:
        check_others(folder, proxies)
    async with AsyncExitStack() as stack:
        ports = await stack.enter_async_context(
            connect_store(settings, folder, extractors, writes=writes or works > 0, proxies=proxies)
        )
        if left_in_work is not None:
            left_in_work.update(await pages_in_work(ports))
        if works:
            if further is None:
                begun = further_processes(works - 1, folder, settings, environment, proxies)
                further = stack.enter_context(begun)
                further.begin()
            await stack.enter_async_context(running(ports, further))
        yield ports
