"""Packs that wait for their hosts: in order, one out at a time, and none left behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.backlog import Beginning, Line, WaitingPack
from orbweaver.frontier.claims import Committed
from orbweaver.frontier.journal import Ledger
from tests.contract import samples

if TYPE_CHECKING:
    from tests.contract.worlds import World

HOST = "https://shop.example"
LONG_HOST = f"https://{'.'.join(['a' * 60] * 4)}.example:8443"
ONE, TWO = samples.pack_ids(2)


def waits(place: str, due_ms: int = 0) -> WaitingPack:
    """Have a pack wait at a place."""
    return WaitingPack(place=place, body=f'{{"of": "{place} \U0001f578 \u00fc"}}', due_ms=due_ms)


def begins(line: Line, place: str, by: str = ONE, **more: str) -> Beginning:
    """Have a place out instead of what was read."""
    where = {"crawl": "shop-1", "host": HOST} | more
    return Beginning(edits=line.edits, place=place, by=by, **where)


FIRST, SECOND, THIRD = waits("0.000003.b"), waits("1.000001.c", due_ms=7_000), waits("1.000002.a")


async def test_the_first_that_waits_is_seen(world: World) -> None:
    """Whenever they were put, in the order of their places, with all that was said of it."""
    backlog = world.container().backlog
    assert await backlog.look("shop-1", HOST) == Line(edits=0)
    await backlog.put("shop-1", HOST, [THIRD, SECOND])
    await backlog.put("shop-1", HOST, [FIRST])
    await backlog.put("shop-1", HOST, [])
    other = world.container().backlog
    assert await other.standing("shop-1", HOST, 9) == (FIRST, SECOND, THIRD)
    assert (await other.look("shop-1", HOST)).first == FIRST
    assert (await other.look("shop-1", HOST, FIRST.place)).first == SECOND
    assert await other.get("shop-1", HOST, SECOND.place) == SECOND
    for _ in range(2):
        await backlog.leave("shop-1", HOST, FIRST.place)
    assert (await other.look("shop-1", HOST)).first == SECOND
    assert await other.get("shop-1", HOST, FIRST.place) is None


async def test_crawls_and_hosts_have_backlogs_of_their_own(world: World) -> None:
    """What waits or is out for one says nothing of another, whose name it may begin."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [FIRST])
    await backlog.put("shop-1", f"{HOST}:81", [SECOND])
    await backlog.put("shop-12", HOST, [THIRD])
    line = await backlog.look("shop-1", HOST)
    assert await backlog.begin(begins(line, FIRST.place))
    assert await backlog.look("shop-1", f"{HOST}:81") == Line(edits=0, first=SECOND)
    assert await backlog.look("shop-12", HOST) == Line(edits=0, first=THIRD)
    assert await backlog.look("other-1", HOST) == Line(edits=0)


async def test_what_is_put_again_stays_as_it_is(world: World) -> None:
    """A message that is carried out twice changes nothing, whether its packs are out or not."""
    backlog = world.container().backlog
    other = WaitingPack(place=FIRST.place, body="other", due_ms=9)
    await backlog.put("shop-1", HOST, [FIRST, other])
    line = await backlog.look("shop-1", HOST)
    assert await backlog.begin(begins(line, FIRST.place))
    await world.container().backlog.put("shop-1", HOST, [other, SECOND])
    expected = Line(edits=1, out=FIRST.place, by=ONE, first=SECOND)
    assert await backlog.look("shop-1", HOST) == expected
    assert await backlog.standing("shop-1", HOST, 9) == (FIRST, SECOND)


async def test_what_is_out_and_gone_is_out_no_more(world: World) -> None:
    """A place that was left is not out; one's own is until then, and does not wait."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await backlog.look("shop-1", HOST)
    assert await backlog.begin(begins(line, FIRST.place))
    expected = Line(edits=1, out=FIRST.place, by=ONE, first=SECOND)
    assert await backlog.look("shop-1", HOST, FIRST.place) == expected
    await backlog.leave("shop-1", HOST, FIRST.place, TWO)
    assert await backlog.look("shop-1", HOST) == Line(edits=2, by=TWO, first=SECOND)
    await backlog.put("shop-1", HOST, [FIRST])
    assert await backlog.look("shop-1", HOST) == Line(edits=2, by=TWO, first=FIRST)


async def test_a_place_that_is_not_out_is_forgotten(world: World) -> None:
    """What is out stays so, also where it is forgotten itself."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [FIRST, SECOND, THIRD])
    line = await backlog.look("shop-1", HOST)
    assert await backlog.begin(begins(line, SECOND.place))
    for _ in range(2):
        await backlog.forget("shop-1", HOST, FIRST.place)
    expected = Line(edits=1, out=SECOND.place, by=ONE, first=THIRD)
    assert await backlog.look("shop-1", HOST) == expected
    await backlog.forget("shop-1", HOST, SECOND.place)
    expected = Line(edits=1, left=SECOND.place, by=ONE, first=THIRD)
    assert await backlog.look("shop-1", HOST) == expected


