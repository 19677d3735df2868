"""Hosts in memory."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.politeness.host_schedule import (
    Host,
    RobotsEntry,
    Slots,
    after_failure,
    is_doubtful,
    reserved,
)
from tests.memory.world import Gated


class MemoryHosts(Gated):
    """Hosts with their politeness state."""

    async def read_host(self, host: str) -> Host:
        return await self._do("hosts.look", lambda: self._host(host))

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        def advance() -> Slots:
            before = self._host(host)
            after, slots = reserved(before, wanted, spacing_ms, now_ms, until_ms)
            if after is not before:
                self._world.hosts[host] = after
            return slots

        return await self._do("hosts.reserve", advance)

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        def put() -> None:
            state = self._host(host)
            if state.tat_ms == to_ms:
                self._world.hosts[host] = replace(state, tat_ms=from_ms)

        await self._do("hosts.release", put)

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        def put() -> None:
            state = self._host(host)
            if until_ms > state.blocked_until_ms:
                self._world.hosts[host] = replace(
                    state, blocked_until_ms=until_ms, strikes=strikes, struck_at_ms=now_ms
                )

        await self._do("hosts.block", put)

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        def put() -> Host:
            state = after_failure(self._host(host), now_ms, chance, probe=probe)
            self._world.hosts[host] = state
            return state

        return await self._do("hosts.fail", put)

    async def recover(self, host: str) -> None:
        def put() -> None:
            self._world.hosts[host] = replace(self._host(host), failures=0)

        await self._do("hosts.recover", put)

    async def take_probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        def put() -> bool:
            state = self._host(host)
            if not is_doubtful(state, now_ms):
                return False
            self._world.hosts[host] = replace(state, blocked_until_ms=until_ms)
            return True

        return await self._do("hosts.probe", put)

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        def put() -> None:
            self._world.hosts[host] = replace(self._host(host), robots=entry)

        await self._do("hosts.keep_robots", put)

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        return await self._do("hosts.cookies", lambda: self._world.cookies.get((crawl_id, site)))

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        del now_ms

        def put() -> None:
            self._world.cookies[crawl_id, site] = text

        await self._do("hosts.keep_cookies", put)

    async def session(self, crawl_id: str, origin: str) -> str | None:
        return await self.cookies(crawl_id, origin)

    async def keep_session(
        self, crawl_id: str, origin: str, text: str, was: str | None, now_ms: int
    ) -> bool:
        del now_ms

        def put() -> bool:
            if self._world.cookies.get((crawl_id, origin)) != was:
                return False
            self._world.cookies[crawl_id, origin] = text
            return True

        return await self._do("hosts.keep_session", put)

    def _host(self, host: str) -> Host:
        return self._world.hosts.get(host) or Host(name=host)
