"""Read a crawl's progress: counters, queue depths, and the hosts of its seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from orbweaver.control.progress.status import StatusReading
from orbweaver.diagnostics.host_status import hosts_of
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.crawl_queries import Status
    from orbweaver.frontier.queues import Depths
    from orbweaver.politeness.ports import Hosts


@value_class
class StatusReader:
    """Reads the progress of crawls. `billed` is True if using the stack or store costs money."""

    control: Control
    hosts: Hosts
    depths: Callable[[], Awaitable[Depths | None]]
    billed: bool
    # Returns texts about URLs for which a crawl waits, if queues can be read.
    waiting: Callable[[Status], Awaitable[tuple[str, ...]]] | None = None
    # True if no worker can be running.
    idle: bool = False

    async def read(self, which: str | None) -> StatusReading:
        """Read a crawl by its id or name. None: the newest one."""
        status = await self.control.status(which)
        depths = await self.depths()
        looks = (self.hosts.read_host(host) for host in hosts_of(status.crawl))
        return StatusReading(
            status=status,
            depths=depths,
            hosts=tuple(await asyncio.gather(*looks)),
            billed=self.billed,
            waiting=() if self.waiting is None else await self.waiting(status),
            idle=self.idle,
        )
