"""Which pack of a host is out, and when the next one is sent."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.backlog import Beginning, placed, waiting_of
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.late import LANE, place_at
from orbweaver.frontier.messages import Pack, child_id, decode
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.settings import Settings
from orbweaver.worker.ending import Ending
from orbweaver.worker.rounds import Round
from orbweaver.worker.succession import NOWHERE, SENT_LATE_MS, Claiming, Succession, standing_of
from tests.memory import ManualClock, MemoryBacklog, MemoryPacks, MemoryQueue, World
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, pack_of

POLITE = replace(CRAWL, delay_ms=1_000)
DEADLINE_MS = NOW_MS + 900_000


class NotingQueue(MemoryQueue):
    """Notes of each pack that is sent whether its sender has taken it on."""

    taken: list[bool]

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        """See the port."""
        self.taken += [outgoing.taken for outgoing in outgoing_packs]
        await super().send(outgoing_packs, express=express)


class Host:
    """A host with packs, and what was sent and taken on of them."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_MS)
        self.world = World()
        self.queue = NotingQueue(self.world)
        self.queue.taken = []
        self.succession = Succession(
            backlog=MemoryBacklog(self.world), queue=self.queue, clock=self.clock
        )
        self.taken_on: list[Pack] = []

    async def put(self, *packs: Pack) -> None:
        """Have packs wait; the first of them is out."""
        outgoing = [OutgoingPack(pack=pack) for pack in packs]
        ledger = Ledger(pack=ROOT, children=())
        assert await self.succession.send(POLITE, ledger, outgoing, NOWHERE)

    async def end(
        self,
        pack: Pack,
        *outgoing: OutgoingPack,
        round_: Round | None = None,
        crawl: Crawl = POLITE,
    ) -> Ledger:
        """Commit a pack that was out, and send what comes of it."""
        ledger = Ledger(pack=pack.id, children=())
        await MemoryPacks(self.world).commit(crawl, ledger, {})
        assert await self.succession.send(
            crawl, ledger, outgoing, standing_of(placed(pack)), round_
        )
        return ledger

    async def round(self) -> Round:
        """Begin an invocation."""
        round_ = Round(
            clock=self.clock,
            settings=Settings(waits_billed="yes"),
            deadline_ms=DEADLINE_MS,
            ending=Ending(),
        )

        async def nothing() -> None:
            """Nothing is delivered."""

        async def take(pack: Pack) -> None:
            self.taken_on.append(pack)

        await round_.run(nothing(), take)
        return round_

    @property
    def sent(self) -> list[tuple[str, int]]:
        """Ids of packs that were sent, and for how long they are held back."""
        packs = [(decode(mail.body), mail.delay_s) for mail in self.world.sent]
        return [(pack.id, delay_s) for pack, delay_s in packs if isinstance(pack, Pack)]

    @property
    def ids(self) -> list[str]:
        """Ids of packs that were sent."""
        return [pack_id for pack_id, _ in self.sent]


def packs(count: int) -> list[Pack]:
    """Packs of the site, one younger than the other."""
    return [
        replace(pack_of(f"{SITE}/{place}", pack=child_id(ROOT, place)), at_ms=NOW_MS + place)
        for place in range(count)
    ]


async def test_a_pack_of_several_hosts_waits_for_the_first() -> None:
    """It is asked for in its turn there, so that it does not take the slots of what is out."""
    host, (one, other) = Host(), packs(2)
    mixed = replace(other, targets=(*other.targets, *pack_of("https://b.example/").targets))
    await host.put(one, mixed)
    assert host.sent == [(one.id, 0)]


async def test_the_next_is_sent_again_by_a_copy_that_was_not_noted() -> None:
    """The backlog says who began it; once that pack is noted as sent, nothing is sent."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    ledger, standing = await host.end(one), standing_of(placed(one))
    assert await host.succession.send(POLITE, ledger, (), standing)
    assert host.ids == [one.id, other.id, other.id]
    await host.end(other)
    # What it began is done with, and has begun the next in its turn.
    assert await host.succession.send(POLITE, ledger, (), standing)
    await host.succession.tend(POLITE, one.id, standing)
    assert host.ids == [one.id, other.id, other.id, third.id]


async def test_what_waits_last_leaves_nothing_out() -> None:
    """What is put afterwards begins at once."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.put(other)
    assert host.ids == [one.id, other.id]


