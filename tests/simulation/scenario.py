"""What a seed stands for: sites, crawls, faults, and what people do in the middle of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.faults import Faults
from tests.simulation.web import Site, build

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """One run of a crawl, started at `at_s`."""

    name: str
    at_s: float
    seeds: tuple[str, ...]
    pages_max: int = 100_000
    depth_max: int = 100
    delay_ms: int = 0
    concurrency: int = 4
    window_s: int = 7 * 86_400
    shards: int = 16
    # Seconds after the start at which one more seed is dropped on the running crawl.
    extras: tuple[float, ...] = ()
    # (seconds after the start, "pause" | "resume" | "cancel")
    actions: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a seed decides before the first step."""

    seed: int
    sites: list[Site]
    crawls: tuple[CrawlPlan, ...]
    faults: Faults
    faults_until_s: float
    loose: tuple[tuple[float, str], ...] = ()
    malformed: tuple[str, ...] = ()
    poison: bool = False
    ttl_lag_s: float = 0.0
    # How far the start is from the next midnight UTC.
    before_midnight_s: float = 6 * HOUR_S
    redrive: bool = False
    tags: tuple[str, ...] = field(default=())


def scenario(seed: int) -> Scenario:
    """Make up a scenario; the same seed, the same scenario."""
    random = Random(f"scenario/{seed}")
    poison = random.random() < 0.15
    sites = [build(random, number, poison=poison) for number in range(random.randint(1, 4))]
    crawls = [_plan(random, sites, place) for place in range(random.choice((1, 1, 2, 3)))]
    if random.random() < 0.35:
        crawls.append(_again(random, crawls[0]))
    endless = any(site.endless for site in sites)
    if endless:
        crawls = [_bounded(random, plan) for plan in crawls]
    loose: tuple[tuple[float, str], ...] = ()
    if random.random() < 0.3 and not endless:
        loose = tuple((random.uniform(0, 60), f"{random.choice(sites).origin}/") for _ in range(2))
    malformed = ("not a url", '{"urls": 3}', "[" * 1_000) if random.random() < 0.2 else ()
    return Scenario(
        seed=seed,
        sites=sites,
        crawls=tuple(crawls),
        faults=_faults(random),
        faults_until_s=random.choice((60, 600, 2 * HOUR_S)),
        loose=loose,
        malformed=malformed,
        poison=poison,
        ttl_lag_s=random.choice((0, HOUR_S, 72 * HOUR_S, 72 * HOUR_S)),
        before_midnight_s=random.choice((5, 60, 6 * HOUR_S, 12 * HOUR_S)),
        redrive=random.random() < 0.5,
    )


def _plan(random: Random, sites: list[Site], place: int) -> CrawlPlan:
    chosen = random.sample(sites, random.randint(1, len(sites)))
    delay_ms = random.choice((0, 0, 200, 1_000))
    # Crawls of one name share claims, so each has a name of its own unless it is a second run.
    budget = random.random() < 0.3
    return CrawlPlan(
        name=f"crawl{place}",
        at_s=random.choice((0.0, random.uniform(0, 30))),
        seeds=tuple(f"{site.origin}/" for site in chosen),
        pages_max=random.choice((1, 5, 17)) if budget else 100_000,
        delay_ms=delay_ms,
        concurrency=1 if delay_ms else random.choice((1, 4, 16)),
        shards=1 if budget else random.choice((1, 16)),
        actions=_actions(random),
        extras=tuple(random.uniform(0, 6) for _ in range(random.choice((0, 0, 0, 4)))),
    )


def _actions(random: Random) -> tuple[tuple[float, str], ...]:
    draw = random.random()
    if draw < 0.15:
        start_s = random.choice((0.1, 0.5, 2.0, 20.0)) * random.random()
        return ((start_s, "pause"), (start_s + random.choice((0.5, 3, 100, 2_000)), "resume"))
    if draw < 0.2:
        return ((random.uniform(0, 20), "cancel"),)
    if draw < 0.23:
        return ((random.uniform(0, 10), "pause"), (random.uniform(10, 50), "cancel"))
    return ()


def _again(random: Random, first: CrawlPlan) -> CrawlPlan:
    """A second run of the same name: inside the window, beyond it, or forced."""
    at_s, window_s = random.choice(
        (
            (4 * HOUR_S, 7 * 86_400),
            (4 * HOUR_S, 0),
            (1_300.0, 0),  # further apart than clocks may differ
            (8 * DAY_S, 7 * 86_400),
            (16 * DAY_S, 7 * 86_400),
            # The first run's claims have expired, deleted yet or not, whatever this one's window.
            (9 * DAY_S, 30 * 86_400),
            (9 * DAY_S, 30 * 86_400),
        )
    )
    return CrawlPlan(
        name=first.name,
        at_s=at_s,
        seeds=first.seeds,
        delay_ms=first.delay_ms,
        concurrency=first.concurrency,
        window_s=window_s,
        shards=first.shards if first.pages_max == 100_000 else 1,
        pages_max=first.pages_max,
    )


def _bounded(random: Random, plan: CrawlPlan) -> CrawlPlan:
    """Endless sites end by a budget, or by depth."""
    return CrawlPlan(
        name=plan.name,
        at_s=plan.at_s,
        seeds=plan.seeds,
        pages_max=random.choice((3, 20, 60)),
        delay_ms=plan.delay_ms,
        concurrency=plan.concurrency,
        window_s=plan.window_s,
        shards=1,
        actions=plan.actions,
    )


def _faults(random: Random) -> Faults:
    if random.random() < 0.1:
        return Faults()

    def some(high: float) -> float:
        return random.choice((0.0, high / 10, high))

    return Faults(
        throttled=some(0.05),
        unknown=some(0.05),
        killed=some(0.3),
        frozen=some(0.002),
        ack_lost=some(0.2),
        doubled=some(0.2),
        early=some(0.1),
        latency_s=random.choice((0.0, 0.02, 0.5)),
        late_seeds=random.choice((0, 0, 2)),
        skew_ms=random.choice((0, 0, 0, 50, 600_000)),
    )
