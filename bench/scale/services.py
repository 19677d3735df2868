"""Models SQS and tables as the worker sees them, without AWS, billed equally.

- `Queue` has the messages of one crawl: delayed, visible and in flight, oldest first.
- `Backlog` holds the packs (batches of URLs) that wait for a host. One pack of a host is in flight.
  Operations take no time here, so no two packs change the pack in flight at once.
- `View` is a container's view of the table of hosts. A container's memory of hosts and its effect
  are as in the adapter. Reads are never stale.

`worker/succession.py` and `politeness/host_schedule.py` make the decisions.
"""

from __future__ import annotations

import heapq
import json
from bisect import bisect_left, insort
from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.dynamodb.backlog import PLACES_READ
from orbweaver.adapters.dynamodb.hosts import later
from orbweaver.budget.billing_units import Stage, Term, read_halves
from orbweaver.frontier.backlog import Lease
from orbweaver.politeness.host_schedule import (
    Host,
    Slots,
    after_failure,
    grant_slots,
    is_doubtful,
    join_queue,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.scale.books import Books, Sizes
    from bench.scale.kernel import Kernel
    from orbweaver.frontier.backlog import LeaseRequest, WaitingPack
    from orbweaver.frontier.journal import OutgoingPack
    from orbweaver.frontier.messages import Pack
    from orbweaver.politeness.host_schedule import RobotsEntry

# The quota of SQS for messages that are received and not deleted.
IN_FLIGHT_MAX = 120_000
# Attributes of the item `!`: place, holder, number, expiry.
MARKS_BYTES = 250
LOOK_FRESH_MS = 5_000
RESERVE_TRIES = 5
# The adapter has 4,096, but here a thousand containers must fit into one process.
HOSTS_MAX = 512


class Queue:
    """The crawl queue."""

    def __init__(self, kernel: Kernel, books: Books, sizes: Sizes) -> None:
        self._kernel = kernel
        self._books = books
        self._sizes = sizes
        self._delayed: list[tuple[int, int, Pack]] = []
        self._visible: deque[tuple[int, Pack]] = deque()
        self._sent = 0
        self.in_flight = 0
        self.in_flight_most = 0

    def send(self, outgoing_packs: Sequence[OutgoingPack]) -> None:
        """Accept packs (batches of URLs), in SQS batches of ten."""
        targets = sum(len(outgoing.pack.targets) for outgoing in outgoing_packs)
        requests = self._sizes.outgoing_chunks(targets, len(outgoing_packs))
        self._books.use(Term.SQS, Stage.SEND, requests)
        now_ms = self._kernel.time_ms
        for outgoing in outgoing_packs:
            self._sent += 1
            if outgoing.delay_s:
                due_ms = now_ms + outgoing.delay_s * 1000
                heapq.heappush(self._delayed, (due_ms, self._sent, outgoing.pack))
            else:
                self._visible.append((now_ms, outgoing.pack))

    def refresh(self) -> None:
        """Make due messages visible."""
        now_ms = self._kernel.time_ms
        while self._delayed and self._delayed[0][0] <= now_ms:
            due_ms, _, pack = heapq.heappop(self._delayed)
            self._visible.append((due_ms, pack))

    def receive(self, count: int) -> list[Pack]:
        """Return a batch. Bills its receives and the later deletes."""
        count = min(count, len(self._visible), IN_FLIGHT_MAX - self.in_flight)
        packs = [self._visible.popleft()[1] for _ in range(count)]
        self.in_flight += count
        self.in_flight_most = max(self.in_flight_most, self.in_flight)
        targets = sum(len(pack.targets) for pack in packs)
        received = self._sizes.outgoing_chunks(targets, count)
        self._books.use(Term.SQS, Stage.RECEIVE, received + -(-count // 10))
        return packs

    def delete(self, count: int) -> None:
        self.in_flight -= count

    @property
    def visible(self) -> int:
        return len(self._visible)

    @property
    def delayed(self) -> int:
        return len(self._delayed)

    @property
    def oldest_ms(self) -> int:
        """Time at which the oldest visible message became visible."""
        return self._visible[0][0]


class Port:
    """The queue with the interface that the worker's parts use."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def send(self, outgoing_packs: Sequence[OutgoingPack], *, express: bool) -> None:
        del express
        self._queue.send(outgoing_packs)


class _Waiting:
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
        self._hosts: dict[str, _Waiting] = {}

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        del crawl
        found = self._hosts.setdefault(host, _Waiting())
        for one in waiting:
            targets = len(json.loads(one.body)["urls"])
            size = self._sizes.waiting[targets]
            self._write(-(-size // 1024))
            if one.place not in found.packs:
                insort(found.places, one.place)
                found.packs[one.place], found.sizes[one.place] = one, size

    async def read(self, crawl: str, host: str, own: str = "") -> Lease:
        del crawl
        found = self._hosts.setdefault(host, _Waiting())
        self._look(found)
        waits = (place for place in found.places if place not in (found.out, own))
        first = next(waits, None)
        waiting = None if first is None else found.packs[first]
        return Lease(
            epoch=found.edits,
            place=found.out,
            is_held=found.out in found.packs,
            holder=found.by,
            first=waiting,
        )

    async def acquire(self, request: LeaseRequest) -> bool:
        """See the port. Always succeeds, because packs start one after the other here."""
        # The lease and a check of its condition, in one transaction.
        self._write(4)
        found = self._hosts[request.host]
        found.out, found.by, found.edits = request.place, request.holder, request.epoch + 1
        return True

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        del crawl
        found = self._hosts[host]
        self._books.read(
            "packs", Stage.SEND, read_halves(found.sizes.get(place, 0), consistent=True)
        )
        return found.packs.get(place)

    async def release(self, crawl: str, host: str, place: str, by: str = "") -> None:
        found = self._hosts.setdefault(host, _Waiting())
        # Reads of missing items are billed, too.
        self._write(1)
        if found.out == place:
            found.out, found.by, found.edits = "", by, found.edits + 1
        await self.forget(crawl, host, place)

    async def forget(self, crawl: str, host: str, place: str) -> None:
        del crawl
        found = self._hosts.setdefault(host, _Waiting())
        self._write(1)
        if found.packs.pop(place, None) is not None:
            del found.places[bisect_left(found.places, place)], found.sizes[place]

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        raise NotImplementedError("no crawl of the model is cancelled or has late links")

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        raise NotImplementedError("no crawl of the model has late links")

    def _look(self, found: _Waiting) -> None:
        """Bill reads of the first places, and of packs in flight beyond these."""
        first = found.places[:PLACES_READ]
        size = sum(found.sizes[place] for place in first) + MARKS_BYTES
        self._books.read("packs", Stage.SEND, read_halves(size, consistent=True))
        if len(found.places) > len(first):
            behind = found.out > first[-1]
            self._books.read("packs", Stage.SEND, 2 * behind)

    def _write(self, units: int) -> None:
        self._books.write("packs", Stage.SEND, units)


class Table:
    """The items of all hosts."""

    def __init__(self, kernel: Kernel, books: Books) -> None:
        self.kernel = kernel
        self.books = books
        self.items: dict[str, Host] = {}
        # Writes per item in the current second, and the maximum over all seconds.
        self.second = 0
        self.writes: Counter[str] = Counter()
        self.writes_most = 0

    def written(self, host: str) -> None:
        """Count a write, successful or not."""
        self.books.write("hosts", Stage.RESERVE, 1)
        second = self.kernel.time_ms // 1000
        if second != self.second:
            self.second = second
            self.writes.clear()
        self.writes[host] += 1
        self.writes_most = max(self.writes_most, self.writes[host])


class View:
    """The port `Hosts` of one container."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kernel = table.kernel
        self._seen: dict[str, tuple[Host, int]] = {}

    async def read_host(self, host: str) -> Host:
        now_ms = self._kernel.time_ms
        seen = self._seen.get(host)
        if seen is not None and now_ms - seen[1] < LOOK_FRESH_MS:
            return seen[0]
        self._table.books.read("hosts", Stage.HOST, 2)
        found = self._table.items.get(host) or Host(name=host)
        if seen is not None:
            del self._seen[host]
            found = later(found, seen[0])
        elif len(self._seen) >= HOSTS_MAX:
            del self._seen[next(iter(self._seen))]
        self._seen[host] = (found, now_ms)
        return found

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        table = self._table
        state = await self.read_host(host)
        for _ in range(RESERVE_TRIES):
            if state.blocked_until_ms > now_ms:
                break
            if spacing_ms == 0:
                return Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
            first_ms, count = grant_slots(state.tat_ms, wanted, spacing_ms, now_ms, until_ms)
            if not count:
                break
            table.written(host)
            item = table.items.get(host) or Host(name=host)
            if not _as_seen(state, item, count, spacing_ms, now_ms, until_ms):
                state = self._refresh(item)
                table.books.count("reservations in vain")
                continue
            first_ms = max(item.tat_ms, now_ms)
            tat_ms = first_ms + count * spacing_ms
            return_at_ms = tat_ms
            item = replace(item, tat_ms=tat_ms)
            if count < wanted:
                rest = wanted - count
                return_at_ms, line_ms = join_queue(
                    state.line_ms, tat_ms, rest, spacing_ms, now_ms, until_ms
                )
                item = replace(item, line_ms=line_ms)
            table.items[host] = item
            self._refresh(item)
            slots = tuple(first_ms + place * spacing_ms for place in range(count))
            return Slots(at_ms=slots, return_at_ms=return_at_ms)
        return self._line_up(state, wanted, spacing_ms, now_ms, until_ms)

    def _line_up(
        self, state: Host, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        busy_ms = max(state.tat_ms, state.blocked_until_ms)
        return_at_ms, line_ms = join_queue(
            state.line_ms, busy_ms, wanted, spacing_ms, now_ms, until_ms
        )
        self._keep(replace(state, line_ms=line_ms))
        return Slots(at_ms=(), return_at_ms=return_at_ms)

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        self._table.written(host)
        item = self._item(host)
        if until_ms > item.blocked_until_ms:
            item = replace(item, blocked_until_ms=until_ms, strikes=strikes, struck_at_ms=now_ms)
        self._write(item)

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        self._table.written(host)
        item = after_failure(self._item(host), now_ms, chance, probe=probe)
        self._write(item)
        return item

    async def recover(self, host: str) -> None:
        self._table.written(host)
        self._write(replace(self._item(host), failures=0))

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        """Do nothing, as on DynamoDB."""

    async def take_probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        item = self._item(host)
        if not is_doubtful(item, now_ms):
            self._refresh(item)
            return False
        self._table.written(host)
        self._write(replace(item, blocked_until_ms=until_ms))
        return True

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        self._table.books.write("hosts", Stage.ROBOTS, 1)
        self._write(replace(self._item(host), robots=entry))

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        raise NotImplementedError("no crawl of the model stores cookies")

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        raise NotImplementedError("no crawl of the model stores cookies")

    async def session(self, crawl_id: str, origin: str) -> str | None:
        raise NotImplementedError("no crawl of the model logs in")

    async def keep_session(
        self, crawl_id: str, origin: str, text: str, was: str | None, now_ms: int
    ) -> bool:
        raise NotImplementedError("no crawl of the model logs in")

    def _item(self, host: str) -> Host:
        return self._table.items.get(host) or Host(name=host)

    def _write(self, item: Host) -> None:
        self._table.items[item.name] = item
        self._refresh(item)

    def _refresh(self, item: Host) -> Host:
        """Return the host as the response of a write shows it."""
        seen = self._seen.get(item.name)
        self._keep(item if seen is None else later(item, seen[0]))
        return self._seen[item.name][0]

    def _keep(self, state: Host) -> None:
        seen = self._seen.get(state.name)
        self._seen[state.name] = (state, -LOOK_FRESH_MS if seen is None else seen[1])


def _as_seen(
    state: Host, item: Host, count: int, spacing_ms: int, now_ms: int, until_ms: int
) -> bool:
    """Return whether the condition of the update holds (adapters/dynamodb/hosts.py)."""
    if item.blocked_until_ms > now_ms:
        return False
    if state.tat_ms > now_ms:
        return now_ms < item.tat_ms <= until_ms - (count - 1) * spacing_ms
    return item.tat_ms <= now_ms
