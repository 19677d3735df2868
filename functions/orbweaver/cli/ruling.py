"""Fetch a host's robots.txt for one command, by the rules of a crawl, without storing it."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.model.crawl import Crawl
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_schedule import Host, RobotsEntry, Slots, grant_slots
from orbweaver.politeness.robots_cache import RobotsKeeper, Ruling

# Time limit in ms for fetching a robots.txt, including redirects.
ROBOTS_MS_MAX = 60_000


class HostsOfOneCommand:
    """Implements the port `Hosts` (slots, blocks, robots.txt) in memory, for one command."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}

    async def read_host(self, host: str) -> Host:
        return self._hosts.get(host) or Host(name=host)

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        if not spacing_ms:
            return Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
        state = await self.read_host(host)
        first_ms, count = grant_slots(state.tat_ms, wanted, spacing_ms, now_ms, until_ms)
        next_ms = first_ms + count * spacing_ms
        self._hosts[host] = replace(state, tat_ms=next_ms)
        at_ms = tuple(first_ms + place * spacing_ms for place in range(count))
        return Slots(at_ms=at_ms, return_at_ms=next_ms)

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        """Do nothing, because only this command uses the slots of these hosts."""

    async def take_probe(self, _host: str, _until_ms: int, _now_ms: int) -> bool:
        return True

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        self._hosts[host] = replace(await self.read_host(host), robots=entry)


async def ruling_of(
    host: str,
    crawl: Crawl,
    fetcher: Fetcher,
    clock: Clock,
    settings: Settings,
    named: frozenset[str] | None = None,
) -> tuple[Ruling, RobotsEntry | None]:
    """Return the ruling (rules of a host's robots.txt for a crawl), and the fetched robots.txt.

    `named` are hosts that can be requested although their address is not public.
    """
    hosts = HostsOfOneCommand()
    keeper = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)
    until_ms = clock.now_ms() + ROBOTS_MS_MAX
    ruling = await keeper.rules_for(host, crawl, until_ms, named=named or frozenset({host}))
    return ruling, (await hosts.read_host(host)).robots
