"""The state of one run that all parts of the model share."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, cast

from bench.scale.books import REQUEST_BYTES, Books, sizes
from bench.scale.kernel import Kernel
from bench.scale.services import Backlog, Port, Queue, Table
from bench.scale.web import Web
from orbweaver.budget.billing_units import Stage, Term
from orbweaver.model.crawl import Crawl
from orbweaver.worker.succession import Succession

if TYPE_CHECKING:
    from bench.scale.scenario import Scenario
    from orbweaver.frontier.queues import Queue as FrontierQueue

CRAWL = "crawl-20261121-200000"


class State:
    """A crawl with its web, queue, tables and counts."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.kernel = Kernel()
        self.books = Books()
        self.random = Random(f"{scenario.seed}/model")
        self.web = Web(scenario.web, scenario.seed, scenario.minutes)
        # The settings that the stack gives to its worker.
        memory_mb = scenario.fleet.memory_mb
        self.settings = scenario.settings.having(waits_billed="yes", memory_mb=memory_mb)
        self.table = Table(self.kernel, self.books)
        self.sizes = sizes()
        self.queue = Queue(self.kernel, self.books, self.sizes)
        self.backlog = Backlog(self.books, self.sizes)
        self.succession = Succession(
            backlog=self.backlog,
            queue=cast("FrontierQueue", Port(self.queue)),
            clock=self.kernel,
        )
        self.crawl = Crawl(
            id=CRAWL, name="crawl", started_at_ms=0, delay_ms=scenario.delay_ms,
            shards=scenario.shards, seeds=tuple(f"{host}/0" for host in self.web.hosts),
        )  # fmt: skip
        # Number of claimed URLs in the file of each host.
        self.claim_files: dict[str, float] = {}

    def requested(self) -> None:
        self.books.use(Term.SENT_BYTES, Stage.WEB, REQUEST_BYTES)
        self.books.count("requests")
