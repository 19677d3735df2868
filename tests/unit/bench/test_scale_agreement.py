"""The scale model agrees with the real worker on small crawls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from bench.scale.kernel import Kernel
from bench.scale.model import Model
from bench.scale.scenario import Fleet, Scenario, Web
from bench.scale.services import Port, Table, View
from bench.scale.state import CRAWL
from orbweaver.frontier.journal import Ledger, OutgoingPack
from orbweaver.frontier.messages import Pack, decode, encode
from orbweaver.frontier.queues import Queue
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.url import host_of
from orbweaver.worker.pack import Delivery
from orbweaver.worker.succession import Succession
from tests.memory import MemoryBacklog, World
from tests.simulation import loop, process
from tests.simulation.cloud import Cloud
from tests.simulation.fair import Quiet
from tests.simulation.faults import Faults
from tests.simulation.scenario import Scenario as Plan
from tests.simulation.web import SimWeb

POLL_MS = 50
# More than any plan has.
SEED_PACKS_MAX = 50
PAGE = b"<html><body><p>A page without links.</p></body></html>"
HTML = {"content-type": "text/html; charset=utf-8"}
# Only hosts and slots take time, and there is no randomness.
CERTAIN = Web(
    hosts=20, pages=500, zipf=0.8, latency_spread=0.0, latency_ms=300, slow_share=0.0,
    dead_share=0.0, strict_share=0.0, error_share=0.0, missing_share=0.0, links=0,
)  # fmt: skip
TIMELESS = Fleet(
    workers_max=4, workers_first=4, page_cpu_ms=0, pack_cpu_ms=0, cold_start_ms=0, recall_ms=0,
    settle_ms=0, transaction_ms=0,
)  # fmt: skip
PLAN = Scenario(web=CERTAIN, fleet=TIMELESS, known=1.0, minutes=600)
PLANS = {
    "hosts of all sizes": PLAN,
    "one host has half": replace(PLAN, web=replace(CERTAIN, giant=0.5, pages=300)),
    "more hosts than places": replace(PLAN, web=replace(CERTAIN, hosts=300, pages=1_500)),
    "a delay of seconds": replace(PLAN, web=replace(CERTAIN, hosts=1, pages=60), delay_ms=4_000),
    "slower than their delay": replace(PLAN, web=replace(CERTAIN, latency_ms=1_700, pages=200)),
}


class _Loop:
    """The event loop's time, with the interface of the model's kernel."""

    @property
    def time_ms(self) -> int:
        return round(asyncio.get_running_loop().time() * 1000)


class _Worker(process.WorkerProcess):
    """A real worker that requests the model's web."""

    model: Model

    async def fetch(self, request: Request) -> Response | Failure:
        model = self.model
        total_ms = round(request.total_s * 1000)
        host = model.web.hosts[host_of(request.url)]
        now_ms = _Loop().time_ms
        answer, took_ms = model.web.ask(host, now_ms, model.scenario.delay_ms, total_ms)
        model.requested()
        await asyncio.sleep(took_ms / 1000)
        if isinstance(answer, Failure):
            return answer
        body = b"" if request.url.endswith("/robots.txt") else PAGE
        return replace(answer, headers=HTML, body=body)


