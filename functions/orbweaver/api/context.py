"""Context of the API's handlers, and their replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from orbweaver.control.crawl_control import Control
from orbweaver.diagnostics.explainer import Explainer
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import UnknownCrawl
from orbweaver.model.ports import Clock, Files
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, Pages
    from orbweaver.frontier.queues import Queue


@value_class
class HandlerContext:
    """Components and ports that handlers use.

    `allowed`: private addresses that crawls can request.
    """

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
        """Look up a crawl by id, not by name, because a name can belong to a newer run."""
        crawl = await self.crawls.get(crawl_id)
        if crawl is None:
            raise UnknownCrawl(f"there is no crawl {crawl_id!r}")
        return crawl


@value_class
class Reply:
    """Response of a handler. `body` has the type that the operation documents."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
