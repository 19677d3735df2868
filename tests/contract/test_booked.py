"""A container adds its AWS usage to the crawl's counters once, with each commit."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.adapters.dynamodb.packs import DynamoPacks
from orbweaver.adapters.dynamodb.table import Dynamo
from orbweaver.budget.billing_units import Stage, Term, units_of
from orbweaver.frontier.claims import AlreadyCommitted, Committed
from tests.contract import samples
from tests.contract.worlds import LEDGER_RETENTION_S

if TYPE_CHECKING:
    from tests.contract.worlds import AwsWorld

ONE, TWO, THREE = samples.pack_ids(3)
CRAWL = samples.crawl()
COUNTS = {"claimed": 1, "fetched": 2}


@pytest.fixture
def meter() -> UsageMeter:
    return UsageMeter()


def packs_of(world: AwsWorld, meter: UsageMeter) -> DynamoPacks:
    """Return a store of packs (batches of URLs) whose commits add the meter's usage."""
    return DynamoPacks(
        Dynamo(world.clients["dynamodb"], clock=world.clock, random=Random(1)),
        clock=world.clock,
        packs_table=world.table("packs"),
        crawls_table=world.table("crawls"),
        ledger_retention_s=LEDGER_RETENTION_S,
        booking=meter.booking,
    )


def use(meter: UsageMeter, number: int) -> None:
    with meter.for_crawl(CRAWL.id):
        meter.use(Term.WRITE, Stage.CLAIM, number)
        meter.use(Term.SQS, Stage.SEND, 1)


async def booked(world: AwsWorld) -> dict[Term, int]:
    counters = await world.container().crawls.counters(CRAWL)
    assert counters.total["fetched"] >= COUNTS["fetched"]
    return units_of(counters.total).by_term


async def test_commit_adds_units_used_since_last_commit(
    aws_world: AwsWorld, meter: UsageMeter
) -> None:
    packs = packs_of(aws_world, meter)
    use(meter, 3)
    assert await packs.commit(CRAWL, samples.ledger(ONE), COUNTS) == Committed()
    assert await booked(aws_world) == {Term.WRITE: 3, Term.SQS: 1}
    use(meter, 4)
    together = [(samples.ledger(pack), COUNTS) for pack in (TWO, THREE)]
    assert await packs.commit_together(CRAWL, together)
    assert await booked(aws_world) == {Term.WRITE: 7, Term.SQS: 2}


async def test_duplicate_commit_adds_no_units(aws_world: AwsWorld, meter: UsageMeter) -> None:
    packs = packs_of(aws_world, meter)
    ledger = samples.ledger(ONE)
    await packs.commit(CRAWL, ledger, COUNTS)
    use(meter, 3)
    assert await packs.commit(CRAWL, ledger, COUNTS) == AlreadyCommitted(ledger=ledger)
    assert not await packs.commit_together(CRAWL, [(ledger, COUNTS), (samples.ledger(TWO), COUNTS)])
    assert await booked(aws_world) == {}
    await packs.commit(CRAWL, samples.ledger(THREE), COUNTS)
    assert await booked(aws_world) == {Term.WRITE: 3, Term.SQS: 1}


async def test_unit_counters_take_less_than_200_bytes(
    aws_world: AwsWorld, meter: UsageMeter
) -> None:
    """DynamoDB bills each commit for every KB of the crawl's counter item."""
    with meter.for_crawl(CRAWL.id):
        for stage in Stage:
            meter.use(Term.WRITE, stage, 99_999)
    await packs_of(aws_world, meter).commit(CRAWL, samples.ledger(ONE), COUNTS)
    answer = await aws_world.clients["dynamodb"].scan(TableName=aws_world.table("crawls"))
    (item,) = answer["Items"]
    counters = {name: value for name, value in item.items() if name.startswith("u.")}
    assert len(counters) == len(Stage)
    # A number takes at most a byte per digit.
    assert sum(len(name) + len(value["N"]) for name, value in counters.items()) <= 200
