"""Crawls with rules: their rules, edits, and expected results.

The checks use depths that no race can change. A page that a seed links to has depth 1 in any order.
Deeper pages get the depth of the page that claimed them first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.frontier.messages import Pack
from orbweaver.model.url_rules import UrlRule
from tests.simulation.check_web import Violation
from tests.simulation.meaning import EDIT, meanings
from tests.simulation.retrying import RETRY
from tests.simulation.sqs import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.memory import World
    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import CrawlPlan, Scenario

SEEDS, ODD = r"\.test/$", "/p/[0-9]*[13579]$"
PATTERNS = (
    *(SEEDS, ODD, "/p/[0-9]$", "/leaf/", "/(late|early)/", "/e/"),
    *("/missing", "^http://h[02]", "/extra/"),
)
DEPTHS = (0, 1)
DELAYS_MS = (0, 100, 700, 3_000)
WINDOWS_S = (0, 60, 30 * 86_400)


def ruled(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Give some crawls rules, by a separate random generator."""
    random = Random(f"rules/{seed}")
    if random.random() < 0.6:
        return plans
    names = Counter(plan.name for plan in plans)
    drawn: dict[str, tuple[UrlRule, ...]] = {}
    return [_ruled(random, plan, drawn, again=names[plan.name] > 1) for plan in plans]


def _ruled(
    random: Random, plan: CrawlPlan, drawn: dict[str, tuple[UrlRule, ...]], *, again: bool
) -> CrawlPlan:
    rules = _rules(random)
    if again and random.random() < 0.6:
        # URLs behind a seed are found again only if the seed is requested again.
        rules = (UrlRule(match=SEEDS, window_s=random.choice(WINDOWS_S[:2])), *rules)
    # Runs of one name have the first run's rules.
    rules = drawn.setdefault(plan.name, rules)
    plan = replace(plan, rules=rules)
    if random.random() < 0.2 and any(rule.depth_max for rule in rules):
        plan = replace(plan, depth_max=0)
    actions = [action for _, action in plan.actions]
    if random.random() < 0.35 and RETRY not in actions:
        at_s = random.choice((1.0, 5.0, 30.0, 300.0)) * random.random()
        step_s = random.choice((1, 60))
        edits = ((at_s + place * step_s, EDIT) for place in range(random.choice((1, 5))))
        if random.random() < 0.7:
            # These rules match half of most packs, so an edit could send a URL to another queue at
            # a replay.
            rules = (UrlRule(match=ODD, express=True), *rules)
        then = _turned(rules) if random.random() < 0.7 else _rules(random)
        steps = tuple(sorted((*plan.actions, *edits)))
        plan = replace(plan, actions=steps, rules=rules, rules_then=then)
    return plan


def _turned(rules: tuple[UrlRule, ...]) -> tuple[UrlRule, ...]:
    return tuple(replace(rule, express=not rule.express) for rule in rules)


def _rules(random: Random) -> tuple[UrlRule, ...]:
    return tuple(_rule(random) for _ in range(random.choice((1, 2, 4))))


def _rule(random: Random) -> UrlRule:
    things: dict[str, Any] = {
        "depth_max": random.choice(DEPTHS),
        "express": random.random() < 0.7,
        "delay_ms": random.choice(DELAYS_MS),
        "window_s": random.choice(WINDOWS_S),
        "follow": random.random() < 0.3,
        "record": random.random() < 0.3,
    }
    said = random.sample(sorted(things), random.choice((1, 1, 2, 3)))
    return UrlRule(match=random.choice(PATTERNS), **{thing: things[thing] for thing in said})


def edit(cloud: Cloud, plan: CrawlPlan, crawl_id: str) -> None:
    crawl = cloud.world.crawls[crawl_id]
    if not crawl.live:
        return
    rules = plan.rules_then if crawl.rules == plan.rules else plan.rules
    cloud.world.crawls[crawl_id] = replace(crawl, rules=rules)
    cloud.trace.counts["rules edited"] += 1


def check_rules(plan: Scenario, world: World, cloud: Cloud) -> Iterator[Violation]:
    """Check that records and queues follow the rules in force at the time."""
    known = {crawl.id: meanings(plan, crawl) for crawl in world.crawls.values()}
    for record in world.pages.values():
        if not any(one.records(record.url) for one in known[record.crawl]):
            yield Violation("rules record", f"{record.crawl} {record.url}")
            return
    for crawl_id, ledger, _ in world.commits:
        for end in world.journals[ledger.pack].unrecorded:
            if all(one.records(end.url) for one in known[crawl_id]):
                yield Violation("rules record not", f"{crawl_id} {end.url}")
                return
    for body, express in cloud.sqs.lanes:
        message = decoded(body)
        if isinstance(message, Pack) and message.crawl in known:
            urls = [target.url for target in message.targets]
            lanes = ({one.high(url) for one in known[message.crawl]} for url in urls)
            if any(express not in lane for lane in lanes):
                yield Violation("rules lane", f"{'express' if express else 'normal'}: {urls[:3]}")
                return


def count_unrecorded(world: World, crawl_id: str) -> Counter[str]:
    """Count, by outcome, URLs that a rule left unrecorded."""
    return Counter(
        one.outcome
        for owner, ledger, _ in world.commits
        if owner == crawl_id
        for one in world.journals[ledger.pack].unrecorded
    )
