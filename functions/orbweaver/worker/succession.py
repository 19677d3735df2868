"""Lease one pack (message with up to 25 URLs) of each host, in a crawl with a delay.

The host's other packs wait in its backlog (frontier/backlog.py). A delivery that starts the next
pack first acquires the host's lease (worker/lease.py), and sends the pack afterwards. Packs of
deferred links (late packs) wait in a backlog of the crawl (worker/late_packs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orbweaver.frontier.backlog import (
    Backlog,
    Lease,
    LeaseRequest,
    WaitingPack,
    host_to_wait_for,
    outgoing_of,
    waiting_of,
    with_place,
)
from orbweaver.frontier.crawl_scope import is_of_one_host
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, SeedsMessage
from orbweaver.frontier.queues import Queue
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import Transient
from orbweaver.model.ports import Clock
from orbweaver.model.slices import SLICE_PACKS
from orbweaver.model.turns import slices
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class
from orbweaver.worker.lease import Asker, HandOver, Phase, ResendPack, Rest, StartPack, step_of
from orbweaver.worker.rounds import Round

# Number of packs of a finished crawl that are removed at a time.
GIVEN_UP_AT_ONCE = 50
# Shortest delay of a requeued pack, which may also start at once.
SOON_S = 1
TRIES = 5


@value_class
class PackPlace:
    """Place (sort key) of a pack in its host's backlog. Empty for most packs."""

    host: str = ""
    place: str = ""


NOWHERE = PackPlace()


def place_of_message(message: Pack | SeedsMessage) -> PackPlace:
    if not isinstance(message, Pack) or not message.place:
        return NOWHERE
    if message.late:
        return PackPlace(host=LANE, place=message.place)
    return PackPlace(host=host_of(message.targets[0].url), place=message.place)


