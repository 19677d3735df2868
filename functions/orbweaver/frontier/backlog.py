"""Backlogs of hosts: packs (messages with up to 25 URLs) that wait for the pack before them.

In a crawl with a delay, each host has one pack *in flight*: queued, or in work. Its other packs
wait in a table, ordered by place. URLs that return for another attempt use the queue instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.crawl_settings import WEEK_S
from orbweaver.model.url import host_of

DEPTH_DIGITS, AT_DIGITS = 6, 14
# Exceeds the retention of every crawl that can be resumed.
WAITING_KEPT_S = 365 * 86_400
# Nothing removes the late packs that a crawl leaves at its end. A crawl lasts at most a week.
LATE_KEPT_S = 2 * WEEK_S


def kept_s(host: str) -> int:
    """Return the maximum wait of a pack. `host` is a host, or `LANE` for late packs."""
    return LATE_KEPT_S if host == LANE else WAITING_KEPT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPack:
    """A waiting pack: its place among its host's packs, its message body, and its due time.

    Places are ASCII strings of at most 100 characters, in lexical order. `sent_at_ms` is the time
    when it was last recorded as sent (`Backlog.note_sent`).
    """

    place: str
    body: str
    due_ms: int = 0
    sent_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogState:
    """State of a backlog, as read: the place in flight and the first waiting pack.

    `in_flight` is the place in flight, `by` the name of the pack that started it. `edits` counts
    changes of `in_flight`, for conditional writes. `released` is a place that is recorded as in
    flight but was removed meanwhile, so no pack is in flight.
    """

    edits: int
    in_flight: str = ""
    released: str = ""
    holder: str = ""
    first: WaitingPack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRequest:
    """Request to record a place as in flight under the name `by`. An empty place means none.

    It succeeds only if `edits` is unchanged, no place is in flight and, if `unsent` is given, that
    pack is not recorded as sent (`Packs.sent`).
    """

    crawl: str
    host: str
    edits: int
    place: str = ""
    holder: str = ""
    unsent: str = ""


# A pack that starts another is recorded as its starter before it sends. So a pack in flight is on
# the queue, or the message of its starter will send it, and a stuck worker blocks no pack. A
# delayed worker may add a pack again that is done. Its copy is sent like any other and ends,
# because its commit record exists, or it stays until it expires.
class Backlog(Protocol):
    """Packs that wait for their hosts, by crawl, host and place."""

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        """Add packs. An existing place stays unchanged, in flight or not."""

    async def read(self, crawl: str, host: str, own: str = "") -> BacklogState:
        """Read the place in flight and the first waiting pack, which is not the one at `own`.

        The read sees all earlier `put` calls.
        """

    async def begin(self, beginning: LeaseRequest) -> bool:
        """Record the place in flight. Return False, without a write, if the condition fails."""

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        """Read a place, strongly consistent. Return None if it was removed."""

    async def forget(self, crawl: str, host: str, place: str) -> None:
        """Remove a place that is not in flight and whose pack is done."""

    async def leave(self, crawl: str, host: str, place: str, by: str = "") -> None:
        """Remove a place whose pack is done.

        If it is in flight, first record under `by` that none is, so that a place in flight always
        exists.
        """

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        """Read the first places of a host in order, in flight or not."""

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        """Record the time when a pack is sent.

        Returns False, without a write, if the pack was removed meanwhile, or another worker
        recorded it as sent.
        """


def host_to_wait_for(outgoing: OutgoingPack) -> str | None:
    """Return the host in whose backlog a pack waits, or None if it goes to the queue."""
    # A pack of several hosts waits for the first of them.
    targets = outgoing.pack.targets
    if any(target.attempt > 1 for target in targets):
        return None
    return host_of(targets[0].url)


def with_place(pack: Pack) -> Pack:
    """Return the pack with its place: priority first, then depth, then age."""
    express = any(target.express for target in pack.targets)
    depth = min(target.depth for target in pack.targets)
    place = f"{0 if express else 1}.{depth:0{DEPTH_DIGITS}}.{pack.at_ms:0{AT_DIGITS}}.{pack.id}"
    return replace(pack, place=place)


def waiting_of(outgoing: OutgoingPack, now_ms: int) -> WaitingPack:
    pack = with_place(outgoing.pack)
    # Every returning URL has a delay of at least a second, so this pack may be sent at once.
    due_ms = now_ms + outgoing.delay_s * 1000 if outgoing.delay_s > 1 else 0
    return WaitingPack(place=pack.place, body=encode(pack), due_ms=due_ms)
