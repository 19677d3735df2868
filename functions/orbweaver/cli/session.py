"""The session of a command: its output, its machine, and the open ports.

Tests put their own in the place of each.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TextIO

from orbweaver.app.wiring import control_of
from orbweaver.cli.live.display import Display, JsonDisplay, Lines, Panel
from orbweaver.cli.stack import (
    ENDPOINT,
    Machine,
    StackUnreachable,
    environment_of,
    outputs_of,
    settings_from,
    sources_of,
    workers_of,
)
from orbweaver.cli.store import StorePlace, has_workers, opened_store, store_of
from orbweaver.cli.text import clean_lines, visible
from orbweaver.control.crawl_control import Control
from orbweaver.control.progress.reader import StatusReader
from orbweaver.control.progress.status import ProgressMeter, StatusReading, View, stalled
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import NOTHING, Transient
from orbweaver.model.ports import Clock, Fetcher
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from orbweaver.app.aws_ports import Ports
    from orbweaver.app.ports import PortSet
    from orbweaver.app.store_ports import StorePorts
    from orbweaver.control.crawl_queries import Status

    Connect = Callable[[Settings, Mapping[str, str]], AbstractAsyncContextManager[Ports]]
    Reach = Callable[[str], Awaitable[str | None]]

LOCAL_POLL_S = 1.0
AWS_POLL_S = 3.0
# How old the picture becomes on the screen before it is drawn anew, with its age.
TICK_S = 1.0
# A stack that has never answered, and one that did: networks come back, laptops wake up.
POLL_FAILURES_MAX = 5
SILENCE_MS_MAX = 5 * 60_000
LOCAL_SILENCE_MS_MAX = 60_000
_PAUSES = "Ctrl-C pauses the crawl; the same command goes on with it"
_LEAVES = "Ctrl-C ends the watching; the crawl goes on"


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
    reach: Reach | None = None

    def confirmed(self, question: str) -> bool:
        """Ask a person at the terminal; whether the answer is yes."""
        self.err.write(f"{question} (y/N) ")
        self.err.flush()
        return self.stdin.readline().strip().lower() in ("y", "yes")

    def display(self, arguments: argparse.Namespace) -> Display:
        """Choose how progress is shown."""
        if arguments.json:
            return JsonDisplay(self.out)
        if self.out.isatty() and self.environment.get("TERM", "") not in ("", "dumb"):
            crawling = arguments.command == "crawl"
            return Panel(self.out, self.environment, _PAUSES if crawling else _LEAVES)
        return Lines(self.out)

    def write(self, *lines: str) -> None:
        """Write to the standard output; no control character reaches a terminal."""
        for line in lines:
            print(shown(line, self.out), file=self.out, flush=True)

    def pour(self, body: bytes) -> None:
        """Write bytes to the standard output as they are; a terminal gets them as clean text."""
        buffer = getattr(self.out, "buffer", None)
        if buffer is None or self.out.isatty():
            self.write(clean_lines(body.decode("utf-8", "replace")))
            return
        self.out.flush()
        buffer.write(body)
        buffer.flush()

    def note(self, *lines: str) -> None:
        """Write to the standard error, where it is in no pipe's way."""
        for line in lines:
            print(shown(line, self.err), file=self.err, flush=True)


def shown(line: str, out: TextIO) -> str:
    """Make control characters visible where a terminal would obey them; a file gets them."""
    return visible(line) if out.isatty() else line


def note_older(around: Surroundings, crawl: Crawl, newest: Crawl) -> None:
    """Say that an answer is about an older run, because the newest of the name fetched nothing."""
    if crawl.id != newest.id:
        around.note(f"{newest.id} fetched nothing: this is of {crawl.id}, a run before it")