class Succession:
    """Keeps one leased pack of each host, and the host's other packs in backlogs."""

    def __init__(self, *, backlog: Backlog, queue: Queue, clock: Clock) -> None:
        self._backlog = backlog
        self._queue = queue
        self._clock = clock

    async def take_on_next(self, crawl: Crawl, pack: Pack, round_: Round) -> bool:
        """Start a host's next pack early, after all URLs of its current pack `pack` were requested.

        Returns False if no pack was started.
        """
        # This writes nothing. If the worker crashes before the next pack's message is sent, the
        # delivery of the current pack's message repeats this.
        if not pack.place or not round_.accepts_more(crawl.id):
            return False
        lease = await self._backlog.read(crawl.id, host_of(pack.targets[0].url), pack.place)
        if lease.first is None or (
            _is_held_by_other(lease, pack.place) and not round_.has_taken(pack)
        ):
            return False
        following = self._outgoing(lease.first)
        if following.delay_s > SOON_S or not round_.accepts(following.pack):
            return False
        round_.take_on(following.pack, after=pack.id)
        return True

    async def send(
        self,
        crawl: Crawl,
        ledger: Ledger,
        outgoing: Sequence[OutgoingPack],
        backlog_place: PackPlace,
        round_: Round | None = None,
    ) -> int:
        """Send packs of a commit, or store them in backlogs and start each host's next pack.

        Returns the number of acquired leases.
        """
        waiting: dict[str, list[WaitingPack]] = {}
        direct: list[OutgoingPack] = []
        async for some in slices(outgoing, SLICE_PACKS):
            direct += self._sort_waiting(crawl, some, waiting)
        own = backlog_place
        if backlog_place.host == LANE:  # a late pack does not start the next one
            # Workers that process these packs may check at once for the end of the crawl. This pack
            # must not count as recently sent then.
            await self._backlog.forget(crawl.id, LANE, backlog_place.place)
            own = NOWHERE
        async for going in slices(direct, SLICE_PACKS):
            await self._queue.send(going, express=crawl.express)
        for host, packs in waiting.items():
            async for part in slices(packs, SLICE_PACKS):
                await self._backlog.put(crawl.id, host, part)
        asker = Asker(pack=ledger.pack, phase=Phase.UNSENT)
        acquired = 0
        hosts = [*waiting, *filter(None, [own.host])]
        for host, least_s in _free_s(outgoing, hosts).items():
            handed_over = host == own.host and await self._hand_over(
                crawl, host, replace(asker, place=own.place), round_, least_s
            )
            acquired += handed_over or await self._begin(crawl, host, asker, round_, least_s)
        # Every later delivery repeats this, until the pack is recorded as sent.
        return acquired

    def _sort_waiting(
        self,
        crawl: Crawl,
        outgoing: Sequence[OutgoingPack],
        waiting: dict[str, list[WaitingPack]],
    ) -> list[OutgoingPack]:
        now_ms = self._clock.now_ms()
        direct: list[OutgoingPack] = []
        for one in outgoing:
            host = _waits(crawl, one)
            if host is None:
                direct.append(_directly(crawl, one))
            else:
                waiting.setdefault(host, []).append(waiting_of(one, now_ms))
        return direct

    async def start_next(
        self, crawl: Crawl, pack_id: str, backlog_place: PackPlace, *, last: bool = False
    ) -> None:
        """Remove a pack from its host's backlog, and start the host's next pack.

        `last` means that the pack becomes a dead letter. In this case, this call also sends a next
        pack that an earlier delivery started but may not have sent.
        """
        if not backlog_place.place:
            return
        asker = Asker(
            pack=pack_id, phase=Phase.DEAD if last else Phase.DONE, place=backlog_place.place
        )
        # Another delivery may have stored the committed pack again.
        if await self._backlog.get(crawl.id, backlog_place.host, asker.place) is not None:
            await self._backlog.release(crawl.id, backlog_place.host, asker.place, asker.holder)
        if backlog_place.host != LANE:  # a late pack does not start the next one
            await self._begin(crawl, backlog_place.host, asker)

    async def _hand_over(
        self, crawl: Crawl, host: str, asker: Asker, round_: Round | None, least_s: int
    ) -> bool:
        """Replace the asker's pack by the host's next pack. Return False if there is none."""
        lease = await self._backlog.read(crawl.id, host, asker.place)
        match step_of(lease, asker):
            # This is one write, because between two writes another worker could start the next
            # pack.
            case HandOver(pack) if await self._acquire(crawl, host, lease, asker, pack):
                await self._backlog.forget(crawl.id, host, asker.place)
                await self.send_waiting(crawl, pack, round_, least_s)
                return True
        await self._backlog.release(crawl.id, host, asker.place, asker.holder)
        return False

    async def is_idle(self, crawl: Crawl, host: str, own: str = "") -> bool:
        """Return True if a host has no leased pack and no waiting pack, except at `own`."""
        lease = await self._backlog.read(crawl.id, host, own)
        return lease.first is None and not _is_held_by_other(lease, own)

    async def _begin(
        self,
        crawl: Crawl,
        host: str,
        asker: Asker,
        round_: Round | None = None,
        least_s: int = 0,
    ) -> bool:
        """Start or resend a host's pack, if the lease allows that.

        Returns True if a lease was acquired for it.
        """
        refused = -1
        for _ in range(TRIES):
            lease = await self._backlog.read(crawl.id, host)
            match step_of(lease, asker):
                case ResendPack(place):
                    found = await self._backlog.get(crawl.id, host, place)
                    if found is not None:
                        await self.send_waiting(crawl, found, round_, least_s, again=True)
                        return False
                case Rest.LEAVE:
                    return False
                case _ if lease.epoch == refused:
                    return False  # the lease is unchanged, so the ledger refused it
                case StartPack(pack) if await self._acquire(crawl, host, lease, asker, pack):
                    await self.send_waiting(crawl, pack, round_, least_s)
                    return True
                case Rest.RELEASE if await self._acquire(crawl, host, lease, asker, None):
                    pass
                case _:
                    refused = lease.epoch
        raise Transient(f"the lease of {host} was changed {TRIES} times")

    async def _acquire(
        self, crawl: Crawl, host: str, lease: Lease, asker: Asker, pack: WaitingPack | None
    ) -> bool:
        return await self._backlog.acquire(
            LeaseRequest(
                crawl=crawl.id,
                host=host,
                epoch=lease.epoch,
                place="" if pack is None else pack.place,
                holder="" if pack is None else asker.holder,
                unsent=asker.unsent,
            )
        )

    async def leave(self, pack: Pack) -> None:
        await self._backlog.release(pack.crawl, host_of(pack.targets[0].url), pack.place)

    async def waiting_packs(self, pack: Pack) -> tuple[Pack, ...]:
        host = host_of(pack.targets[0].url)
        found = await self._backlog.first_places(pack.crawl, host, GIVEN_UP_AT_ONCE)
        return tuple(self._outgoing(one).pack for one in found)

    async def send_waiting(
        self,
        crawl: Crawl,
        found: WaitingPack,
        round_: Round | None,
        least_s: int = 0,
        *,
        again: bool = False,
    ) -> None:
        sent = _timed(crawl, self._outgoing(found), round_, least_s, again=again)
        await self._queue.send([sent], express=crawl.express)
        if sent.taken and round_ is not None:
            round_.take_on(sent.pack)
            left_s = round_.left_s(sent.pack)
            if left_s is not None:  # processing ended while the message was sent
                await self._queue.release(sent.pack, left_s, express=crawl.express)

    async def leave_taken(self, crawl: Crawl, pack: Pack, round_: Round) -> None:
        """Leave a pack that was started early to its message, which becomes due if possible."""
        if round_.leave(pack):
            await self._queue.release(pack, express=crawl.express)

    def _outgoing(self, found: WaitingPack) -> OutgoingPack:
        return outgoing_of(found, self._clock.now_ms())


