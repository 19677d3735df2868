"""Define the context of the API's handlers and their replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orbweaver.control.crawl_control import Control
from orbweaver.diagnostics.explainer import Explainer
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import UnknownCrawl
from orbweaver.model.ports import Clock, Files

if TYPE_CHECKING:
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, Pages
    from orbweaver.frontier.queues import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Components and ports of handlers; `allowed` are non-public addresses for crawls."""

    control: Control
    explainer: Explainer
    queue: Queue
    crawls: Crawls
    pages: Pages
    files: Files
    backlog: Backlog
    frontier: Frontier
    clock: Clock
    allowed: Allowed = PUBLIC_ONLY

    async def crawl(self, crawl_id: str) -> Crawl:
        """Read a crawl by its id only, because a name may mean another run by now."""
        crawl = await self.crawls.get(crawl_id)
        if crawl is None:
            raise UnknownCrawl(f"there is no crawl {crawl_id!r}")
        return crawl


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Status, body of the documented type, and headers."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
