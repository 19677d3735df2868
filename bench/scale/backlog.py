"""Models backlogs of hosts: `adapters/dynamodb/backlog.py` without DynamoDB, billed equally.

A backlog holds the packs (batches of URLs) that wait for a host; one pack at a time is in flight.
Operations take no time here, so no two packs change the pack in flight at once.
`worker/succession.py` decides which pack is in flight.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from typing import TYPE_CHECKING

from orbweaver.adapters.dynamodb.backlog import PLACES_READ
from orbweaver.budget.billing_units import Stage, read_halves
from orbweaver.frontier.backlog import BacklogState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scale.books import Books, Sizes
    from orbweaver.frontier.backlog import LeaseRequest, WaitingPack

# Attributes of the item `!`: place, holder, number, expiry.
MARKS_BYTES = 250


class _Host:
    """The packs that wait for a host, in order, and the pack in flight."""

    __slots__ = ("by", "edits", "out", "packs", "places", "sizes")

    def __init__(self) -> None:
        self.places: list[str] = []
        self.packs: dict[str, WaitingPack] = {}
        self.sizes: dict[str, int] = {}
        self.out = self.by = ""
        self.edits = 0


class Backlog:
    """The port `Backlog`, shared by all containers."""

    def __init__(self, books: Books, sizes: Sizes) -> None:
        self._books = books
        self._sizes = sizes
        self._hosts: dict[str, _Host] = {}

    @property
    def waiting(self) -> int:
        """Number of waiting packs, including packs in flight."""
        return sum(len(host.places) for host in self._hosts.values())

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        del crawl
        found = self._hosts.setdefault(host, _Host())
        for one in waiting:
            targets = len(json.loads(one.body)["urls"])
            size = self._sizes.waiting[targets]
            self._write(-(-size // 1024))
            if one.place not in found.packs:
                insort(found.places, one.place)
                found.packs[one.place], found.sizes[one.place] = one, size

    async def read(self, crawl: str, host: str, own: str = "") -> BacklogState:
        del crawl
        found = self._hosts.setdefault(host, _Host())
        self._look(found)
        waits = (place for place in found.places if place not in (found.out, own))
        first = next(waits, None)
        waiting = None if first is None else found.packs[first]
        out = found.out if found.out in found.packs else ""
        return BacklogState(edits=found.edits, in_flight=out, holder=found.by, first=waiting)

    async def begin(self, beginning: LeaseRequest) -> bool:
        """See the port. Always succeeds, because packs begin one after the other here."""
        # The pack in flight and a check of its condition, in one transaction.
        self._write(4)
        found = self._hosts[beginning.host]
        found.out, found.by, found.edits = beginning.place, beginning.holder, beginning.edits + 1
        return True

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        del crawl
        found = self._hosts[host]
        self._books.read(
            "packs", Stage.SEND, read_halves(found.sizes.get(place, 0), consistent=True)
        )
        return found.packs.get(place)

    async def leave(self, crawl: str, host: str, place: str, by: str = "") -> None:
        found = self._hosts.setdefault(host, _Host())
        # Reads of missing items are billed, too.
        self._write(1)
        if found.out == place:
            found.out, found.by, found.edits = "", by, found.edits + 1
        await self.forget(crawl, host, place)

    async def forget(self, crawl: str, host: str, place: str) -> None:
        del crawl
        found = self._hosts.setdefault(host, _Host())
        self._write(1)
        if found.packs.pop(place, None) is not None:
            del found.places[bisect_left(found.places, place)], found.sizes[place]

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        raise NotImplementedError("no crawl of the model is cancelled or has late links")

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        raise NotImplementedError("no crawl of the model has late links")

    def _look(self, found: _Host) -> None:
        """Bill reads of the first places, and of packs in flight beyond these."""
        first = found.places[:PLACES_READ]
        size = sum(found.sizes[place] for place in first) + MARKS_BYTES
        self._books.read("packs", Stage.SEND, read_halves(size, consistent=True))
        if len(found.places) > len(first):
            behind = found.out > first[-1]
            self._books.read("packs", Stage.SEND, 2 * behind)

    def _write(self, units: int) -> None:
        self._books.write("packs", Stage.SEND, units)
