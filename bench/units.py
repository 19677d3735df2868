"""AWS units per page, by stage and term, for a complete crawl of a closed site.

    python -m bench.units [--pages 10000] [--packs 10] [--containers 1] [--bodies html|off]
        [--ordered] [--links]

The real worker, fetcher and adapters run on the emulator's tables and queues. Their usage is
counted at the clients by AWS's rules (adapters/aws/usage_meter.py). The workers get messages as
from Lambda, ten at a time. Several containers, each with its own caches, take turns. The site has
pages of 30 KB with 50 links each.

Lambda is priced by the measured CPU, as if it had one full CPU (1,769 MB) for that time and never
waited, because waiting depends on hosts and delays, not on pages.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import tempfile
import time
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.session import serving
from bench.sites import SITES, Place
from localstack import emulator, layout
from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.usage_meter import MeteredStream
from orbweaver.app.aws_ports import meter_of
from orbweaver.app.container import connect
from orbweaver.app.wiring import control_of, worker_of
from orbweaver.budget.billing_units import Term, Units
from orbweaver.budget.estimate import CPU_MB
from orbweaver.budget.prices import dollars
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX, Bodies
from orbweaver.model.settings import Settings
from orbweaver.politeness import pacer
from orbweaver.worker import group_commit, link_dedup
from orbweaver.worker.pack import Delivery
from tests.contract.worlds import KEYS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from orbweaver.adapters.aws.usage_meter import UsageMeter
    from orbweaver.worker.batch import Worker

INVOCATION_MS = 60_000
MILLION = 1_000_000
# Messages are delayed by one second, so a queue counts as empty after two empty receives.
EMPTY_MAX, EMPTY_WAIT_S = 2, 1.2
SHOWN = (Term.WRITE, Term.READ_HALVES, Term.SQS, Term.S3_PUT, Term.LOG_BYTES)
TITLES = ("write", "read", "sqs", "s3 put", "log bytes")


@dataclass(slots=True)
class Used:
    """The usage of a crawl, and its number of pages."""

    units: Units = field(default_factory=Units)
    cpu_s: float = 0.0
    batches: int = 0
    messages: int = 0
    pages: int = 0
    deferred: int = 0

    def dollars(self) -> float:
        """Cost per million pages, with Lambda priced by CPU alone."""
        terms: dict[Term, float] = dict(self.units.by_term)
        terms[Term.MB_MS] = self.cpu_s * 1000 * CPU_MB
        return dollars(terms) / max(1, self.pages) * MILLION

    def table(self) -> str:
        lines = [f"{'stage':<10}" + "".join(f"{title:>11}" for title in TITLES)]
        rows: list[tuple[str, Mapping[Term, float]]] = [
            (str(stage), units.by_term) for stage, units in self.units.by_stage.items()
        ]
        for name, terms in [*rows, ("all", self.units.by_term)]:
            if any(terms.get(term) for term in SHOWN):
                lines.append(f"{name:<10}" + "".join(self._cell(terms, term) for term in SHOWN))
        return "\n".join(lines)

    def _cell(self, terms: Mapping[Term, float], term: Term) -> str:
        number = terms.get(term, 0) / (1 + (term is Term.READ_HALVES)) / max(1, self.pages)
        return f"{number:>11.4f}" if number else f"{'':>11}"


class Line:
    """Passes a queue's messages to a worker like Lambda, and counts the cost."""

    def __init__(
        self,
        workers: Sequence[Worker],
        meter: UsageMeter,
        sqs: Any,
        queue_url: str,
        invocation_ms: int = INVOCATION_MS,
    ) -> None:
        self._workers, self._meter, self._sqs, self._url = workers, meter, sqs, queue_url
        self._invocation_ms = invocation_ms
        self.used = Used()

    async def batch(self, packs: int, now_ms: int) -> int:
        messages = await self._receive(packs)
        if not messages:
            return 0
        deliveries = [
            Delivery(
                id=message["MessageId"],
                body=message["Body"],
                receives=int(message["Attributes"]["ApproximateReceiveCount"]),
            )
            for message in messages
        ]
        used, began_s = self.used, time.process_time()
        log: Any = MeteredStream(io.StringIO(), self._meter)
        bodies = [delivery.body for delivery in deliveries]
        with self._meter.invocation(bodies), redirect_stdout(log):
            worker = self._workers[used.batches % len(self._workers)]
            failed = await worker.run(deliveries, now_ms + self._invocation_ms)
            worker.flush()
        used.cpu_s += time.process_time() - began_s
        used.units.update(self._meter.total)
        used.batches, used.messages = used.batches + 1, used.messages + len(deliveries)
        for message in messages:
            if message["MessageId"] not in failed:
                handle = message["ReceiptHandle"]
                await self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=handle)
        return len(messages)

    async def _receive(self, packs: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while len(found) < packs:
            answer = await self._sqs.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(10, packs - len(found)),
                AttributeNames=["All"],
            )
            if not answer.get("Messages"):
                break
            found += answer["Messages"]
        return found


