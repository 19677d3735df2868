"""One pack per host is leased; its end sends the next one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.frontier.backlog import LeaseRequest, waiting_of, with_place
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.late_links import LANE, place_at
from orbweaver.frontier.messages import Pack, child_id, decode
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.settings import Settings
from orbweaver.worker.late_packs import SENT_LATE_MS, LatePacks, SentTimes
from orbweaver.worker.rounds import Round
from orbweaver.worker.shutdown import ShutdownSignal
from orbweaver.worker.succession import NOWHERE, Succession, place_of_message
from tests.memory import ManualClock, MemoryBacklog, MemoryPacks, MemoryQueue, World
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, pack_of

POLITE = replace(CRAWL, delay_ms=1_000)
DEADLINE_MS = NOW_MS + 900_000


class NotingQueue(MemoryQueue):
    """Records for each sent pack whether its sender has taken it on early."""

    taken: list[bool]

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        self.taken += [outgoing.taken for outgoing in outgoing_packs]
        await super().send(outgoing_packs, express=express)


class Host:
    """Packs of one host; records the sent ones and those taken on early."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW_MS)
        self.world = World()
        self.queue = NotingQueue(self.world)
        self.queue.taken = []
        self.succession = Succession(
            backlog=MemoryBacklog(self.world), queue=self.queue, clock=self.clock
        )
        self.late_packs = LatePacks(
            backlog=MemoryBacklog(self.world),
            queue=self.queue,
            clock=self.clock,
            succession=self.succession,
        )
        self.taken_on: list[Pack] = []

    async def put(self, *packs: Pack) -> None:
        """Put packs into the backlog; the first one is sent."""
        outgoing = [OutgoingPack(pack=pack) for pack in packs]
        ledger = self.world.ledgers.setdefault(ROOT, Ledger(pack=ROOT, children=()))
        await self.succession.send(POLITE, ledger, outgoing, NOWHERE)

    async def wait(self, pack: Pack) -> None:
        """Put a pack into the backlog, without its sender."""
        waiting = waiting_of(OutgoingPack(pack=pack), 0)
        await MemoryBacklog(self.world).put(POLITE.id, SITE, [waiting])

    async def acquire(self, pack: Pack, holder: str) -> None:
        """Lease a pack of the host for a holder."""
        backlog, place = MemoryBacklog(self.world), with_place(pack).place
        epoch = (await backlog.read(POLITE.id, SITE)).epoch
        lease = LeaseRequest(crawl=POLITE.id, host=SITE, epoch=epoch, place=place, holder=holder)
        assert await backlog.acquire(lease)

    async def end(
        self,
        pack: Pack,
        *outgoing: OutgoingPack,
        round_: Round | None = None,
        crawl: Crawl = POLITE,
    ) -> Ledger:
        ledger = Ledger(pack=pack.id, children=())
        await MemoryPacks(self.world).commit(crawl, ledger, {})
        await self.succession.send(
            crawl, ledger, outgoing, place_of_message(with_place(pack)), round_
        )
        return ledger

    async def note_sent(self, pack: Pack) -> None:
        leases = self.world.ledgers[pack.id].leases
        assert await MemoryPacks(self.world).note_sent(pack.id, leases)

    async def round(self) -> Round:
        round_ = Round(
            clock=self.clock,
            settings=Settings.of(waits_billed="yes"),
            deadline_ms=DEADLINE_MS,
            ending=ShutdownSignal(),
        )

        async def nothing() -> None: ...

        async def take(pack: Pack) -> None:
            self.taken_on.append(pack)

        await round_.run(nothing(), take)
        return round_

    @property
    def sent(self) -> list[tuple[str, int]]:
        """Return the ids of sent packs, with their delays in seconds."""
        packs = [(decode(mail.body), mail.delay_s) for mail in self.world.sent]
        return [(pack.id, delay_s) for pack, delay_s in packs if isinstance(pack, Pack)]

    @property
    def ids(self) -> list[str]:
        return [pack_id for pack_id, _ in self.sent]


