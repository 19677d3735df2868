"""Unused slots in a polite crawl of many hosts, in virtual time.

A slot is a time at which one request to a host may start. Failing pages are the only faults. Each
host is a tree of pages; most links are known long before they are requested.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from orbweaver.frontier.messages import seeds_of
from orbweaver.model.crawl import Crawl, State, first_hosts, run_id
from tests.memory import World
from tests.simulation import loop
from tests.simulation.check_web import Violation
from tests.simulation.cloud import Cloud
from tests.simulation.fair import Quiet
from tests.simulation.faults import Faults
from tests.simulation.scenario import Scenario
from tests.simulation.sites import SimPage, Site
from tests.simulation.web import Ask, SimWeb

LINKS = 8
END_S_MAX = 3_600.0
# Time between two packs (batches of URLs) of a host: a commit and a receive.
HANDOVER_S = 2.0
# As on one machine (app/store_runner.py), where waits are not billed.
SEGMENT_WAIT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PoliteCrawl:
    """A crawl with a delay; `failing` are the numbers of pages that always fail."""

    seed: int = 1
    hosts: int = 20
    pages: int = 60
    delay_ms: int = 200
    pages_max: int = 100_000
    failing: tuple[int, ...] = ()
    # Status of failing pages.
    status: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All requests of a crawl in true time, and its end; None if it did not finish."""

    crawl: PoliteCrawl
    asks: tuple[Ask, ...]
    finished_s: float | None

    @property
    def took_s(self) -> float:
        return self.asks[-1].at_s - self.asks[0].at_s

    @property
    def used(self) -> float:
        """Return the share of slots used until no host had a page left."""
        slots = self.crawl.hosts * self.took_s * 1000 / self.crawl.delay_ms
        return len(self.asks) / slots


def play_polite(crawl: PoliteCrawl) -> Played:
    played: Played = loop.run(_play(crawl))
    return played


def check_slots(played: Played) -> Iterator[Violation]:
    """I9: a crawl without open pages ends, and no slot passes unused while URLs are due.

    Failing pages do not count, because their retries wait.
    """
    if played.finished_s is None:
        yield Violation("I9 end", f"not finished after {END_S_MAX} s")
    failing = {f"/{number}" for number in played.crawl.failing}
    others = [ask.at_s for ask in played.asks if ask.path not in failing]
    most_s = played.crawl.delay_ms / 1000 + HANDOVER_S
    for before_s, after_s in pairwise(others):
        if after_s - before_s > most_s:
            yield Violation("I9 slots", f"no request from {before_s:.1f} to {after_s:.1f}")


async def _play(polite: PoliteCrawl) -> Played:
    world, trace = World(), Quiet()
    sites = [_site(polite, host) for host in range(polite.hosts)]
    plan = Scenario(seed=polite.seed, sites=sites, crawls=(), faults=Faults(), faults_until_s=0.0)
    web = SimWeb(sites, asyncio.get_running_loop().time, trace.counts)
    cloud = Cloud(plan, world, web, trace)
    cloud.segment_wait_s, cloud.waits_billed = SEGMENT_WAIT_S, "no"
    at_ms = cloud.start_ms
    crawl_id = run_id("polite", at_ms)
    urls = tuple(f"{site.origin}/0" for site in sites)
    seeds = seeds_of(crawl_id, crawl_id, urls, at_ms=at_ms, planned=True)
    crawl = Crawl(
        id=crawl_id,
        name="polite",
        started_at_ms=at_ms,
        seeds=urls,
        seeds_planned=len(seeds),
        hosts_counted=first_hosts(urls),
        pages_max=polite.pages_max,
        delay_ms=polite.delay_ms,
        concurrency=1,
        shards=1,
    )
    world.crawls[crawl.id] = crawl
    await cloud.person().queue.send_seeds(seeds, express=False)
    while world.crawls[crawl.id].state is not State.FINISHED and cloud.now_s < END_S_MAX:
        await cloud.run(cloud.now_s + 1.0, stop_when_idle=False)
    finished = world.crawls[crawl.id].state is State.FINISHED
    asks = tuple(ask for ask in web.asks if ask.path != "/robots.txt")
    return Played(crawl=polite, asks=asks, finished_s=cloud.now_s if finished else None)


def _site(polite: PoliteCrawl, host: int) -> Site:
    """Build a tree of pages that all link to the first one."""
    pages = {}
    for number in range(polite.pages):
        children = range(LINKS * number + 1, LINKS * number + LINKS + 1)
        links = ("/0", *(f"/{child}" for child in children if child < polite.pages))
        status = polite.status if number in polite.failing and host == 0 else 200
        pages[f"/{number}"] = SimPage(links=links, status=status)
    return Site(origin=f"http://h{host}.test", pages=pages)