def _is_held_by_other(lease: Lease, own: str) -> bool:
    return lease.is_held and lease.place != own


def _timed(
    crawl: Crawl, outgoing: OutgoingPack, round_: Round | None, least_s: int, *, again: bool
) -> OutgoingPack:
    """Return a pack with the delay of its message, and whether this invocation processes it now.

    `again` means that an earlier delivery may have sent the pack and may process it.
    """
    pack, delay_s = outgoing.pack, max(outgoing.delay_s, least_s)
    if round_ is None:
        return replace(outgoing, delay_s=delay_s)
    rest_s = round_.rest_s(crawl.id, alone=is_of_one_host(crawl))
    left_s = round_.left_s(pack)
    if left_s is not None:  # this invocation has left the pack to its message
        return replace(outgoing, delay_s=max(delay_s, left_s, rest_s))
    is_due = delay_s <= SOON_S and round_.accepts_more(crawl.id) and round_.accepts(pack)
    taken = round_.has_taken(pack) or (is_due and not again)
    held_s = round_.copy_delay_s(crawl.id) if taken or again else rest_s
    return replace(outgoing, delay_s=max(delay_s, held_s), taken=taken)


def _waits(crawl: Crawl, outgoing: OutgoingPack) -> str | None:
    # Workers drop all packs of a finished crawl, so these need not wait.
    waits = crawl.delay_ms and crawl.state is not State.FINISHED
    return host_to_wait_for(outgoing) if waits else None


def _directly(crawl: Crawl, outgoing: OutgoingPack) -> OutgoingPack:
    """Add the place in the backlog to a pack that is sent directly but may be in a backlog."""
    # An earlier delivery, which found the crawl running, may have stored the pack in the backlog. A
    # pack that is dropped or found committed is removed from this place.
    waited = crawl.delay_ms and host_to_wait_for(outgoing) is not None
    return replace(outgoing, pack=with_place(outgoing.pack)) if waited else outgoing


def _free_s(outgoing: Sequence[OutgoingPack], hosts: Sequence[str]) -> dict[str, int]:
    """Return the seconds until each host may be requested again, by its requeued URLs."""
    free_s = dict.fromkeys(hosts, 0)
    for one in outgoing:
        host = host_to_wait_for(one)
        if host in free_s and one.delay_s > SOON_S:
            free_s[host] = max(free_s[host], one.delay_s)
    return free_s