def packs(count: int) -> list[Pack]:
    return [
        replace(pack_of(f"{SITE}/{place}", pack=child_id(ROOT, place)), at_ms=NOW_MS + place)
        for place in range(count)
    ]


async def test_pack_of_several_hosts_waits_for_first_host() -> None:
    host, (one, other) = Host(), packs(2)
    mixed = replace(other, targets=(*other.targets, *pack_of("https://b.example/").targets))
    await host.put(one, mixed)
    assert host.sent == [(one.id, 0)]


async def test_next_pack_is_sent_again_by_unrecorded_copy() -> None:
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    ledger, standing = await host.end(one), place_of_message(with_place(one))
    assert await host.succession.send(POLITE, ledger, (), standing) == 0
    assert host.ids == [one.id, other.id, other.id]
    await host.end(other)
    # The second pack is done, and has sent the third.
    assert await host.succession.send(POLITE, ledger, (), standing) == 0
    await host.succession.start_next(POLITE, one.id, standing)
    assert host.ids == [one.id, other.id, other.id, third.id]


async def test_pack_put_after_last_one_is_sent_at_once() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.put(other)
    assert host.ids == [one.id, other.id]


async def test_late_delivery_of_sent_pack_begins_no_other() -> None:
    """The message may be acknowledged already, so a pack that it begins could stay unsent."""
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    ledger = await host.end(one)
    await host.note_sent(one)
    await host.put(other)
    await MemoryBacklog(host.world).release(POLITE.id, SITE, with_place(other).place)
    await host.wait(other)
    await host.succession.send(POLITE, ledger, (), place_of_message(with_place(one)))
    assert host.ids == [one.id, other.id]


async def test_copy_put_again_is_dropped() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.put(one, other)
    assert host.ids == [one.id, one.id], "it goes out a second time"
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    assert host.ids == [one.id, one.id, other.id]


async def test_copy_sent_in_vain_releases_next_pack() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.end(one)
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    await host.acquire(one, ROOT)
    await host.wait(other)
    for _ in range(2):
        await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    assert host.ids == [one.id, other.id, other.id]


async def test_pack_left_while_sent_in_vain_releases_next() -> None:
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other)
    await host.end(one)
    await host.note_sent(one)
    await host.put(one)
    await host.end(other)
    assert host.ids == [one.id, other.id, one.id], "it goes out a second time"
    await host.wait(third)
    await MemoryBacklog(host.world).release(POLITE.id, SITE, with_place(one).place, one.id)
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    assert host.ids == [one.id, other.id, one.id, third.id]


async def test_dead_letter_does_not_block_its_host() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    assert host.ids == [one.id, other.id]
    await host.end(one)
    assert host.ids == [one.id, other.id, other.id]


async def test_last_delivery_sends_pack_begun_before() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    await host.wait(other)
    await host.acquire(other, one.id)
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)))
    assert host.ids == [one.id], "its commit may still send it"
    await host.succession.start_next(POLITE, one.id, place_of_message(with_place(one)), last=True)
    assert host.ids == [one.id, other.id]


async def test_pack_begun_by_copy_is_sent_again() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one)
    copy = f"copy/{one.id}"
    await MemoryBacklog(host.world).release(POLITE.id, SITE, with_place(one).place, copy)
    await host.wait(other)
    await host.acquire(other, copy)
    await host.end(one)
    assert host.ids == [one.id, other.id]


async def test_pack_sent_by_finished_crawl_leaves_its_place() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    over = replace(POLITE, state=State.FINISHED)
    await host.succession.send(
        over, Ledger(pack=ROOT, children=()), [OutgoingPack(pack=other)], NOWHERE
    )
    sent = decode(host.world.sent[-1].body)
    assert isinstance(sent, Pack)
    await host.succession.start_next(POLITE, sent.id, place_of_message(sent))
    waiting = await MemoryBacklog(host.world).first_places(POLITE.id, SITE, 10)
    assert [found.place for found in waiting] == [with_place(one).place]


