"""Interfaces to the hosts table: slots, missing responses, robots.txt and cookies."""

from __future__ import annotations

from typing import Protocol

from orbweaver.politeness.host_schedule import Host, RobotsEntry, Slots


class SlotStore(Protocol):
    """Stores the reserved slots of hosts."""

    async def read_host(self, host: str) -> Host:
        """Read a host, possibly a few seconds stale."""

    async def reserve(
        self, host: str, wanted: int, spacing_ms: int, now_ms: int, until_ms: int
    ) -> Slots:
        """Reserve up to `wanted` slots that start by `until_ms`, atomically over all workers.

        A blocked host has no slots. `Slots.return_at_ms` is the time to try again for URLs without
        a slot.
        """

    async def release(self, host: str, from_ms: int, to_ms: int) -> None:
        """Release the slots from `from_ms` to `to_ms`, if they are the last reserved ones.

        If `from_ms` is after `to_ms`, this extends the reservation instead. A store does not
        release slots if its caches rely on growing reservations.
        """

    async def take_probe(self, host: str, until_ms: int, now_ms: int) -> bool:
        """Reserve the only probe of a silent host until `until_ms`. Return False if it is taken."""


class RobotsStore(SlotStore, Protocol):
    """Stores the robots.txt of hosts, which are fetched in slots like pages."""

    async def keep_robots(self, host: str, entry: RobotsEntry) -> None: ...


class Hosts(RobotsStore, Protocol):
    """Stores slots, blocks, robots.txt and cookies of hosts."""

    async def block(self, host: str, until_ms: int, strikes: int, now_ms: int) -> None:
        """Block a host for all crawls. Never shortens a block."""

    async def fail(self, host: str, now_ms: int, chance: float, *, probe: bool) -> Host:
        """Count a request without a response, atomically (`after_failure`).

        Return the new state.
        """

    async def recover(self, host: str) -> None:
        """Clear the failures of a host that responded. A block is not removed."""

    async def cookies(self, crawl_id: str, site: str) -> str | None:
        """Read the cookies of a site in a crawl as last written, or None."""

    async def keep_cookies(self, crawl_id: str, site: str, text: str, now_ms: int) -> None:
        """Write the cookies of a site in a crawl. The last write wins."""

    async def session(self, crawl_id: str, origin: str) -> str | None:
        """Read the state of a crawl's login at an origin as last written, or None."""

    async def keep_session(
        self, crawl_id: str, origin: str, text: str, was: str | None, now_ms: int
    ) -> bool:
        """Write the state of a login, atomically if it is still `was`. Return False if not."""
