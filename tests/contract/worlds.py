"""Backends of the contract tests: memory, SQLite and AWS emulators.

A world (one backend) creates containers: sets of adapters over shared state, each with its own
caches, like two warm Lambda functions. The test sets the clock; `sleep` advances it.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from uuid import uuid4

import pytest

from orbweaver.adapters.aws.event_bus import BusEvents
from orbweaver.adapters.aws.s3 import BucketFiles
from orbweaver.adapters.aws.sqs import SqsQueue
from orbweaver.adapters.aws.sqs_dead_letters import SqsDeadLetters
from orbweaver.adapters.dynamodb.backlog import DynamoBacklog
from orbweaver.adapters.dynamodb.budgets import DynamoBudgets
from orbweaver.adapters.dynamodb.claims import DynamoFrontier
from orbweaver.adapters.dynamodb.crawls import DynamoCrawls
from orbweaver.adapters.dynamodb.erasure import DynamoTraces, TableNames
from orbweaver.adapters.dynamodb.hosts import DynamoHosts
from orbweaver.adapters.dynamodb.packs import DynamoPacks
from orbweaver.adapters.dynamodb.pages import DynamoPages
from orbweaver.adapters.dynamodb.table import Dynamo
from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.app.store_ports import StorePorts
from orbweaver.exporting.run_state import ExportEvents
from orbweaver.frontier.messages import MessageSource
from orbweaver.frontier.ports import History, Pages
from orbweaver.model.ports import Events
from orbweaver.model.settings import Settings
from tests import memory

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from orbweaver.adapters.aws.clients import Aws
    from orbweaver.adapters.sqlite.messages import ReceivedMessage
    from orbweaver.budget.ports import Budgets
    from orbweaver.erasure.ports import Traces
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, Packs
    from orbweaver.frontier.queues import DeadLetters, Queue
    from orbweaver.model.ports import Files
    from orbweaver.politeness.ports import Hosts
    from tests.memory import ManualClock

PAGE_RETENTION_S = 30 * 86_400
LEDGER_RETENTION_S = 19 * 86_400
PAGES_SHARDS = 4

KEYS = {
    "urls": [("k", "HASH")],
    "pages": [("day", "HASH"), ("k", "RANGE")],
    "hosts": [("host", "HASH")],
    "crawls": [("k", "HASH")],
    "packs": [("k", "HASH"), ("part", "RANGE")],
}
# The end-to-end tests run on the same emulator, so only `make test-long` has it here.
AWS_WORLDS = ["moto", pytest.param("emulator", marks=[pytest.mark.emulator, pytest.mark.long])]
# The third world has tables only.
LOCAL = "dynamodb_local"
LANES = ("crawl", "express", "seeds", "dead")
SETTINGS = Settings.of(
    page_retention_s=PAGE_RETENTION_S,
    ledger_retention_s=LEDGER_RETENTION_S,
    pages_shards=PAGES_SHARDS,
)


class Records(Pages, History, Protocol):
    """Table of page records, by day and by URL."""


class Bus(Events, ExportEvents, Protocol):
    """Event bus for workers and exporters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """Adapters of one container."""

    queue: Queue
    dead_letters: DeadLetters
    packs: Packs
    backlog: Backlog
    budgets: Budgets
    crawls: Crawls
    frontier: Frontier
    hosts: Hosts
    pages: Records
    files: Files
    events: Bus
    traces: Traces
    # Crawl queue as the erasure reads it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """Message as a consumer receives it."""

    body: str
    group: str = ""
    reason: str | None = None


class World(Protocol):
    """State that containers share, and its view from outside."""

    clock: ManualClock

    def container(self) -> Container:
        pass

    async def receive(self, lane: str) -> list[Received]:
        """Receive all due messages from the `crawl`, `express`, `seeds` or `dead` queue."""

    async def delayed(self, lane: str) -> int: ...

    async def announced(self) -> list[str]: ...

    async def exported(self) -> list[str]: ...


Opener: TypeAlias = "Callable[[str], AbstractAsyncContextManager[World]]"


