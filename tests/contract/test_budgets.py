"""Contract of budgets: reservations, the amount that a commit returns, and pages per host."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.budget.budget_rules import BudgetState, ReservationRequest
from orbweaver.frontier.claims import AlreadyCommitted, Committed
from orbweaver.model.crawl import LimitPart, Settlement
from tests.contract import samples

if TYPE_CHECKING:
    from orbweaver.budget.ports import Budgets
    from orbweaver.model.crawl import Crawl
    from tests.contract.worlds import World

ONE, TWO, THREE = samples.pack_ids(3)
HOST, OTHER = "https://example.com", "https://other.example"
URLS = [f"{HOST}/{place}" for place in range(5)]


def taking(
    crawl: Crawl, amount: int, *, limit: int = 100, at_ms: int = 7, **more: int
) -> ReservationRequest:
    return ReservationRequest(
        crawl=crawl,
        part=LimitPart.BYTES,
        amount=amount,
        limit=limit,
        at_ms=at_ms,
        mine=more.get("mine", 0),
    )


async def look(budgets: Budgets, crawl: Crawl) -> BudgetState | None:
    return await budgets.take(taking(crawl, 1, limit=0))


async def test_second_begin_of_budget_changes_nothing(world: World) -> None:
    budgets, crawl = world.container().budgets, samples.crawl()
    assert await budgets.take(taking(crawl, 1)) == BudgetState(is_started=False)
    await budgets.begin(crawl, LimitPart.BYTES, 40)
    await world.container().budgets.begin(crawl, LimitPart.BYTES, 90)
    assert await look(budgets, crawl) == BudgetState(used=40)
    assert await budgets.take(replace(taking(crawl, 1), part=LimitPart.NANODOLLARS)) == BudgetState(
        is_started=False
    )


async def test_reservation_never_exceeds_limit(world: World) -> None:
    budgets, crawl = world.container().budgets, samples.crawl()
    await budgets.begin(crawl, LimitPart.BYTES, 0)
    assert await budgets.take(taking(crawl, 60)) is None
    assert await budgets.take(taking(crawl, 41)) == BudgetState(used=60, reserved=60, taken_at_ms=7)
    assert await budgets.take(taking(crawl, 40, at_ms=9)) is None
    full = BudgetState(used=100, reserved=100, taken_at_ms=9)
    assert await budgets.take(taking(crawl, 1)) == full
    # A raised limit applies at once, a lowered one from then on.
    assert await budgets.take(taking(crawl, 1, limit=101, at_ms=10)) is None
    assert await budgets.take(taking(crawl, 1, limit=50)) is not None


async def test_concurrent_reservations_share_limit(world: World) -> None:
    crawl = samples.crawl()
    await world.container().budgets.begin(crawl, LimitPart.BYTES, 0)
    told = await asyncio.gather(
        *(world.container().budgets.take(taking(crawl, 30)) for _ in range(6))
    )
    assert [each is None for each in told].count(True) == 3


async def test_dead_reservations_are_written_off(world: World) -> None:
    budgets, crawl = world.container().budgets, samples.crawl()
    await budgets.begin(crawl, LimitPart.BYTES, 0)
    await budgets.take(taking(crawl, 60))
    seen = await look(budgets, crawl)
    assert seen is not None
    instead = replace(taking(crawl, 20, at_ms=99, mine=5), instead=seen)
    assert await budgets.take(instead) is None
    assert await look(budgets, crawl) == BudgetState(used=80, reserved=25, taken_at_ms=99)
    assert await budgets.take(instead) == BudgetState(used=80, reserved=25, taken_at_ms=99)


async def test_commit_returns_unspent_reservation_once(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    await container.budgets.begin(crawl, LimitPart.BYTES, 0)
    await container.budgets.take(taking(crawl, 60))
    settled = (Settlement(part=LimitPart.BYTES, reserved=60, spent=11),)
    ledger = samples.ledger(ONE, children=())
    assert await container.packs.commit(crawl, ledger, {"fetched": 1}, settled) == Committed()
    left = BudgetState(used=11, reserved=0, taken_at_ms=7)
    assert await look(container.budgets, crawl) == left
    again = await world.container().packs.commit(crawl, ledger, {"fetched": 1}, settled)
    assert isinstance(again, AlreadyCommitted)
    assert await look(container.budgets, crawl) == left


async def test_settle_without_commit_covers_several_limits(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    parts = (LimitPart.BYTES, LimitPart.NANODOLLARS)
    for part in parts:
        await container.budgets.begin(crawl, part, 0)
        for amount in (60, 30):
            await container.budgets.take(replace(taking(crawl, amount), part=part))
    settled = [Settlement(part=part, reserved=60, spent=11) for part in parts]
    await world.container().budgets.settle(crawl, settled)
    left = BudgetState(used=41, reserved=30, taken_at_ms=7)
    for part in parts:
        wanted = replace(taking(crawl, 1, limit=0), part=part)
        assert await container.budgets.take(wanted) == left


async def test_refused_commit_settles_nothing(world: World) -> None:
    container, crawl = world.container(), replace(samples.crawl(), pages_max=1, shards=1)
    await container.budgets.begin(crawl, LimitPart.BYTES, 0)
    await container.budgets.take(taking(crawl, 60))
    settled = (Settlement(part=LimitPart.BYTES, reserved=60, spent=11),)
    ledger = samples.ledger(ONE, children=(0, 1))
    await container.packs.commit(crawl, ledger, {"claimed": 2}, settled)
    assert await look(container.budgets, crawl) == BudgetState(used=60, reserved=60, taken_at_ms=7)


async def test_host_pages_are_counted_once_per_pack(world: World) -> None:
    crawl = samples.crawl()
    for _ in range(2):
        count = world.container().budgets.count
        assert await count(crawl, ONE, HOST, URLS[:3], 4) == set(URLS[:3])
    count = world.container().budgets.count
    assert await count(crawl, ONE, HOST, URLS[1:4], 4) == set(URLS[1:4])
    assert await count(crawl, TWO, HOST, URLS, 4) == set()
    assert await count(crawl, ONE, HOST, URLS, 0) == set(URLS[:4])
    assert await count(crawl, TWO, HOST, URLS, 0) == set()
    assert await count(crawl, TWO, OTHER, URLS, 2) == set(URLS[:2])


async def test_host_limit_admits_first_pages_in_order(world: World) -> None:
    crawl = samples.crawl()
    count = world.container().budgets.count
    assert await count(crawl, ONE, HOST, URLS[:2], 3) == set(URLS[:2])
    assert await count(crawl, TWO, HOST, URLS[2:], 3) == {URLS[2]}
    assert await count(crawl, TWO, HOST, URLS[2:], 4) == set(URLS[2:4])
    assert await count(crawl, THREE, HOST, URLS, 3) == set()


@pytest.mark.parametrize("packs", [[ONE, TWO, THREE], [ONE, ONE, ONE]])
async def test_concurrent_page_counts_share_limit(world: World, packs: list[str]) -> None:
    crawl = samples.crawl()
    counted = await asyncio.gather(
        *(world.container().budgets.count(crawl, pack, HOST, URLS, 4) for pack in packs)
    )
    together = set(packs) == {ONE}
    assert [len(each) for each in counted] == [4, 4, 4] if together else sum(map(len, counted)) == 4


async def test_budget_items_are_not_read_as_crawls(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    await container.budgets.begin(crawl, LimitPart.BYTES, 3)
    await container.budgets.count(crawl, ONE, HOST, URLS, 9)
    assert [each.id for each in await container.crawls.list()] == [crawl.id]
