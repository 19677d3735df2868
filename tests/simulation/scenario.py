"""Scenario of a seed: sites, crawls, faults and user actions.

Later options use separate random generators, so that they do not change the rest of a seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from orbweaver.model.crawl_settings import WEEK_S, RenderMode
from orbweaver.model.settings import Settings
from orbweaver.model.url_rules import UrlRule
from tests.simulation.budgets import limited
from tests.simulation.cloud import MIDNIGHT_MS
from tests.simulation.exports import day_asked
from tests.simulation.faults import Faults
from tests.simulation.going_on import with_sequels
from tests.simulation.rendering import scripted
from tests.simulation.retrying import retried
from tests.simulation.ruling import ruled
from tests.simulation.sites import Site, build

UNBOUNDED = 100_000
HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
PATIENT_S = 20.0
# Includes a message of a future release (case 7) (case 8) (case 26).
NEWER = '{"v":2,"pack":"p","crawl":"c","at":1,"urls":[["http://h0.test/",0,1,0,-1]]}'
MALFORMED = ("not a url", '{"urls": 3}', "[" * 1_000, NEWER)
LOOSE = (
    "URL",
    '"URL"',
    '{"url": "URL"}',
    '{"urls": ["URL"]}',
    '{"url": "URL", "crawl": "default"}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """One run of a crawl, started at `at_s`."""

    name: str
    at_s: float
    seeds: tuple[str, ...]
    pages_max: int = UNBOUNDED
    depth_max: int = 100
    delay_ms: int = 0
    concurrency: int = 4
    window_s: int = 7 * 86_400
    shards: int = 16
    # Delay of the first seed in the queue, while others are already crawled.
    seed_held_s: float = 0.0
    # Seconds after the start at which another seed is sent.
    extras: tuple[float, ...] = ()
    # (seconds after the start, "pause" | "resume" | "cancel" | "retry" | "edit rules")
    actions: tuple[tuple[float, str], ...] = ()
    # Limits other than pages.
    limits: Mapping[str, Any] = field(default_factory=dict)
    # Initial rules, and the rules that users change to and back from.
    rules: tuple[UrlRule, ...] = ()
    rules_then: tuple[UrlRule, ...] = ()
    # Its seed messages carry the names of started crawls, so that a later run can continue it.
    resumable: bool = False
    goes_on: bool = False
    render: RenderMode = RenderMode.NEVER
    stops: bool = False  # Stops when no new links are found.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterPlan:
    """Exporter settings, and the times of its events."""

    part_rows: int = 5
    part_bytes: int = 1_000_000
    formats: tuple[str, ...] = ("jsonl",)
    span: str = "day"
    read_ahead_rows: int = 3
    timeout_s: float = 900.0
    # Maximum latency of its storage per step.
    slow_s: float = 0.0
    # Equal to the timeout: every invocation writes one chunk and orders the rest.
    reserve_ms: int = 30_000
    events: tuple[tuple[float, dict[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a seed decides before the first step."""

    seed: int
    sites: list[Site]
    crawls: tuple[CrawlPlan, ...]
    faults: Faults
    faults_until_s: float
    exporter: ExporterPlan = field(default_factory=ExporterPlan)
    loose: tuple[tuple[float, str], ...] = ()
    malformed: tuple[str, ...] = ()
    poison: bool = False
    ttl_lag_s: float = 0.0
    # Time from the start to the next midnight UTC.
    before_midnight_s: float = 6 * HOUR_S
    # Maximum wait of a worker for slots.
    wait_s_max: float = Settings().worker.wait_s_max
    # True if workers share their knowledge of a host's claims.
    claims_travel: bool = False
    # Time and URL of an erasure.
    erases: tuple[float, str] | None = None


