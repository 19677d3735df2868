"""Store packs (messages with up to 25 URLs) that wait while another pack of their host is active.

In a crawl with a delay, each host has one *leased* pack: queued, or in work. The host's other
packs wait in a table, its *backlog*. Their sort key, the *place*, determines their order. Packs of
retries (second and later attempts) are sent to the queue instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Protocol

from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.journal import DELAY_S_MAX, OutgoingPack
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, decode, encode
from orbweaver.model.crawl_settings import WEEK_S
from orbweaver.model.errors import StoredNewer
from orbweaver.model.url import host_of
from orbweaver.model.value import value_class

DEPTH_DIGITS, AT_DIGITS = 6, 14
# Longer than the retention of any crawl that can be resumed.
WAITING_KEPT_S = 365 * 86_400
# Late packs of a finished crawl are removed only when they expire. A crawl lasts at most a week.
LATE_KEPT_S = 2 * WEEK_S


def kept_s(host: str) -> int:
    """Return how long a pack is stored, in seconds. `host` is a host, or `LANE` for late packs."""
    return LATE_KEPT_S if host == LANE else WAITING_KEPT_S


@value_class
class WaitingPack:
    """A pack in a backlog: its sort key (`place`), its message body, and its due time.

    Places are ASCII strings of at most 100 characters. Packs are sent in the lexical order of their
    places. `sent_at_ms` is the time that `Backlog.note_sent` recorded last.
    """

    place: str
    body: str
    due_ms: int = 0
    sent_at_ms: int = 0


@value_class
class Lease:
    """A host's lease (worker/lease.py), and the first waiting pack.

    `holder` acquired the lease for the pack at `place`. `epoch` counts changes, for conditional
    writes. `is_held` means that this pack still exists.
    """

    epoch: int
    place: str = ""
    is_held: bool = False
    holder: str = ""
    first: WaitingPack | None = None


@value_class
class LeaseRequest:
    """Request to acquire a lease for the pack at `place`. Without a place: to release it.

    It succeeds only if the lease is still in the epoch `epoch`. If `unsent` is given, the ledger of
    that pack must exist and not be recorded as sent (`Packs.note_sent`). Its number of leases then
    increases in the same transaction.
    """

    crawl: str
    host: str
    epoch: int
    place: str = ""
    holder: str = ""
    unsent: str = ""


# A delivery acquires the lease before it sends the next pack. So a leased pack is on the queue,
# or the holder's message will send it. A stuck worker blocks no pack. A slow worker can add a pack
# again that is already done. This copy is sent like any other pack, and its delivery ends because
# the commit record exists. Otherwise the copy remains until it expires.
class Backlog(Protocol):
    """Stores packs that wait for their hosts, by crawl, host and place (sort key)."""

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        """Add packs. An existing place is not overwritten, even if its pack is leased."""

    async def read(self, crawl: str, host: str, own: str = "") -> Lease:
        """Read a host's lease, and its first waiting pack except the one at `own`.

        The result includes all packs whose `put` call has returned.
        """

    async def acquire(self, request: LeaseRequest) -> bool:
        """Change a host's lease. Return False, without a write, if a condition fails."""

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        """Read the pack at a place, strongly consistent. Return None if it was removed."""

    async def forget(self, crawl: str, host: str, place: str) -> None:
        """Remove the pack at a place. The pack is done and not leased."""

    async def release(self, crawl: str, host: str, place: str, by: str = "") -> None:
        """Remove the pack at a place. The pack is done.

        If the pack is leased, first release the lease, with `by` as the holder. So the pack of a
        lease always exists.
        """

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        """Read the first `count_max` packs of a host in order, including a leased pack."""

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        """Record `at_ms` as the time when a pack is sent. `read` is the pack as read before.

        Returns False, without a write, if the pack was removed or another worker has recorded it as
        sent meanwhile.
        """


def host_to_wait_for(outgoing: OutgoingPack) -> str | None:
    """Return the host in whose backlog a pack waits, or None if it is sent to the queue."""
    # A pack of several hosts waits for the first of them.
    targets = outgoing.pack.targets
    if any(target.attempt > 1 for target in targets):
        return None
    return host_of(targets[0].url)


def with_place(pack: Pack) -> Pack:
    """Return the pack with its place in the backlog: by priority, then depth, then age."""
    express = any(target.express for target in pack.targets)
    depth = min(target.depth for target in pack.targets)
    place = f"{0 if express else 1}.{depth:0{DEPTH_DIGITS}}.{pack.at_ms:0{AT_DIGITS}}.{pack.id}"
    return replace(pack, place=place)


def waiting_of(outgoing: OutgoingPack, now_ms: int) -> WaitingPack:
    pack = with_place(outgoing.pack)
    # One second is the shortest delay of requeued URLs, so such a pack can be sent at once.
    due_ms = now_ms + outgoing.delay_s * 1000 if outgoing.delay_s > 1 else 0
    return WaitingPack(place=pack.place, body=encode(pack), due_ms=due_ms)


def outgoing_of(found: WaitingPack, now_ms: int) -> OutgoingPack:
    """Return a waiting pack, delayed until it is due. Raises StoredNewer."""
    pack = decode(found.body)
    if isinstance(pack, Newer):
        raise StoredNewer(pack.said)
    if not isinstance(pack, Pack):
        raise TypeError(f"no pack waits at {found.place}")
    wait_s = max(0, found.due_ms - now_ms) / 1000
    return OutgoingPack(pack=pack, delay_s=min(ceil(wait_s), DELAY_S_MAX))
