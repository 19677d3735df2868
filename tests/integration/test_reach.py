"""A crawl may reach a local server only if one of its seeds names it.

The real worker and fetcher use real sockets. Tables and queues are in memory, time advances when
idle, and names come from a table.
"""

from __future__ import annotations

import heapq
import time
from random import Random
from typing import cast

import pytest

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.adapters.web.client import HttpFetcher, Limits
from orbweaver.app import wiring
from orbweaver.app.aws_ports import Ports, meter_of
from orbweaver.app.wiring import control_of, worker_of
from orbweaver.control.crawl_control import ControlError
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.frontier.messages import Loose, encode
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from orbweaver.worker.pack import Delivery
from tests import memory
from tests.integration.fetcher.origin import Names
from tests.memory import ManualClock
from tests.ports import OpenedPorts
from tests.sites import ways
from tests.sites.ways import NOWHERE, WAYS

LOCAL = "127.0.0.0/8,::1/128"
EVERYTHING = "127.0.0.0/8:1-65535,[::1]:1-65535,0.0.0.0:1-65535,[::]:1-65535"
BATCHES_MAX = 1_000
STEP_MS = 1_000


class Stand:
    """A worker with tables in memory, on a machine with a table of names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, allow: str, **limits: str) -> None:
        self.world = memory.World()
        self.clock = ManualClock(time.time_ns() // 1_000_000)
        self.settings = Settings.of(allow_addresses=allow, **limits)
        parts = [
            "Queue",
            "Packs",
            "Budgets",
            "Crawls",
            "Frontier",
            "Hosts",
            "Pages",
            "Files",
            "Backlog",
        ]
        ports = OpenedPorts(
            **{name.lower(): getattr(memory, f"Memory{name}")(self.world) for name in parts},
            events=memory.MemoryEvents(self.world),
            secrets=memory.MemorySecrets(self.world),
            clock=self.clock,
            random=Random(1),
            reader=InPlaceReader(),
            renderer=None,
            settings=self.settings,
            meter=meter_of(self.settings),
        )
        self.ports = cast("Ports", ports)
        self.fetcher = HttpFetcher(
            allowed=self.settings.fetching.allowed,
            limits=Limits(connections_per_host=4, connect_s=2),
            resolver=lambda: Names(ways.BOOK),
        )
        monkeypatch.setattr(wiring, "fetcher_of", lambda _: self.fetcher)

    async def start(self, **options: object) -> str:
        plan = {"scope": Scope.ANY, "delay_ms": 0, "bodies": Bodies.OFF, **options}
        return (await control_of(self.ports).start(CrawlSpec(**plan))).id  # type: ignore[arg-type] # names of fields

    async def work(self, *bodies: str) -> None:
        """Work until idle; `bodies` are additional messages."""
        worker = worker_of(self.ports)
        due = [(0, number, body) for number, body in enumerate(bodies)]
        for number in range(BATCHES_MAX):
            for place, mail in enumerate(self.world.sent):
                at_ms = self.clock.at_ms + mail.delay_s * 1000
                heapq.heappush(due, (at_ms, (number + 1) * 10_000 + place, mail.body))
            self.world.sent.clear()
            if not due:
                await self.fetcher.aclose()
                return
            self.clock.at_ms = max(self.clock.at_ms + STEP_MS, due[0][0])
            batch: list[Delivery] = []
            while due and due[0][0] <= self.clock.at_ms and len(batch) < 10:
                _, name, body = heapq.heappop(due)
                batch.append(Delivery(id=str(name), body=body, receives=1))
            assert not await worker.run(batch, self.clock.at_ms + 120_000)
        raise AssertionError("there is no end to it")

    @property
    def pages(self) -> list[PageRecord]:
        return list(self.world.pages.values())


def test_there_are_more_than_fifty_attempts() -> None:
    assert len(WAYS) == len(set(WAYS))
    assert len(set(WAYS) - NOWHERE) > 50


@pytest.mark.parametrize("robots", [True, False], ids=["polite", "bold"])
@pytest.mark.parametrize("canonical", [True, False], ids=["canonical", "all"])
async def test_no_attempt_reaches_unnamed_server(
    monkeypatch: pytest.MonkeyPatch, *, robots: bool, canonical: bool
) -> None:
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        await stand.start(seeds=there.seeds, obey_robots=robots, canonical_only=canonical)
        await stand.work()
        assert there.canary.connections == 0
        tried = {path.strip("/") for path in there.site.paths}
    wanted = {*WAYS} - {"robots-moved", "robots-sitemap"}
    assert (wanted if robots else wanted - {*ways.LISTS}) <= tried
    strangers = [page for page in stand.pages if _is_goal(page.url, there)]
    assert len(strangers) > 40
    refused = {Reason.ADDRESS, Reason.ROBOTS_UNREACHABLE} if robots else {Reason.ADDRESS}
    assert {page.reason for page in strangers} <= refused
    assert any("give http://" in str(page.error) for page in strangers)


async def test_each_attempt_reaches_server_if_all_ports_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: set[str] = set()
    connections = 0
    for robots in (True, False):
        for canonical in (True, False):
            stand = Stand(monkeypatch, EVERYTHING)
            async with ways.listening() as there:
                await stand.start(seeds=there.seeds, obey_robots=robots, canonical_only=canonical)
                await stand.work()
                reached |= {path.strip("/") for path in there.canary.paths}
                connections += there.canary.connections
    without_path = {"tls", "tls-by-name"}  # A handshake has no path.
    assert set(WAYS) - reached == NOWHERE | without_path
    assert connections > 0


async def test_other_names_of_named_server_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        port = there.canary.port
        seeds = (*there.seeds, f"http://127.0.0.1:{port}/")
        await stand.start(seeds=seeds, obey_robots=False)
        await stand.work()
        reached = {path.strip("/") for path in there.canary.paths}
    assert {"localhost", "name", "decimal", "mapped", "status-302", "name-of-both"} <= reached
    assert not reached & {"six", "beside", "beside-on-our-port", "six-on-our-port", "name-of-six"}


async def test_dns_name_opens_no_local_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed whose name resolves to a private address (DNS rebinding) is refused."""
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        await stand.start(seeds=(f"http://inner.test:{there.canary.port}/",), obey_robots=False)
        await stand.work()
        assert there.canary.connections == 0
    assert [page.reason for page in stand.pages] == [Reason.ADDRESS]