async def test_a_late_delivery_begins_nothing_that_none_would_send() -> None:
    """Of two deliveries of a message the one that ends has it acknowledged."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    ledger = await host.end(one)
    await MemoryPacks(host.world).sent(one.id)
    await host.put(other)
    await MemoryBacklog(host.world).leave(POLITE.id, SITE, placed(other).place)
    await MemoryBacklog(host.world).put(POLITE.id, SITE, [waiting_of(OutgoingPack(pack=other), 0)])
    await host.succession.send(POLITE, ledger, (), standing_of(placed(one)))
    assert host.ids == [one.id, other.id]


async def test_a_copy_that_waits_once_more_is_let_go() -> None:
    """A pack is put again after its commit, by a late delivery of the one that found it."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.put(one, other)
    assert host.ids == [one.id, one.id], "it goes out a second time"
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    assert host.ids == [one.id, one.id, other.id]


async def test_a_copy_that_is_out_in_vain_lets_the_next_one_out() -> None:
    """Another pack begins it as it was read, while its place is left: its message finds that."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    backlog = MemoryBacklog(host.world)
    line = await backlog.look(POLITE.id, SITE)
    place = placed(one).place
    vain = Beginning(crawl=POLITE.id, host=SITE, edits=line.edits, place=place, by=ROOT)
    assert await backlog.begin(vain)
    await backlog.put(POLITE.id, SITE, [waiting_of(OutgoingPack(pack=other), 0)])
    for _ in range(2):
        await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    assert host.ids == [one.id, other.id, other.id]


async def test_a_pack_that_is_left_while_it_is_out_in_vain_lets_the_next_one_out() -> None:
    """A delivery that was held up leaves its place, and begins nothing, as it is noted as sent."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other)
    await host.end(one)
    await MemoryPacks(host.world).sent(one.id)
    await host.put(one)
    await host.end(other)
    assert host.ids == [one.id, other.id, one.id], "it goes out a second time"
    backlog = MemoryBacklog(host.world)
    await backlog.put(POLITE.id, SITE, [waiting_of(OutgoingPack(pack=third), 0)])
    await backlog.leave(POLITE.id, SITE, placed(one).place, one.id)
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    assert host.ids == [one.id, other.id, one.id, third.id]


async def test_a_dead_letter_does_not_hold_its_host_up() -> None:
    """The next pack is out; what is sent back later may send it again, and no other."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    assert host.ids == [one.id, other.id]
    await host.end(one)
    assert host.ids == [one.id, other.id, other.id]


async def test_a_dead_letter_sends_what_it_has_begun() -> None:
    """A delivery before wrote which one is out, and died before it sent that."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    backlog = MemoryBacklog(host.world)
    await backlog.put(POLITE.id, SITE, [waiting_of(OutgoingPack(pack=other), 0)])
    edits, place = (await backlog.look(POLITE.id, SITE)).edits, placed(other).place
    begun = Beginning(crawl=POLITE.id, host=SITE, edits=edits, place=place, by=one.id)
    assert await backlog.begin(begun)
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)))
    assert host.ids == [one.id], "its commit may still send it"
    await host.succession.tend(POLITE, one.id, standing_of(placed(one)), last=True)
    assert host.ids == [one.id, other.id]


async def test_what_a_copy_has_begun_is_sent_again() -> None:
    """A copy that was given up wrote which one is out, and died before it sent that."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    backlog, copy = MemoryBacklog(host.world), f"copy/{one.id}"
    await backlog.leave(POLITE.id, SITE, placed(one).place, copy)
    await backlog.put(POLITE.id, SITE, [waiting_of(OutgoingPack(pack=other), 0)])
    edits, place = (await backlog.look(POLITE.id, SITE)).edits, placed(other).place
    begun = Beginning(crawl=POLITE.id, host=SITE, edits=edits, place=place, by=copy)
    assert await backlog.begin(begun)
    await host.end(one)
    assert host.ids == [one.id, other.id]


async def test_what_a_crawl_that_is_over_sends_knows_its_place() -> None:
    """A delivery before may have had it wait: whoever gets it leaves that."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    over = replace(POLITE, state=State.FINISHED)
    await host.succession.send(
        over, Ledger(pack=ROOT, children=()), [OutgoingPack(pack=other)], NOWHERE
    )
    sent = decode(host.world.sent[-1].body)
    assert isinstance(sent, Pack)
    await host.succession.tend(POLITE, sent.id, standing_of(sent))
    waiting = await MemoryBacklog(host.world).standing(POLITE.id, SITE, 10)
    assert [found.place for found in waiting] == [placed(one).place]


