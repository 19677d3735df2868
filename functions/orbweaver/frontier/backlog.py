"""Backlog of a host in a crawl: packs that wait until the previous pack is done.

In a crawl with a delay, one pack of each host is *in flight* (`out`): queued, or in work. The
host's other packs are stored in a table. They cost nothing while they wait. They are ordered by
their places: priority first, then depth, then age.

A committed pack starts the next pack, and its deliveries repeat that until it is noted as sent. A
pack that adds packs to a backlog starts one if none is in flight. Both record the name of the
starter before they send. So a pack in flight is on the queue, or a queued message will send it, and
a stuck worker blocks no pack.

A delayed worker may add a pack again that is done. It is sent as one of the next, finds its ledger
and leaves. Behind the last pack it stays until it expires.

A pack of several hosts waits for the first of them. URLs that return for another attempt use the
queue, and so do all packs of a crawl without a delay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.url import host_of

DEPTH_DIGITS, AT_DIGITS = 6, 14


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPack:
    """A waiting pack: its place among its host's packs, its message, and its due time.

    Places are ASCII strings of at most 100 characters, in lexical order. `sent_at_ms` is the time
    when it was last noted as sent (`Backlog.note_sent`), as read from a table.
    """

    place: str
    body: str
    due_ms: int = 0
    sent_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A backlog as read: the place in flight, the name that started it, and the first waiting pack.

    `edits` counts changes of `out`, for conditional writes. `left` is a place that is recorded as
    in flight but was left meanwhile, so no pack is in flight.
    """

    edits: int
    out: str = ""
    left: str = ""
    by: str = ""
    first: WaitingPack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Request to record a place as in flight under a name.

    An empty place means none.

    It succeeds only if no place is in flight and, if `unsent` is given, that pack is not noted as
    sent (`Packs.sent`).
    """

    crawl: str
    host: str
    edits: int
    place: str = ""
    by: str = ""
    unsent: str = ""


class Backlog(Protocol):
    """Packs that wait for their hosts, by crawl, host and place."""

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        """Add packs. An existing place stays unchanged, in flight or not."""

    async def look(self, crawl: str, host: str, own: str = "") -> Line:
        """Read the place in flight and the first waiting pack, which is not the one at `own`.

        It sees all earlier `put` calls. A place that was left is not in flight.
        """

    async def begin(self, beginning: Beginning) -> bool:
        """Record the place in flight. Return False, without a write, if the condition fails."""

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        """Read a place, strongly consistent, or return None if it was left."""

    async def forget(self, crawl: str, host: str, place: str) -> None:
        """Remove a place that is not in flight and whose pack is done."""

    async def leave(self, crawl: str, host: str, place: str, by: str = "") -> None:
        """Remove a place whose pack is done.

        If it is in flight, first record under `by` that none is, so that a place in flight always
        exists.
        """

    async def standing(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        """Read the first places of a host in order, in flight or not."""

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        """Note the time when a pack is sent.

        Returns False, without a write, if the pack was left meanwhile, or another worker noted it
        as sent.
        """


def host_to_wait_for(outgoing: OutgoingPack) -> str | None:
    """Return the host in whose backlog a pack waits, or None if it uses the queue."""
    targets = outgoing.pack.targets
    if any(target.attempt > 1 for target in targets):
        return None
    return host_of(targets[0].url)


def placed(pack: Pack) -> Pack:
    """Return the pack with its place: priority first, then depth, then age."""
    express = any(target.express for target in pack.targets)
    depth = min(target.depth for target in pack.targets)
    place = f"{0 if express else 1}.{depth:0{DEPTH_DIGITS}}.{pack.at_ms:0{AT_DIGITS}}.{pack.id}"
    return replace(pack, place=place)


def waiting_of(outgoing: OutgoingPack, now_ms: int) -> WaitingPack:
    """Return the waiting form of a pack, due after its delay."""
    pack = placed(outgoing.pack)
    # Returning takes at least a second, so such a pack may continue at once.
    due_ms = now_ms + outgoing.delay_s * 1000 if outgoing.delay_s > 1 else 0
    return WaitingPack(place=pack.place, body=encode(pack), due_ms=due_ms)
