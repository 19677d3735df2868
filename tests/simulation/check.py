"""The invariants, over what was recorded: every commit, every request, every record."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.core.crawl import DAY_S, WEEK_S, State
from orbweaver.core.message import Malformed, Pack, decode
from orbweaver.core.outcome import Outcome
from tests.simulation.web import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orbweaver.adapters.memory import World
    from orbweaver.core.record import PageRecord
    from tests.simulation.cloud import Cloud
    from tests.simulation.scenario import CrawlPlan, Scenario
    from tests.simulation.web import SimWeb

UNRECORDED = ("cancelled", "duration")


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold, and where."""

    invariant: str
    detail: str


def check(
    plan: Scenario,
    runs: list[tuple[CrawlPlan, str]],
    world: World,
    web: SimWeb,
    cloud: Cloud,
    *,
    idle: bool,
) -> list[Violation]:
    """Check everything that a finished simulation recorded."""
    found = [] if idle else [Violation("I4 end", "the queue never drained")]
    found += _dead_letters(plan, cloud)
    stuck = {decode(body).crawl for body, _ in cloud.dead_letters if _is_pack(body)}  # type: ignore[union-attr]
    records: defaultdict[str, list[PageRecord]] = defaultdict(list)
    for record in world.pages.values():
        records[record.crawl].append(record)
    for crawl_id in world.crawls:
        found += _books(world, crawl_id, records[crawl_id], stuck=crawl_id in stuck)
    for crawl, crawl_id in runs:
        found += _budget(world, crawl, crawl_id)
        if crawl_id not in stuck:
            found += _complete(plan, runs, crawl, crawl_id, world, web)
    found += _polite(plan, world, web)
    found += _unblocked(plan, web)
    found += _admitted(web)
    found += _dangling(plan, world)
    return found


def _is_pack(body: str) -> bool:
    return isinstance(decode(body), Pack)


def _dead_letters(plan: Scenario, cloud: Cloud) -> Iterator[Violation]:
    for body, reason in cloud.dead_letters:
        message = decode(body)
        if isinstance(message, Malformed) or body in plan.malformed:
            if not reason:
                yield Violation("I6 reason", body[:80])
            continue
        urls = [target.url for target in message.targets] if isinstance(message, Pack) else []
        poison = [url for url in urls if _poison(plan, url)]
        if len(urls) != 1 or not poison:
            yield Violation("I6 only the culprit", f"{reason}: {body[:200]}")


def _poison(plan: Scenario, url: str) -> bool:
    for site in plan.sites:
        if url.startswith(site.origin + "/"):
            page = site.page(url.removeprefix(site.origin))
            return page is not None and page.poison
    return False


def _books(
    world: World, crawl_id: str, records: list[PageRecord], *, stuck: bool
) -> Iterator[Violation]:
    """I1, I2, I3, I8: each claimed URL has one outcome, one record, and the counters say so."""
    crawl = world.crawls[crawl_id]
    claimed: Counter[str] = Counter()
    for owner, ledger, _ in world.commits:
        if owner == crawl_id:
            candidates = world.journals[ledger.pack].candidates
            claimed.update(candidates[place].url for place in ledger.children)
    total = _total(world, crawl_id)
    yield from _counted(world, crawl_id, claimed, total, stuck=stuck)
    urls = Counter(record.url for record in records)
    if len(urls) != urls.total() and not crawl.continuous:
        twice = [url for url, count in urls.items() if count > 1]
        yield Violation("I3 recorded once", f"{crawl_id}: {twice[:3]}")
    if set(urls) - set(claimed):
        yield Violation("I1 recorded, not claimed", f"{crawl_id}: {set(urls) - set(claimed)}")
    outcomes = Counter(record.outcome for record in records)
    for outcome in Outcome:
        silent = sum(total[f"{outcome}.{reason}"] for reason in UNRECORDED)
        if outcomes[outcome] != total[outcome] - silent and not crawl.continuous:
            yield Violation(
                "I8 records", f"{crawl_id} {outcome}: {outcomes[outcome]} {total[outcome]}"
            )


