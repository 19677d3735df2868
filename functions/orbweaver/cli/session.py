"""The session of a command: the open stack or store, and how a crawl in it is watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from orbweaver.app.wiring import control_of
from orbweaver.cli.stack import (
    StackPlace,
    environment_of,
    outputs_of,
    settings_from,
    workers_of,
)
from orbweaver.cli.store import StorePlace, opened_store, store_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import NOTHING, Conflict, ControlError, PortError, Transient
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    import argparse

    from orbweaver.app.ports import PortSet
    from orbweaver.app.store_ports import StorePorts
    from orbweaver.cli.context import CliContext
    from orbweaver.cli.live.display import Display
    from orbweaver.control.continuation import Decision
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.crawl_spec import CrawlSpec
    from orbweaver.control.progress.status import StatusReading, View
    from orbweaver.model.settings import Settings

# Interval in seconds at which the screen is redrawn, to show the age of the last reading.
TICK_S = 1.0
# Number of failed readings after which `watch` fails, if the stack or store never answered.
POLL_FAILURES_MAX = 5
PAUSE_S = 5.0


@dataclass(slots=True)
class RunState:
    """The crawl of a command and its state, for messages after an interrupt or error."""

    crawl: str | None = None
    # True if the command may have stored a crawl whose id is not known.
    may_have_begun: bool = False
    # State of the crawl at the end of the command, if known.
    state: State | None = None
    # A shell command that must run before other commands about the crawl. The option that names the
    # crawl's stack or store.
    before: str = ""
    option: str = ""
    # Ends the further worker processes, whose memory the export can use.
    release: Callable[[], None] = lambda: None


class Stalled(Exception):
    """A crawl has not ended, and its queues are empty, so that no worker can end it."""

    def __init__(self, view: View) -> None:
        super().__init__(view.reading.status.crawl.id)
        self.view = view


def note_older(around: CliContext, crawl: Crawl, newest: Crawl) -> None:
    """Report that a command shows the older run `crawl`, because `newest` fetched nothing."""
    if crawl.id != newest.id:
        around.note(f"{newest.id} fetched nothing: this is about {crawl.id}, an earlier run")


Place: TypeAlias = StorePlace | StackPlace


@value_class
class Session:
    """An open stack or store, in which a command reads, watches and pauses crawls."""

    control: Control
    ports: PortSet
    settings: Settings
    place: Place

    async def watch(self, crawl_id: str, display: Display) -> View:
        """Show a crawl's progress until the crawl ends. Raises Stalled if it cannot end.

        While the stack does not answer, the reading is repeated, and the age of the last reading is
        shown. After a time limit, Transient is raised.
        """
        await self._let_worker_begin()
        from orbweaver.control.progress.status import ProgressMeter, is_stalled

        meter, view, failures = ProgressMeter(), None, 0
        tick_s = min(TICK_S, self.place.poll_s)
        while True:
            try:
                view = meter.add(await self._read_meanwhile(crawl_id, view, display))
            except Transient:
                failures += 1
                if view is None and failures == POLL_FAILURES_MAX:
                    raise
                if view is not None and self._aged(view).age_ms >= self.place.silence_ms_max:
                    raise
            else:
                display.show(view)
                if view.ended:
                    return view
                if is_stalled(view):
                    raise Stalled(view)
            for _ in range(round(self.place.poll_s / tick_s)):
                await self.ports.clock.sleep(tick_s)
                if view is not None:
                    display.show(self._aged(view))

    async def _let_worker_begin(self) -> None:
        """Wait before the first reading, which would delay the first request of this process."""
        if isinstance(self.place, StorePlace) and self.place.works:
            await self.ports.clock.sleep(self.place.poll_s)

    async def pause(self, crawl_id: str) -> State | None:
        """Pause an interrupted crawl and return its state. None: it failed or took too long."""
        try:
            async with asyncio.timeout(PAUSE_S):
                try:
                    return (await self.control.pause(crawl_id)).state
                except Conflict:  # it is ending or has ended
                    return (await self.control.find(crawl_id)).state
        except (PortError, TimeoutError):
            return None

    async def decision_after_interrupt(self, plan: CrawlSpec) -> Decision | None:
        """Decide again about a plan whose start was interrupted. None: it failed or took too long.

        The decision continues the crawl that the start stored, if any.
        """
        try:
            async with asyncio.timeout(PAUSE_S):
                return await self.control.decide(plan, busy=self.place.has_others)
        except (ControlError, PortError, TimeoutError):
            return None

    async def _read_meanwhile(
        self, crawl_id: str, view: View | None, display: Display
    ) -> StatusReading:
        """Read a crawl. While this takes time, show the age of the last reading."""
        reading = asyncio.ensure_future(self.read_closely(crawl_id, ended=True))
        try:
            while not (await asyncio.wait({reading}, timeout=TICK_S))[0]:
                if view is not None:
                    display.show(self._aged(view))
            return reading.result()
        finally:
            reading.cancel()

    def _aged(self, view: View) -> View:
        return replace(view, age_ms=max(0, self.ports.clock.now_ms() - view.reading.status.at_ms))

    async def read_closely(self, which: str | None, *, ended: bool = False) -> StatusReading:
        """Read a crawl. For a store, also read the late links, which can take 0.3 s.

        If `ended` is True, late links are read only after the crawl has ended. For a stack, only
        the command `report` reads them.
        """
        reading = await self.read(which)
        if reading.billed or (ended and reading.status.crawl.state is not State.FINISHED):
            return reading
        from orbweaver.diagnostics.spared_links import spared_links

        status, ports = reading.status, self.ports
        spared = await spared_links(
            status.crawl, status.counters, ports.backlog, ports.frontier, status.at_ms
        )
        return replace(reading, spared=spared)

    async def read(self, which: str | None) -> StatusReading:
        """Read a crawl's counters, the queue depths, and the hosts of the crawl's seeds."""
        from orbweaver.control.progress.reader import StatusReader

        reader = StatusReader(
            control=self.control,
            hosts=self.ports.hosts,
            depths=self.place.depths,
            billed=self.place.billed,
            waiting=self.place.waiting,
            idle=self.place.idle,
        )
        return await reader.read(which)


@asynccontextmanager
async def opened(
    around: CliContext,
    settings: Settings,
    environment: Mapping[str, str],
    functions: tuple[str, ...] = (),
    stack: str = "",
) -> AsyncIterator[Session]:
    async with around.connect(settings, environment) as ports:
        place = StackPlace(
            machine=around.machine,
            settings=settings,
            environment=environment,
            functions=functions,
            stack=stack,
        )
        yield stack_session(ports, place)


def stack_session(ports: PortSet, place: StackPlace) -> Session:
    return Session(control=control_of(ports), ports=ports, settings=place.settings, place=place)


def store_session(
    ports: StorePorts,
    *,
    works: bool = False,
    left_in_work: Mapping[str, int] = NOTHING,
) -> Session:
    """Make the session of an open store.

    `works` is True if this process has workers. For `left_in_work` see `StorePlace`.
    """
    place = StorePlace(ports=ports, works=works, left_in_work=left_in_work)
    return Session(
        control=control_of(ports, ports.underway),
        ports=ports,
        settings=ports.settings,
        place=place,
    )


def environment_in(arguments: argparse.Namespace, around: CliContext) -> Mapping[str, str]:
    return environment_of(
        arguments.target,
        around.machine,
        around.environment,
        arguments.region,
        port=arguments.port,
        note=around.note,
    )


@asynccontextmanager
async def chosen(
    arguments: argparse.Namespace, around: CliContext, *, writes: bool = False, works: int = 0
) -> AsyncIterator[Session]:
    """Open the store or stack that the options and the environment name.

    If `writes` is True, a read-only store is refused at once, otherwise at the first write. `works`
    is the number of worker processes to run for a store.
    """
    if (folder := store_of(arguments, around.folder, around.environment)) is not None:
        opening = opened_store(folder, around.environment, works=works, writes=writes)
        async with opening as ports:
            yield store_session(ports, works=works > 0)
        return
    environment = environment_in(arguments, around)
    outputs = outputs_of(arguments.stack, around.machine, environment, around.note)
    settings = settings_from(outputs, around.machine, environment)
    functions = workers_of(outputs)
    async with opened(around, settings, environment, functions, arguments.stack) as session:
        yield session
