"""Limits of AWS, as of November 2026, and the share of each that a rate of pages uses.

Sources: docs.aws.amazon.com: lambda/latest/dg (gettingstarted-limits, services-sqs-scaling,
scaling-behavior), AWSSimpleQueueService/…/quotas-queues, amazondynamodb/…/Limits and
warm-throughput, AmazonS3/…/optimizing-performance, AmazonCloudWatch/…/cloudwatch_limits_cwl.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARTITION_WRITES, PARTITION_READS = 1_000, 3_000
TABLE_UNITS = 40_000
WARM_WRITES, WARM_READS = 4_000, 12_000
LAMBDAS, MAPPING = 1_000, 1_000
IN_FLIGHT = 120_000
PUTS_A_PREFIX = 3_500
LOG_CALLS = 5_000
# A transaction locks an item for some milliseconds (assumed: 12), so another one fails meanwhile.
TRANSACTIONS_AN_ITEM = 1_000 / 12
# A transaction has a hundred actions, and the crawl's end closes all shards in one transaction.
SHARDS_MOST = 98
CRAWL_FRESH_S = 5
SHARDS_DEFAULT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Use of a limit by a rate of pages."""

    what: str
    load: float
    limit: float
    unit: str
    remedy: str

    @property
    def share(self) -> float:
        return self.load / self.limit


def loads(
    figures: Mapping[str, Any],
    *,
    pages_a_s: float,
    workers: int,
    batch_size: int,
    shards: int,
    pages_shards: int,
) -> Iterator[Load]:
    """Return the use of each limit by a rate, from the units per page in the model."""

    def load(what: str, amount: float, limit: float, unit: str, remedy: str = "") -> Load:
        return Load(what=what, load=amount, limit=limit, unit=unit, remedy=remedy)

    writes, reads, units = figures["writes"], figures["reads"], figures["units"]
    more = "ask for more concurrent executions"
    yield load("Lambda: concurrent executions, account", workers, LAMBDAS, "workers", more)
    yield load(
        "Lambda: workers on one queue", workers, MAPPING, "workers",
        "`worker_concurrency_max`; beyond 1,000 provisioned pollers",
    )  # fmt: skip
    yield load("SQS: messages in flight, a queue", workers * batch_size, IN_FLIGHT, "messages")
    for table in ("urls", "pages", "packs", "hosts", "crawls"):
        amount = writes[table] * pages_a_s
        ask = f"ask for {_round_up(amount * 1.25):,} a table"
        yield load(f"DynamoDB `{table}`: writes, a table", amount, TABLE_UNITS, "units/s", ask)
        if amount > WARM_WRITES:
            warm = f"warm throughput {_round_up(amount * 1.25):,}, or grow by doubling"
            yield load(f"DynamoDB `{table}`: writes, new", amount, WARM_WRITES, "units/s", warm)
        amount = reads[table] * pages_a_s
        ask = f"ask for {_round_up(amount * 1.25):,} a table"
        if amount > TABLE_UNITS / 4:
            yield load(f"DynamoDB `{table}`: reads, a table", amount, TABLE_UNITS, "units/s", ask)
        if amount > WARM_READS:
            warm = f"warm throughput {_round_up(amount * 1.25):,}, or grow by doubling"
            yield load(f"DynamoDB `{table}`: reads, new", amount, WARM_READS, "units/s", warm)
    a_key = writes["pages"] * pages_a_s / pages_shards
    yield load(
        f"DynamoDB: a key of `pages` (day#shard, {pages_shards} shards)", a_key, PARTITION_WRITES,
        "units/s", f"`pages_shards={_shards_for(writes['pages'] * pages_a_s)}`",
    )  # fmt: skip
    shard = writes["crawls"] * pages_a_s / shards
    yield load(
        f"DynamoDB: a shard of the counters ({shards} shards): units", shard, PARTITION_WRITES,
        "units/s", "more shards",
    )  # fmt: skip
    commits = figures["transactions_a_page"] * pages_a_s / shards
    yield load(
        f"DynamoDB: a shard of the counters ({shards} shards): one transaction at a time", commits,
        TRANSACTIONS_AN_ITEM, "commits/s", "more shards, or one commit for many packs",
    )  # fmt: skip
    yield load(
        "DynamoDB: the crawl's own item: reads", workers / CRAWL_FRESH_S, PARTITION_READS, "units/s"
    )
    yield load("DynamoDB: a host's item: writes", figures["host_writes_most"], PARTITION_WRITES,
               "units/s")  # fmt: skip
    yield load("S3: PUT, a prefix", units["s3_put"] * pages_a_s, PUTS_A_PREFIX, "requests/s")
    yield load("CloudWatch Logs: PutLogEvents, account", units["invocations"] * pages_a_s,
               LOG_CALLS, "calls/s")  # fmt: skip


def _round_up(value: float) -> int:
    return -(-int(value) // 5_000) * 5_000


def _shards_for(units_a_s: float) -> int:
    shards = 16
    while units_a_s / shards > 0.7 * PARTITION_WRITES:
        shards *= 2
    return shards
