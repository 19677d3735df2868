"""The port from the exporter to the change feed: `changes.ChangeFeed`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

from orbweaver.model.crawl import Crawl


class Feed(Protocol):
    """How the pages of a run differ from those of the run of its name before it."""

    async def ended_on(self, day: str) -> tuple[Crawl, ...]:
        """Name the crawls whose feed belongs to a day."""

    async def make(self, crawl: Crawl, deadline_ms: int | None = None) -> bool:
        """Make the feed of a crawl, if it is not there; False if time was short."""

    def rows(self, crawl: Crawl) -> AsyncIterator[Mapping[str, Any]]:
        """Read the rows of a feed that was made, in a fixed order."""