def scenario(seed: int) -> Scenario:
    """Build the scenario of a seed, always the same."""
    random = Random(f"scenario/{seed}")
    poison = random.random() < 0.2
    sites = [build(random, number, poison=poison) for number in range(random.randint(1, 4))]
    crawls = [_plan(random, sites, place) for place in range(random.choice((1, 1, 2, 3)))]
    if random.random() < 0.45:
        crawls.append(_again(random, crawls[0]))
    endless = any(site.endless for site in sites)
    if endless:
        crawls = [_bounded(random, plan) for plan in crawls]
    crawls = ruled(seed, limited(seed, retried(seed, renewed(seed, crawls))))
    crawls = stopped(seed, scripted(seed, sites, with_sequels(seed, crawls)))
    before_midnight_s = random.choice((5, 60, 6 * HOUR_S, 12 * HOUR_S))
    faults = told(seed, _faults(random))
    if faults != Faults() and seed % 3 == 0:
        faults = replace(faults, held_up=0.15)
    return Scenario(
        seed=seed,
        sites=sites,
        crawls=tuple(crawls),
        faults=faults,
        faults_until_s=random.choice((60, 1_200, 2 * HOUR_S, 6 * HOUR_S)),
        exporter=varied(seed, _exporter(random, before_midnight_s), before_midnight_s),
        loose=() if endless else _loose(random, sites),
        malformed=MALFORMED if random.random() < 0.2 else (),
        poison=poison,
        ttl_lag_s=random.choice((0, HOUR_S, 72 * HOUR_S, 72 * HOUR_S)),
        before_midnight_s=before_midnight_s,
        wait_s_max=_wait_s_max(crawls, faults),
        # A separate random generator.
        claims_travel=Random(f"claims/{seed}").random() < 0.6,
    )


def _wait_s_max(crawls: list[CrawlPlan], faults: Faults) -> float:
    """Make visits longer than cached crawl state lasts, where that matters.

    It matters with a paused crawl. Scenarios that check costs need visits of normal length.
    """
    paused = any(action == "pause" for crawl in crawls for _, action in crawl.actions)
    shown = paused and not (faults.frozen or faults.jumps)
    reckoned = any(crawl.limits for crawl in crawls)
    return PATIENT_S if shown and not reckoned else Settings().worker.wait_s_max


def _loose(random: Random, sites: list[Site]) -> tuple[tuple[float, str], ...]:
    """Return messages that users send themselves or that older programs sent (case 26)."""
    if random.random() < 0.7:
        return ()
    drops = []
    for shape in random.sample(LOOSE, 2):
        url = f"{random.choice(sites).origin}/"
        drops.append((random.uniform(0, 60), shape.replace("URL", url)))
    return tuple(drops)


def _exporter(random: Random, before_midnight_s: float) -> ExporterPlan:
    """Export at night as scheduled, and at random times as users request."""
    timeout_s, reserve_ms = random.choice(((900.0, 30_000), (900.0, 900_000), (120.0, 90_000)))
    plan = ExporterPlan(
        part_rows=random.choice((2, 3, 7, 1_000)),
        read_ahead_rows=random.choice((1, 50)),
        timeout_s=timeout_s,
        slow_s=random.choice((0.0, 0.5, 2.0)),
        reserve_ms=reserve_ms,
    )
    if random.random() < 0.4:
        return plan
    events: list[tuple[float, dict[str, Any]]] = []
    nights = range(random.choice((1, 1, 3)))
    for night in nights:
        after_s = before_midnight_s + night * DAY_S + random.choice((1.0, 300.0))
        time = f"{day_asked(MIDNIGHT_MS + night * 86_400_000)}T00:00:00Z"
        events += [(after_s, {"detail-type": "Scheduled Event", "time": time})]
    for _ in range(random.choice((0, 1, 2))):
        at_s = random.uniform(0, random.choice((10, 60, 900)))
        days_on = random.choice((0, 0, 1)) if at_s < before_midnight_s else 0
        at_ms = MIDNIGHT_MS + round((at_s - before_midnight_s) * 1000) + days_on * 86_400_000
        # Requested once, or by several users independently.
        for _ in range(random.choice((1, 1, 5))):
            events.append((at_s + random.uniform(0, 20), {"day": day_asked(at_ms)}))
    return replace(plan, events=tuple(events))


def varied(seed: int, plan: ExporterPlan, before_midnight_s: float) -> ExporterPlan:
    """Vary the exported tables and export hourly, by separate random generators."""
    random = Random(f"exporter/{seed}")
    plan = replace(
        plan,
        part_bytes=random.choice((1_000_000, 1_000_000, 2_000)),
        formats=random.choice((("jsonl",), ("jsonl",), ("csv", "jsonl"))),
    )
    if plan.events and random.random() < 0.5:
        # A request during a run.
        at_s, event = random.choice(plan.events)
        again = (at_s + random.uniform(0, 60), event)
        plan = replace(plan, events=(*plan.events, again))
    if not plan.events or random.random() < 0.8:
        return plan
    first = random.choice((-2, -1, 0))
    hourly = []
    for hour in range(first, first + 4):
        at_s = before_midnight_s + hour * HOUR_S + random.choice((1.0, 300.0))
        if at_s > 0:
            time = datetime.fromtimestamp(MIDNIGHT_MS / 1000 + hour * HOUR_S, tz=UTC)
            event = {"detail-type": "Scheduled Event", "time": time.isoformat()}
            hourly.append((at_s, event))
    # With hourly exports, a night event means another day.
    asked = tuple(item for item in plan.events if "day" in item[1])
    return replace(plan, span="hour", events=(*asked, *hourly))


