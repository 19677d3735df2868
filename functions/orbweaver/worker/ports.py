"""Ports of a worker's container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from orbweaver.model.ports import Clock, Events, Files, Secrets
from orbweaver.model.settings import Settings
from orbweaver.worker.page_reading import PageReader

if TYPE_CHECKING:
    from random import Random

    from orbweaver.budget.ports import Budgets
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, History, Packs, Pages
    from orbweaver.frontier.queues import Queue
    from orbweaver.politeness.ports import Hosts
    from orbweaver.rendering.task import PageRenderer

    class PagesWithHistory(Pages, History, Protocol):
        """The table of pages, for new and earlier records."""


class WorkerPorts(Protocol):
    """Tables, queue, files and settings that the parts of a worker share.

    `renderer` is None on machines without a browser. `delivery_random` numbers the deliveries of
    packs, so its sequence must differ between containers.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def delivery_random(self) -> Random: ...
    @property
    def queue(self) -> Queue: ...
    @property
    def packs(self) -> Packs: ...
    @property
    def crawls(self) -> Crawls: ...
    @property
    def events(self) -> Events: ...
    @property
    def frontier(self) -> Frontier: ...
    @property
    def pages(self) -> PagesWithHistory: ...
    @property
    def backlog(self) -> Backlog: ...
    @property
    def hosts(self) -> Hosts: ...
    @property
    def budgets(self) -> Budgets: ...
    @property
    def files(self) -> Files: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def reader(self) -> PageReader: ...
    @property
    def renderer(self) -> PageRenderer | None: ...
