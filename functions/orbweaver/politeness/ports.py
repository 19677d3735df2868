"""The port of hosts: their slots, their trouble, their robots.txt."""

from __future__ import annotations

from typing import Protocol

from orbweaver.politeness.host_schedule import Host, RobotsEntry, Slots


class SlotStore(Protocol):
    """Where the slots of hosts are reserved."""

    async def look(self, host: str) -> Host:
        """Read a host, possibly a few seconds stale."""

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        """Reserve up to `wanted` slots that start by `until_ms`, atomically over all workers.

        A blocked host gives none. `return_at_ms` says when those without a slot may come back.
        """

    async def probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        """Take the one turn to try a host in doubt; no other worker gets it before `until`."""


class RobotsStore(SlotStore, Protocol):
    """Where the robots.txt of hosts are kept, which are fetched in slots as all else is."""

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None:
        """Keep what was fetched as a host's robots.txt."""


class Hosts(RobotsStore, Protocol):
    """Politeness units: slots, blocks, robots."""

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        """Leave a host alone, for all crawls; never shortens a block."""

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        """Count a request without an answer, atomically (`after_failure`); the host after it."""

    async def recover(self, host: str) -> None:
        """Forget the failures of a host that answered; a block stands."""

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        """Read the cookies of a site in a crawl, as they were written last; None without any."""

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        """Write the cookies of a site in a crawl; the last writer's stay."""
