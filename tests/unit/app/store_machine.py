"""Workers of an embedded store over a small web, in this process or in a child that kills itself.

python -m tests.unit.app.store_machine FOLDER NOW_MS REQUESTS
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.adapters.sqlite.receiving import deliveries_of
from orbweaver.app import wiring
from orbweaver.app.store_ports import StorePorts
from orbweaver.frontier.messages import seeds_of
from orbweaver.model.settings import Settings
from tests.memory import ManualClock
from tests.unit.stage import CRAWL, NOW_MS, SITE, SmallWeb, html

if TYPE_CHECKING:
    from orbweaver.app.ports import PortSet
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.http_exchange import Request
    from orbweaver.model.ports import Fetcher

HOLD_S, REMAINING_MS = 60, 60_000
PAGES = 60


class Machine:
    """Workers of one folder, one after the other, each with its own ports."""

    def __init__(self, folder: Path, now_ms: int = NOW_MS) -> None:
        self.folder = folder
        self.clock = ManualClock(now_ms)
        self.web = SmallWeb(self.clock)
        for number in range(PAGES):
            links = [f"/{(number * 3 + step) % PAGES}" for step in range(1, 8)]
            self.web.put(f"{SITE}/{number}", html(*links, title=f"page {number}"))
        self.opened: list[StorePorts] = []

    def open(self) -> StorePorts:
        ports = StorePorts(Settings.of(receive_max=9), self.folder, clock=self.clock)
        self.opened.append(ports)
        return ports

    async def work(self, ports: StorePorts | None = None) -> None:
        ports = ports or self.open()
        worker = wiring.worker_of(ports, ports.underway)
        lanes = [ports.inbox(queue) for queue in (QueueName.EXPRESS, QueueName.CRAWL)]
        while True:
            for inbox in lanes:
                taken = await inbox.receive(4, HOLD_S)
                if not taken:
                    continue
                handed = deliveries_of(taken, inbox.queue)
                failed = await worker.run(handed, self.clock.now_ms() + REMAINING_MS)
                await inbox.settle(taken, failed)
                worker.flush()
                break
            else:
                due = [due for inbox in lanes if (due := inbox.next_due_ms()) is not None]
                if not due:
                    return
                self.clock.at_ms = max(self.clock.at_ms, min(due))

    async def start(self, crawl: Crawl = CRAWL) -> None:
        ports = self.open()
        crawl = replace(crawl, seeds=(f"{SITE}/0",), seeds_planned=1)
        await ports.crawls.create(crawl)
        seeds = seeds_of(crawl.id, crawl.id, crawl.references, at_ms=NOW_MS, planned=True)
        await ports.queue.send_seeds(seeds, express=False)


def main(folder: str, now_ms: str, requests: str) -> None:
    machine = Machine(Path(folder), int(now_ms))

    def dies(_request: Request) -> None:
        if len(machine.web.asked) >= int(requests):
            os.kill(os.getpid(), signal.SIGKILL)

    def web(ports: PortSet) -> Fetcher:
        del ports
        return machine.web

    machine.web.before = dies
    wiring.fetcher_of = web
    asyncio.run(machine.work())


if __name__ == "__main__":
    main(*sys.argv[1:])
