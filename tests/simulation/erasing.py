"""A user erases a page while crawls run: no crawl of that time stores or requests it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from orbweaver.control.crawl_control import CLOSE_S
from orbweaver.erasure.erasure import Forgetter
from orbweaver.erasure.ports import Stores
from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.formats import erased
from orbweaver.frontier.body_file import PREFIX
from tests.memory import MemoryDeadLetters, MemoryEvents, MemoryFiles, MemoryTraces, World
from tests.memory.world import open_gate
from tests.simulation.check_web import Violation
from tests.simulation.cloud import Cloud
from tests.simulation.scenario import ExporterPlan, Scenario, scenario
from tests.simulation.tables import SimPages
from tests.simulation.web import SimWeb

# A worker stores the records of a journal in less time, unless it dies.
DEAD_S, WAITS_MAX = 40.0, 50


def erasing(seed: int) -> Scenario:
    """Return the scenario of a seed, with an erasure and without frozen workers or clock jumps."""
    plan = scenario(seed)
    random = Random(f"erasing/{seed}")
    site = random.choice(plan.sites)
    pages = sorted(path for path, page in site.pages.items() if path != "/" and not page.poison)
    at_s = random.choice((0.5, 1.0, 2.0, 5.0, 20.0, 60.0, 600.0)) * random.random()
    first_s = min(crawl.at_s for crawl in plan.crawls)
    url = site.origin + (random.choice(pages) if pages else "/none")
    faults = replace(plan.faults, frozen=0.0, jumps=0.0)
    return replace(plan, erases=(first_s + at_s, url), faults=faults, exporter=ExporterPlan())


async def erase(cloud: Cloud, at_s: float, url: str) -> None:
    await asyncio.sleep(at_s)
    person, world = cloud.person(), cloud.world
    if cloud.seed % 2:
        url = await _orphaned(world) or url
    cloud.erased_url, cloud.erased_s = url, cloud.now_s
    stores = Stores(
        traces=MemoryTraces(world),
        dead_letters=MemoryDeadLetters(world, clock=person.clock),
        queue=person.queue,
        crawls=person.crawls,
        pages=SimPages(world, open_gate),
        files=MemoryFiles(world),
        events=MemoryEvents(world),
        clock=person.clock,
    )
    cloud.erased_in = frozenset(world.crawls)
    await Forgetter(stores).forget(ErasureScope(urls=frozenset({url})))


async def _orphaned(world: World) -> str | None:
    """Wait for a journal whose worker died before it stored the records. Return a URL of it."""
    known: set[str] = set()
    for _ in range(WAITS_MAX):
        open_packs = world.journals.keys() - world.ledgers.keys()
        urls = [one.url for pack in open_packs & known for one in world.journals[pack].records]
        if urls:
            return min(urls)
        known = open_packs
        await asyncio.sleep(DEAD_S)
    return None


def check_erased(world: World, web: SimWeb, cloud: Cloud) -> Iterator[Violation]:
    at_s, url = cloud.erased_s, cloud.erased_url
    scope = ErasureScope(urls=frozenset({url}))
    for record in world.pages.values():
        if record.crawl in cloud.erased_in and scope.record_left(record) is not record:
            yield Violation("erased record", f"{record.crawl}: {record.url}")
    for claim in world.claims.values():
        if claim.crawl in cloud.erased_in and claim.url == url:
            yield Violation("erased claim", f"{claim.crawl}: {url} of {claim.pack}")
    for key, body in world.files.items():
        run = key.removeprefix(PREFIX).partition("/")[0]
        if key.startswith(PREFIX) and run in cloud.erased_in and erased(key, body, scope).body:
            yield Violation("erased body", f"{key}: {url}")
    agents = {world.crawls[crawl_id].user_agent for crawl_id in cloud.erased_in}
    for ask in web.asks:
        if ask.agent in agents and ask.origin + ask.path == url and ask.at_s > at_s + CLOSE_S:
            yield Violation("erased asks", f"{url}: {ask.at_s - at_s:.1f} s")