class MemoryWorld:
    """All ports in memory."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.state = memory.World()

    def container(self) -> Container:
        return Container(
            queue=memory.MemoryQueue(self.state),
            dead_letters=memory.MemoryDeadLetters(self.state, clock=self.clock),
            packs=memory.MemoryPacks(self.state),
            backlog=memory.MemoryBacklog(self.state),
            budgets=memory.MemoryBudgets(self.state),
            crawls=memory.MemoryCrawls(self.state),
            frontier=memory.MemoryFrontier(self.state),
            hosts=memory.MemoryHosts(self.state),
            pages=memory.MemoryPages(self.state, shards=PAGES_SHARDS),
            files=memory.MemoryFiles(self.state),
            events=memory.MemoryEvents(self.state),
            traces=memory.MemoryTraces(self.state),
        )

    async def receive(self, lane: str) -> list[Received]:
        if lane == "dead":
            mails, self.state.buried = self.state.buried, []
        else:
            mails = [mail for mail in self._sent(lane) if not mail.delay_s]
            self.state.sent = [mail for mail in self.state.sent if mail not in mails]
        return [Received(body=mail.body, group=mail.group, reason=mail.reason) for mail in mails]

    async def delayed(self, lane: str) -> int:
        return sum(1 for mail in self._sent(lane) if mail.delay_s)

    async def announced(self) -> list[str]:
        taken, self.state.announced = self.state.announced, []
        return [crawl.id for crawl, _ in taken]

    async def exported(self) -> list[str]:
        taken, self.state.exported = self.state.exported, []
        return [key for _, key in taken]

    def _sent(self, lane: str) -> list[memory.Mail]:
        wanted = (
            lane == "express",
            MessageSource.SEEDS if lane == "seeds" else MessageSource.PACKS,
        )
        return [mail for mail in self.state.sent if (mail.express, mail.source) == wanted]


class SqliteWorld:
    """Store in a file; each container has its own connection."""

    def __init__(self, clock: ManualClock, folder: Path) -> None:
        self.clock = clock
        self._folder = folder
        self._opened: list[StorePorts] = []
        self.ports = self.open()

    def open(self) -> StorePorts:
        ports = StorePorts(SETTINGS, self._folder, clock=self.clock)
        self._opened.append(ports)
        return ports

    def close(self) -> None:
        for ports in self._opened:
            ports.ending.close()

    def container(self) -> Container:
        ports = self.open()
        return Container(
            queue=ports.queue,
            dead_letters=ports.dead_letters,
            packs=ports.packs,
            backlog=ports.backlog,
            budgets=ports.budgets,
            crawls=ports.crawls,
            frontier=ports.frontier,
            hosts=ports.hosts,
            pages=ports.pages,
            files=ports.files,
            events=ports.events,
            traces=ports.traces,
        )

    async def receive(self, lane: str) -> list[Received]:
        taken = await self.take(QueueName.DEAD_LETTERS if lane == "dead" else QueueName(lane))
        return [Received(body=one.body, group=one.group, reason=one.reason) for one in taken]

    async def take(self, queue: QueueName) -> list[ReceivedMessage]:
        inbox = self.ports.inbox(queue)
        got: list[ReceivedMessage] = []
        while some := await inbox.receive(10, 30):
            await inbox.delete(some)
            got += some
        return got

    async def delayed(self, lane: str) -> int:
        return self.ports.inbox(QueueName(lane)).depth().delayed

    async def event_details(self) -> list[dict[str, Any]]:
        return [json.loads(one.body)["detail"] for one in await self.take(QueueName.EVENTS)]

    async def announced(self) -> list[str]:
        return [detail["id"] for detail in await self.event_details()]

    async def exported(self) -> list[str]:
        return [detail["manifest"] for detail in await self.event_details()]


@dataclass(slots=True, kw_only=True)
class AwsWorld:
    """Local AWS emulator, with separate tables and queues for every test.

    The first request that names a table or bucket creates it, because most tests need only one or
    two.
    """

    clock: ManualClock
    aws: Aws
    name: str = field(default_factory=lambda: uuid4().hex[:12])
    urls: dict[str, str] = field(default_factory=dict)
    clients: dict[str, Any] = field(default_factory=dict)
    _made: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def open(self, *, queues: bool = True) -> None:
        """Create clients and, unless `queues` is false, queues."""
        for service in ("dynamodb", "sqs", "s3", "events"):
            self.clients[service] = client = await self.aws.client(service)
            if service in ("dynamodb", "s3"):
                client.meta.events.register("provide-client-params", self._named)
        for lane in (*LANES, "events"):
            self.urls[lane] = f"https://none.invalid/{lane}"
            if queues:
                answer = await self.clients["sqs"].create_queue(QueueName=f"{self.name}-{lane}")
                self.urls[lane] = answer["QueueUrl"]

    async def _named(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if model.name in ("CreateTable", "CreateBucket"):
            return
        if "Bucket" in params:
            wanted = {""} if params["Bucket"] == self.name else set()
        else:
            wanted = set(re.findall(rf"{self.name}-(\w+)", repr(params)))
        for name in wanted & {"", *KEYS}:
            if name not in self._made:
                self._made[name] = asyncio.create_task(self._make(name))
            await self._made[name]

    async def _make(self, name: str) -> None:
        if not name:
            await self.clients["s3"].create_bucket(Bucket=self.name)
            return
        keys = KEYS[name]
        await self.clients["dynamodb"].create_table(
            TableName=self.table(name),
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key, _ in keys],
            BillingMode="PAY_PER_REQUEST",
        )

    def table(self, name: str) -> str:
        return f"{self.name}-{name}"

    def container(self, **faulty: Any) -> Container:
        """Start a container; `faulty` replaces clients by service."""
        clients = self.clients | faulty
        random = Random(4711)
        clock = self.clock
        dynamo = Dynamo(clients["dynamodb"], clock=clock, random=random)
        return Container(
            queue=SqsQueue(
                clients["sqs"],
                clock=clock,
                random=random,
                crawl_url=self.urls["crawl"],
                express_url=self.urls["express"],
                dead_letter_url=self.urls["dead"],
            ),
            dead_letters=SqsDeadLetters(
                clients["sqs"],
                dead_letter_url=self.urls["dead"],
                crawl_url=self.urls["crawl"],
                seed_url=self.urls["seeds"],
                pack_queues={f"{self.name}-{lane}" for lane in ("crawl", "express")},
                wait_s=0,
            ),
            packs=DynamoPacks(
                dynamo,
                clock=clock,
                packs_table=self.table("packs"),
                crawls_table=self.table("crawls"),
                ledger_retention_s=LEDGER_RETENTION_S,
            ),
            backlog=DynamoBacklog(dynamo, clock=clock, packs_table=self.table("packs")),
            budgets=DynamoBudgets(
                dynamo,
                clock=clock,
                packs_table=self.table("packs"),
                crawls_table=self.table("crawls"),
                ledger_retention_s=LEDGER_RETENTION_S,
            ),
            crawls=DynamoCrawls(
                dynamo, clock=clock, random=Random(), crawls_table=self.table("crawls")
            ),
            frontier=DynamoFrontier(dynamo, urls_table=self.table("urls")),
            hosts=DynamoHosts(dynamo, clock=clock, hosts_table=self.table("hosts")),
            pages=DynamoPages(
                dynamo,
                clock=clock,
                pages_table=self.table("pages"),
                retention_s=PAGE_RETENTION_S,
                shards=PAGES_SHARDS,
            ),
            files=BucketFiles(clients["s3"], bucket=self.name),
            events=BusEvents(clients["events"], bus="default", stack="Mine", bucket=self.name),
            traces=DynamoTraces(
                dynamo,
                clock=clock,
                tables=TableNames(**{name: self.table(name) for name in KEYS if name != "packs"}),
                ledger_retention_s=LEDGER_RETENTION_S,
            ),
        )

    async def receive(self, lane: str) -> list[Received]:
        got: list[Received] = []
        while True:
            answer = await self.clients["sqs"].receive_message(
                QueueUrl=self.urls[lane],
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
            messages = answer.get("Messages", [])
            if not messages:
                return got
            for message in messages:
                reason = message.get("MessageAttributes", {}).get("reason", {})
                got.append(
                    Received(
                        body=message["Body"],
                        group=message.get("Attributes", {}).get("MessageGroupId", ""),
                        reason=reason.get("StringValue"),
                    )
                )
                await self.clients["sqs"].delete_message(
                    QueueUrl=self.urls[lane], ReceiptHandle=message["ReceiptHandle"]
                )

    async def delayed(self, lane: str) -> int:
        counter = "ApproximateNumberOfMessagesDelayed"
        answer = await self.clients["sqs"].get_queue_attributes(
            QueueUrl=self.urls[lane], AttributeNames=[counter]
        )
        return int(answer["Attributes"][counter])

    async def watch_events(self) -> None:
        events = self.clients["events"]
        pattern = {"source": ["orbweaver"], "detail-type": ["CrawlCompleted", "ExportCompleted"]}
        await events.put_rule(Name=self.name, EventPattern=json.dumps(pattern))
        answer = await self.clients["sqs"].get_queue_attributes(
            QueueUrl=self.urls["events"], AttributeNames=["QueueArn"]
        )
        target = {"Id": "queue", "Arn": answer["Attributes"]["QueueArn"]}
        await events.put_targets(Rule=self.name, Targets=[target])

    async def event_details(self) -> list[dict[str, Any]]:
        return [json.loads(message.body)["detail"] for message in await self.receive("events")]

    async def announced(self) -> list[str]:
        return [detail["id"] for detail in await self.event_details()]

    async def exported(self) -> list[str]:
        return [detail["manifest"] for detail in await self.event_details()]
