"""One hot key: single writes are throttled or conflict with a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.frontier.claims import Committed
from orbweaver.model.crawl import State
from orbweaver.model.errors import Transient
from orbweaver.model.url import url_hash
from tests.contract import faults, samples
from tests.contract.faults import faulty
from tests.contract.hot import Hot
from tests.contract.test_frontier import claimer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.contract.worlds import AwsWorld, Container

    Act = Callable[[Container], Awaitable[Any]]

ONE, TWO, THREE = samples.pack_ids(3)
HOT, COLD = "hot.example", "cold.example"
REFUSALS = (
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
)


async def test_hot_key_does_not_delay_recall_of_others(moto_world: AwsWorld) -> None:
    quiet = moto_world.container()
    for pack in (ONE, TWO, THREE):
        await quiet.packs.write_journal(pack, samples.journal())
    container, client = faulty(moto_world, "dynamodb", **Hot(TWO, 4).faults())
    recalled = await container.packs.recall([ONE, TWO, THREE])
    assert recalled == await quiet.packs.recall([ONE, TWO, THREE])
    assert client.calls["batch_get_item"] == 3


async def test_hot_key_does_not_delay_other_claims(moto_world: AwsWorld) -> None:
    targets = [samples.target(number) for number in range(20)]
    asks = claimer("a", moto_world.clock.now_ms())
    key = f"{asks.name}#{url_hash(targets[7].url)}"
    container, client = faulty(moto_world, "dynamodb", **Hot(key, 3).faults())
    assert len(await container.frontier.claim(asks, targets)) == 20
    assert client.calls["batch_execute_statement"] == 4


async def test_hot_record_is_stored_once(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "dynamodb", **Hot(samples.record(7).url, 2).faults())
    await container.pages.store([samples.record(number) for number in range(25)])
    pages = moto_world.container().pages
    rows = [
        row for shard in range(pages.shards) async for row in pages.read_shard("2026-01-15", shard)
    ]
    assert len(rows) == 25
    assert client.calls["batch_write_item"] == 3


async def test_hot_ledger_is_committed_once(moto_world: AwsWorld) -> None:
    quiet = moto_world.container()
    crawl = samples.crawl()
    await quiet.crawls.create(crawl)
    container, client = faulty(moto_world, "dynamodb", **Hot(ONE, 3).faults())
    result = await container.packs.commit(crawl, samples.ledger(ONE), {"claimed": 1})
    assert result == Committed()
    assert client.calls["transact_write_items"] == 4
    assert (await quiet.crawls.counters(crawl)).total["claimed"] == 1


async def test_hot_host_is_transient_error_for_itself_only(moto_world: AwsWorld) -> None:
    now_ms = moto_world.clock.now_ms()
    update = Hot(HOT, 1).faults()["update_item"]
    container, _ = faulty(moto_world, "dynamodb", update_item=update)
    with pytest.raises(Transient):
        await container.hosts.reserve(HOT, 2, 1_000, now_ms, now_ms + 60_000)
    for host in (COLD, HOT):
        slots = await container.hosts.reserve(host, 2, 1_000, now_ms, now_ms + 60_000)
        assert slots.at_ms == (now_ms, now_ms + 1_000)


async def _moved(container: Container) -> bool:
    paused = samples.crawl(state=State.PAUSED)
    return await container.crawls.move(paused, (State.RUNNING,))


async def _read(container: Container) -> bool:
    return await container.crawls.get(samples.crawl().id) is not None


async def _struck(container: Container) -> bool:
    return await container.packs.add_strike(ONE) == 1


async def _abandoned(container: Container) -> bool:
    await container.frontier.abandon(samples.crawl(), [samples.target(1).url])
    return True


@pytest.mark.parametrize("code", REFUSALS)
@pytest.mark.parametrize(
    ("method", "act"),
    [
        ("update_item", _moved),
        ("get_item", _read),
        ("update_item", _struck),
        ("update_item", _abandoned),
    ],
)
async def test_refused_single_request_is_transient_and_has_no_effect(
    moto_world: AwsWorld, code: str, method: str, act: Act
) -> None:
    await moto_world.container().crawls.create(samples.crawl())
    refused = faults.failing(faults.refused(code))
    container, _ = faulty(moto_world, "dynamodb", **{method: refused})
    with pytest.raises(Transient, match=code):
        await act(container)
    assert await act(container)
