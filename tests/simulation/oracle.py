"""Expected result of a run: a breadth-first walk of the web without an earlier run's URLs."""

from __future__ import annotations

from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.model.crawl import DAY_S, UNSPENT, Crawl
from orbweaver.model.crawl_settings import WEEK_S
from tests.memory import World
from tests.simulation.clock import ERROR_MS_MAX
from tests.simulation.meaning import Meaning
from tests.simulation.scenario import CrawlPlan
from tests.simulation.web import SimWeb, Walk, walk

# Deeper than any finite site.
DEPTH_MAX = 100


def expected(
    web: SimWeb, world: World, crawl: CrawlPlan, crawl_id: str, first: tuple[CrawlPlan, str]
) -> Walk | None:
    """Walk the web for a run; `first` is the first run of its name. None if unpredictable.

    The walk can exceed the run's budget.
    """
    plan, first_id = first
    meaning = Meaning(crawl.rules, crawl.depth_max)
    most = limit(world, crawl, crawl_id)
    run = world.crawls[crawl_id]
    whole = _walk(web, run, meaning, most)
    if crawl_id == first_id:
        return whole
    before_most = limit(world, plan, first_id)
    before = _walk(web, world.crawls[first_id], Meaning(plan.rules, plan.depth_max), before_most)
    if whole is None or before is None:
        return None
    # Seeds sent during the run may be processed before its own seeds.
    if min(before_most - len(plan.extras), most) < len(whole.claimed):
        return None
    end_ms = world.crawls[first_id].finished_at_ms or 0
    start_ms = run.started_at_ms
    # At least the time since the last claim of the first run.
    quiet_s = (start_ms - end_ms - 2 * ERROR_MS_MAX) / 1000
    held: set[str] = set()
    for url in before.claimed & whole.claimed:
        match _holds(plan, crawl, url, quiet_s):
            case None:
                return None
            case True:
                held.add(url)
    return _walk(web, run, meaning, most, frozenset(held))


def _walk(
    web: SimWeb, crawl: Crawl, meaning: Meaning, most: int, held: frozenset[str] = frozenset()
) -> Walk | None:
    """Walk the web; None if the order of work decides a page's depth.

    It does so for redirect targets, and for crawls that prefer pages with many new links.
    """
    depths = [rule.depth_max for rule in meaning.rules if rule.depth_max is not None]
    if is_ordered(crawl) and (depths or meaning.depth_max < DEPTH_MAX):
        return None
    seeds = list(crawl.seeds)
    walks = [walk(web, seeds, most, meaning, held, redirects_last=last) for last in (False, True)]
    return walks[0] if walks[0].claimed == walks[1].claimed else None


def walked(web: SimWeb, crawl: Crawl, most: int, left: frozenset[str]) -> Walk | None:
    """Walk the web for the only run of its name, without the URLs that it left open."""
    return _walk(web, crawl, Meaning(crawl.rules, crawl.depth_max), most, left)


def limit(world: World, plan: CrawlPlan, crawl_id: str) -> int:
    """Return how many URLs a run can claim; URLs forbidden by robots.txt do not count."""
    return plan.pages_max + world.total(crawl_id)[UNSPENT]


def _holds(first: CrawlPlan, crawl: CrawlPlan, url: str, quiet_s: float) -> bool | None:
    """True if the first run's claim of a URL holds against another run; None if unpredictable.

    The windows of both runs count. Claims expire one by one, so those made after a long pause are
    the last to expire.
    """
    hold_s = max(Meaning(first.rules).window_s(url, first.window_s), WEEK_S)
    window_s = Meaning(crawl.rules).window_s(url, crawl.window_s)
    after_s = crawl.at_s - first.at_s
    if quiet_s > window_s or after_s >= hold_s + 1.5 * DAY_S:
        return False
    return True if after_s <= min(window_s, hold_s - DAY_S) else None
