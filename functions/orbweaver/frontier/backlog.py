"""The backlog of a host in a crawl: packs that wait until the one before them is done.

Of a crawl with a delay one pack of each host is *out*: on the queue, or in work. The others of that
host lie in a table and cost nothing while they wait, in the order of their places: what goes past
others first, then by depth, then by age.

A pack that is committed has the next one out, and its deliveries do so again until it is noted as
sent. So does a pack that has others wait, where none is out. Both write down in whose name before
they send: whatever is out is on the queue, or is sent by a message that is. Nothing is held by a
worker that stands still.

A worker that was held up may put a pack there again that is done with meanwhile. That goes out with
the next of its host, finds itself committed and leaves; behind the last one it lies until it
expires.

A pack of several hosts waits for the first of them. URLs that return for another attempt go round
by the queue, as all packs of a crawl without a delay do.
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
    """A pack that waits: its message, its place among those of its host, and when it is due.

    Places are ASCII texts of at most 100 characters, and their order is that of their characters.
    `sent_at_ms` is when it was noted as sent last (`Backlog.note_sent`), as read from a table.
    """

    place: str
    body: str
    due_ms: int = 0
    sent_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A backlog as read: which place is out, the name that wrote it, and the first that waits.

    `edits` counts the changes of what is out: what is written must be of what was read. A place
    that is written to be out, and was left meanwhile, is `left`: none is out.
    """

    edits: int
    out: str = ""
    left: str = ""
    by: str = ""
    first: WaitingPack | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """A place is to be out, by a name, where none was; an empty place: none is.

    Only while `unsent`, if it is given, is not noted as sent (`Packs.sent`).
    """

    crawl: str
    host: str
    edits: int
    place: str = ""
    by: str = ""
    unsent: str = ""


class Backlog(Protocol):
    """Packs that wait for their hosts; by crawl, host and place."""

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        """Have packs wait; one whose place is there already stays as it is, out or not."""

    async def look(self, crawl: str, host: str, own: str = "") -> Line:
        """Read what is out, and the first pack that waits; the place `own` does not wait.

        What is put before this call is seen by it. A place that was left is not out.
        """

    async def begin(self, beginning: Beginning) -> bool:
        """Write what is out; False, and nothing written, if that may not be (any more)."""

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        """Read a place, strongly consistent; None if it was left."""

    async def forget(self, crawl: str, host: str, place: str) -> None:
        """Forget a place that is not out: its pack is done with."""

    async def leave(self, crawl: str, host: str, place: str, by: str = "") -> None:
        """Forget a place: its pack is done with. If it is out, none is then, by a name.

        That is written first: what is out is there, but for one that dies in between.
        """

    async def standing(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        """Read the first places of a host in order, out or not."""

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        """Note when a pack is sent; False, and nothing written, if it is not as it was read.

        It was left since then, or noted as sent by another one.
        """


def host_to_wait_for(outgoing: OutgoingPack) -> str | None:
    """Name the host whose backlog a pack belongs to; None for one that goes by the queue."""
    targets = outgoing.pack.targets
    if any(target.attempt > 1 for target in targets):
        return None
    return host_of(targets[0].url)


def placed(pack: Pack) -> Pack:
    """Give a pack its place: what goes past others first, then by depth, then by age."""
    express = any(target.express for target in pack.targets)
    depth = min(target.depth for target in pack.targets)
    place = f"{0 if express else 1}.{depth:0{DEPTH_DIGITS}}.{pack.at_ms:0{AT_DIGITS}}.{pack.id}"
    return replace(pack, place=place)


def waiting_of(outgoing: OutgoingPack, now_ms: int) -> WaitingPack:
    """Have a pack wait that is to be sent after a delay."""
    pack = placed(outgoing.pack)
    # A second is the least that returning takes: such a pack may go on at once.
    due_ms = now_ms + outgoing.delay_s * 1000 if outgoing.delay_s > 1 else 0
    return WaitingPack(place=pack.place, body=encode(pack), due_ms=due_ms)