def _plan(random: Random, sites: list[Site], place: int) -> CrawlPlan:
    chosen = random.sample(sites, random.randint(1, len(sites)))
    delay_ms = random.choice((0, 0, 200, 1_000))
    # Crawls of one name share claims, so only second runs reuse a name.
    budget = random.random() < 0.2
    return CrawlPlan(
        name=f"crawl{place}",
        at_s=random.choice((0.0, random.uniform(0, 30))),
        seeds=tuple(f"{site.origin}/" for site in chosen),
        pages_max=random.choice((1, 5, 17)) if budget else UNBOUNDED,
        delay_ms=delay_ms,
        concurrency=1 if delay_ms else random.choice((1, 4, 16)),
        shards=1 if budget else random.choice((1, 16)),
        seed_held_s=random.choice((0.0, 0.0, 0.0, 30.0, 900.0)),
        actions=_actions(random),
        extras=tuple(random.uniform(0, 6) for _ in range(random.choice((0, 0, 0, 4)))),
    )


def _actions(random: Random) -> tuple[tuple[float, str], ...]:
    draw = random.random()
    if draw < 0.25:
        start_s = random.choice((0.5, 2.0, 6.0, 20.0)) * random.random()
        pause_s = random.choice((0.5, 1, 2, 4, 4, 100, 2_000, 26 * HOUR_S))
        return ((start_s, "pause"), (start_s + pause_s, "resume"))
    if draw < 0.29:
        return ((random.uniform(0, 20), "cancel"),)
    if draw < 0.32:
        return ((random.uniform(0, 10), "pause"), (random.uniform(10, 50), "cancel"))
    return ()


def _again(random: Random, first: CrawlPlan) -> CrawlPlan:
    """Build a second run of the name: inside the window, after it, or forced."""
    at_s, window_s = random.choice(
        (
            (4 * HOUR_S, 7 * 86_400),
            (4 * HOUR_S, 0),
            (1_300.0, 0),  # Further apart than clocks can differ.
            (8.75 * DAY_S, 7 * 86_400),
            (16 * DAY_S, 7 * 86_400),
            # The first run's claims have expired for any window of this run, whether deleted or
            # not.
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
        shards=first.shards if first.pages_max == UNBOUNDED else 1,
        pages_max=first.pages_max,
    )


def renewed(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Let a forced run return most claims before a third run, by a separate random generator."""
    random = Random(f"renewal/{seed}")
    *_, last = plans
    if last.window_s > 0 or last.pages_max < UNBOUNDED or random.random() < 0.3:
        return plans
    forced = replace(last, pages_max=random.choice((1, 3, 5)), shards=1)
    third = replace(last, at_s=last.at_s + 4 * HOUR_S, window_s=WEEK_S)
    return [*plans[:-1], forced, third]


def stopped(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Stop some ordered crawls when no new links are found, by a separate random generator."""
    random = Random(f"nothing new/{seed}")
    kept = {plan.name for plan in plans if plan.resumable or plan.goes_on}
    return [
        replace(plan, stops=random.random() < 0.4 and plan.shards == 1 and plan.name not in kept)
        for plan in plans
    ]


def _bounded(random: Random, plan: CrawlPlan) -> CrawlPlan:
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


def told(seed: int, faults: Faults) -> Faults:
    """Send SIGTERM to workers now and then, by a separate random generator."""
    return replace(faults, told=Random(f"told/{seed}").choice((0.0, 0.0, 0.1, 0.5)))


def _faults(random: Random) -> Faults:
    if random.random() < 0.1:
        return Faults()

    def some(high: float) -> float:
        return random.choice((0.0, high / 10, high))

    return Faults(
        throttled=some(0.05),
        unknown=some(0.05),
        killed=some(0.3),
        killed_sealing=random.choice((0.0, 0.0, 0.5)),
        frozen=some(0.002),
        ack_lost=some(0.2),
        doubled=some(0.3),
        early=some(0.1),
        aged=some(0.2),
        latency_s=random.choice((0.0, 0.02, 0.5)),
        counters_s=random.choice((0.0, 1.0, 2.0)),
        late_seeds=random.choice((0, 2)),
        skew_ms=random.choice((0, 0, 0, 50, 600_000)),
        jumps=random.choice((0.0, 0.0, 0.0, 0.01)),
    )
