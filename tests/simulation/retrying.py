"""Users who retry failed URLs: when, how, and the expected result."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from orbweaver.control.crawl_control import Control, ControlPorts
from orbweaver.model.crawl import Stop
from orbweaver.model.settings import Settings
from tests.memory import MemoryCrawls, MemoryHosts
from tests.simulation.budgets import CUT_HOST
from tests.simulation.check_web import Violation
from tests.simulation.clock import ERROR_MS_MAX
from tests.simulation.tables import SimPages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orbweaver.model.crawl import Crawl
    from tests.memory import World
    from tests.simulation.cloud import Cloud
    from tests.simulation.process import WorkerProcess
    from tests.simulation.scenario import CrawlPlan

RETRY = "retry"
# In the middle of the crawl, soon after its end, and long after.
AFTER_S = (3.0, 1_300.0, 4 * 3_600.0)


def retried(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Retry some crawls, by a separate random generator."""
    random = Random(f"retry/{seed}")
    names = Counter(plan.name for plan in plans)
    found = []
    for plan in plans:
        after_s = max([random.choice(AFTER_S), *(at_s for at_s, _ in plan.actions)])
        if random.random() < 0.4 and names[plan.name] == 1:
            plan = replace(plan, actions=(*plan.actions, (after_s, RETRY)))  # noqa: PLW2901
        found.append(plan)
    return found


class _Crawls(MemoryCrawls):
    """Gives each run its own User-Agent, which identifies its requests."""

    async def create(self, crawl: Crawl) -> bool:
        return await super().create(replace(crawl, user_agent=f"sim/1.0 (+{crawl.id})"))


async def retry(cloud: Cloud, person: WorkerProcess, crawl_id: str) -> None:
    """Retry failures as two users at once; only one retry may start."""
    control = Control(
        ControlPorts(
            queue=person.queue,
            crawls=_Crawls(cloud.world, person.gate),
            packs=person.packs,
            pages=SimPages(cloud.world, person.gate),
            hosts=MemoryHosts(cloud.world, person.gate),
            clock=person.clock,
            settings=Settings(),
        )
    )
    runs, others = await asyncio.gather(control.retry(crawl_id), control.retry(crawl_id))
    cloud.trace.note(f"{cloud.now_s:.6f} retry {[run.id for run in (*runs, *others)]}")


def runs_of(world: World, crawl_id: str) -> list[Crawl]:
    return [crawl for crawl in world.crawls.values() if crawl.retry_of == crawl_id]


def disturbed(world: World, crawl_id: str) -> bool:
    """True if a run was retried before it had ended, so that both share its URLs."""
    return any(not _apart(world.crawls[crawl_id], run) for run in runs_of(world, crawl_id))


def _apart(first: Crawl, run: Crawl) -> bool:
    end_ms = first.finished_at_ms
    # A wrong clock can record a wrong end, and earlier claims.
    return end_ms is not None and end_ms + 2 * ERROR_MS_MAX < run.started_at_ms


def check_retries(world: World) -> Iterator[Violation]:
    """Check that one retry claims each failure once, and records it at its depth."""
    depths: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for record in world.pages.values():
        depths[record.crawl][record.url] = record.depth
    for run in list(world.crawls.values()):
        if run.retry_of is None:
            continue
        others = [other for other in runs_of(world, run.retry_of) if other.id < run.id]
        if twice := {url for other in others for url in other.seeds} & set(run.seeds):
            yield Violation("retried once", f"{run.id}: {sorted(twice)[:3]}")
        known = depths[run.id]
        for url, depth in zip(run.seeds, run.seed_depths, strict=True):
            if url in known and known[url] != depth:
                yield Violation("retried as deep", f"{run.id} {url}: {known[url]} not {depth}")
        missing = [url for url in run.seeds if url not in known]
        # An early stop or a host limit leaves some URLs unrequested.
        whole = run.stop is Stop.FINISHED and not world.total(run.id)[CUT_HOST]
        if missing and whole and _apart(world.crawls[run.retry_of], run):
            yield Violation("retried at all", f"{run.id}: {missing[:3]}")