@pytest.mark.parametrize(("delay_s", "held_s"), [(1, 0), (20, 20)])
async def test_no_pack_is_sent_before_its_host_is_free(delay_s: int, held_s: int) -> None:
    """URLs that return after a while say how long that is, also for packs that did not ask."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    again = pack_of(f"{SITE}/0", pack=child_id(one.id, 0))
    returns = OutgoingPack(pack=replace(again, at_ms=NOW_MS + 1), delay_s=delay_s)
    await host.end(one, returns)
    assert host.sent == [(one.id, 0), (other.id, held_s)]


async def test_the_next_pack_is_taken_on_and_its_message_held_back() -> None:
    """The message is there before the pack is begun, and comes after the round."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    left_ms = round_.until_ms(POLITE.id, long=True) - host.clock.now_ms()
    await host.end(one, round_=round_)
    await asyncio.sleep(0)
    assert host.taken_on == [placed(other)]
    ((_, held_s),) = host.sent[1:]
    assert held_s * 1000 >= left_ms + Settings().fetch_total_s * 1000


async def test_the_next_pack_is_begun_before_the_commit_and_once() -> None:
    """Nothing is sent for it until then; afterwards its message is held back as well."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    round_ = await host.round()
    await host.succession.ahead(POLITE, placed(one), round_)
    await host.succession.ahead(POLITE, placed(other), round_)
    await asyncio.sleep(0)
    assert host.taken_on == [placed(other), placed(third)]
    assert host.ids == [one.id]
    host.clock.at_ms = round_.until_ms(POLITE.id, long=True) + 1_000
    await host.end(one, round_=round_)
    await asyncio.sleep(0)
    assert len(host.taken_on) == 2
    assert host.ids == [one.id, other.id]
    assert host.sent[1][1] >= Settings().fetch_total_s, "its last request may be under way"


async def test_what_another_delivery_has_taken_on_is_not_taken_on_again() -> None:
    """Of two at the same time the second sends it again, for later: else both asked for it."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    ledger = await host.end(one, round_=await host.round())
    second = await host.round()
    assert await host.succession.send(POLITE, ledger, (), standing_of(placed(one)), second)
    await asyncio.sleep(0)
    assert [pack.id for pack in host.taken_on] == [other.id]
    assert not second.has_taken(other)
    held_s = second.copy_delay_s(POLITE.id)
    assert host.sent == [(one.id, 0), (other.id, held_s), (other.id, held_s)]
    # A queue that sees the first one die hands the pack out; the second has no part in it.
    assert host.queue.taken == [False, True, False]


async def test_nobody_begins_between_what_was_begun_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no moment in which none is out: another one would ask for the same URLs."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other)
    round_ = await host.round()
    await host.succession.ahead(POLITE, placed(one), round_)
    whole = MemoryBacklog.forget

    async def forget(self: MemoryBacklog, crawl: str, at: str, place: str) -> None:
        await host.succession.send(
            POLITE, Ledger(pack=ROOT, children=()), [OutgoingPack(pack=third)], NOWHERE
        )
        await whole(self, crawl, at, place)

    monkeypatch.setattr(MemoryBacklog, "forget", forget)
    await host.end(one, round_=round_)
    assert host.ids == [one.id, other.id]
    assert await round_.is_sent(other.id)
    assert host.sent[1][1] > 0, "it is in work here"


async def test_a_pack_that_is_not_out_begins_no_other() -> None:
    """A late copy would ask for what another worker has in work."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    await host.end(one)
    await host.succession.ahead(POLITE, placed(one), await host.round())
    await asyncio.sleep(0)
    assert not host.taken_on


async def test_what_comes_late_in_a_round_waits_for_its_end() -> None:
    """It begins the next round with what the others leave, not alone and before them."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    host.clock.at_ms = round_.until_ms(POLITE.id, long=True) - 1_500
    await host.end(one, round_=round_)
    assert host.sent == [(one.id, 0), (other.id, 2)]
    assert not host.taken_on


