"""Situations that a seed contains, so that a test notices if one never occurs."""

from __future__ import annotations

from collections import Counter

from orbweaver.frontier.known_claims import PREFIX
from orbweaver.frontier.late_links import LANE
from orbweaver.model.crawl import State, Stop
from orbweaver.model.outcome import Reason, Refusal
from tests.memory import World
from tests.simulation.exports import day_asked
from tests.simulation.meaning import edited
from tests.simulation.scenario import CrawlPlan, Scenario
from tests.simulation.web import SimWeb

LONG_S = 86_400.0


def kinds(
    plan: Scenario, runs: list[tuple[CrawlPlan, str]], world: World, web: SimWeb
) -> Counter[str]:
    actions = {action for crawl in plan.crawls for _, action in crawl.actions}
    return Counter(
        {
            **{action: action in actions for action in ("pause", "resume", "cancel")},
            **_sites(plan, web),
            "long pause": any(
                later[0] - earlier[0] > LONG_S
                for crawl in plan.crawls
                for earlier, later in zip(crawl.actions, crawl.actions[1:], strict=False)
            ),
            "host shared by crawls": _shared(web),
            "midnight crossed": _midnight(world),
            "window expired": _expired(runs, world),
            "budget": any(crawl.pages_max < 100_000 for crawl in plan.crawls),
            "rules": any(crawl.rules for crawl in world.crawls.values()),
            "rules edited": any(edited(crawl) for crawl in plan.crawls),
            "not recorded": any(journal.unrecorded for journal in world.journals.values()),
            "links waited": any(journal.late for journal in world.journals.values()),
            "links spared": any(left for (_, host), left in world.backlog.items() if host == LANE),
            "claims handed on": any(
                key.startswith(PREFIX) and "/kinds/" not in key for key in world.files
            ),
            "what was met handed on": any("/kinds/" in key for key in world.files),
            "nothing new": any(crawl.stop is Stop.NOTHING_NEW for crawl in world.crawls.values()),
            "retried": any(crawl.retry_of for crawl in world.crawls.values()),
            **_limits(plan, world),
            "seeds while running": any(crawl.extras for crawl in plan.crawls),
            "dropped by hand": bool(plan.loose),
            "malformed": bool(plan.malformed),
            "TTL late by 72 h": plan.ttl_lag_s > LONG_S,
            "exported meanwhile": bool(plan.exporter.events),
            "exported at night": any("time" in event for _, event in plan.exporter.events),
            "finished": any(crawl.state is State.FINISHED for crawl in world.crawls.values()),
        }
    )


def _sites(plan: Scenario, web: SimWeb) -> dict[str, bool]:
    changed = {
        site.origin: site.robots_changes_at_s
        for site in plan.sites
        if site.robots_changes_at_s is not None
    }
    return {
        "endless site": any(site.endless for site in plan.sites),
        "host comes and goes": any(site.flaps_s for site in plan.sites),
        "storm": any(site.storm_s for site in plan.sites),
        "robots.txt changed": any(ask.at_s > changed.get(ask.origin, ask.at_s) for ask in web.asks),
        "robots.txt changed a day ago": any(
            ask.at_s - LONG_S > changed.get(ask.origin, ask.at_s) for ask in web.asks
        ),
    }


def _limits(plan: Scenario, world: World) -> dict[str, bool]:
    total: Counter[str] = Counter()
    for shard in world.shards.values():
        total.update(shard.counts)
    reasons = (Reason.BYTES, Reason.DOLLARS, Reason.HOST_PAGES)
    return {
        "limits": any(crawl.limits for crawl in plan.crawls),
        **{f"cut by {reason}": total[f"skipped.{reason}"] > 0 for reason in reasons},
        "links not paid for": total[f"refused.{Refusal.DOLLARS}"] > 0,
    }


def _shared(web: SimWeb) -> bool:
    askers: dict[str, set[str]] = {}
    for ask in web.asks:
        askers.setdefault(ask.origin, set()).add(ask.agent)
    return any(len(agents) > 1 for agents in askers.values())


def _midnight(world: World) -> bool:
    days: dict[str, set[str]] = {}
    for record in world.pages.values():
        days.setdefault(record.crawl, set()).add(day_asked(record.fetched_at))
    return any(len(asked) > 1 for asked in days.values())


def _expired(runs: list[tuple[CrawlPlan, str]], world: World) -> bool:
    """True if a later run of a name claimed URLs of an earlier one."""
    claimed: dict[str, set[str]] = {}
    for plan, crawl_id in runs:
        urls = {record.url for record in world.pages.values() if record.crawl == crawl_id}
        if urls & claimed.setdefault(plan.name, set()):
            return True
        claimed[plan.name] |= urls
    return False