async def measure(
    url: str,
    packs: int,
    containers: int,
    bodies: Bodies,
    pages_max: int | None = None,
    *,
    links: bool = False,
) -> Used:
    async with stack() as (settings, sqs):
        meter = meter_of(settings)
        async with connect(settings, meter) as ports:
            plan = CrawlSpec(
                seeds=(url,),
                delay_ms=0,
                concurrency=16,
                bodies=bodies,
                pages_max=pages_max,
                links=links,
            )
            crawl = await control_of(ports).start(plan)
            workers = [worker_of(ports) for _ in range(containers)]
            line = Line(workers, meter, sqs, settings.queues.crawl_queue_url)
            empty = 0
            while empty < EMPTY_MAX:
                if await line.batch(packs, ports.clock.now_ms()):
                    empty = 0
                else:
                    empty += 1
                    await asyncio.sleep(EMPTY_WAIT_S)
            ended = await ports.crawls.get(crawl.id)
            assert ended is not None
            counters = await ports.crawls.counters(ended)
            line.used.pages = counters.total.get("fetched", 0)
            line.used.deferred = counters.total.get("deferrals", 0)
            assert ended.finished_at_ms, "the crawl has not ended"
            return line.used


@asynccontextmanager
async def stack() -> AsyncIterator[tuple[Settings, Any]]:
    """Make tables, queues and a bucket. The requests for this are not counted."""
    async with Aws() as aws:
        dynamodb, sqs, s3 = [await aws.client(name) for name in ("dynamodb", "sqs", "s3")]
        for table, keys in KEYS.items():
            await dynamodb.create_table(
                TableName=f"bench-{table}",
                KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"} for name, _ in keys
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        await s3.create_bucket(Bucket="bench")
        queues = [await sqs.create_queue(QueueName=name) for name in ("crawl", "express", "dead")]
        crawl_url, express_url, dead_letter_url = (queue["QueueUrl"] for queue in queues)
        settings = Settings.of(
            allow_addresses="127.0.0.0/8",
            bucket="bench",
            crawl_queue_url=crawl_url,
            express_queue_url=express_url,
            dead_letter_queue_url=dead_letter_url,
            wait_s_max=INVOCATION_MS / 1000 / 2,
            segment_wait_s=INVOCATION_MS / 1000 / 2,
        )
        tables: dict[str, Any] = {f"{table}_table": f"bench-{table}" for table in KEYS}
        yield settings.having(**tables), sqs


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.units")
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--packs", type=int, default=10, help="messages a batch (10)")
    parser.add_argument("--containers", type=int, default=1, help="that take turns (1)")
    parser.add_argument("--bodies", type=Bodies, default=Bodies.HTML, help="html, off or all")
    parser.add_argument(
        "--ordered", action="store_true", help="with a limit that it does not reach: in an order"
    )
    parser.add_argument("--links", action="store_true", help="store the links of pages")
    asked = parser.parse_args()
    place = Place(site=SITES["generated-30"], tls=False)
    # On a busy machine, packs must not give up waiting for others, and pages whose turn comes too
    # late must not be deferred.
    link_dedup.TURN_WAIT_S = group_commit.WAIT_S = INVOCATION_MS / 1000
    pacer.LOOK_MS = INVOCATION_MS
    running = emulator.start(port=0, keep=False)
    try:
        os.environ.update(layout.client_environment(running.endpoint_url))
        with (
            tempfile.TemporaryDirectory(prefix="units-") as folder,
            serving(place, asked.pages, Path(folder)) as served,
        ):
            url = served.url + "/"
            pages_max = ORDERED_PAGES_MAX if asked.ordered else None
            measuring = measure(
                url, asked.packs, asked.containers, asked.bodies, pages_max, links=asked.links
            )
            used = asyncio.run(measuring)
    finally:
        running.stop()
    print(used.table())
    cpu_ms = 1000 * used.cpu_s / max(1, used.pages)
    print(f"\n{used.pages:,} pages in {used.messages:,} packs and {used.batches:,} batches,"
          f" {used.deferred:,} deferred; {cpu_ms:.2f} ms CPU a page")  # fmt: skip
    for term, number in used.units.by_term.items():
        if term is not Term.MB_MS:
            print(f"  {term:<12} ${dollars({term: number}) / max(1, used.pages) * MILLION:.4f}")
    lambda_dollars = dollars({Term.MB_MS: cpu_ms * CPU_MB}) * MILLION
    print(f"  {'cpu':<12} ${lambda_dollars:.4f}\n${used.dollars():.3f} a million pages")


if __name__ == "__main__":
    main()