async def test_the_only_host_of_a_crawl_waits_for_no_others() -> None:
    """Its next pack is there when the round ends: a second of a host's time is a slot."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    host.clock.at_ms = round_.until_ms(POLITE.id, long=True) - 1_500
    await host.end(one, round_=round_, crawl=replace(POLITE, seeds=(f"{SITE}/",)))
    assert host.sent == [(one.id, 0), (other.id, 1)]


def late_packs(*bands: int) -> list[Pack]:
    """Make late packs of these bands; each has its place in its name."""
    of = pack_of(SITE).targets
    return [
        replace(
            pack_of(f"{SITE}/{at}"),
            id=f"p{at}",
            place=place_at(band, of, NOW_MS, f"p{at}"),
            late=True,
        )
        for at, band in enumerate(bands)
    ]


async def test_more_late_packs_are_sent_of_kinds_that_are_not_known() -> None:
    """So many of the others; and none of a band that is not asked for."""
    host = Host()
    packs = late_packs(1, 1, 3, 4, 4, 5)
    await host.succession.put_late(CRAWL, packs)
    await host.succession.send_late(CRAWL, 1, 4)
    assert host.ids == ["p0", "p1", "p2"]
    for pack in packs[:3]:
        await host.succession.tend(CRAWL, pack.id, standing_of(pack))
    await host.succession.send_late(CRAWL, 1, 4)
    assert host.ids[3:] == ["p3"]
    await host.succession.tend(CRAWL, "p3", standing_of(packs[3]))
    await host.succession.send_late(CRAWL, 2, 4, band_max=4)
    assert host.ids[4:] == ["p4"]


async def test_late_packs_that_are_under_way_are_sent_by_no_other() -> None:
    """For a minute: what is not back by then may be lost. Nor are those behind them."""
    host = Host()
    send = host.succession.send_late
    await host.succession.put_late(CRAWL, late_packs(1, 1))
    assert await send(CRAWL, 1)
    for by_ms in (0, -20, 20):  # a clock may be slow
        host.clock.at_ms = NOW_MS + by_ms
        assert not await send(CRAWL, 2)
    assert host.ids == ["p0"]
    host.clock.at_ms = NOW_MS + SENT_LATE_MS
    assert await send(CRAWL, 2)
    assert host.ids[1:] == ["p0", "p1"]
    assert await send(CRAWL, 1, claiming=Claiming.TAKEN)
    assert host.ids[3:] == ["p0"]


@pytest.mark.parametrize(("claiming", "sent"), [("free", 1), ("anyway", 9)])
async def test_of_those_that_look_at_once_one_sends(claiming: str, sent: int) -> None:
    """They have read the same; one notes that it sends, and then does; but for who must be sure."""
    host = Host()
    await host.succession.put_late(CRAWL, late_packs(1, 1, 3))
    looks = (host.succession.send_late(CRAWL, 1, 3, claiming=Claiming(claiming)) for _ in range(9))
    done = await asyncio.gather(*looks)
    assert Counter(host.ids) == dict.fromkeys(("p0", "p1", "p2"), sent)
    assert sum(done) == sent


async def test_a_late_pack_leaves_its_place_before_what_it_led_to_is_sent() -> None:
    """That may be done at once, and is to find that this one is not under way."""
    host = Host()
    (late,) = late_packs(1)
    await host.succession.put_late(CRAWL, [late])
    held: list[int] = []
    send = host.queue.send

    async def noting(*given: Any, **more: Any) -> None:
        held.append(len(host.world.backlog[CRAWL.id, LANE]))
        await send(*given, **more)

    host.queue.send = noting  # type: ignore[method-assign]
    outgoing = OutgoingPack(pack=pack_of(f"{SITE}/a", pack="a"))
    ledger = Ledger(pack=late.id, children=(0,))
    assert await host.succession.send(CRAWL, ledger, [outgoing], standing_of(late))
    assert (held, host.ids) == ([0], ["a"])
