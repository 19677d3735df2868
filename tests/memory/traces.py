"""Every item of every table in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from orbweaver.erasure.ports import ClaimTrace, RecordTrace
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl, State
from tests.memory.world import Gate, Gated, World, open_gate

QUIET_MS = 30 * 60_000


class MemoryTraces(Gated):
    """The port that reads and erases stored data, over the world."""

    def __init__(self, world: World, gate: Gate = open_gate) -> None:
        super().__init__(world, gate)

    async def claims(self) -> AsyncIterator[ClaimTrace]:
        for (name, url), claim in list(self._world.claims.items()):
            yield ClaimTrace(
                key=(name, url),
                name=name,
                url=url,
                crawl=claim.crawl,
                pack=claim.pack,
                at_ms=claim.at_ms,
                was=claim.was.crawl if claim.was else "",
            )

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        for claim in claims:
            await self._do("traces.claim", lambda claim=claim: self._unclaim(claim))  # type: ignore[misc]

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        for claim in claims:
            await self._do("traces.strip", lambda claim=claim: self._strip(claim))  # type: ignore[misc]

    def _unclaim(self, claim: ClaimTrace) -> None:
        if self._stands(claim):
            del self._world.claims[claim.key]

    def _strip(self, claim: ClaimTrace) -> None:
        if self._stands(claim):
            self._world.claims[claim.key] = replace(self._world.claims[claim.key], was=None)

    def _stands(self, claim: ClaimTrace) -> bool:
        found = self._world.claims.get(claim.key)
        return found is not None and (found.pack, found.at_ms) == (claim.pack, claim.at_ms)

    async def records(self) -> AsyncIterator[RecordTrace]:
        for key, record in list(self._world.pages.items()):
            yield RecordTrace(key=key, record=record)

    async def remove_records(self, records: Sequence[RecordTrace]) -> None:
        for trace in records:
            await self._do("traces.record", lambda key=trace.key: self._world.pages.pop(key, None))  # type: ignore[misc]

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        def put() -> bool:
            standing = self._world.crawls[crawl.id]
            if standing.edits != was.edits:
                return False
            changed = {name: getattr(crawl, name) for name in crawl_codec.changes(crawl, was)}
            self._world.crawls[crawl.id] = replace(standing, **changed, edits=was.edits + 1)
            return True

        return await self._do("traces.redefine", put)

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None:
        kept = {reason: tuple(urls) for reason, urls in samples.items()}
        await self._do("traces.samples", lambda: self._world.samples.update({crawl_id: kept}))

    async def tombstone_crawl(self, crawl: Crawl) -> None:
        world = self._world
        stone = Crawl(
            id=crawl.id,
            name=crawl.id,
            started_at_ms=crawl.started_at_ms,
            finished_at_ms=crawl.finished_at_ms,
            state=State.FINISHED,
            announced=True,
        )

        def dead_letter() -> None:
            world.samples.pop(crawl.id, None)
            world.kinds.pop(crawl.id, None)
            shelves: list[Any] = [world.shards, world.budgets, world.host_pages]
            for shelf in shelves:
                for key in [key for key in shelf if key[0] == crawl.id]:
                    del shelf[key]
            world.crawls[crawl.id] = stone
            world.forgotten.add(crawl.id)

        await self._do("traces.bury", dead_letter)

    async def hosts(self) -> AsyncIterator[str]:
        for host in list(self._world.hosts):
            yield host

    async def cookies(self) -> AsyncIterator[tuple[str, str]]:
        for named in list(self._world.cookies):
            yield named

    async def remove_cookies(self, crawl_id: str, site: str) -> None:
        await self._do("traces.cookies", lambda: self._world.cookies.pop((crawl_id, site), None))

    async def remove_host(self, host: str, now_ms: int) -> bool:
        def remove() -> bool:
            found = self._world.hosts.get(host)
            if found is None:
                return True
            ahead = max(found.tat_ms, found.line_ms, found.blocked_until_ms) > now_ms
            late = max(found.struck_at_ms, found.failed_at_ms) > now_ms - QUIET_MS
            if ahead or late:
                self._world.hosts[host] = replace(found, robots=None)
                return False
            del self._world.hosts[host]
            return True

        return await self._do("traces.host", remove)
