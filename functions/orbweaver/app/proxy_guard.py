"""Prevent direct requests of crawls whose workers used proxies.

Workers record in the store for which schemes they have proxies. A later worker without these
proxies pauses the crawl before it requests a URL, so that it never reveals the user's address.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orbweaver.app.wiring import control_of
from orbweaver.app.worker_proxies import lacking_proxies
from orbweaver.model.crawl import State
from orbweaver.model.errors import Conflict

if TYPE_CHECKING:
    from orbweaver.app.store_ports import StorePorts
    from orbweaver.model.crawl import Crawl

_log = logging.getLogger(__name__)


class ProxyGuard:
    """Checks the crawls of messages before a worker of this process handles the messages."""

    def __init__(self, ports: StorePorts) -> None:
        self._ports = ports
        # Crawls that this process may request. Processes with other proxies do not start meanwhile.
        self._permitted: set[str] = set()

    async def check(self, crawls: Iterable[str]) -> None:
        """Record the proxies of these crawls, or pause crawls that lack them."""
        for crawl_id in set(crawls) - self._permitted:
            crawl = await self._ports.crawls.get(crawl_id)
            if crawl is None:
                continue
            if why := await lacking_proxies(self._ports.crawls, crawl, self._ports.proxies):
                await self._pause(crawl, why)
                continue
            await self._note(crawl)
            self._permitted.add(crawl_id)

    async def _note(self, crawl: Crawl) -> None:
        proxies = self._ports.proxies
        uses = proxies.is_listed or any(map(proxies.is_proxied, crawl.references))
        if not (crawl.proxied and uses):
            return
        if await self._ports.crawls.proxied_schemes(crawl.id) != proxies.schemes:
            await self._ports.crawls.note_proxied(crawl.id, proxies.schemes)

    async def _pause(self, crawl: Crawl, why: str) -> None:
        if crawl.state is not State.RUNNING:
            return  # workers request nothing
        try:
            await control_of(self._ports).pause(crawl.id)
        except Conflict:  # it ended or was cancelled meanwhile
            return
        _log.warning("crawl.paused", extra={"crawl": crawl.id, "error": why})
