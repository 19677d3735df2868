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
from orbweaver.adapters.events import BusEvents
from orbweaver.adapters.s3 import BucketFiles
from orbweaver.adapters.schedules import GroupSchedules, Target
from orbweaver.adapters.secrets import ManagedSecrets
from orbweaver.adapters.sqs import SqsQueue
from orbweaver.adapters.sqs_dead_letters import SqsDeadLetters
from orbweaver.settings import Settings
from orbweaver.wiring import api_of, notifying, starting, worker_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from orbweaver.advance import Delivery
    from orbweaver.api import Api
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
    schedules: GroupSchedules
    secrets: ManagedSecrets
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
            crawls=DynamoCrawls(dynamo, random=random, crawls_table=settings.crawls_table),
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
            events=BusEvents(await aws.client("events"), bus=settings.event_bus),
            schedules=GroupSchedules(aws, target=_target_of(settings)),
            secrets=ManagedSecrets(aws),
            clock=clock,
            random=random,
            settings=settings,
            aws=aws,
        )


def _ledgers_of(settings: Settings) -> dict[str, Any]:
    return {
        "packs_table": settings.packs_table,
        "crawls_table": settings.crawls_table,
        "ledger_retention_s": settings.ledger_retention_s,
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

    def export(self, event: dict[str, Any], remaining_ms: int) -> dict[str, Any]:
        """Export a day, or as much of it as there is time for."""
        from orbweaver.adapters.functions import FunctionContinuation
        from orbweaver.exporter import Continue, Exporter

        async def run(ports: Ports) -> dict[str, Any]:
            exporter = Exporter(
                pages=ports.pages,
                files=ports.files,
                clock=ports.clock,
                random=ports.random,
                part_rows_max=self._settings.part_rows_max,
            )
            result = await exporter.run(
                event,
                deadline_ms=ports.clock.now_ms() + remaining_ms,
                continuation=FunctionContinuation(
                    await ports.aws.client("lambda"), function=self._settings.exporter_function
                ),
            )
            if isinstance(result, Continue):
                return {"continued": result.day}
            return {"day": result.manifest.day, "rows": result.manifest.rows}

        return self._run(run)

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
