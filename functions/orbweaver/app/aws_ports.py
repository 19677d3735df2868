"""Create the ports that use a stack on AWS, each on first use. The settings name the stack."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.sqs import SqsQueue
from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.adapters.local.clock import SystemClock
from orbweaver.fetching.proxy_config import ProxyConfig
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from orbweaver.adapters.aws.emf import EmfMetrics
    from orbweaver.adapters.aws.event_bus import BusEvents
    from orbweaver.adapters.aws.glue import GlueCatalogue
    from orbweaver.adapters.aws.queue_depths import QueueDepths
    from orbweaver.adapters.aws.s3 import BucketFiles
    from orbweaver.adapters.aws.s3_copy import BucketCourier
    from orbweaver.adapters.aws.scheduler import GroupSchedules
    from orbweaver.adapters.aws.secrets import ManagedSecrets
    from orbweaver.adapters.aws.sqs import SqsDeliveries, SqsOrders
    from orbweaver.adapters.aws.sqs_dead_letters import SqsDeadLetters
    from orbweaver.adapters.dynamodb.backlog import DynamoBacklog
    from orbweaver.adapters.dynamodb.budgets import DynamoBudgets
    from orbweaver.adapters.dynamodb.claims import DynamoFrontier
    from orbweaver.adapters.dynamodb.crawls import DynamoCrawls
    from orbweaver.adapters.dynamodb.erasure import DynamoTraces
    from orbweaver.adapters.dynamodb.hosts import DynamoHosts
    from orbweaver.adapters.dynamodb.packs import DynamoPacks
    from orbweaver.adapters.dynamodb.pages import DynamoPages
    from orbweaver.adapters.dynamodb.table import Dynamo
    from orbweaver.adapters.local.reader import BudgetReader
    from orbweaver.model.metrics import Service
    from orbweaver.model.ports import Fetcher, Metrics
    from orbweaver.rendering.renderer import Renderer


class Ports:
    """Ports that use the queues, tables, buckets and other services of a stack on AWS."""

    # The settings of a stack decide about its proxies.
    refuse_without_proxies = None

    def __init__(self, settings: Settings, aws: Aws, meter: UsageMeter) -> None:
        self.settings = settings
        self.aws = aws
        self.meter = meter
        self.proxies = ProxyConfig(secret=settings.names.proxy_secret, is_local=False)
        self.clock = SystemClock()
        self.random = self.delivery_random = Random()  # noqa: S311 - jitter, not secrets
        # Callbacks that run when the ports are closed.
        self.ending = ExitStack()
        self._renderer: Renderer | None = None

    async def aclose(self) -> None:
        with self.ending:
            if self._renderer is not None:
                await self._renderer.close()

    # A cold start imports and opens only the clients that its function needs (`Aws.later`).
    @cached_property
    def queue(self) -> SqsQueue:
        from orbweaver.adapters.aws.sqs import SqsQueue

        return SqsQueue(
            self.aws.later("sqs"),
            clock=self.clock,
            random=self.random,
            crawl_url=self.settings.queues.crawl_queue_url,
            express_url=self.settings.queues.express_queue_url,
            dead_letter_url=self.settings.queues.dead_letter_queue_url,
            render_url=self.settings.queues.render_queue_url,
        )

    @cached_property
    def dead_letters(self) -> SqsDeadLetters:
        from orbweaver.adapters.aws.sqs_dead_letters import SqsDeadLetters

        settings = self.settings
        return SqsDeadLetters(
            self.aws.later("sqs"),
            dead_letter_url=settings.queues.dead_letter_queue_url,
            crawl_url=settings.queues.crawl_queue_url,
            seed_url=settings.queues.seed_queue_url,
            pack_queues=settings.queues.pack_queues,
        )

    @cached_property
    def orders(self) -> SqsOrders:
        from orbweaver.adapters.aws.sqs import SqsOrders

        return SqsOrders(
            self.aws.later("sqs"),
            clock=self.clock,
            random=self.random,
            queue_url=self.settings.queues.export_queue_url,
        )

    @cached_property
    def deliveries(self) -> SqsDeliveries:
        from orbweaver.adapters.aws.sqs import SqsDeliveries

        return SqsDeliveries(
            self.aws,
            queue_url=self.settings.queues.delivery_queue_url,
            dead_letter_url=self.settings.queues.delivery_dead_letter_url,
        )

    @cached_property
    def depths(self) -> QueueDepths:
        from orbweaver.adapters.aws.queue_depths import QueueDepths

        named = self.settings
        return QueueDepths(
            self.aws.later("sqs"),
            lanes=(named.queues.seed_queue_url, *named.queues.pack_queue_urls),
            dead_letters=named.queues.dead_letter_queue_url,
        )

    @cached_property
    def packs(self) -> DynamoPacks:
        from orbweaver.adapters.dynamodb.packs import DynamoPacks

        booking = self.meter.booking
        return DynamoPacks(self._dynamo, clock=self.clock, booking=booking, **self._ledgers)

    @cached_property
    def backlog(self) -> DynamoBacklog:
        """Packs (messages with up to 25 URLs) that wait for their hosts."""
        from orbweaver.adapters.dynamodb.backlog import DynamoBacklog

        return DynamoBacklog(
            self._dynamo, clock=self.clock, packs_table=self.settings.names.packs_table
        )

    @cached_property
    def budgets(self) -> DynamoBudgets:
        from orbweaver.adapters.dynamodb.budgets import DynamoBudgets

        return DynamoBudgets(self._dynamo, clock=self.clock, **self._ledgers)

    @cached_property
    def crawls(self) -> DynamoCrawls:
        from orbweaver.adapters.dynamodb.crawls import DynamoCrawls

        random = self.random
        return DynamoCrawls(self._dynamo, clock=self.clock, random=random, **self._counter_options)

    @cached_property
    def frontier(self) -> DynamoFrontier:
        from orbweaver.adapters.dynamodb.claims import DynamoFrontier

        return DynamoFrontier(self._dynamo, urls_table=self.settings.names.urls_table)

    @cached_property
    def hosts(self) -> DynamoHosts:
        from orbweaver.adapters.dynamodb.hosts import DynamoHosts

        return DynamoHosts(
            self._dynamo, clock=self.clock, hosts_table=self.settings.names.hosts_table
        )

    @cached_property
    def pages(self) -> DynamoPages:
        from orbweaver.adapters.dynamodb.pages import DynamoPages

        return DynamoPages(
            self._dynamo,
            clock=self.clock,
            pages_table=self.settings.names.pages_table,
            retention_s=self.settings.retention.page_retention_s,
            shards=self.settings.worker.pages_shards,
        )

    @cached_property
    def traces(self) -> DynamoTraces:
        """Erasure of stored URLs."""
        from orbweaver.adapters.dynamodb.erasure import DynamoTraces, TableNames

        tables = TableNames(
            urls=self.settings.names.urls_table,
            pages=self.settings.names.pages_table,
            hosts=self.settings.names.hosts_table,
            crawls=self.settings.names.crawls_table,
        )
        kept_s = self.settings.retention.ledger_retention_s
        clock = self.clock
        return DynamoTraces(self._dynamo, clock=clock, tables=tables, ledger_retention_s=kept_s)

    @cached_property
    def files(self) -> BucketFiles:
        from orbweaver.adapters.aws.s3 import BucketFiles

        return BucketFiles(self.aws.later("s3"), bucket=self.settings.names.bucket)

    @cached_property
    def events(self) -> BusEvents:
        from orbweaver.adapters.aws.event_bus import BusEvents

        named = self.settings
        return BusEvents(
            self.aws.later("events"),
            bus=named.names.event_bus,
            stack=named.names.stack,
            bucket=named.names.bucket,
        )

    @cached_property
    def catalogue(self) -> GlueCatalogue | None:
        settings = self.settings
        if not settings.names.database:
            return None
        from orbweaver.adapters.aws.glue import GlueCatalogue
        from orbweaver.exporting.manifest import PREFIX

        root = f"s3://{settings.names.bucket}/{PREFIX}"
        return GlueCatalogue(self.aws, database=settings.names.database, root=root)

    @cached_property
    def reader(self) -> BudgetReader:
        from orbweaver.adapters.local.reader import BudgetReader

        reader = BudgetReader(
            clock=self.clock,
            extractor=self.settings.function.extractor,
            waiting_bytes_max=self.settings.worker.waiting_bytes_max,
        )
        self.ending.callback(reader.close)
        return reader

    @cached_property
    def renderer(self) -> Renderer | None:
        """Browser of the function, or None if it has none.

        The browser starts with its first page.
        """
        if not self.settings.function.browser:
            return None
        from orbweaver.rendering.launch import find_program
        from orbweaver.rendering.renderer import Renderer

        self._renderer = Renderer(find_program(self.settings.function.browser))
        return self._renderer

    @cached_property
    def schedules(self) -> GroupSchedules:
        from orbweaver.adapters.aws.scheduler import GroupSchedules, ScheduleTarget

        target = ScheduleTarget(
            group=self.settings.names.schedule_group,
            function=self.settings.names.starter_function,
            role=self.settings.names.schedule_role,
            failed=self.settings.names.failed_calls_queue,
        )
        return GroupSchedules(self.aws, target=target)

    @cached_property
    def secrets(self) -> ManagedSecrets:
        from orbweaver.adapters.aws.secrets import ManagedSecrets

        return ManagedSecrets(self.aws)

    def metrics(self, service: Service) -> EmfMetrics:
        from orbweaver.adapters.aws.emf import EmfMetrics

        settings = self.settings
        billed = settings.function.custom_metrics == "yes"
        return EmfMetrics(
            stack=settings.names.stack, service=service, meter=self.meter, billed=billed
        )

    def watched(self, fetcher: Fetcher, metrics: Metrics) -> Fetcher:
        from orbweaver.adapters.aws.usage_meter import MeteredFetcher
        from orbweaver.adapters.web.timing import TimedFetcher

        return TimedFetcher(MeteredFetcher(fetcher, self.meter), metrics)

    def of_crawl(self, crawl: str) -> AbstractContextManager[None]:
        """Attribute the AWS usage within the context to a crawl."""
        return self.meter.for_crawl(crawl)

    async def bucket_courier(self) -> BucketCourier:
        """Return a courier that copies exports into `settings.delivery.copy_bucket`."""
        from orbweaver.adapters.aws.s3_copy import BucketCourier
        from orbweaver.exporting.manifest import PREFIX

        return BucketCourier(
            await self.aws.client("s3"),
            source=self.settings.names.bucket,
            target=self.settings.delivery.copy_bucket,
            prefix=PREFIX,
            clock=self.clock,
        )

    @cached_property
    def _dynamo(self) -> Dynamo:
        from orbweaver.adapters.dynamodb.table import Dynamo

        return Dynamo(self.aws.later("dynamodb"), clock=self.clock, random=self.random)

    @property
    def _counter_options(self) -> dict[str, Any]:
        kept_s = self.settings.retention.crawl_retention_s
        return {"crawls_table": self.settings.names.crawls_table, "crawl_retention_s": kept_s}

    @property
    def _ledgers(self) -> dict[str, Any]:
        return {
            "packs_table": self.settings.names.packs_table,
            "ledger_retention_s": self.settings.retention.ledger_retention_s,
            **self._counter_options,
        }


def meter_of(settings: Settings) -> UsageMeter:
    from orbweaver.adapters.aws.usage_meter import UsageMeter
    from orbweaver.budget.prices import time_term

    tables = {
        settings.names.urls_table: "urls",
        settings.names.pages_table: "pages",
        settings.names.hosts_table: "hosts",
        settings.names.crawls_table: "crawls",
        settings.names.packs_table: "packs",
    }
    term = time_term(settings.function.architecture)
    return UsageMeter(tables=tables, memory_mb=settings.function.memory_mb, time_term=term)