@pytest.mark.parametrize(("delay_s", "held_s"), [(1, 0), (20, 20)])
async def test_next_pack_is_delayed_until_host_is_free(delay_s: int, held_s: int) -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    again = pack_of(f"{SITE}/0", pack=child_id(one.id, 0))
    returns = OutgoingPack(pack=replace(again, at_ms=NOW_MS + 1), delay_s=delay_s)
    await host.end(one, returns)
    assert host.sent == [(one.id, 0), (other.id, held_s)]


async def test_next_pack_is_taken_on_with_delayed_message() -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    left_ms = round_.until_ms(POLITE.id, long=True) - host.clock.now_ms()
    await host.end(one, round_=round_)
    await asyncio.sleep(0)
    assert host.taken_on == [with_place(other)]
    ((_, held_s),) = host.sent[1:]
    assert held_s * 1000 >= left_ms + Settings().fetching.fetch_total_s * 1000


async def test_next_pack_is_taken_on_once_before_commit() -> None:
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    round_ = await host.round()
    await host.succession.take_on_next(POLITE, with_place(one), round_)
    await host.succession.take_on_next(POLITE, with_place(other), round_)
    await asyncio.sleep(0)
    assert host.taken_on == [with_place(other), with_place(third)]
    assert host.ids == [one.id]
    host.clock.at_ms = round_.until_ms(POLITE.id, long=True) + 1_000
    await host.end(one, round_=round_)
    await asyncio.sleep(0)
    assert len(host.taken_on) == 2
    assert host.ids == [one.id, other.id]
    assert host.sent[1][1] >= Settings().fetching.fetch_total_s, "its last request may be under way"


@pytest.mark.parametrize("sent_before", [True, False])
async def test_taken_pack_left_to_its_message_does_not_wait_for_the_round(
    sent_before: bool,
) -> None:
    """A pack of a paused crawl is parked at once, so that a resume sends it at once."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    if sent_before:
        await host.end(one, round_=round_)
    else:
        await host.succession.take_on_next(POLITE, with_place(one), round_)
    await host.succession.leave_taken(POLITE, with_place(other), round_)
    assert host.world.released == [other.id] * sent_before
    if not sent_before:
        await host.end(one, round_=round_)
        assert host.sent[1:] == [(other.id, 0)]
        assert host.queue.taken == [False, False]


async def test_message_of_committed_pack_does_not_wait_for_the_round() -> None:
    """A more urgent pack came between them. The outbox of `other` waits for its message."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    await host.succession.take_on_next(POLITE, with_place(one), round_)
    round_.ended(one.id)
    assert not await round_.is_sent(other.id)
    await host.end(one, round_=round_)
    assert host.sent[1:] == [(other.id, 0)]
    assert host.queue.taken == [False, False]


async def test_pack_taken_by_other_delivery_is_sent_again() -> None:
    """Otherwise both deliveries would request its URLs."""
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    ledger = await host.end(one, round_=await host.round())
    second = await host.round()
    assert (
        await host.succession.send(POLITE, ledger, (), place_of_message(with_place(one)), second)
        == 0
    )
    await asyncio.sleep(0)
    assert [pack.id for pack in host.taken_on] == [other.id]
    assert not second.has_taken(other)
    held_s = second.copy_delay_s(POLITE.id)
    assert host.sent == [(one.id, 0), (other.id, held_s), (other.id, held_s)]
    # The queue delivers the pack if the first worker dies; the second one ignores it.
    assert host.queue.taken == [False, True, False]


