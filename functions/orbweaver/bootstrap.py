"""Wiring: the only place that knows both the settings and the adapters.

Nothing is built at import. A Lambda container keeps one event loop and everything that is opened
in it (`asyncio.run` would close the loop behind the clients' backs between two invocations).
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from orbweaver.adapters.aws import Aws
from orbweaver.adapters.clock import SystemClock
from orbweaver.adapters.dynamodb import Dynamo
from orbweaver.adapters.dynamodb_allowances import DynamoAllowances
from orbweaver.adapters.dynamodb_crawls import DynamoCrawls
from orbweaver.adapters.dynamodb_frontier import DynamoFrontier
from orbweaver.adapters.dynamodb_hosts import DynamoHosts
from orbweaver.adapters.dynamodb_packs import DynamoPacks
from orbweaver.adapters.dynamodb_pages import DynamoPages
from orbweaver.adapters.dynamodb_traces import DynamoTraces, Tables
from orbweaver.adapters.events import BusEvents
from orbweaver.adapters.s3 import BucketFiles
from orbweaver.adapters.schedules import GroupSchedules, Target
from orbweaver.adapters.secrets import ManagedSecrets
from orbweaver.adapters.sqs import SqsQueue
from orbweaver.adapters.sqs_dead_letters import SqsDeadLetters
from orbweaver.adapters.sqs_deliveries import SqsDeliveries
from orbweaver.settings import Settings
from orbweaver.wiring import api_of, notifying, starting, worker_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from orbweaver.advance import Delivery
    from orbweaver.api import Api
    from orbweaver.delivery import Taken
    from orbweaver.exporting import Exporter
    from orbweaver.worker import Worker

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world, as AWS provides it."""

    queue: SqsQueue
    dead_letters: SqsDeadLetters
    packs: DynamoPacks
    allowances: DynamoAllowances
    crawls: DynamoCrawls
    frontier: DynamoFrontier
    hosts: DynamoHosts
    pages: DynamoPages
    files: BucketFiles
    events: BusEvents
    deliveries: SqsDeliveries
    schedules: GroupSchedules
    secrets: ManagedSecrets
    # Everything that is stored of URLs, and the queues as somebody looks through them.
    traces: DynamoTraces
    lanes: tuple[SqsDeadLetters, ...]
    clock: SystemClock
    random: Random
    settings: Settings
    aws: Aws


@asynccontextmanager
async def connect(settings: Settings) -> AsyncIterator[Ports]:
    """Open the ports of the stack that `settings` name, in the usual AWS environment."""
    clock, random = SystemClock(), Random()  # noqa: S311 - jitter, not secrets
    async with Aws() as aws:
        dynamo = Dynamo(await aws.client("dynamodb"), clock=clock, random=random)
        yield Ports(
            queue=SqsQueue(
                await aws.client("sqs"),
                clock=clock,
                random=random,
                crawl_url=settings.crawl_queue_url,
                express_url=settings.express_queue_url,
                dead_letter_url=settings.dead_letter_queue_url,
            ),
            dead_letters=SqsDeadLetters(
                await aws.client("sqs"),
                dead_letter_url=settings.dead_letter_queue_url,
                crawl_url=settings.crawl_queue_url,
            ),
            packs=DynamoPacks(dynamo, clock=clock, **_ledgers_of(settings)),
            allowances=DynamoAllowances(dynamo, clock=clock, **_ledgers_of(settings)),
            crawls=DynamoCrawls(dynamo, clock=clock, random=random, **_crawls_of(settings)),
            frontier=DynamoFrontier(dynamo, urls_table=settings.urls_table),
            hosts=DynamoHosts(dynamo, clock=clock, hosts_table=settings.hosts_table),
            pages=DynamoPages(
                dynamo,
                clock=clock,
                pages_table=settings.pages_table,
                retention_s=settings.page_retention_s,
                shards=settings.pages_shards,
            ),
            files=BucketFiles(await aws.client("s3"), bucket=settings.bucket),
            events=BusEvents(
                await aws.client("events"), bus=settings.event_bus, bucket=settings.bucket
            ),
            deliveries=SqsDeliveries(
                aws,
                queue_url=settings.delivery_queue_url,
                dead_letter_url=settings.delivery_dead_letter_url,
            ),
            schedules=GroupSchedules(aws, target=_target_of(settings)),
            secrets=ManagedSecrets(aws),
            traces=_traces_of(dynamo, clock, settings),
            lanes=await _lanes_of(aws, settings),
            clock=clock,
            random=random,
            settings=settings,
            aws=aws,
        )