class Place(Protocol):
    """The stack or store that a session is with: its queues, and what works on them."""

    @property
    def poll_s(self) -> float:
        """How often a crawl is read that is watched."""

    @property
    def silence_ms_max(self) -> int:
        """After what silence watching is given up."""

    @property
    def billed(self) -> bool:
        """Whether what it uses is paid for."""

    @property
    def busy(self) -> bool:
        """Whether workers of others may be working on what is queued."""

    @property
    def left_in_work(self) -> Mapping[str, int]:
        """Pages that killed processes had in work, by crawl, as far as they are known."""

    async def depths(self) -> Depths | None:
        """Count the messages on the queues; None if that may not be read."""

    async def waiting(self, status: Status) -> tuple[str, ...]:
        """Say what single URLs of a crawl wait for, where the queues can be read."""

    async def idle_workers(self) -> str | None:
        """Say that nothing works on what is queued; None if something does, or it is unknown."""

    def reclaimed(self) -> bool:
        """Have messages of workers that were killed be due; whether surely no worker is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPlace:
    """A stack; `workers` are the names of its worker and its renderer, where it says them."""

    machine: Machine
    settings: Settings
    environment: Mapping[str, str]
    workers: tuple[str, ...] = ()
    billed: bool = True
    busy: bool = True
    left_in_work: Mapping[str, int] = field(default_factory=dict)

    @property
    def _is_local(self) -> bool:
        return bool(self.environment.get(ENDPOINT))

    @property
    def poll_s(self) -> float:
        """See the protocol."""
        return LOCAL_POLL_S if self._is_local else AWS_POLL_S

    @property
    def silence_ms_max(self) -> int:
        """See the protocol."""
        return LOCAL_SILENCE_MS_MAX if self._is_local else SILENCE_MS_MAX

    async def depths(self) -> Depths | None:
        """See the protocol."""
        return await asyncio.to_thread(self.machine.depths, self.settings, self.environment)

    async def waiting(self, status: Status) -> tuple[str, ...]:
        """See the protocol: a queue of AWS hands messages to workers alone."""
        del status
        return ()

    async def idle_workers(self) -> str | None:
        """See the protocol."""
        if not self.workers:
            return None
        try:
            found = await asyncio.to_thread(
                sources_of, self.workers, self.machine, self.environment
            )
        except StackUnreachable:
            return None
        if not found or not all(source.off for source in found):
            return None
        return "All workers are off. Switch them on with `orbweaver workers on`."

    def reclaimed(self) -> bool:
        """See the protocol: the queues of a stack do so, and an invocation may be under way."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An open connection to one stack or store."""

    control: Control
    ports: PortSet
    settings: Settings
    place: Place

    async def watch(self, crawl_id: str, display: Display) -> View:
        """Show a crawl until it has ended; raises Stalled if it never will.

        A stack that does not answer for a while is asked on, and the last picture shown with its
        age; raises Transient in the end.
        """
        meter, view, failures = ProgressMeter(), None, 0
        tick_s = min(TICK_S, self.place.poll_s)
        while True:
            try:
                view = meter.see(await self._read_meanwhile(crawl_id, view, display))
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
                if stalled(view):
                    raise Stalled(view)
            for _ in range(round(self.place.poll_s / tick_s)):
                await self.ports.clock.sleep(tick_s)
                if view is not None:
                    display.show(self._aged(view))

    async def _read_meanwhile(
        self, crawl_id: str, view: View | None, display: Display
    ) -> StatusReading:
        """Read a crawl, and show how old the picture is for as long as that takes."""
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
        """Read a crawl as `read` does, and of a store which links wait, which may take 0.3 s.

        `ended`: these only once the crawl has ended. Of a stack a report says it.
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
        """Read a crawl, the queue, and the hosts of what the crawl began with."""
        reader = StatusReader(
            control=self.control,
            hosts=self.ports.hosts,
            depths=self.place.depths,
            billed=self.place.billed,
            waiting=self.place.waiting,
        )
        return await reader.read(which)


@asynccontextmanager
async def opened(
    around: Surroundings,
    settings: Settings,
    environment: Mapping[str, str],
    workers: tuple[str, ...] = (),
) -> AsyncIterator[Session]:
    """Connect to a stack."""
    async with around.connect(settings, environment) as ports:
        place = StackPlace(
            machine=around.machine, settings=settings, environment=environment, workers=workers
        )
        yield stack_session(ports, place)


def stack_session(ports: PortSet, place: StackPlace) -> Session:
    """Make the session of an open stack."""
    return Session(control=control_of(ports), ports=ports, settings=place.settings, place=place)


def store_session(
    ports: StorePorts,
    *,
    works: bool = False,
    busy: bool = False,
    left_in_work: Mapping[str, int] = NOTHING,
) -> Session:
    """Make the session of an open store.

    `works`: this command works on it. `busy`: so did others before.
    """
    place = StorePlace(ports=ports, works=works, busy=busy, left_in_work=left_in_work)
    return Session(
        control=control_of(ports, ports.underway),
        ports=ports,
        settings=ports.settings,
        place=place,
    )


def environment_in(arguments: argparse.Namespace, around: Surroundings) -> Mapping[str, str]:
    """Choose the environment that the options name."""
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
    arguments: argparse.Namespace, around: Surroundings, *, writes: bool = False, works: int = 0
) -> AsyncIterator[Session]:
    """Open the store, or connect to the stack, that the options and the environment name.

    A store that this user can only read is refused where the command `writes`, else by the first
    thing that would. With `works`, so many processes work on a store.
    """
    if (folder := store_of(arguments, around.folder, around.environment)) is not None:
        busy = has_workers(folder)
        opening = opened_store(folder, around.environment, works=works, writes=writes)
        async with opening as ports:
            yield store_session(ports, works=works > 0, busy=busy)
        return
    environment = environment_in(arguments, around)
    outputs = outputs_of(arguments.stack, around.machine, environment, around.note)
    settings = settings_from(outputs, around.machine, environment)
    async with opened(around, settings, environment, workers_of(outputs)) as session:
        yield session
