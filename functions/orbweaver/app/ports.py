"""Define the ports that components take, independent of AWS and of the embedded store."""

from __future__ import annotations

from contextlib import AbstractContextManager
from random import Random
from typing import TYPE_CHECKING, Protocol

from orbweaver.model.ports import Clock, Events, Fetcher, Files, Metrics, Secrets
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from orbweaver.budget.ports import Budgets
    from orbweaver.control.ports import Schedules
    from orbweaver.delivery.ports import Courier, Deliveries
    from orbweaver.erasure.ports import Lane, Traces
    from orbweaver.exporting.ports import Catalogue, ExportEvents, Orders
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, History, Packs, Pages
    from orbweaver.frontier.queues import DeadLetters, Queue
    from orbweaver.model.metrics import Service
    from orbweaver.politeness.ports import Hosts
    from orbweaver.rendering.task import PageRenderer
    from orbweaver.worker.page_reading import PageReader

    class Records(Pages, History, Protocol):
        """Page records, by day and by URL."""

    class Announcements(Events, ExportEvents, Protocol):
        """Event bus of workers and exporters."""


class PortSet(Protocol):
    """All ports of one process."""

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def lanes(self) -> tuple[Lane, ...]: ...
    @property
    def orders(self) -> Orders: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def packs(self) -> Packs: ...
    @property
    def backlog(self) -> Backlog: ...
    @property
    def budgets(self) -> Budgets: ...
    @property
    def crawls(self) -> Crawls: ...
    @property
    def frontier(self) -> Frontier: ...
    @property
    def hosts(self) -> Hosts: ...
    @property
    def pages(self) -> Records: ...
    @property
    def traces(self) -> Traces: ...
    @property
    def files(self) -> Files: ...
    @property
    def events(self) -> Announcements: ...
    @property
    def catalogue(self) -> Catalogue | None: ...
    @property
    def reader(self) -> PageReader: ...
    @property
    def renderer(self) -> PageRenderer | None: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def secrets(self) -> Secrets: ...

    def metrics(self, service: Service) -> Metrics: ...

    def watched(self, fetcher: Fetcher, metrics: Metrics) -> Fetcher:
        """Return a fetcher that counts requests and their durations."""

    def of_crawl(self, crawl: str) -> AbstractContextManager[None]:
        """Attribute the usage within the context to a crawl."""

    async def bucket_courier(self) -> Courier:
        """Return a courier that copies exports into `settings.copy_bucket`."""