async def test_crawl_opens_no_server_for_other_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        port = there.canary.port
        own = await stand.start(seeds=(f"http://localhost:{port}/own",), obey_robots=False)
        await stand.start(seeds=there.seeds, obey_robots=False, name="stranger")
        await stand.work()
        assert set(there.canary.paths) == {"/own"}
    assert [page.crawl for page in stand.pages if page.url.endswith("/own")] == [own]


async def test_loose_seeds_open_only_their_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        loose = Loose(crawl="default", references=(there.seeds[0],))
        await stand.work(encode(loose))
        assert there.canary.connections == 0
        assert there.second.connections == 0
        assert len(set(there.site.paths)) > 40
    fetched = [page for page in stand.pages if page.outcome is Outcome.FETCHED]
    assert len(fetched) > 40


async def test_retry_opens_no_refused_server(monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand(monkeypatch, LOCAL)
    async with ways.listening() as there:
        crawl = await stand.start(seeds=there.seeds, obey_robots=False)
        await stand.work()
        again = await control_of(stand.ports).retry(crawl)
        assert any(f":{there.canary.port}/" in url for run in again for url in run.seeds)
        await stand.work()
        assert there.canary.connections == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:7f00:1]"])
async def test_seed_at_stacks_own_port_is_error_at_start(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    stand = Stand(monkeypatch, LOCAL, closed_ports="4566")
    with pytest.raises(ControlError, match="4566 there is the stack's own: it is never crawled"):
        await stand.start(seeds=(f"http://{host}:4566/",))


@pytest.mark.parametrize("allow", [LOCAL, EVERYTHING], ids=["local", "everything"])
async def test_loose_seed_never_reaches_stack(monkeypatch: pytest.MonkeyPatch, allow: str) -> None:
    async with ways.listening() as there:
        stand = Stand(monkeypatch, allow, closed_ports=str(there.canary.port))
        url = f"http://127.0.0.1:{there.canary.port}/"
        await stand.start(seeds=there.seeds, obey_robots=False)
        await stand.work(encode(Loose(crawl="default", references=(url,))))
        on_the_port = {"/beside-on-our-port", "/six-on-our-port", "/name-beside-on-our-port"}
        assert set(there.canary.paths) <= on_the_port
    assert "the stack's own" in str(next(page for page in stand.pages if page.url == url).error)


def _is_goal(url: str, there: ways.Ways) -> bool:
    own = tuple(seed.rstrip("/") for seed in there.seeds)
    return not url.startswith(own)
