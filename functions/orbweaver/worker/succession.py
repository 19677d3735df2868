"""Which pack of a host is out: the others of its crawl wait in its backlog.

    ahead   begin the next pack while what this one fetched is still to be written
    send    what it led to: have packs wait, leave its place, have the next one out
    tend    the same for a pack that is committed and stands there again, or is given up

    put_late, send_late    the backlog of late packs, which are sent when little else is out

`send` is repeated by every later delivery of that pack, until it is noted as sent
(frontier/backlog.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil

from orbweaver.frontier.backlog import (
    Backlog,
    Beginning,
    Line,
    WaitingPack,
    host_to_wait_for,
    placed,
    waiting_of,
)
from orbweaver.frontier.belonging import is_of_one_host
from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.late import BANDS_MAX, DOUBTFUL, LANE, band_at
from orbweaver.frontier.messages import Pack, SeedsMessage, decode, encode
from orbweaver.frontier.queues import Queue
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import StoredNewer, Transient
from orbweaver.model.ports import Clock
from orbweaver.model.slices import SLICE_PACKS
from orbweaver.model.turns import slices
from orbweaver.model.url import host_of
from orbweaver.worker.rounds import Round

# Packs of a crawl that is over, which are given up together.
GIVEN_UP_AT_ONCE = 50
DELAY_S_MAX = 900
# The least that returning takes: such a pack may go on at once.
SOON_S = 1
TRIES = 5
# For how long a late pack that was sent is not sent again.
SENT_LATE_MS = 60_000
# The search for the first late pack of a host reads at most this number of packs.
LOOKED_THROUGH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PackPlace:
    """Where a pack comes from: its host, and its place there; of most, nowhere."""

    host: str = ""
    place: str = ""


NOWHERE = PackPlace()


class Claiming(Enum):
    """Which late packs are sent.

    None while one of them is under way; also those that are, if no other has sent them since they
    were read; or all.
    """

    FREE = "free"
    TAKEN = "taken"
    ANYWAY = "anyway"


def standing_of(message: Pack | SeedsMessage) -> PackPlace:
    """Say where a message comes from."""
    if not isinstance(message, Pack) or not message.place:
        return NOWHERE
    if message.late:
        return PackPlace(host=LANE, place=message.place)
    return PackPlace(host=host_of(message.targets[0].url), place=message.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Beginner:
    """In whose name a pack is out, the first of `names`; what is out in another one is its, too.

    It begins where none is out until `unsent` is noted as sent. Without that, only where that was
    written in one of its names or in that of `other`, or its own `place` is written to be out:
    another delivery may have done so, and be acknowledged.
    """

    names: tuple[str, ...]
    other: str = ""
    place: str = ""
    unsent: str = ""
    round_: Round | None = None
    least_s: int = 0


class Succession:
    """Puts packs in backlogs and takes the next."""

    def __init__(self, *, backlog: Backlog, queue: Queue, clock: Clock) -> None:
        self._backlog = backlog
        self._queue = queue
        self._clock = clock

    async def ahead(self, crawl: Crawl, pack: Pack, round_: Round) -> None:
        """Begin the next pack of a host, as all of this one was asked for.

        That writes nothing: until the message of the next one is sent, that of this pack answers
        for it.
        """
        if not pack.place or not round_.goes_on(crawl.id):
            return
        line = await self._backlog.look(crawl.id, host_of(pack.targets[0].url), pack.place)
        if line.first is None or (line.out not in ("", pack.place) and not round_.has_taken(pack)):
            return
        following = self._outgoing(line.first)
        if following.delay_s <= SOON_S and round_.takes(following.pack):
            round_.take_on(following.pack, after=pack.id)

    async def send(
        self,
        crawl: Crawl,
        ledger: Ledger,
        outgoing: Sequence[OutgoingPack],
        standing: PackPlace,
        round_: Round | None = None,
    ) -> bool:
        """Send packs or have them wait, and the next of their hosts follow.

        Whether that is to be noted, so that no later delivery does it again.
        """
        waiting: dict[str, list[WaitingPack]] = {}
        direct: list[OutgoingPack] = []
        async for some in slices(outgoing, SLICE_PACKS):
            direct += self._sort_waiting(crawl, some, waiting)
        own = standing
        if standing.host == LANE:  # these are not begun one after the other
            # What is sent now may look at once, and is to find that this one is not under way.
            await self._backlog.forget(crawl.id, LANE, standing.place)
            own = NOWHERE
        async for going in slices(direct, SLICE_PACKS):
            await self._queue.send(going, express=crawl.express)
        for host, packs in waiting.items():
            async for part in slices(packs, SLICE_PACKS):
                await self._backlog.put(crawl.id, host, part)
        names = (ledger.pack, _copy(ledger.pack))
        hosts = [*waiting, *filter(None, [own.host])]
        for host, least_s in _free_s(outgoing, hosts).items():
            beginner = _Beginner(names=names, unsent=ledger.pack, round_=round_, least_s=least_s)
            handed_over = host == own.host and await self._hand_over(crawl, own, beginner)
            if not handed_over:
                await self._begin(crawl, host, beginner)
        return bool(outgoing) or bool(standing.place)

    def _sort_waiting(
        self,
        crawl: Crawl,
        outgoing: Sequence[OutgoingPack],
        waiting: dict[str, list[WaitingPack]],
    ) -> list[OutgoingPack]:
        """Add the packs that wait to the backlogs of their hosts; return the others."""
        now_ms = self._clock.now_ms()
        direct: list[OutgoingPack] = []
        for one in outgoing:
            host = _waits(crawl, one)
            if host is None:
                direct.append(_directly(crawl, one))
            else:
                waiting.setdefault(host, []).append(waiting_of(one, now_ms))
        return direct

    async def tend(
        self, crawl: Crawl, pack_id: str, standing: PackPlace, *, last: bool = False
    ) -> None:
        """Leave a place, if it is there, and have the next one out.

        Another delivery may have had a committed pack wait once more; or it is a dead letter: then
        this is the `last` delivery, and sends what one before it has begun and may not have sent.
        """
        if not standing.place:
            return
        name = _copy(pack_id)
        if await self._backlog.get(crawl.id, standing.host, standing.place) is not None:
            await self._backlog.leave(crawl.id, standing.host, standing.place, name)
        if standing.host == LANE:
            return  # these are not begun one after the other
        names = (name, pack_id) if last else (name,)
        beginner = _Beginner(names=names, other=pack_id, place=standing.place)
        await self._begin(crawl, standing.host, beginner)

    async def _hand_over(self, crawl: Crawl, own: PackPlace, beginner: _Beginner) -> bool:
        """Have the first pack out instead of the own one; False, and the place left, if it is not.

        That is one write: between two, others would begin what has been begun ahead.
        """
        name = beginner.names[0]
        line = await self._backlog.look(crawl.id, own.host, own.place)
        if line.out == own.place and line.first is not None:
            beginning = _beginning(crawl, own.host, line, line.first, beginner)
            if await self._backlog.begin(beginning):
                await self._backlog.forget(crawl.id, own.host, own.place)
                await self._send(crawl, line.first, beginner.round_, beginner.least_s)
                return True
        await self._backlog.leave(crawl.id, own.host, own.place, name)
        return False

    async def put_late(self, crawl: Crawl, packs: Sequence[Pack]) -> None:
        """Have late packs wait; before anything is sent that may find the crawl at its end."""
        async for part in slices(packs, SLICE_PACKS):
            waiting = [WaitingPack(place=pack.place, body=encode(pack)) for pack in part]
            await self._backlog.put(crawl.id, LANE, waiting)

    async def send_late(
        self,
        crawl: Crawl,
        count: int,
        unknown: int = 0,
        band_max: int = BANDS_MAX,
        claiming: Claiming = Claiming.FREE,
    ) -> bool:
        """Send the first late packs, if none of them is under way; whether that is done.

        So many of them, or `unknown` of kinds that are not known to bring little. None of a band
        behind `band_max` is sent. That one is sent is written down before, so that of workers that
        look at once one sends it.
        """
        now_ms = self._clock.now_ms()
        waiting = await self._backlog.standing(crawl.id, LANE, max(count, unknown))
        if claiming is Claiming.FREE and any(_is_under_way(one, now_ms) for one in waiting):
            return False  # each looks when it is done
        packs: list[OutgoingPack] = []
        done = True
        for at, one in enumerate(waiting):
            if band_at(one.place) > (band_max if at < count else DOUBTFUL):
                continue
            noted = await self._backlog.note_sent(crawl.id, LANE, one, now_ms)
            if not noted and claiming is not Claiming.ANYWAY:
                done = False
                break  # another one is about to send them
            packs.append(self._outgoing(one))
        if packs:
            await self._queue.send(packs, express=crawl.express)
        return done

    async def is_idle(self, crawl: Crawl, host: str, own: str = "") -> bool:
        """Whether a host has no pack queued, in work or waiting, except at the place `own`."""
        line = await self._backlog.look(crawl.id, host, own)
        return line.first is None and line.out in ("", own)

    async def send_late_of(self, crawl: Crawl, host: str, band_max: int, round_: Round) -> bool:
        """Send the first late pack that has links of a host; whether there was one.

        The worker takes it on at once, if its round goes on.
        """
        now_ms = self._clock.now_ms()
        for one in await self._backlog.standing(crawl.id, LANE, LOOKED_THROUGH):
            # A look at the text is cheaper than to read it.
            if f"{host}/" not in one.body or band_at(one.place) > band_max:
                continue
            if _is_under_way(one, now_ms):
                continue
            if await self._backlog.note_sent(crawl.id, LANE, one, now_ms):
                await self._send(crawl, one, round_)
                return True
        return False

    async def _begin(self, crawl: Crawl, host: str, beginner: _Beginner) -> None:
        """Have the first pack of a host out, if none is; what it began with before, send again."""
        refused = -1
        for _ in range(TRIES):
            line = await self._backlog.look(crawl.id, host)
            mine = line.by in beginner.names or bool(line.left and line.left == beginner.place)
            mine = mine or (not line.out and line.by == beginner.other != "")
            again = bool(line.out) and mine
            if again:
                found = await self._backlog.get(crawl.id, host, line.out)
            elif line.out or line.edits == refused or not (beginner.unsent or mine):
                return  # or another delivery has done it meanwhile
            else:
                found = line.first
                if found is None and beginner.unsent:
                    return
                beginning = _beginning(crawl, host, line, found, beginner)
                if not await self._backlog.begin(beginning):
                    found, refused = None, line.edits
            if found is not None:
                await self._send(crawl, found, beginner.round_, beginner.least_s, again=again)
                return
        raise Transient(f"what is out of {host} was changed {TRIES} times")

    async def leave(self, pack: Pack) -> None:
        """Leave a pack's place: it is done with."""
        await self._backlog.leave(pack.crawl, host_of(pack.targets[0].url), pack.place)

    async def behind(self, pack: Pack) -> tuple[Pack, ...]:
        """Read some of the packs that wait for a pack's host."""
        host = host_of(pack.targets[0].url)
        found = await self._backlog.standing(pack.crawl, host, GIVEN_UP_AT_ONCE)
        return tuple(self._outgoing(one).pack for one in found)

    async def _send(
        self,
        crawl: Crawl,
        found: WaitingPack,
        round_: Round | None,
        least_s: int = 0,
        *,
        again: bool = False,
    ) -> None:
        outgoing = self._outgoing(found)
        delay_s = max(outgoing.delay_s, least_s)
        taken = False
        if round_ is not None:
            soon = delay_s <= SOON_S and round_.goes_on(crawl.id) and round_.takes(outgoing.pack)
            # What was begun before may have been taken on by the delivery that began it.
            taken = (soon and not again) or round_.has_taken(outgoing.pack)
            held = taken or again
            if held:
                held_s = round_.copy_delay_s(crawl.id)
            else:
                held_s = round_.rest_s(crawl.id, alone=is_of_one_host(crawl))
            delay_s = max(delay_s, held_s)
        sent = replace(outgoing, delay_s=delay_s, taken=taken)
        await self._queue.send([sent], express=crawl.express)
        if taken and round_ is not None:
            round_.take_on(outgoing.pack)

    def _outgoing(self, found: WaitingPack) -> OutgoingPack:
        pack = decode(found.body)
        if isinstance(pack, Newer):
            raise StoredNewer(pack.said)
        if not isinstance(pack, Pack):
            raise TypeError(f"no pack waits at {found.place}")
        wait_s = max(0, found.due_ms - self._clock.now_ms()) / 1000
        return OutgoingPack(pack=pack, delay_s=min(ceil(wait_s), DELAY_S_MAX))


