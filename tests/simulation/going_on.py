"""Runs that continue an earlier run of their name."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from orbweaver.frontier.messages import Past, SeedsMessage, past_of
from orbweaver.frontier.resumption import requested_again, resumed, runs_to_continue
from orbweaver.model.crawl import UNSPENT, Crawl
from orbweaver.model.settings import Settings
from orbweaver.model.url_rules import combined_rule
from tests.simulation.budgets import cut
from tests.simulation.check_web import Violation
from tests.simulation.meaning import EDIT, Meaning
from tests.simulation.retrying import RETRY
from tests.simulation.web import walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from tests.memory import World
    from tests.simulation.scenario import CrawlPlan, Scenario
    from tests.simulation.web import SimWeb

# Faults last at most six hours, and delayed work is done by then.
AFTER_S = 30 * 3_600.0


def with_sequels(seed: int, plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Stop some crawls at a limit and continue them, by a separate random generator."""
    random = Random(f"sequel/{seed}")
    first = plans[0]
    alone = sum(plan.name == first.name for plan in plans) == 1
    steered = {action for _, action in first.actions} & {RETRY, EDIT}
    if not alone or steered or random.random() > 0.5:
        return plans
    how = random.choice(("pages", "depth", "cancel"))
    bounded = first.pages_max <= 60
    more = random.choice((2, 3)) * first.pages_max if bounded else first.pages_max
    if how == "pages" and not bounded:
        stopped = replace(first, pages_max=random.choice((1, 3, 8)), shards=1)
        more = random.choice((4, 12, 100_000))
    elif how == "depth":
        stopped = replace(first, depth_max=random.choice((0, 1, 2)))
    else:
        stopped = replace(first, actions=((random.uniform(0, 12), "cancel"),))
    stopped = replace(stopped, resumable=True)
    sequel = replace(
        stopped,
        at_s=first.at_s + AFTER_S,
        pages_max=max(more, stopped.pages_max),
        depth_max=100,
        shards=1 if more < 100_000 else 16,
        actions=(),
        extras=(),
        goes_on=True,
    )
    return [stopped, *plans[1:], sequel]


def going_on(world: World, crawl: Crawl) -> tuple[Crawl, list[SeedsMessage]]:
    """Continue a run as `Control` does; return the messages to send."""
    runs = runs_to_continue(crawl, world.crawls.values(), Settings().retention.ledger_retention_s)
    crawl = resumed(crawl, runs, {run.id: world.total(run.id) for run in runs})
    at_ms = crawl.started_at_ms
    pasts = [past_of(crawl.id, crawl.id, Past(run=run), run, at_ms) for run in crawl.resumes]
    return crawl, pasts


def check_sequels(
    plan: Scenario,
    runs: list[tuple[CrawlPlan, str]],
    world: World,
    web: SimWeb,
    stuck: set[str],
    given_up: set[str],
    scarred: AbstractSet[str],
) -> Iterator[Violation]:
    """Check that a run requests what earlier runs left out or failed to get, and nothing else.

    Exception: URLs that a frozen delivery claimed after the run, before it died.
    """
    for sequel, run_id in runs:
        crawl = world.crawls[run_id]
        if not sequel.goes_on or not crawl.resumes:
            continue
        asked = set().union(*(_asked(world, run, crawl) for run in crawl.resumes))
        claimed = {url for url, _ in world.claimed(run_id)}
        # A rule with its own window requests its URLs again.
        lapsed = {
            url for url in asked & claimed if combined_rule(sequel.rules, url).window_s is not None
        }
        if again := (asked & claimed) - lapsed:
            yield Violation("I3 asked again by a sequel", f"{run_id}: {sorted(again)[:3]}")
        counted = len(asked) + len(claimed)
        # A URL forbidden by robots.txt does not count towards the limit.
        totals = [world.total(run) for run in (run_id, *crawl.resumes)]
        most = sequel.pages_max + totals[0].get(UNSPENT, 0)
        if counted > most:
            yield Violation("I5 limit of all runs", f"{run_id}: {counted} of {sequel.pages_max}")
        untold = {run_id, *crawl.resumes} & (stuck | given_up)
        total = world.total(run_id)
        if lapsed or plan.poison or untold or cut(total) or plan.faults.late_seeds:
            continue
        if any(total.get("fetched.truncated") for total in totals):
            continue  # The links of a page truncated by the byte limit are not all read.
        meaning = Meaning(sequel.rules, sequel.depth_max)
        whole = walk(web, list(sequel.seeds), most, meaning)
        # Messages that users send to the queue themselves count towards the limit too.
        extras = sum("/extra/" in url for url in asked | claimed)
        expected = extras + min(most - extras, len(whole.claimed))
        held = {
            claim.url
            for claim in world.claims.values()
            if claim.pack in scarred and claim.crawl in crawl.resumes
        }
        left = whole.claimed - asked - claimed
        # These, and URLs found only through such pages.
        behind = (
            whole.claimed - walk(web, list(sequel.seeds), most, meaning, frozenset(held)).claimed
        )
        if counted != expected and not (left <= behind and counted + len(left) == expected):
            lost = sorted(left)[:3]
            detail = f"{run_id}: {counted} not {expected}: {lost}"
            yield Violation("I1 gone on", detail)


def _asked(world: World, crawl_id: str, sequel: Crawl) -> set[str]:
    """List a run's URLs that its successor does not request again."""
    found: set[str] = set()
    for owner, ledger, _ in world.commits:
        if owner == crawl_id:
            journal = world.journals[ledger.pack]
            ends = [(record.url, record.outcome, record.reason) for record in journal.records]
            ends += [(one.url, one.outcome, one.reason) for one in journal.unrecorded]
            run = world.crawls[crawl_id]
            found.update(
                url
                for url, outcome, reason in ends
                if not requested_again(sequel, run, outcome, reason, is_seed=url in run.references)
            )
    return found
