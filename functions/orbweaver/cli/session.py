"""What every command works with: where it speaks, which machine it is on, and the open ports.

Tests put their own in the place of each.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from orbweaver.cli.display import Lines, Objects, Panel
from orbweaver.cli.progress import Meter, Reading
from orbweaver.cli.stacks import ENDPOINT, environment_of, settings_of
from orbweaver.control import Control
from orbweaver.core.url import host_of
from orbweaver.ports import Transient

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from orbweaver.bootstrap import Ports
    from orbweaver.cli.display import Display
    from orbweaver.cli.progress import View
    from orbweaver.cli.stacks import Machine
    from orbweaver.core.crawl import Crawl
    from orbweaver.ports import Clock, Fetcher
    from orbweaver.settings import Settings

    Connect = Callable[[Settings, Mapping[str, str]], AbstractAsyncContextManager[Ports]]

LOCAL_POLL_S = 1.0
AWS_POLL_S = 3.0
HOSTS_MAX = 5
POLL_FAILURES_MAX = 5


class Stalled(Exception):
    """A crawl has not ended, and nothing is left that could end it."""

    def __init__(self, view: View) -> None:
        super().__init__(view.reading.status.crawl.id)
        self.view = view


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything outside a command; `folder` is where relative paths begin."""

    out: TextIO
    err: TextIO
    environment: Mapping[str, str]
    folder: Path
    machine: Machine
    connect: Connect
    web: Callable[[], AbstractAsyncContextManager[Fetcher]]
    clock: Clock
    stdin: TextIO = field(default_factory=lambda: sys.stdin)

    def display(self, arguments: argparse.Namespace) -> Display:
        """Choose how progress is shown."""
        if arguments.json:
            return Objects(self.out)
        if self.out.isatty() and self.environment.get("TERM", "") not in ("", "dumb"):
            return Panel(self.out)
        return Lines(self.out)

    def write(self, *lines: str) -> None:
        """Write to the standard output."""
        for line in lines:
            print(line, file=self.out, flush=True)

    def note(self, *lines: str) -> None:
        """Write to the standard error, where it is in no pipe's way."""
        for line in lines:
            print(line, file=self.err, flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An open connection to one stack."""

    control: Control
    ports: Ports
    settings: Settings
    environment: Mapping[str, str]
    machine: Machine

    async def watch(self, crawl_id: str, display: Display) -> View:
        """Show a crawl until it has ended; raises Stalled if it never will."""
        meter, failures = Meter(), 0
        poll_s = LOCAL_POLL_S if self.environment.get(ENDPOINT) else AWS_POLL_S
        while True:
            try:
                reading = await self.read(crawl_id)
            except Transient:
                failures += 1
                if failures == POLL_FAILURES_MAX:
                    raise
            else:
                failures = 0
                view = meter.see(reading)
                display.show(view)
                if view.ended:
                    return view
                if meter.stalled(reading):
                    raise Stalled(view)
            await self.ports.clock.sleep(poll_s)

    async def read(self, which: str | None) -> Reading:
        """Read a crawl, the queue, and the hosts of the crawl's seeds."""
        status = await self.control.status(which)
        depths = await asyncio.to_thread(self.machine.depths, self.settings, self.environment)
        looks = (self.ports.hosts.look(host) for host in _hosts(status.crawl))
        return Reading(status=status, depths=depths, hosts=tuple(await asyncio.gather(*looks)))


def _hosts(crawl: Crawl) -> list[str]:
    return list(dict.fromkeys(host_of(seed) for seed in crawl.seeds))[:HOSTS_MAX]


@asynccontextmanager
async def opened(
    around: Surroundings, settings: Settings, environment: Mapping[str, str]
) -> AsyncIterator[Session]:
    """Connect to a stack."""
    async with around.connect(settings, environment) as ports:
        control = Control(
            queue=ports.queue,
            crawls=ports.crawls,
            packs=ports.packs,
            pages=ports.pages,
            clock=ports.clock,
            settings=settings,
        )
        yield Session(
            control=control,
            ports=ports,
            settings=settings,
            environment=environment,
            machine=around.machine,
        )


@asynccontextmanager
async def chosen(arguments: argparse.Namespace, around: Surroundings) -> AsyncIterator[Session]:
    """Connect to the stack that the options and the environment name."""
    environment = environment_of(arguments.target, around.machine, around.environment)
    settings = settings_of(arguments.stack, around.machine, environment)
    async with opened(around, settings, environment) as session:
        yield session