def _total(world: World, crawl_id: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for (owner, _), shard in world.shards.items():
        if owner == crawl_id:
            total.update(shard.tally)
    return total


def _counted(
    world: World, crawl_id: str, claimed: Counter[str], total: Counter[str], *, stuck: bool
) -> Iterator[Violation]:
    """I2: the counters balance when the crawl is finished, and it is finished when they do."""
    crawl = world.crawls[crawl_id]
    # Claims of a continuous crawl lapse by its window: a URL may come again.
    if not crawl.continuous and len(claimed) != claimed.total():
        twice = [url for url, count in claimed.items() if count > 1]
        yield Violation("I3 claimed once", f"{crawl_id}: {twice[:3]}")
    if total["claimed"] != claimed.total():
        yield Violation("I8 claimed counted", f"{crawl_id}: {total['claimed']} {claimed.total()}")
    done = sum(total[outcome] for outcome in Outcome)
    if not stuck and total["claimed"] != done:
        yield Violation("I2 balance", f"{crawl_id}: claimed {total['claimed']} done {done}")
    if not stuck and not crawl.continuous and crawl.state is not State.FINISHED:
        yield Violation("I2 finished", f"{crawl_id} is {crawl.state}")
    if crawl.state is State.FINISHED:
        if stuck or total["claimed"] != done:
            yield Violation("I2 never before", crawl_id)
        if all(announced.id != crawl_id for announced, _ in world.announced):
            yield Violation("I2 announced", crawl_id)


def _budget(world: World, plan: CrawlPlan, crawl_id: str) -> Iterator[Violation]:
    """I5: never more than the budget, at no moment."""
    claimed = 0
    for owner, ledger, _ in world.commits:
        if owner == crawl_id:
            claimed += len(ledger.children)
            if claimed > plan.pages_max:
                yield Violation("I5 budget", f"{crawl_id}: {claimed} of {plan.pages_max}")
                return


def _complete(
    plan: Scenario,
    runs: list[tuple[CrawlPlan, str]],
    crawl: CrawlPlan,
    crawl_id: str,
    world: World,
    web: SimWeb,
) -> Iterator[Violation]:
    """I1: what a breadth-first walk finds is what was claimed, and fetched."""
    namesakes = [other for other, _ in runs if other.name == crawl.name]
    if any(action == "cancel" for other in namesakes for _, action in other.actions):
        return
    oracle = walk(web, list(crawl.seeds), crawl.depth_max, crawl.pages_max)
    if plan.poison:
        return  # what lies behind a poisoned page is found in parts
    claimed = _total(world, crawl_id)["claimed"]
    expected = _expected(namesakes[0], crawl, len(oracle.claimed))
    if expected is None:
        return
    apart = _apart(world, [run for other, run in runs if other in namesakes])
    if len(namesakes) > 1 and not apart:
        return  # runs of one name at the same time share the URLs out between them
    # A seed dropped on a running crawl is taken in, or refused because the crawl had ended.
    extras = {record.url for record in _records(world, crawl_id) if "/extra/" in record.url}
    more = len(crawl.extras) + plan.faults.late_seeds
    if crawl.pages_max >= len(oracle.claimed) + more:
        expected += len(extras)
    elif extras:
        return
    if claimed != expected:
        yield Violation("I1 complete", f"{crawl_id}: claimed {claimed} not {expected}")
    if expected < len(oracle.claimed):
        return
    fetched = {
        record.url for record in _records(world, crawl_id) if record.outcome is Outcome.FETCHED
    }
    if fetched != oracle.fetched:
        lost, extra = oracle.fetched - fetched, fetched - oracle.fetched
        yield Violation(
            "I1 fetched", f"{crawl_id}: lost {sorted(lost)[:3]} extra {sorted(extra)[:3]}"
        )


def _expected(first: CrawlPlan, crawl: CrawlPlan, reachable: int) -> int | None:
    """How many URLs a run is to claim, `first` being the first run of its name; None: no telling.

    Within the hold of the first run's claims nothing, beyond it or by force everything.
    """
    hold_s = max(first.window_s, WEEK_S)
    after_s = crawl.at_s - first.at_s
    if crawl is first:
        return min(crawl.pages_max, reachable)
    if min(first.pages_max, crawl.pages_max) < reachable:
        return None
    if crawl.window_s and after_s < hold_s - DAY_S:
        return 0
    if crawl.window_s and after_s < hold_s + DAY_S:
        return None  # the claims of the first run expire one by one around this time
    return reachable


def _apart(world: World, ids: list[str]) -> bool:
    """Whether each run had finished when the next one began."""
    crawls = sorted((world.crawls[crawl_id] for crawl_id in ids), key=lambda it: it.started_at_ms)
    return all(
        earlier.finished_at_ms is not None
        # A wrong clock may have dated the end.
        and earlier.finished_at_ms + 600_000 < later.started_at_ms
        for earlier, later in itertools.pairwise(crawls)
    )


def _dangling(plan: Scenario, world: World) -> Iterator[Violation]:
    """I1: a claim of a committed pack is one that its ledger counts."""
    for claim in world.claims.values():
        ledger = world.ledgers.get(claim.pack)
        if ledger is None:
            continue
        faults = plan.faults
        copies = faults.doubled or faults.early or faults.frozen or faults.ack_lost
        if ledger.surplus and copies:
            continue  # a copy that died after the budget was spent may leave one; nobody needs it
        candidates = world.journals[claim.pack].candidates
        if claim.url not in {candidates[place].url for place in ledger.children}:
            yield Violation("I1 dangling claim", f"{claim.url} of {claim.pack}")
            return


def _unblocked(plan: Scenario, web: SimWeb) -> Iterator[Violation]:
    """A host that said when to come back is not asked before, by anybody."""
    if plan.faults.throttled or plan.faults.unknown:
        return  # a block that could not be written is not known to the others
    grace_s = 3 + plan.faults.latency_s * 4
    skew_s = 2 * plan.faults.skew_ms / 1000
    for origin, at_s, until_s in web.rebuffs:
        for ask in web.asks:
            if ask.origin == origin and at_s + grace_s < ask.at_s < until_s - skew_s - 0.001:
                yield Violation("blocked", f"{ask.origin}{ask.path} at {ask.at_s:.3f} < {until_s}")
                return


def _records(world: World, crawl_id: str) -> list[PageRecord]:
    return [record for record in world.pages.values() if record.crawl == crawl_id]


def _polite(plan: Scenario, world: World, web: SimWeb) -> Iterator[Violation]:
    """I4: no two requests to a host are closer than the delay of the earlier one's crawl."""
    delays = {crawl.user_agent: crawl.delay_ms / 1000 for crawl in world.crawls.values()}
    # A wrong clock shifts slots by as much as clocks differ; within one host that is the bound.
    tolerance_s = 2 * plan.faults.skew_ms / 1000 + 0.0015
    last: dict[str, tuple[float, float]] = {}
    for ask in web.asks:
        delay_s = delays.get(ask.agent, 1.0)
        if ask.origin in last:
            at_s, before_s = last[ask.origin]
            least_s = min(before_s, delay_s)
            if ask.at_s - at_s < least_s - tolerance_s:
                yield Violation(
                    "I4 delay", f"{ask.origin}{ask.path}: {ask.at_s - at_s:.3f} < {least_s}"
                )
                return
        last[ask.origin] = (ask.at_s, delay_s)


def _admitted(web: SimWeb) -> Iterator[Violation]:
    """I5 of the faults list: nothing is asked for outside robots or the known hosts."""
    for ask in web.asks:
        site = web.sites.get(ask.origin)
        if site is None:
            continue
        if site.rules is not None and ask.path.startswith("/private/"):
            yield Violation("robots", f"{ask.origin}{ask.path}")
            return
        unreachable = site.rules is None and site.robots != 404
        if unreachable and ask.path != "/robots.txt":
            yield Violation("robots unreachable", f"{ask.origin}{ask.path}")
            return
