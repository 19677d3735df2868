"""Models the `hosts` table as containers see it: `adapters/dynamodb/hosts.py` without DynamoDB.

`politeness/host_schedule.py` makes the decisions. A container's memory of hosts and its effect are
as in the adapter. Reads are never stale.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.dynamodb.host_items import later
from orbweaver.budget.billing_units import Stage
from orbweaver.politeness.host_schedule import (
    Host,
    Slots,
    after_failure,
    grant_slots,
    is_doubtful,
    join_queue,
)

if TYPE_CHECKING:
    from bench.scale.books import Books
    from bench.scale.kernel import Kernel
    from orbweaver.politeness.host_schedule import RobotsEntry

LOOK_FRESH_MS = 5_000
RESERVE_TRIES = 5
# The adapter has 4,096, but here a thousand containers must fit into one process.
HOSTS_MAX = 512


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
