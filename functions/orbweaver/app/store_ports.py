"""Create the ports that use an embedded store: a folder with an SQLite database and files.

All processes that work on one crawl open the same folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.clock import SteadyClock
from orbweaver.adapters.sqlite.messages import QueueName, SqliteMessages
from orbweaver.adapters.sqlite.processes import StoreProcesses
from orbweaver.adapters.sqlite.store import SqliteStore
from orbweaver.adapters.sqlite.timekeeping import keep_time
from orbweaver.fetching.proxy_config import DIRECT
from orbweaver.model.errors import Permanent
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.adapters.local.folder import FolderFiles
    from orbweaver.adapters.local.secrets import LocalSecrets
    from orbweaver.adapters.sqlite.backlog import SqliteBacklog
    from orbweaver.adapters.sqlite.budgets import SqliteBudgets
    from orbweaver.adapters.sqlite.claims import SqliteFrontier
    from orbweaver.adapters.sqlite.crawls import SqliteCrawls
    from orbweaver.adapters.sqlite.dead_letters import SqliteDeadLetters
    from orbweaver.adapters.sqlite.erasure import SqliteTraces
    from orbweaver.adapters.sqlite.hosts import SqliteHosts
    from orbweaver.adapters.sqlite.metrics import SqliteMetrics
    from orbweaver.adapters.sqlite.packs import SqlitePacks
    from orbweaver.adapters.sqlite.pages import SqlitePages
    from orbweaver.adapters.sqlite.queue import (
        SqliteDeliveries,
        SqliteEvents,
        SqliteOrders,
        SqliteQueue,
    )
    from orbweaver.adapters.sqlite.reaping import SqliteReaper
    from orbweaver.adapters.sqlite.receiving import SqliteInbox
    from orbweaver.adapters.sqlite.schedules import SqliteSchedules
    from orbweaver.delivery.deliverer import Courier
    from orbweaver.extraction.extract import Extractor
    from orbweaver.frontier.pack_result import UncommittedResults
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.metrics import Service
    from orbweaver.model.ports import Clock, Fetcher, Metrics
    from orbweaver.rendering.renderer import Renderer
    from orbweaver.rendering.task import PageRenderer
    from orbweaver.worker.page_reading import PageReader

FILE, FILES, SECRETS = "store.db", "files", "secrets"


class StorePorts:
    """Ports that use one folder of this machine."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
        durable: bool = False,
        clock: Clock | None = None,
        extractors: Mapping[str, Extractor] | None = None,
        writes: bool = True,
    ) -> None:
        """Open or create the store of a folder. Raises PortError with a remedy.

        With `durable`, commits survive a power failure. `extractors` are functions of this program,
        by the names that extraction rules use. Without `writes`, it is enough that this user can
        read the store.
        """
        self._extractors = extractors
        self.folder = folder
        self.proxies = DIRECT
        # Time without a process before this one. Measured when its workers begin.
        self.silent_ms = 0
        # Returns the ids of the processes that this command lets work on the store.
        self.own_pids: Callable[[], tuple[int, ...]] = lambda: ()
        self.settings = settings.having(
            crawl_queue_url=QueueName.CRAWL.value,
            express_queue_url=QueueName.EXPRESS.value,
            seed_queue_url=QueueName.SEEDS.value,
            dead_letter_queue_url=QueueName.DEAD_LETTERS.value,
        )
        self.clock: Clock = clock or SteadyClock()
        self.random = self.delivery_random = Random()  # noqa: S311 - jitter, not secrets
        # Can contain secrets.
        self._environment = dict(environment or {})
        self.store = SqliteStore.open(folder / FILE, durable=durable, writes=writes)
        self.keep_time(StoreProcesses(folder).count_alive)
        self._fetchers: list[Fetcher] = []
        self._unanswered: list[Mapping[str, int]] = []
        self._renderer: Renderer | None = None
        # Callbacks that run when the ports are closed.
        self.ending = ExitStack()
        self.ending.callback(self.store.close)

    # --- queues -----------------------------------------------------------------------------

    @cached_property
    def messages(self) -> SqliteMessages:
        most = self.settings.worker.receive_max
        return SqliteMessages(self.store, clock=self.clock, receive_max=most)

    def keep_time(self, others: Callable[[], int]) -> bool:
        """Keep the time that the store's processes share. Return True if it was set to the clock.

        `others` counts the other processes.
        """
        if not isinstance(self.clock, SteadyClock):
            return False
        return keep_time(self.store, self.clock, others)

    def held_by(self, process: str) -> None:
        """Mark received and sent messages as held by `process`.

        If it dies, other processes requeue them.
        """
        self.messages.holder = process
        self.messages.bring_near()

    def take_back(self, process: str) -> int:
        """Make the messages of a dead process due now. Return the number of messages."""
        return self.messages.take_back(process)

    def inbox(self, queue: QueueName) -> SqliteInbox:
        from orbweaver.adapters.sqlite.receiving import SqliteInbox

        return SqliteInbox(self.messages, queue, clock=self.clock)

    @cached_property
    def queue(self) -> SqliteQueue:
        from orbweaver.adapters.sqlite.queue import SqliteQueue

        return SqliteQueue(self.messages)

    @cached_property
    def dead_letters(self) -> SqliteDeadLetters:
        from orbweaver.adapters.sqlite.dead_letters import SqliteDeadLetters

        return SqliteDeadLetters(self.messages)

    @cached_property
    def orders(self) -> SqliteOrders:
        from orbweaver.adapters.sqlite.queue import SqliteOrders

        return SqliteOrders(self.messages)

    @cached_property
    def deliveries(self) -> SqliteDeliveries:
        from orbweaver.adapters.sqlite.queue import SqliteDeliveries

        return SqliteDeliveries(self.messages)

    @cached_property
    def events(self) -> SqliteEvents:
        from orbweaver.adapters.sqlite.queue import SqliteEvents

        return SqliteEvents(self.messages, stack=self.settings.names.stack)

    # --- tables -----------------------------------------------------------------------------

    @cached_property
    def underway(self) -> UncommittedResults:
        """Results that workers of this process have not committed yet."""
        from orbweaver.frontier.pack_result import UncommittedResults

        return UncommittedResults()

    @cached_property
    def packs(self) -> SqlitePacks:
        from orbweaver.adapters.sqlite.packs import SqlitePacks

        return SqlitePacks(self.store, clock=self.clock, committed=self.underway.end, **self._kept)

    @cached_property
    def backlog(self) -> SqliteBacklog:
        """Packs (messages with up to 25 URLs) that wait for their hosts."""
        from orbweaver.adapters.sqlite.backlog import SqliteBacklog

        return SqliteBacklog(self.store, clock=self.clock)

    @cached_property
    def budgets(self) -> SqliteBudgets:
        from orbweaver.adapters.sqlite.budgets import SqliteBudgets

        return SqliteBudgets(self.store, clock=self.clock, **self._kept)

    @cached_property
    def crawls(self) -> SqliteCrawls:
        from orbweaver.adapters.sqlite.crawls import SqliteCrawls

        kept_s = self.settings.retention.crawl_retention_s
        return SqliteCrawls(self.store, clock=self.clock, crawl_retention_s=kept_s)

    async def refuse_without_proxies(self, crawl: Crawl) -> str:
        """Return why the workers of this store must not request a crawl, and the fix, or ""."""
        from orbweaver.app.worker_proxies import refusal

        own = None if self.messages.holder is None else self.proxies
        return await refusal(self.crawls, self.folder, own, crawl)

    @cached_property
    def frontier(self) -> SqliteFrontier:
        from orbweaver.adapters.sqlite.claims import SqliteFrontier

        return SqliteFrontier(self.store)

    @cached_property
    def hosts(self) -> SqliteHosts:
        from orbweaver.adapters.sqlite.hosts import SqliteHosts

        return SqliteHosts(self.store)

    @cached_property
    def pages(self) -> SqlitePages:
        from orbweaver.adapters.sqlite.pages import SqlitePages

        return SqlitePages(
            self.store,
            clock=self.clock,
            retention_s=self.settings.retention.page_retention_s,
            shards=self.settings.worker.pages_shards,
        )

    @cached_property
    def traces(self) -> SqliteTraces:
        """Erasure of stored URLs."""
        from orbweaver.adapters.sqlite.erasure import SqliteTraces

        kept_s = self.settings.retention.ledger_retention_s
        return SqliteTraces(self.store, clock=self.clock, ledger_retention_s=kept_s)

    @cached_property
    def reaper(self) -> SqliteReaper:
        """Deletion of expired rows."""
        from orbweaver.adapters.sqlite.reaping import SqliteReaper

        kept_s = self.settings.retention.ledger_retention_s
        return SqliteReaper(self.store, clock=self.clock, ledger_retention_s=kept_s)

    @cached_property
    def schedules(self) -> SqliteSchedules:
        from orbweaver.adapters.sqlite.schedules import SqliteSchedules

        return SqliteSchedules(self.store)

    @property
    def _kept(self) -> dict[str, Any]:
        return {
            "ledger_retention_s": self.settings.retention.ledger_retention_s,
            "crawl_retention_s": self.settings.retention.crawl_retention_s,
        }

    # --- files outside the database --------------------------------------------------------

    @cached_property
    def files(self) -> FolderFiles:
        """Bodies and exports. A file is on disk before a record names it."""
        from orbweaver.adapters.local.folder import FolderFiles

        return FolderFiles(self.folder / FILES, durable=True)

    async def delete_expired_files(self) -> int:
        """Delete files after their retention. Return their number."""
        from orbweaver.app.file_retention import KEPT_D
        from orbweaver.model.page_record import DAY_MS

        now_ms = self.clock.now_ms()
        return sum(
            [
                await self.files.delete_unmodified(prefix, now_ms - days * DAY_MS)
                for prefix, days in KEPT_D.items()
            ]
        )

    @cached_property
    def secrets(self) -> LocalSecrets:
        from orbweaver.adapters.local.secrets import LocalSecrets

        return LocalSecrets(self.folder / SECRETS, self._environment)

    @cached_property
    def reader(self) -> PageReader:
        from orbweaver.adapters.local.reader import BudgetReader, FunctionReader

        reader = BudgetReader(
            clock=self.clock,
            extractor=self.settings.function.extractor,
            waiting_bytes_max=self.settings.worker.waiting_bytes_max,
        )
        self.ending.callback(reader.close)
        return FunctionReader(reader, self._extractors) if self._extractors else reader

    @cached_property
    def renderer(self) -> PageRenderer | None:
        """Browser of this machine, or None if none is installed. It starts with its first page."""
        from orbweaver.rendering.launch import find_browser

        program = find_browser()
        if program is None:
            return None
        from orbweaver.rendering.renderer import Renderer

        self._renderer = Renderer(program)
        return self._renderer

    @property
    def catalogue(self) -> None:
        """Always None, because local files are queried in place."""
        return

    def metrics(self, service: Service) -> SqliteMetrics:
        from orbweaver.adapters.sqlite.metrics import SqliteMetrics

        return SqliteMetrics(self.store, service)

    def watched(self, fetcher: Fetcher, metrics: Metrics) -> Fetcher:
        """Wrap a fetcher so that `metrics` contain the durations of its requests.

        `aclose` closes it.
        """
        from orbweaver.adapters.web.timing import TimedFetcher

        self._fetchers.append(fetcher)
        timed = TimedFetcher(fetcher, metrics, self.clock)
        self._unanswered.append(timed.unanswered)
        return timed

    @property
    def unanswered(self) -> Mapping[str, int]:
        """Return the URLs that this process is requesting, with the requests' start times in ms."""
        return {url: at_ms for some in self._unanswered for url, at_ms in some.items()}

    async def aclose(self) -> None:
        """Close the store and all connections to the web."""
        with self.ending:
            if self._renderer is not None:
                await self._renderer.close()
            for fetcher in self._fetchers:
                if (close := getattr(fetcher, "aclose", None)) is not None:
                    await close()

    def of_crawl(self, crawl: str) -> AbstractContextManager[None]:
        del crawl  # a store is not billed
        return nullcontext()

    async def bucket_courier(self) -> Courier:
        """Raise Permanent, because only a stack on AWS copies exports to a bucket."""
        raise Permanent("exports are copied to a bucket by a stack on AWS alone")
