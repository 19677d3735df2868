"""Backlogs of hosts in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orbweaver.frontier.backlog import Lease, LeaseRequest, WaitingPack
from tests.memory.world import Gated, write_line


class MemoryBacklog(Gated):
    """Packs (batches of URLs) that wait for their hosts."""

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        for one in waiting:
            await self._do(
                "backlog.put",
                lambda one=one: self._world.backlog[crawl, host].setdefault(one.place, one),  # type: ignore[misc]
            )

    async def read(self, crawl: str, host: str, own: str = "") -> Lease:
        return await self._do("backlog.look", lambda: self._look(crawl, host, own))

    async def acquire(self, request: LeaseRequest) -> bool:
        def transact() -> bool:
            world, key = self._world, (request.crawl, request.host)
            if world.out[key].epoch != request.epoch:
                return False
            if request.unsent:
                ledger = world.ledgers.get(request.unsent)
                if ledger is None or ledger.sent:
                    return False
                world.ledgers[request.unsent] = replace(ledger, leases=ledger.leases + 1)
            write_line(world, request)
            return True

        return await self._do("backlog.begin", transact)

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        return await self._do("backlog.get", lambda: self._world.backlog[crawl, host].get(place))

    async def forget(self, crawl: str, host: str, place: str) -> None:
        await self._do("backlog.leave", lambda: self._world.backlog[crawl, host].pop(place, None))

    async def release(self, crawl: str, host: str, place: str, by: str = "") -> None:
        def clear() -> None:
            line = self._world.out[crawl, host]
            if line.place == place:
                self._world.out[crawl, host] = Lease(epoch=line.epoch + 1, holder=by)

        await self._do("backlog.clear", clear)
        await self.forget(crawl, host, place)

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        places = self._world.backlog[crawl, host]
        read = await self._do("backlog.look", lambda: [places[one] for one in sorted(places)])
        return tuple(read[:count_max])

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        def note() -> bool:
            places = self._world.backlog[crawl, host]
            there = places.get(read.place)
            if there is None or there.sent_at_ms != read.sent_at_ms:
                return False
            places[read.place] = replace(there, sent_at_ms=at_ms)
            return True

        return await self._do("backlog.note_sent", note)

    def _look(self, crawl: str, host: str, own: str) -> Lease:
        places, line = self._world.backlog[crawl, host], self._world.out[crawl, host]
        waits = sorted(places.keys() - {line.place, own})
        seen = tuple(places[place] for place in waits)
        self._world.looked.setdefault((crawl, host, line.epoch), seen)
        first = seen[0] if seen else None
        return replace(line, is_held=line.place in places, first=first)