async def test_what_is_out_since_it_was_left_is_told(world: World) -> None:
    """It was there as it was read, and is gone as it is written: it is out in vain."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await backlog.look("shop-1", HOST)
    await backlog.leave("shop-1", HOST, FIRST.place, TWO)
    assert await backlog.begin(begins(line, FIRST.place))
    expected = Line(edits=1, left=FIRST.place, by=ONE, first=SECOND)
    assert await backlog.look("shop-1", HOST) == expected


async def test_none_is_out_where_that_was_written(world: World) -> None:
    """What stands there waits, that which was out among it."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [FIRST])
    assert await backlog.begin(begins(await backlog.look("shop-1", HOST), FIRST.place))
    assert await backlog.begin(begins(await backlog.look("shop-1", HOST), "", ""))
    assert await backlog.look("shop-1", HOST) == Line(edits=2, first=FIRST)


async def test_what_is_out_is_not_hidden_by_what_goes_past_it(world: World) -> None:
    """However many come in before it, it is seen to be out, and the first of them to be next."""
    backlog = world.container().backlog
    await backlog.put("shop-1", HOST, [THIRD, waits("2")])
    line = await backlog.look("shop-1", HOST)
    assert await backlog.begin(begins(line, THIRD.place))
    await backlog.put("shop-1", HOST, [waits(f"0.{place:02}") for place in range(30)])
    expected = Line(edits=1, out=THIRD.place, by=ONE, first=waits("0.00"))
    assert await world.container().backlog.look("shop-1", HOST) == expected


async def test_of_many_that_begin_one_does(world: World) -> None:
    """Containers that begin at the same time have one pack out between them."""
    await world.container().backlog.put("shop-1", HOST, [FIRST, SECOND])
    line = await world.container().backlog.look("shop-1", HOST)
    begun = await asyncio.gather(
        *(
            world.container().backlog.begin(begins(line, FIRST.place, pack))
            for pack in samples.pack_ids(12)
        )
    )
    assert sum(begun) == 1
    assert (await world.container().backlog.look("shop-1", HOST)).edits == 1


async def test_a_pack_that_is_noted_as_sent_begins_nothing(world: World) -> None:
    """A delivery that comes late takes nothing that no other one would take up."""
    container, crawl = world.container(), samples.crawl()
    await container.crawls.create(crawl)
    await container.backlog.put(crawl.id, HOST, [FIRST])
    line = await container.backlog.look(crawl.id, HOST)
    ledger = Ledger(pack=ONE, children=())
    assert await container.packs.commit(crawl, ledger, {}) == Committed()
    asked = begins(line, FIRST.place, crawl=crawl.id, unsent=ONE)
    await container.packs.sent(ONE)
    assert not await world.container().backlog.begin(asked)
    assert await world.container().backlog.begin(replace(asked, unsent=TWO))


async def test_long_names_and_many_places(world: World) -> None:
    """A backlog takes the longest names there are, and is read as far as was asked."""
    backlog = world.container().backlog
    waiting = [waits(f"{place:02}{'x' * 98}") for place in range(40)]
    await backlog.put("c" * 128, LONG_HOST, waiting[::-1])
    assert (await backlog.look("c" * 128, LONG_HOST)).first == waiting[0]
    assert await backlog.standing("c" * 128, LONG_HOST, 33) == tuple(waiting[:33])
    assert await backlog.standing("c" * 128, LONG_HOST, 99) == tuple(waiting)


async def test_who_sends_what_waits_is_noted_once(world: World) -> None:
    """Of two that have read the same, one may send it; so again, of what was read since."""
    one, other = world.container().backlog, world.container().backlog
    await one.put("shop-1", "late", [FIRST, SECOND])
    read, _ = await other.standing("shop-1", "late", 2)
    assert read == FIRST
    assert await one.note_sent("shop-1", "late", read, 5_000)
    assert not await other.note_sent("shop-1", "late", read, 6_000)
    noted = replace(FIRST, sent_at_ms=5_000)
    assert await other.standing("shop-1", "late", 9) == (noted, SECOND)
    assert await other.get("shop-1", "late", FIRST.place) == noted
    assert await other.note_sent("shop-1", "late", noted, 9_000)
    assert not await one.note_sent("shop-1", "late", noted, 9_500)
    assert (await one.standing("shop-1", "late", 1))[0].sent_at_ms == 9_000


async def test_what_was_left_is_not_noted_as_sent(world: World) -> None:
    """Nor is it there again by that; what is put there later was not sent yet."""
    backlog = world.container().backlog
    await backlog.put("shop-1", "late", [FIRST, SECOND])
    assert await backlog.note_sent("shop-1", "late", FIRST, 5_000)
    (noted, _) = await backlog.standing("shop-1", "late", 2)
    await backlog.forget("shop-1", "late", FIRST.place)
    for read in (FIRST, noted):
        assert not await backlog.note_sent("shop-1", "late", read, 9_000)
    assert await backlog.standing("shop-1", "late", 9) == (SECOND,)
    await backlog.put("shop-1", "late", [FIRST])
    assert await backlog.standing("shop-1", "late", 9) == (FIRST, SECOND)
