"""Two releases of one stack: the current one and a successor whose layouts are one version newer.

A `Deployment` uses the product's code and tables; messages are in memory, where hours pass
instantly. The successor writes journals (results of a pack, a batch of URLs), ledgers (their
commits), crawls and messages in its own layouts. It reads the current ones. Only the envelope is
the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from orbweaver.adapters.dynamodb import packs as dynamodb_packs
from orbweaver.adapters.dynamodb.table import Dynamo, Fields
from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.frontier import journal_codec, messages
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.messages import Message, MessageSource
from orbweaver.model import crawl_codec
from orbweaver.model.errors import Transient
from orbweaver.model.settings import Settings
from orbweaver.worker import batch as workers
from orbweaver.worker.batch import Worker
from orbweaver.worker.pack import Delivery
from tests.contract.worlds import AwsWorld, Container
from tests.memory import (
    ManualClock,
    MemoryBacklog,
    MemoryEvents,
    MemoryMetrics,
    MemoryQueue,
    outside,
)
from tests.memory import World as MemoryState
from tests.unit.stage import SmallWeb

MAGIC = b"\x04\x22\x4d\x18"


@dataclass
class Deployment:
    """Queues and workers of a stack; queued messages survive a deployment of another release."""

    world: AwsWorld
    web: SmallWeb
    clock: ManualClock
    state: MemoryState = field(default_factory=MemoryState)
    # Receive count per body whose delivery failed.
    receives: Counter[str] = field(default_factory=Counter)
    # Packs with a journal whose commit failed.
    refused: set[str] = field(default_factory=set)
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)

    def worker(self, *, commits: bool = True) -> Worker:
        """Start a container; without `commits` it dies between journal and commit."""
        container = self.world.container()
        ports = SimpleNamespace(
            settings=Settings(),
            clock=self.clock,
            random=Random(1),
            delivery_random=Random(3),
            queue=MemoryQueue(self.state),
            packs=container.packs if commits else _Refusing(container, self.refused),
            crawls=container.crawls,
            events=MemoryEvents(self.state),
            frontier=container.frontier,
            pages=container.pages,
            backlog=MemoryBacklog(self.state),
            hosts=container.hosts,
            budgets=container.budgets,
            files=container.files,
            reader=InPlaceReader(),
            renderer=None,
        )
        return Worker(ports, fetcher=self.web, metrics=self.metrics)

    async def work(self, worker: Worker, batches: int, size: int = 3) -> None:
        """Deliver queued messages in batches, each message when it is due."""
        for _ in range(batches):
            if not self.state.sent:
                return
            self.state.sent.sort(key=lambda mail: mail.delay_s)
            batch, self.state.sent = self.state.sent[:size], self.state.sent[size:]
            self.clock.at_ms += max(mail.delay_s for mail in batch) * 1000
            self.receives.update(mail.body for mail in batch)
            deliveries = [
                Delivery(
                    id=mail.id,
                    body=mail.body,
                    receives=self.receives[mail.body],
                    since_ms=mail.since_ms,
                )
                for mail in batch
            ]
            failed = await worker.run(deliveries, self.clock.now_ms() + 60_000)
            self.state.sent += [mail for mail in batch if mail.id in failed]
            for mail in batch:
                if mail.id not in failed:
                    del self.receives[mail.body]


class _Refusing:
    """Packs whose commits fail."""

    def __init__(self, container: Container, refused: set[str]) -> None:
        self._packs = container.packs
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._packs, name)

    async def commit(self, _crawl: Any, ledger: Ledger, *_: Any) -> Any:
        self._refused.add(ledger.pack)
        raise Transient("commit")

    async def commit_together(self, _crawl: Any, commits: Any) -> bool:
        self._refused |= {ledger.pack for ledger, _ in commits}
        raise Transient("commit")


def _journal_fields(journal: Journal) -> dict[str, Any]:
    return {
        "v": journal_codec.VERSION + 1,
        "lumps": [MAGIC, journal_codec.encode(journal)],
        "blob": MAGIC,
    }


def _ledger_fields(ledger: Ledger) -> dict[str, Any]:
    won = ",".join(map(str, ledger.children))
    return {"k": ledger.pack, "part": "ledger", "v": 2, "won": won, "over": ledger.surplus}


def _encode(sent: Any) -> str:
    """Write the current body in the next version's envelope, under different field names."""
    if isinstance(sent, messages.Loose):
        return messages.encode(sent)
    envelope = json.loads(messages.encode(sent))
    crawl = envelope.get("crawl", envelope.get("close"))
    return json.dumps({"v": 2, "crawl": crawl, "at": envelope["at"], "said": envelope}, indent=1)


def _decode(body: str, source: MessageSource) -> Message:
    if body.startswith("{") and (raw := json.loads(body)).get("v") == 2:
        return messages.decode(json.dumps(raw["said"]), source)
    return messages.decode(body, source)


@contextmanager
def successor() -> Iterator[None]:
    today_reads, today_ledger = dynamodb_packs.read_journal, dynamodb_packs.read_ledger

    async def write(
        _dynamo: Dynamo, _table: str, _pack: str, blob: bytes, *, expires_s: int
    ) -> dict[str, Any]:
        del expires_s
        return _journal_fields(journal_codec.decode(blob))

    async def read(dynamo: Dynamo, table: str, head: Fields) -> Journal:
        if head.get("v") == journal_codec.VERSION + 1:
            return journal_codec.decode(bytes(head["lumps"][1]))
        return await today_reads(dynamo, table, head)

    def read_ledger(fields: Fields) -> Ledger:
        if fields.get("v", 1) == 1:
            return today_ledger(fields)
        won = tuple(int(place) for place in fields["won"].split(",") if place)
        sent = fields.get("sent", False)
        return Ledger(pack=fields["k"], children=won, surplus=fields["over"], sent=sent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dynamodb_packs, "write_blob", write)
        patch.setattr(dynamodb_packs, "read_journal", read)
        patch.setattr(dynamodb_packs, "ledger_fields", _ledger_fields)
        patch.setattr(dynamodb_packs, "read_ledger", read_ledger)
        patch.setattr(crawl_codec, "VERSION", crawl_codec.VERSION + 1)
        patch.setattr(outside, "encode", _encode)
        patch.setattr(workers, "decode", _decode)
        yield
