"""Limits of crawls other than pages: bytes, dollars and pages per host.

A crawl never exceeds its limit, measured by the simulated web. A crawl stopped by a limit reaches
it. Exception: a worker that fails without a journal (its record of results) leaves its
reservation's use unknown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from orbweaver.budget import prices
from orbweaver.budget.budget_rules import COUNTED, limit_of
from orbweaver.budget.reservation import SCRAP
from orbweaver.model.crawl import LimitPart
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.settings import Settings
from orbweaver.model.target import PACK_TARGETS_MAX
from tests.simulation.check_web import ROBOTS, Violation
from tests.simulation.faults import Faults
from tests.simulation.rendering import DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from orbweaver.model.crawl import Crawl
    from tests.memory import World
    from tests.simulation.scenario import CrawlPlan, Scenario
    from tests.simulation.web import SimWeb

# Several times the largest page of any site, and less than most limits.
BODY_BYTES_MAX = 2_048
LIMITS = {
    "bytes_max": (300, 2_000, 2_000, 9_000, 1_000_000),
    "host_pages_max": (1, 4, 4, 15, 1_000),
    "nanodollars_max": (600_000, 1_500_000, 4_000_000, 4_000_000, 20_000_000, 1_000_000_000),
}
CUT = (
    f"skipped.{Reason.BYTES}",
    f"skipped.{Reason.DOLLARS}",
    f"refused.{Refusal.DOLLARS}",
    f"cut.{Reason.BYTES}",
)
CUT_HOST = f"skipped.{Reason.HOST_PAGES}"
VISIT_S = Settings().worker.wait_s_max + Settings().fetching.fetch_total_s


def limited(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Give some crawls limits, by a separate random generator."""
    random = Random(f"budgets/{seed}")
    if random.random() < 0.6:
        return plans
    return [
        replace(
            plan,
            limits={
                name: random.choice(amounts)
                for name, amounts in LIMITS.items()
                if random.random() < 0.4
            },
        )
        for plan in plans
    ]


def cut(total: Mapping[str, int]) -> bool:
    return any(total.get(key, 0) for key in (*CUT, CUT_HOST))


def check_budgets(
    plan: Scenario,
    world: World,
    web: SimWeb,
    totals: Mapping[str, Mapping[str, int]],
    scarred: AbstractSet[str],
) -> Iterator[Violation]:
    """Check the limits of every crawl.

    `scarred` contains the packs (batches of URLs) whose processing failed at least once.
    """
    for crawl in world.crawls.values():
        total = totals[crawl.id]
        yield from _hosts(world, web, crawl, total)
        for part in LimitPart:
            limit = limit_of(crawl, part)
            if limit is not None:
                yield from _budget_state(plan, world, crawl, part, total, scarred)
        received = web.received[crawl.user_agent or ""]
        if crawl.bytes_max is not None and received > crawl.bytes_max:
            yield Violation("I5 bytes", f"{crawl.id}: {received} of {crawl.bytes_max}")


def _hosts(
    world: World, web: SimWeb, crawl: Crawl, total: Mapping[str, int]
) -> Iterator[Violation]:
    """Check that each host gets at most its limit of URLs, and that no host below it loses any."""
    limit = crawl.host_pages_max
    if limit is None:
        return
    asked: defaultdict[str, set[str]] = defaultdict(set)
    for ask in web.asks:
        page = ask.path != ROBOTS and not ask.path.startswith(DATA)
        if ask.agent == crawl.user_agent and page:
            asked[ask.origin].add(ask.path)
    for origin, paths in asked.items():
        if len(paths) > limit:
            yield Violation("I5 host pages", f"{crawl.id} {origin}: {len(paths)} of {limit}")
    pages = world.host_pages.items()
    counted = {host: count for (owner, host), count in pages if owner == crawl.id}
    if total.get(CUT_HOST) and max(counted.values(), default=0) < limit:
        yield Violation("I5 host spared", f"{crawl.id}: {counted} of {limit}")
    for host, count in counted.items():
        grants = [
            (pack, url)
            for (owner, pack, of_host), urls in world.counted.items()
            if (owner, of_host) == (crawl.id, host)
            for url in urls
        ]
        again = sum(_unknown(world, pack, url) for pack, url in grants)
        urls = {url for _, url in grants}
        if count > len(urls) + again:
            yield Violation("I5 counted once", f"{crawl.id} {host}: {count} for {len(urls)} URLs")


def _unknown(world: World, pack: str, url: str) -> bool:
    """True if a pack's journal calls a URL uncounted although a copy of the pack counted it."""
    journal = world.journals.get(pack)
    again = () if journal is None else journal.returning
    return any(item.target.url == url and not item.target.counted for item in again)


def _budget_state(
    plan: Scenario,
    world: World,
    crawl: Crawl,
    part: LimitPart,
    total: Mapping[str, int],
    scarred: AbstractSet[str],
) -> Iterator[Violation]:
    """Check that used is at least counted and at most the limit, and equal at the end."""
    limit = limit_of(crawl, part) or 0
    budget_state = world.budgets.get((crawl.id, part))
    counted = total.get(COUNTED[part], 0)
    used = 0 if budget_state is None else budget_state.used
    if used > limit or counted > used:
        yield Violation(f"I5 {part}", f"{crawl.id}: counted {counted} used {used} of {limit}")
    if part is LimitPart.BYTES:
        least = max(1, min(BODY_BYTES_MAX, limit) // SCRAP)
        ended = total.get(CUT[0], 0)
    else:
        a_second = prices.second(memory_mb=Settings().function.memory_mb)
        least = prices.visit_cost_max(urls=PACK_TARGETS_MAX, seconds=VISIT_S, a_second=a_second)
        ended = total.get(CUT[1], 0)
    # A frozen worker can return a reservation that was already written off. A wrong clock writes it
    # off early.
    odd = plan.faults.frozen or plan.faults.clock_error_ms
    # A pack with a late commit does the same, after failed deliveries or time as a dead letter.
    odd = odd or any(
        journal.reserved.get(part) for pack, journal in world.journals.items() if pack in scarred
    )
    if ended and used <= limit - least and not odd:
        yield Violation(f"I5 {part} spared", f"{crawl.id}: used {used} of {limit}")
    # Two concurrent retries both send the seeds, and each copy reserves for itself.
    calm = plan.faults == Faults() and not plan.poison and crawl.retry_of is None
    # Work after the crawl's end cannot change its counters any more.
    late = sum(
        journal.reserved.get(part, 0)
        for pack, journal in world.journals.items()
        if pack not in world.ledgers
    )
    counted += world.spent_in_vain[crawl.id, part]
    if calm and budget_state is not None and max(budget_state.reserved, used - counted) > late:
        left = f"{budget_state.reserved} reserved, used {used}, counted {counted}"
        yield Violation(f"I5 {part} settled", f"{crawl.id}: {left}")
