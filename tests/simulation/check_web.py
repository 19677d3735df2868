"""Invariants over every request that the web received.

Effect of wrong clocks: a slot is a time at which one request to a host may start, but each process
waits for it by its own clock. Let D be the largest difference between two processes' clocks during
their invocations. Requests in slots a delay apart are at least `delay - D` apart in true time. If D
is not less than the delay, even their order is uncertain. Within one invocation without a clock
jump, and between equal clocks, D is zero and the delay holds to the millisecond. The same D applies
to blocked hosts (`until - D`). The age of a robots.txt is at most 24 h plus the widest D of all
clocks of a day (case 25).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.model.outcome import Reason
from tests.simulation.meaning import meanings
from tests.simulation.rendering import DATA
from tests.simulation.sites import EARLY, LATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.memory import World
    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import Scenario
    from tests.simulation.sites import Site
    from tests.simulation.web import Ask, SimWeb

# Milliseconds are rounded.
ROUNDING_S = 0.0015
ROBOTS = "/robots.txt"
ROBOTS_FRESH_S = 86_400.0
# An invocation sends requests this long after it read robots.txt, and its last request may wait.
ROBOTS_USED_S = 20.0 + 1.0
# A worker that reads the host a second after a block was stored sees it before its request.
BLOCK_KNOWN_S = 3.0


@dataclass(frozen=True, slots=True)
class Violation:
    """A failed invariant, with its place."""

    invariant: str
    detail: str


def check_web(plan: Scenario, world: World, web: SimWeb, cloud: Cloud) -> Iterator[Violation]:
    yield from _polite(plan, world, web)
    yield from _unblocked(plan, web)
    yield from _admitted(plan, web)
    yield from _allowed_at_last(plan, world, web, cloud)
    yield from _sparing(world, web, cloud)


def _apart_s(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the largest possible difference between two clocks."""
    return max(one[1], other[1]) - min(one[0], other[0])


def _polite(plan: Scenario, world: World, web: SimWeb) -> Iterator[Violation]:
    """I4: two requests to a host are at least the earlier one's delay apart."""
    ruled = {
        crawl.user_agent: (meanings(plan, crawl), crawl.delay_ms)
        for crawl in world.crawls.values()
        if crawl.rules
    }
    delays = {crawl.user_agent: crawl.delay_ms / 1000 for crawl in world.crawls.values()}
    last: dict[str, tuple[Ask, float]] = {}
    for ask in web.asks:
        delay_s = delays.get(ask.agent, 1.0)
        if ask.agent in ruled and ask.path != ROBOTS:
            known, own_ms = ruled[ask.agent]
            # Requests that a page's scripts send follow the page's rules.
            url = ask.origin + ask.path.replace(DATA, "/", 1)
            delay_s = min(one.delay_ms(url, own_ms) for one in known) / 1000
        site = web.sites.get(ask.origin)
        if site is not None and site.rules is not None and ask.path != ROBOTS:
            delay_s = max(delay_s, site.crawl_delay_s)
        if ask.origin in last:
            before, least_s = last[ask.origin]
            apart_s = _apart_s(before.ahead_s, ask.ahead_s)
            if apart_s or not delay_s:  # Without a delay there are no slots.
                least_s = min(least_s, delay_s) - apart_s
            gap_s = ask.at_s - before.at_s
            if gap_s < least_s - ROUNDING_S:
                yield Violation("I4 delay", f"{ask.origin}{ask.path}: {gap_s:.3f} < {least_s:.3f}")
                return
        last[ask.origin] = (ask, delay_s)


def _unblocked(plan: Scenario, web: SimWeb) -> Iterator[Violation]:
    """Check that no worker requests a blocked host."""
    if plan.faults.throttled or plan.faults.unknown:
        return  # A block that could not be stored does not reach other workers.
    known_s = BLOCK_KNOWN_S + plan.faults.latency_s * 4
    for rebuff in web.rebuffs:
        if any(rebuff.at_s <= stop_s <= rebuff.at_s + known_s for stop_s in rebuff.asker.stops_s):
            continue  # This worker could not store the block, or stored it by another clock.
        for ask in web.asks:
            until_s = rebuff.until_s - _apart_s(rebuff.ahead_s, ask.ahead_s) - ROUNDING_S
            if ask.origin == rebuff.origin and rebuff.at_s + known_s < ask.at_s < until_s:
                asked = f"{ask.origin}{ask.path} at {ask.at_s:.3f}"
                yield Violation("blocked", f"{asked} < {rebuff.until_s:.3f}")
                return


def _admitted(plan: Scenario, web: SimWeb) -> Iterator[Violation]:
    """Check that requests obey robots.txt and go only to known hosts."""
    for ask in web.asks:
        site = web.sites.get(ask.origin)
        if site is None or ask.path == ROBOTS:
            continue
        if site.rules is None:
            if site.robots != 404:
                yield Violation("robots unreachable", f"{ask.origin}{ask.path}")
                return
        elif _forbidden(site, ask, _stale_s(plan)):
            yield Violation("robots", f"{ask.origin}{ask.path} at {ask.at_s:.0f}")
            return


def _forbidden(site: Site, ask: Ask, stale_s: float) -> bool:
    """True if no robots.txt copy that a worker may still use allows this request."""
    if ask.path.startswith("/private/"):
        return True
    change_s = site.robots_changes_at_s
    if change_s is None:
        return False
    if ask.path.startswith(EARLY):
        return ask.at_s < change_s
    return ask.path.startswith(LATE) and ask.at_s > change_s + stale_s


def _stale_s(plan: Scenario) -> float:
    """Return for how many seconds after a change an old robots.txt can be used."""
    return ROBOTS_FRESH_S + ROBOTS_USED_S + 2 * plan.faults.clock_error_ms / 1000


def _allowed_at_last(
    plan: Scenario, world: World, web: SimWeb, cloud: Cloud
) -> Iterator[Violation]:
    """Check that newly allowed URLs are fetched once a robots.txt copy has expired."""
    error_s = plan.faults.clock_error_ms / 1000
    for record in world.pages.values():
        origin, _, path = record.url.removeprefix("http://").partition("/")
        site = web.sites.get(f"http://{origin}")
        if site is None or site.robots_changes_at_s is None or record.reason is not Reason.ROBOTS:
            continue
        at_s = (record.fetched_at - cloud.start_ms) / 1000 - error_s
        if f"/{path}".startswith(EARLY) and at_s > site.robots_changes_at_s + _stale_s(plan):
            yield Violation("robots left out", f"{record.url} at {at_s:.0f}")
            return


def _sparing(world: World, web: SimWeb, cloud: Cloud) -> Iterator[Violation]:
    """I2: at most one request per delivery of a URL, and none once its outcome is known."""
    crawls = {crawl.user_agent: crawl.id for crawl in world.crawls.values() if crawl.user_agent}
    ended: dict[tuple[str, str], int] = {}
    for place, journal in enumerate(world.journals.values()):
        for record in journal.records:
            ended.setdefault((record.crawl, record.url), place)
    asked: Counter[tuple[str, str]] = Counter()
    for ask in web.asks:
        crawl = crawls.get(ask.agent)
        if crawl is None or ask.path == ROBOTS or ask.path.startswith(DATA):
            continue
        key = (crawl, f"{ask.origin}{ask.path}")
        asked[key] += 1
        if asked[key] > cloud.handed[key]:
            yield Violation("I2 asked too often", f"{key[1]}: {asked[key]} times")
            return
        if ended.get(key, ask.journals) < ask.journals:
            yield Violation("I2 asked after its end", f"{key[1]} at {ask.at_s:.3f}")
            return
