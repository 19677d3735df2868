"""A robots.txt and its ruling, fetched for one command as a crawl would, and kept nowhere."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.model.crawl import Crawl
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.settings import Settings
from orbweaver.politeness.host_schedule import Host, RobotsEntry, Slots, grant
from orbweaver.politeness.robots_cache import RobotsKeeper, Ruling

# How long its redirects may take.
ROBOTS_MS_MAX = 60_000


class HostsOfOneCommand:
    """Hosts that nothing is known of but what this command has asked them for."""

    def __init__(self) -> None:
        """Begin with none."""
        self._hosts: dict[str, Host] = {}

    async def look(self, host: str) -> Host:
        """See the port."""
        return self._hosts.get(host) or Host(name=host)

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        """See the port."""
        if not spacing_ms:
            return Slots(at_ms=(now_ms,) * wanted, return_at_ms=now_ms)
        state = await self.look(host)
        first_ms, count = grant(state.tat_ms, wanted, spacing_ms, now_ms, until_ms)
        next_ms = first_ms + count * spacing_ms
        self._hosts[host] = replace(state, tat_ms=next_ms)
        at_ms = tuple(first_ms + place * spacing_ms for place in range(count))
        return Slots(at_ms=at_ms, return_at_ms=next_ms)

    async def probe(self, _host: str, _until_ms: int, _now_ms: int) -> bool:
        """See the port."""
        return True

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        """See the port."""
        self._hosts[host] = replace(await self.look(host), robots=entry)


async def ruling_of(
    host: str,
    crawl: Crawl,
    fetcher: Fetcher,
    clock: Clock,
    settings: Settings,
    named: frozenset[str] | None = None,
) -> tuple[Ruling, RobotsEntry | None]:
    """Say what a host's robots.txt allows, and what was fetched; `named` may be asked as well."""
    hosts = HostsOfOneCommand()
    keeper = RobotsKeeper(fetcher=fetcher, hosts=hosts, clock=clock, settings=settings)
    until_ms = clock.now_ms() + ROBOTS_MS_MAX
    ruling = await keeper.of(host, crawl, until_ms, named=named or frozenset({host}))
    return ruling, (await hosts.look(host)).robots