async def test_no_pack_begins_between_packs_taken_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some pack is always leased, so URLs are not requested twice."""
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other)
    round_ = await host.round()
    await host.succession.take_on_next(POLITE, with_place(one), round_)
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


async def test_pack_without_lease_takes_no_next_pack() -> None:
    host, (one, other, third) = Host(), packs(3)
    await host.put(one, other, third)
    await host.end(one)
    await host.succession.take_on_next(POLITE, with_place(one), await host.round())
    await asyncio.sleep(0)
    assert not host.taken_on


@pytest.mark.parametrize(
    ("crawl", "delay_s"),
    [(POLITE, 2), (replace(POLITE, seeds=(f"{SITE}/",)), 1)],
    ids=["one of several hosts", "only host"],
)
async def test_next_pack_near_round_end_waits_for_it(crawl: Crawl, delay_s: int) -> None:
    host, (one, other) = Host(), packs(2)
    await host.put(one, other)
    round_ = await host.round()
    host.clock.at_ms = round_.until_ms(POLITE.id, long=True) - 1_500
    await host.end(one, round_=round_, crawl=crawl)
    assert host.sent == [(one.id, 0), (other.id, delay_s)]
    assert not host.taken_on


def late_packs(*bands: int) -> list[Pack]:
    """Return late packs with these bands (priorities); the id of a pack has its index."""
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


async def test_first_late_packs_of_low_bands_are_sent() -> None:
    host = Host()
    packs = late_packs(1, 3, 4, 5)
    await host.late_packs.put(CRAWL, packs)
    await host.late_packs.send(CRAWL, 2)
    assert host.ids == ["p0", "p1"]
    for pack in packs[:2]:
        await host.succession.start_next(CRAWL, pack.id, place_of_message(pack))
    await host.late_packs.send(CRAWL, 2, band_max=4)
    assert host.ids[2:] == ["p2"]


async def test_recently_sent_late_packs_are_not_sent_again() -> None:
    host = Host()
    send = host.late_packs.send
    await host.late_packs.put(CRAWL, late_packs(1, 1))
    assert await send(CRAWL, 1) is None
    for by_ms in (0, -20, 20):  # a clock may be slow
        host.clock.at_ms = NOW_MS + by_ms
        assert await send(CRAWL, 2) is not None
    assert host.ids == ["p0"]
    host.clock.at_ms = NOW_MS + SENT_LATE_MS
    assert await send(CRAWL, 2) is None
    assert host.ids[1:] == ["p0", "p1"]


@pytest.mark.parametrize("ahead_ms", [-30_000, 0, 30_000])
async def test_late_pack_is_sent_again_unless_sent_meanwhile(ahead_ms: int) -> None:
    """The clock of the worker that sent it last may be slow or fast."""
    host = Host()
    send = host.late_packs.send
    await host.late_packs.put(CRAWL, late_packs(1))
    host.clock.at_ms = NOW_MS + ahead_ms
    await send(CRAWL, 1)
    host.clock.at_ms = NOW_MS
    known = await send(CRAWL, 1)
    assert known is not None
    host.clock.at_ms = NOW_MS + 6_000 + ahead_ms
    assert await send(CRAWL, 1, known=known) is None
    assert host.ids == ["p0", "p0"]
    host.clock.at_ms = NOW_MS + 6_000
    later = await send(CRAWL, 1, known=known)
    assert later is not None
    assert later != known
    assert await send(CRAWL, 1, known=later) is None
    assert host.ids == ["p0", "p0", "p0"]


@pytest.mark.parametrize("known", [None, frozenset[tuple[str, int]]()])
async def test_one_of_concurrent_senders_sends_late_packs(known: SentTimes | None) -> None:
    host = Host()
    await host.late_packs.put(CRAWL, late_packs(1, 1, 3))
    looks = (host.late_packs.send(CRAWL, 3, known=known) for _ in range(9))
    done = await asyncio.gather(*looks)
    assert Counter(host.ids) == dict.fromkeys(("p0", "p1", "p2"), 1)
    assert done.count(None) == 1


async def test_late_pack_leaves_its_place_before_its_outbox() -> None:
    host = Host()
    (late,) = late_packs(1)
    await host.late_packs.put(CRAWL, [late])
    held: list[int] = []
    send = host.queue.send

    async def noting(*given: Any, **more: Any) -> None:
        held.append(len(host.world.backlog[CRAWL.id, LANE]))
        await send(*given, **more)

    host.queue.send = noting  # type: ignore[method-assign]
    outgoing = OutgoingPack(pack=pack_of(f"{SITE}/a", pack="a"))
    ledger = Ledger(pack=late.id, children=(0,))
    await host.succession.send(CRAWL, ledger, [outgoing], place_of_message(late))
    assert (held, host.ids) == ([0], ["a"])
