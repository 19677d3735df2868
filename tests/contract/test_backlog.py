"""Contract of the backlog, where packs (batches of URLs) wait for their host.

The backlog returns packs in order, one per host is leased at a time, and none is lost.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.backlog import Lease, LeaseRequest, WaitingPack
from orbweaver.frontier.claims import Committed, Recalled
from orbweaver.frontier.journal import Ledger
from tests.contract import samples

if TYPE_CHECKING:
    from orbweaver.frontier.backlog import Backlog
    from tests.contract.worlds import World

HOST = "https://shop.example"
LONG_HOST = f"https://{'.'.join(['a' * 60] * 4)}.example:8443"
ONE, TWO = samples.pack_ids(2)


def waits(place: str, due_ms: int = 0) -> WaitingPack:
    return WaitingPack(place=place, body=f'{{"of": "{place} \U0001f578 \u00fc"}}', due_ms=due_ms)


def begins(line: Lease, place: str, by: str = ONE, **more: str) -> LeaseRequest:
    """Request the lease for a place, unless the lease has changed since `line`."""
    where = {"crawl": "shop-1", "host": HOST} | more
    return LeaseRequest(epoch=line.epoch, place=place, holder=by, **where)


FIRST, SECOND, THIRD = waits("0.000003.b"), waits("1.000001.c", due_ms=7_000), waits("1.000002.a")


async def test_look_returns_first_waiting_pack(world: World, backlog: Backlog) -> None:
    assert await backlog.read("shop-1", HOST) == Lease(epoch=0)
    await backlog.put("shop-1", HOST, [THIRD, SECOND])
    await backlog.put("shop-1", HOST, [FIRST])
    await backlog.put("shop-1", HOST, [])
    other = world.container().backlog
    assert await other.first_places("shop-1", HOST, 9) == (FIRST, SECOND, THIRD)
    assert (await other.read("shop-1", HOST)).first == FIRST
    assert (await other.read("shop-1", HOST, FIRST.place)).first == SECOND
    assert await other.get("shop-1", HOST, SECOND.place) == SECOND
    for _ in range(2):
        await backlog.release("shop-1", HOST, FIRST.place)
    assert (await other.read("shop-1", HOST)).first == SECOND
    assert await other.get("shop-1", HOST, FIRST.place) is None


async def test_backlogs_are_separate_per_crawl_and_host(backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [FIRST])
    await backlog.put("shop-1", f"{HOST}:81", [SECOND])
    await backlog.put("shop-12", HOST, [THIRD])
    line = await backlog.read("shop-1", HOST)
    assert await backlog.acquire(begins(line, FIRST.place))
    assert await backlog.read("shop-1", f"{HOST}:81") == Lease(epoch=0, first=SECOND)
    assert await backlog.read("shop-12", HOST) == Lease(epoch=0, first=THIRD)
    assert await backlog.read("other-1", HOST) == Lease(epoch=0)


async def test_repeated_put_changes_nothing(world: World, backlog: Backlog) -> None:
    other = WaitingPack(place=FIRST.place, body="other", due_ms=9)
    await backlog.put("shop-1", HOST, [FIRST, other])
    line = await backlog.read("shop-1", HOST)
    assert await backlog.acquire(begins(line, FIRST.place))
    await world.container().backlog.put("shop-1", HOST, [other, SECOND])
    expected = Lease(epoch=1, is_held=True, place=FIRST.place, holder=ONE, first=SECOND)
    assert await backlog.read("shop-1", HOST) == expected
    assert await backlog.first_places("shop-1", HOST, 9) == (FIRST, SECOND)


async def test_left_place_is_not_leased(backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await backlog.read("shop-1", HOST)
    assert await backlog.acquire(begins(line, FIRST.place))
    expected = Lease(epoch=1, is_held=True, place=FIRST.place, holder=ONE, first=SECOND)
    assert await backlog.read("shop-1", HOST, FIRST.place) == expected
    await backlog.release("shop-1", HOST, FIRST.place, TWO)
    assert await backlog.read("shop-1", HOST) == Lease(epoch=2, holder=TWO, first=SECOND)
    await backlog.put("shop-1", HOST, [FIRST])
    assert await backlog.read("shop-1", HOST) == Lease(epoch=2, holder=TWO, first=FIRST)


async def test_forget_keeps_leased_places(backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [FIRST, SECOND, THIRD])
    line = await backlog.read("shop-1", HOST)
    assert await backlog.acquire(begins(line, SECOND.place))
    for _ in range(2):
        await backlog.forget("shop-1", HOST, FIRST.place)
    expected = Lease(epoch=1, is_held=True, place=SECOND.place, holder=ONE, first=THIRD)
    assert await backlog.read("shop-1", HOST) == expected
    await backlog.forget("shop-1", HOST, SECOND.place)
    expected = Lease(epoch=1, place=SECOND.place, holder=ONE, first=THIRD)
    assert await backlog.read("shop-1", HOST) == expected


async def test_begin_of_left_pack_reports_it_as_left(backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await backlog.read("shop-1", HOST)
    await backlog.release("shop-1", HOST, FIRST.place, TWO)
    assert await backlog.acquire(begins(line, FIRST.place))
    expected = Lease(epoch=1, place=FIRST.place, holder=ONE, first=SECOND)
    assert await backlog.read("shop-1", HOST) == expected


async def test_begin_without_place_leaves_no_leased_pack(backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [FIRST])
    assert await backlog.acquire(begins(await backlog.read("shop-1", HOST), FIRST.place))
    assert await backlog.acquire(begins(await backlog.read("shop-1", HOST), "", ""))
    assert await backlog.read("shop-1", HOST) == Lease(epoch=2, first=FIRST)


async def test_leased_pack_stays_visible_behind_later_ones(world: World, backlog: Backlog) -> None:
    await backlog.put("shop-1", HOST, [THIRD, waits("2")])
    line = await backlog.read("shop-1", HOST)
    assert await backlog.acquire(begins(line, THIRD.place))
    await backlog.put("shop-1", HOST, [waits(f"0.{place:02}") for place in range(30)])
    expected = Lease(epoch=1, is_held=True, place=THIRD.place, holder=ONE, first=waits("0.00"))
    assert await world.container().backlog.read("shop-1", HOST) == expected


async def test_concurrent_containers_begin_one_pack(world: World) -> None:
    await world.container().backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await world.container().backlog.read("shop-1", HOST)
    begun = await asyncio.gather(
        *(
            world.container().backlog.acquire(begins(line, FIRST.place, pack))
            for pack in samples.pack_ids(12)
        )
    )
    assert sum(begun) == 1
    assert (await world.container().backlog.read("shop-1", HOST)).epoch == 1


async def test_late_delivery_of_sent_pack_is_refused(world: World) -> None:
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    await container.backlog.put(crawl.id, HOST, [FIRST])
    line = await container.backlog.read(crawl.id, HOST)
    ledger = Ledger(pack=ONE, children=())
    assert await container.packs.commit(crawl, ledger, {}) == Committed()
    asked = begins(line, FIRST.place, crawl=crawl.id, unsent=ONE)
    assert await container.packs.note_sent(ONE, 0)
    assert not await world.container().backlog.acquire(asked)
    assert not await world.container().backlog.acquire(replace(asked, unsent=TWO)), "no ledger"
    assert await world.container().backlog.acquire(replace(asked, unsent=""))


async def test_pack_is_sent_only_with_all_leases_of_its_deliveries(world: World) -> None:
    """Another delivery of the pack can acquire a lease, and die before it sends the leased pack."""
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    ledger = Ledger(pack=ONE, children=())
    assert await container.packs.commit(crawl, ledger, {}) == Committed()
    for leases, host in enumerate((HOST, LONG_HOST), 1):
        await container.backlog.put(crawl.id, host, [FIRST])
        line = await container.backlog.read(crawl.id, host)
        asked = begins(line, FIRST.place, crawl=crawl.id, unsent=ONE)
        assert await container.backlog.acquire(replace(asked, host=host))
        assert not await world.container().packs.note_sent(ONE, leases - 1)
    counted = replace(ledger, leases=2)
    assert await world.container().packs.recall([ONE]) == {ONE: Recalled(ledger=counted)}
    assert await world.container().packs.note_sent(ONE, 2)
    assert await world.container().packs.note_sent(ONE, 1), "it is recorded already"


async def test_backlog_takes_longest_names_and_many_places(backlog: Backlog) -> None:
    waiting = [waits(f"{place:02}{'x' * 98}") for place in range(40)]
    await backlog.put("c" * 128, LONG_HOST, waiting[::-1])
    assert (await backlog.read("c" * 128, LONG_HOST)).first == waiting[0]
    assert await backlog.first_places("c" * 128, LONG_HOST, 33) == tuple(waiting[:33])
    assert await backlog.first_places("c" * 128, LONG_HOST, 99) == tuple(waiting)


async def test_concurrent_send_is_noted_once(world: World) -> None:
    one, other = world.container().backlog, world.container().backlog
    await one.put("shop-1", "late", [FIRST, SECOND])
    read, _ = await other.first_places("shop-1", "late", 2)
    assert read == FIRST
    assert await one.note_sent("shop-1", "late", read, 5_000)
    assert not await other.note_sent("shop-1", "late", read, 6_000)
    noted = replace(FIRST, sent_at_ms=5_000)
    assert await other.first_places("shop-1", "late", 9) == (noted, SECOND)
    assert await other.get("shop-1", "late", FIRST.place) == noted
    assert await other.note_sent("shop-1", "late", noted, 9_000)
    assert not await one.note_sent("shop-1", "late", noted, 9_500)
    assert (await one.first_places("shop-1", "late", 1))[0].sent_at_ms == 9_000


async def test_left_pack_is_not_noted_as_sent(backlog: Backlog) -> None:
    await backlog.put("shop-1", "late", [FIRST, SECOND])
    assert await backlog.note_sent("shop-1", "late", FIRST, 5_000)
    (noted, _) = await backlog.first_places("shop-1", "late", 2)
    await backlog.forget("shop-1", "late", FIRST.place)
    for read in (FIRST, noted):
        assert not await backlog.note_sent("shop-1", "late", read, 9_000)
    assert await backlog.first_places("shop-1", "late", 9) == (SECOND,)
    await backlog.put("shop-1", "late", [FIRST])
    assert await backlog.first_places("shop-1", "late", 9) == (FIRST, SECOND)