def _is_under_way(waiting: WaitingPack, now_ms: int) -> bool:
    """Whether a late pack was sent a moment ago; by another clock that may be in a moment."""
    return abs(now_ms - waiting.sent_at_ms) < SENT_LATE_MS


def _beginning(
    crawl: Crawl, host: str, line: Line, first: WaitingPack | None, beginner: _Beginner
) -> Beginning:
    """Have a pack be out of a host whose line was read; None: none is."""
    return Beginning(
        crawl=crawl.id,
        host=host,
        edits=line.edits,
        place="" if first is None else first.place,
        by="" if first is None else beginner.names[0],
        unsent=beginner.unsent,
    )


def _waits(crawl: Crawl, outgoing: OutgoingPack) -> str | None:
    """Name the host that a pack waits for; None for one that goes by the queue."""
    # What a crawl that is over still sends is only dropped.
    waits = crawl.delay_ms and crawl.state is not State.FINISHED
    return host_to_wait_for(outgoing) if waits else None


def _directly(crawl: Crawl, outgoing: OutgoingPack) -> OutgoingPack:
    """Have a pack that goes by the queue know its place, if a delivery before had it wait there.

    That one found the crawl going on; what is dropped or found committed leaves its place.
    """
    waited = crawl.delay_ms and host_to_wait_for(outgoing) is not None
    return replace(outgoing, pack=placed(outgoing.pack)) if waited else outgoing


def _free_s(outgoing: Sequence[OutgoingPack], hosts: Sequence[str]) -> dict[str, int]:
    """In how many seconds hosts are free at the soonest, as the URLs that return to them say."""
    free_s = dict.fromkeys(hosts, 0)
    for one in outgoing:
        host = host_to_wait_for(one)
        if host in free_s and one.delay_s > SOON_S:
            free_s[host] = max(free_s[host], one.delay_s)
    return free_s


def _copy(pack_id: str) -> str:
    """Name a delivery of a pack that finds it committed, or gives it up."""
    return f"copy/{pack_id}"