def counts_of(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Run a scenario with the real worker. Tables and CPU take no time here."""
    counts: Counter[str] = loop.run(_play(scenario, monkeypatch))
    return counts


async def _play(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    model = Model(scenario)
    books = model.books
    # From here on, the model's web, queue and hosts use the event loop's time.
    kernel = cast("Kernel", _Loop())
    model.queue._kernel = kernel
    table = Table(kernel, books)
    monkeypatch.setattr(process, "Settings", SimpleNamespace(of=model.settings.having))
    monkeypatch.setattr(process, "SimHosts", lambda _world, _gate, _web: View(table))
    world = World()
    # The model commits no seeds, and a pack needs a ledger to acquire a lease.
    for pack in (f"seeds{number}" for number in range(SEED_PACKS_MAX)):
        world.ledgers[pack] = Ledger(pack=pack, children=())
    model.succession = Succession(
        backlog=MemoryBacklog(world),
        queue=cast("Queue", Port(model.queue)),
        clock=model.kernel,
    )
    await model.begin()
    cloud = _cloud(world, scenario, model)
    world.crawls[CRAWL] = model.crawl
    fleet, queue = scenario.fleet, model.queue
    warm: list[_Worker] = []
    running: set[asyncio.Task[None]] = set()

    async def invoke(packs: list[Pack]) -> None:
        worker = warm.pop() if warm else _worker(cloud, model)
        now_ms = worker.clock.now_ms()
        books.count("deliveries", len(packs))
        await worker.worker.run(
            [Delivery(id=pack.id, body=encode(pack), receives=1) for pack in packs],
            now_ms + fleet.timeout_s * 1000,
        )
        queue.delete(len(packs))
        warm.append(worker)

    end_ms = 0
    while True:
        if len(world.pages) > books.counts["ended"]:
            books.counts["ended"], end_ms = len(world.pages), kernel.time_ms
        queue.refresh()
        while len(running) < fleet.workers_max and queue.visible:
            aged = kernel.time_ms - queue.oldest_ms >= fleet.batch_window_ms
            if queue.visible < fleet.batch_size and not aged:
                break
            task = asyncio.create_task(invoke(queue.receive(fleet.batch_size)))
            running.add(task)
            task.add_done_callback(running.discard)
        if not running and not queue.visible and not queue.delayed:
            break
        await asyncio.sleep(POLL_MS / 1000)
    books.counts["commits"] = len(world.commits)
    books.counts["taken on"] = cloud.trace.counts["taken on"]
    books.counts["end_ms"] = end_ms
    return books.counts


def _cloud(world: World, scenario: Scenario, model: Model) -> Cloud:
    plan = Plan(seed=scenario.seed, sites=[], crawls=(), faults=Faults(), faults_until_s=0.0)
    cloud = Cloud(plan, world, SimWeb([], lambda: 0.0, Quiet().counts), Quiet())
    cloud.start_ms = 0
    cloud.wait_s_max = scenario.settings.worker.wait_s_max

    def collect(hops: int = 0) -> None:
        assert hops >= 0
        outgoing_packs = []
        for mail in world.sent:
            pack = decode(mail.body)
            assert isinstance(pack, Pack)
            outgoing_packs.append(OutgoingPack(pack=pack, delay_s=mail.delay_s))
            model.books.count("put off", pack.requeues > 0)
        world.sent.clear()
        model.queue.send(outgoing_packs)

    cloud.collect = collect  # type: ignore[method-assign]
    return cloud


def _worker(cloud: Cloud, model: Model) -> _Worker:
    worker = _Worker(cloud, cloud.name("worker"), calm=True)
    worker.model = model
    worker.random = Random(0)
    return worker


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLANS)
def test_model_agrees_with_worker(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = PLANS[name]
    result = Model(plan).run()
    assert result.finished_ms is not None
    modelled = {**result.books.counts, "end_ms": result.finished_ms}
    real: Mapping[str, int] = counts_of(plan, monkeypatch)
    assert modelled["ended"] == real["ended"]
    assert modelled["requests"] == pytest.approx(real["requests"], rel=0.05)
    # The order of two packs of a host is random, which matters with few packs.
    for what in ("deliveries", "commits"):
        assert modelled[what] == pytest.approx(real[what], rel=0.2), what
    # A pack that got no slot early is sent again, once.
    assert modelled.get("put off", 0) == real["put off"]
    assert modelled["taken on"] == pytest.approx(real["taken on"], rel=0.3, abs=2)
    assert modelled["end_ms"] == pytest.approx(real["end_ms"], rel=0.2)
