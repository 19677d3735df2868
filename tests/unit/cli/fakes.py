"""Fakes for commands: AWS in memory, and a machine that simulates emulator and worker.

Each time a command sleeps, some URLs of the simulated site end. A second run of the same name ends
at once without pages, because of the dedup window.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import shlex
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.cli.context import CliContext
from orbweaver.cli.main import run
from orbweaver.cli.stack import NAMES, WORKER, EmulatedStack, StackUnreachable
from orbweaver.frontier.queues import Depths
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.http_exchange import Failure, Response, Trust
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from orbweaver.model.settings import STORE
from tests.memory import ManualClock, Moment, World
from tests.memory.world import ShardItem
from tests.unit.memory_ports import memory_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    from localstack.deployed import Alarm, Source
    from orbweaver.app.aws_ports import Ports
    from orbweaver.cli.stack import Say
    from orbweaver.fetching.proxy_pool import Proxy
    from orbweaver.model.http_exchange import Request
    from orbweaver.model.ports import Fetcher
    from orbweaver.model.settings import Settings

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SITE = "https://example.com"
LOCAL = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}
RENDERER_FUNCTION = "Orbweaver-renderer"
OUTPUTS = {**{name: f"the-{name}" for name in NAMES}, WORKER: "the-worker"}


def at(port: int) -> dict[str, str]:
    """Make the environment of a stack on a port of this machine."""
    return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}


@dataclass
class Row:
    """Outcome of a URL of the simulated site."""

    path: str
    outcome: Outcome = Outcome.FETCHED
    reason: Reason = Reason.OK
    title: str | None = None
    bytes: int | None = 1_000
    error: str | None = None
    latency_ms: int | None = None
    depth: int = 0


@dataclass
class Machine:
    """A machine without emulator or CDK that records calls."""

    up_already: bool = False
    deployed: Mapping[str, str] | None = field(default_factory=lambda: OUTPUTS)
    function: Mapping[str, str] = field(default_factory=dict)
    queue: Depths | None = field(default_factory=Depths)
    deployed_with: Mapping[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    broken: bool = False
    raised: tuple[Alarm, ...] | None = ()
    killed: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    contexts: list[dict[str, str]] = field(default_factory=list)
    switches: list[Source] = field(default_factory=list)
    profile_region: str | None = "us-west-2"
    up_on: list[int] = field(default_factory=lambda: [4566])
    kept: list[int] = field(default_factory=list)

    def region(self, environment: Mapping[str, str]) -> str | None:
        return self.profile_region

    def local(self) -> Mapping[int, Mapping[str, str]]:
        return {port: at(port) for port in self.up_on} if self.up_already else {}

    def stopped(self) -> list[int]:
        return self.kept

    def outputs(
        self, stack: str, environment: Mapping[str, str], say: Say
    ) -> Mapping[str, str] | None:
        self.asked.append(f"outputs {stack} {environment.get('AWS_ENDPOINT_URL', 'aws')}")
        if self.broken:
            raise StackUnreachable("Cannot reach it")
        return self.deployed

    def variables(self, function: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        return self.function

    def context(self, stack: str, environment: Mapping[str, str]) -> Mapping[str, str]:
        return self.deployed_with

    def depths(self, settings: Settings, environment: Mapping[str, str]) -> Depths | None:
        return self.queue

    @contextlib.contextmanager
    def running_stack(
        self, port: int, say: Say, context: Mapping[str, str] | None = None
    ) -> Iterator[EmulatedStack]:
        self.contexts.append(dict(context or {}))
        if "extractor" in self.contexts[-1]:
            self.function = {**self.function, "ORBWEAVER_EXTRACTOR": "orbweaver_extractor"}
        if not self.up_already:
            say("starting the emulator")
            self.asked.append(f"start {port}")
        try:
            yield EmulatedStack(
                environment=LOCAL,
                outputs=self.deployed or {},
                started=not self.up_already,
                log="emulator.log",
            )
        finally:
            if not self.up_already:
                self.asked.append(f"stop {port}")

    def start_stack(
        self, port: int, context: Mapping[str, str], *, fresh: bool, say: Say
    ) -> Mapping[str, str]:
        given = [f"{key}={value}" for key, value in context.items()]
        self.asked.append(" ".join([f"up {port} {'fresh' if fresh else 'kept'}", *given]))
        return {**OUTPUTS, **at(port)}

    def down(self, port: int | None, say: Say) -> bool:
        self.asked.append(f"down {port or 'all'}")
        return self.up_already

    def running(self) -> list[str]:
        return ["http://127.0.0.1:4566  healthy"] if self.up_already else []

    def lost_data(self) -> list[str]:
        return self.killed

    def usual_stack(self) -> str:
        return "Orbweaver"

    def stacks(self, environment: Mapping[str, str]) -> list[str]:
        return self.names

    def sources(self, function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
        rendering = function == RENDERER_FUNCTION
        assert rendering or function == OUTPUTS[WORKER]
        shown = tuple(one for one in self.switches if (one.queue == "render") is rendering)
        self.switches = [self._further(one) if one in shown else one for one in self.switches]
        return shown

    def alarms(self, stack: str, environment: Mapping[str, str]) -> tuple[Alarm, ...] | None:
        self.asked.append(f"alarms {stack}")
        return self.raised

    def _further(self, source: Source) -> Source:
        ends = {"Disabling": "Disabled", "Enabling": "Enabled", "Updating": "Enabled"}
        return replace(source, state=ends.get(source.state, source.state))

    def switch(self, source: Source, environment: Mapping[str, str], *, on: bool) -> bool:
        self.asked.append(f"switch {source.queue} {'on' if on else 'off'}")
        found = next(each for each in self.switches if each.id == source.id)
        if found.state not in ("Enabled", "Disabled"):
            return False
        place = self.switches.index(found)
        self.switches[place] = replace(found, state="Enabling" if on else "Disabling")
        return True

    def deploy(
        self,
        environment: Mapping[str, str],
        context: Mapping[str, str],
        *,
        reset: bool,
        yes: bool,
        say: Say,
    ) -> Mapping[str, str]:
        self.asked.append(f"deploy {dict(environment)} {dict(context)} {reset} {yes}")
        return OUTPUTS

    def destroy(
        self, environment: Mapping[str, str], context: Mapping[str, str], *, yes: bool, say: Say
    ) -> None:
        self.asked.append(f"destroy {dict(environment)} {dict(context)} {yes}")


class Web:
    """A web that answers known URLs and refuses others."""

    def __init__(self, answers: Mapping[str, Response | Failure]) -> None:
        self.answers = answers

    async def fetch(self, request: Request) -> Response | Failure:
        refused = Failure(reason=Reason.CONNECT, detail="refused", latency_ms=1)
        return self.answers.get(request.url, refused)


class Closing(io.StringIO):
    """A pipe whose reader closes after some lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._lines_left = lines

    def write(self, text: str, /) -> int:
        if self._lines_left == 0:
            raise BrokenPipeError
        self._lines_left -= text.count("\n")
        return super().write(text)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Stage:
    """The environment of commands, and the simulation in it."""

    folder: Path = Path()
    machine: Machine = field(default_factory=Machine)
    world: World = field(default_factory=World)
    site: list[Row] = field(default_factory=lambda: [Row("/"), Row("/a", title="A"), Row("/b")])
    per_step: int = 2
    environment: dict[str, str] = field(default_factory=dict)
    answers: dict[str, Response | Failure] = field(default_factory=dict)
    # Reasons why servers cannot be reached.
    unreached: dict[str, Failure] = field(default_factory=dict)
    interrupt_at: int | None = None
    stdin: io.StringIO | None = None
    stuck: bool = False
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)
    connected: list[tuple[Settings, Mapping[str, str]]] = field(default_factory=list)
    fault: Callable[[str], None] = field(default=lambda _: None)

    def __post_init__(self) -> None:
        self.clock = PlayClock(self)

    def run(self, line: str) -> int:
        """Run a command line, which is split as a shell does."""
        words = shlex.split(line)
        if words[0] == "crawl" and not {"--store", "--target", "--port"} & {*words}:
            words += ["--target", "local"]
        for stream in (self.out, self.err):
            stream.seek(0)
            stream.truncate()
        return run(words, self.surroundings)

    def output(self, line: str, code: int = 0) -> str:
        """Run a command that ends with this exit code. Return its output."""
        found = self.run(line)
        assert found == code, (line, found, self.noted)
        return self.said

    def errors(self, line: str, code: int = 2) -> str:
        """Run a command that ends with this exit code. Return its standard error."""
        self.output(line, code)
        return self.noted

    def run_json(self, line: str, code: int = 0) -> list[dict[str, Any]]:
        """Run a command that ends with this exit code. Return its JSON objects."""
        self.output(line, code)
        return self.objects()

    def shows(self, line: str, *texts: str, code: int = 0) -> None:
        """Check a command's exit code, and that its output has these texts."""
        said = self.output(line, code)
        assert [text for text in texts if text not in said] == [], said

    def notes(self, line: str, *texts: str, code: int = 2) -> None:
        """Check a command's exit code, and that its standard error has these texts."""
        noted = self.errors(line, code)
        assert [text for text in texts if text not in noted] == [], noted

    @property
    def said(self) -> str:
        return self.out.getvalue()

    @property
    def noted(self) -> str:
        return self.err.getvalue()

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.said.splitlines()]

    def surroundings(self) -> CliContext:
        return CliContext(
            out=self.out,
            err=self.err,
            environment=self.environment,
            folder=self.folder,
            machine=self.machine,
            connect=self.connect,
            web=self.web,
            clock=self.clock,
            reach=self.reach,
            reach_proxy=self.reach_proxy,
            stdin=self.stdin or sys.stdin,
        )

    def make_store(self) -> None:
        StorePorts(store_settings({}), self.folder / STORE).ending.close()

    async def reach_proxy(self, proxy: Proxy) -> Failure | None:
        return self.unreached.get(proxy.name)

    async def reach(self, url: str, trust: Trust) -> Failure | None:
        return self.unreached.get(url)

    def ports(self, settings: Settings | None = None) -> Ports:
        return memory_ports(self.world, self.clock, self.gate, settings)

    @contextlib.asynccontextmanager
    async def connect(
        self, settings: Settings, environment: Mapping[str, str]
    ) -> AsyncIterator[Ports]:
        self.connected.append((settings, environment))
        yield self.ports(settings)

    @contextlib.asynccontextmanager
    async def web(self) -> AsyncIterator[Fetcher]:
        yield Web(self.answers)

    async def gate(self, effect: str, moment: Moment) -> None:
        if moment is Moment.BEFORE:
            self.fault(effect)

    # --- the simulation ---------------------------------------------------------------------

    def step(self) -> None:
        for crawl in list(self.world.crawls.values()):
            if crawl.state is State.RUNNING and not self.stuck:
                self._advance(crawl)
            elif crawl.state is State.STOPPING:
                self._end(crawl, Stop.CANCELLED)

    def _advance(self, crawl: Crawl) -> None:
        counts = self._counts(crawl)
        if not counts:
            older = [one for one in self.world.crawls.values() if one.name == crawl.name]
            counts["seeds"] = crawl.seeds_planned
            if len(older) > 1 and crawl.window_s and crawl.retry_of is None:
                self._end(crawl, Stop.FINISHED)
                return
            counts["claimed"] = len(self.site)
            counts["refused.scope"] = 4
        done = sum(counts[outcome] for outcome in Outcome)
        for row in self.site[done : done + self.per_step]:
            self._end_url(crawl, row)
        if done + self.per_step >= len(self.site):
            self._end(crawl, Stop.FINISHED)

    def _end_url(self, crawl: Crawl, row: Row) -> None:
        record = PageRecord(
            crawl=crawl.id,
            url=SITE + row.path,
            outcome=row.outcome,
            reason=row.reason,
            fetched_at=self.clock.at_ms,
            depth=row.depth,
            status=200,
            title=row.title,
            bytes=row.bytes,
            error=row.error,
            latency_ms=row.latency_ms,
        )
        self.world.pages[page_key(record, 16)] = record
        counts = self._counts(crawl)
        counts[row.outcome] += 1
        counts[f"{row.outcome}.{row.reason}"] += 1
        counts["bytes"] += row.bytes or 0

    def _counts(self, crawl: Crawl) -> Counter[str]:
        item = self.world.shards.setdefault((crawl.id, 0), ShardItem())
        if not isinstance(item.counts, Counter):
            item.counts = Counter(item.counts)
        return item.counts

    def _end(self, crawl: Crawl, stop: Stop) -> None:
        ended = replace(crawl, state=State.FINISHED, stop=stop, finished_at_ms=self.clock.at_ms)
        self.world.crawls[crawl.id] = ended


class PlayClock(ManualClock):
    """A clock whose sleepers advance the simulation and may be interrupted."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(NOW_MS)
        self._stage = stage
        self.sleeps = 0

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        self.sleeps += 1
        if self.sleeps == self._stage.interrupt_at:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)
        self._stage.step()