async def _lanes_of(aws: Aws, settings: Settings) -> tuple[SqsDeadLetters, ...]:
    client = await aws.client("sqs")
    crawl_url = settings.crawl_queue_url
    return tuple(
        SqsDeadLetters(client, dead_letter_url=url, crawl_url=crawl_url)
        for url in (crawl_url, settings.express_queue_url)
    )


def _traces_of(dynamo: Dynamo, clock: SystemClock, settings: Settings) -> DynamoTraces:
    tables = Tables(
        urls=settings.urls_table,
        pages=settings.pages_table,
        hosts=settings.hosts_table,
        crawls=settings.crawls_table,
        packs=settings.packs_table,
    )
    kept_s = settings.ledger_retention_s
    return DynamoTraces(dynamo, clock=clock, tables=tables, ledger_retention_s=kept_s)


def _crawls_of(settings: Settings) -> dict[str, Any]:
    kept_s = settings.crawl_retention_s
    return {"crawls_table": settings.crawls_table, "crawl_retention_s": kept_s}


def _ledgers_of(settings: Settings) -> dict[str, Any]:
    return {
        "packs_table": settings.packs_table,
        "ledger_retention_s": settings.ledger_retention_s,
        **_crawls_of(settings),
    }


def _target_of(settings: Settings) -> Target:
    return Target(
        group=settings.schedule_group,
        function=settings.starter_function,
        role=settings.schedule_role,
        failed=settings.failed_calls_queue,
    )


class Container:
    """One Lambda execution environment: an event loop, and what is open in it."""

    def __init__(self) -> None:
        """Read the settings; ports are opened by the first invocation."""
        self._settings = Settings.from_environment()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._ports: Ports | None = None
        self._worker: Worker | None = None
        self._api: Api | None = None
        self._exporter: Exporter | None = None
        _log_as_json()

    def work(self, deliveries: Sequence[Delivery], remaining_ms: int) -> tuple[str, ...]:
        """Process a batch; the ids of the messages that are to come back."""

        async def run(ports: Ports) -> tuple[str, ...]:
            if self._worker is None:
                self._worker = worker_of(ports)
            try:
                return await self._worker.run(deliveries, ports.clock.now_ms() + remaining_ms)
            finally:
                self._worker.flush()

        return self._run(run)

    def export(self, event: dict[str, Any], identity: str, remaining_ms: int) -> dict[str, Any]:
        """Begin to export what an event asks for, or do what exporters have ordered."""

        async def run(ports: Ports) -> dict[str, Any]:
            exporter = await self._exporting(ports)
            if "Records" not in event:
                return {"days": list(await exporter.begin(event, identity))}
            deadline_ms = ports.clock.now_ms() + remaining_ms
            for record in event["Records"]:
                await exporter.handle(record["body"], deadline_ms)
            return {}

        return self._run(run)

    async def _exporting(self, ports: Ports) -> Exporter:
        from orbweaver.wiring_exporting import exporter_of

        if self._exporter is None:
            self._exporter = await exporter_of(ports)
        return self._exporter

    def fire(self, event: dict[str, Any]) -> dict[str, str]:
        """Start the crawl that a schedule's firing asks for."""

        async def run(ports: Ports) -> dict[str, str]:
            with starting(ports) as starter:
                return await starter.fire(event)

        return self._run(run)

    def notify(self, event: dict[str, Any]) -> dict[str, str]:
        """Tell a webhook that a crawl has ended."""

        async def run(ports: Ports) -> dict[str, str]:
            async with notifying(ports) as notifier:
                return await notifier.notify(event)

        return self._run(run)

    def deliver(self, taken: Taken, remaining_ms: int) -> tuple[str, ...]:
        """Bring an export to a receiver; the message's id if it is to come back."""
        from orbweaver.wiring_delivery import delivering

        async def run(ports: Ports) -> tuple[str, ...]:
            with delivering(ports) as deliverer:
                return await deliverer.run(taken, ports.clock.now_ms() + remaining_ms)

        return self._run(run)

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        """Answer an API Gateway request."""

        async def run(ports: Ports) -> dict[str, Any]:
            if self._api is None:
                self._api = api_of(ports)
            return await self._api.answer(event)

        return self._run(run)

    def _run(self, act: Callable[[Ports], Coroutine[Any, Any, T]]) -> T:
        async def opened() -> T:
            if self._ports is None:
                self._ports = await self._stack.enter_async_context(connect(self._settings))
            return await act(self._ports)

        return self._runner.run(opened())


@cache
def container() -> Container:
    """The container of this process, made by its first invocation."""
    return Container()


def _log_as_json() -> None:
    """One JSON line an event; the fields of `extra` are its keys."""
    from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

    logger = logging.getLogger("orbweaver")
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(LambdaPowertoolsFormatter())
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
