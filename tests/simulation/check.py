"""Invariants over the recorded commits, requests and records.

A pack is a batch of URLs. A journal stores its results, a ledger its commit. The package describes
the labels I1 to I9.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from orbweaver.frontier.late_links import LANE, NOTHING_NEW, band_at
from orbweaver.frontier.messages import Loose, Malformed, Pack
from orbweaver.model.crawl import DEFAULT_CRAWL, UNSPENT, State, Stop
from orbweaver.model.outcome import Outcome, Reason, Refusal
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import STRIKES_MAX
from tests.memory import World
from tests.simulation.budgets import check_budgets, cut
from tests.simulation.check_backlog import check_backlog, check_sendings, targets_of
from tests.simulation.check_bodies import check_bodies
from tests.simulation.check_hosts import check_hosts
from tests.simulation.check_steering import check_steering
from tests.simulation.check_web import Violation, check_web
from tests.simulation.clock import ERROR_MS_MAX
from tests.simulation.cloud import Cloud
from tests.simulation.erasing import check_erased
from tests.simulation.going_on import check_sequels
from tests.simulation.meaning import EDIT, Meaning
from tests.simulation.oracle import expected as expected_walk
from tests.simulation.oracle import limit, walked
from tests.simulation.retrying import check_retries, disturbed
from tests.simulation.ruling import check_rules, count_unrecorded
from tests.simulation.scenario import NEWER, CrawlPlan, Scenario
from tests.simulation.sites import shifting
from tests.simulation.sqs import decoded
from tests.simulation.web import SimWeb, split

# Outcome reasons of URLs that are never requested.
FORBIDDEN = (Reason.ROBOTS, Reason.CONTENT_TYPE, Reason.SCOPE, Reason.DEPTH)
UNRECORDED = ("cancelled", "duration", "bytes", "dollars", "host_pages")


def check(
    plan: Scenario,
    runs: list[tuple[CrawlPlan, str]],
    world: World,
    web: SimWeb,
    cloud: Cloud,
    *,
    idle: bool,
) -> list[Violation]:
    found = [] if idle else [Violation("I4 end", "the queue never drained")]
    found += _dead_letters(plan, cloud)
    if cloud.trace.counts["loop ended"]:
        found.append(Violation("I1 loop ended", "messages were dropped for the hops behind them"))
    stuck = {
        message.crawl
        for body, _ in cloud.dead_letters
        if isinstance(message := decoded(body), Pack) and message.id not in world.ledgers
    }
    if plan.erases:
        # The other checks expect records, bodies and claims of every page.
        for crawl_id in world.crawls:
            claimed = Counter(url for url, _ in world.claimed(crawl_id))
            total = world.total(crawl_id)
            found += _counted(world, crawl_id, claimed, total, stuck=crawl_id in stuck)
            cloud.trace.counts["erased.skipped"] += total[f"{Outcome.SKIPPED}.{Reason.ERASED}"]
            cloud.trace.counts["erased.refused"] += total[f"refused.{Refusal.ERASED}"]
        found += check_erased(world, web, cloud)
        return found + [Violation("handler raised", detail) for detail in cloud.raised]
    records: defaultdict[str, list[PageRecord]] = defaultdict(list)
    for record in world.pages.values():
        records[record.crawl].append(record)
    for crawl_id in world.crawls:
        found += _counters(world, crawl_id, records[crawl_id], stuck=crawl_id in stuck)
    for crawl, crawl_id in runs:
        found += _budget(world, crawl, crawl_id)
        if crawl_id not in stuck:
            found += _complete(plan, runs, crawl, crawl_id, world, web)
    found += _taken_in(plan, world)
    found += _spared(world, web)
    found += _dangling(world, cloud)
    found += check_backlog(world, stuck, cloud.sqs.redriven)
    found += check_sendings(plan, cloud.sqs.late)
    found += check_bodies(world)
    found += check_web(plan, world, web, cloud)
    found += check_steering(plan, world, web, cloud)
    found += check_retries(world)
    found += check_rules(plan, world, cloud)
    given_up = {crawl_id for crawl_id in world.crawls if _given_up(world, crawl_id)}
    found += check_sequels(plan, runs, world, web, stuck, given_up, cloud.scarred)
    totals = {crawl_id: world.total(crawl_id) for crawl_id in world.crawls}
    found += check_budgets(plan, world, web, totals, cloud.scarred)
    found += check_hosts(world, totals)
    found += [Violation("I7 export", detail) for detail in cloud.exports.watch.found]
    found += [Violation("handler raised", detail) for detail in cloud.raised]
    return found


def _dead_letters(plan: Scenario, cloud: Cloud) -> Iterator[Violation]:
    """I6: the dead letters are exactly the invalid messages, with their reasons."""
    for body in plan.malformed:
        if all(body != letter for letter, _ in cloud.dead_letters):
            yield Violation("I6 buried", body[:80])
    for body, reason in cloud.dead_letters:
        message = decoded(body)
        if isinstance(message, Malformed) or body in plan.malformed:
            if body == NEWER and "version 2" not in (reason or ""):
                yield Violation("I6 reason", f"{reason}: {body[:80]}")
            if not reason or (isinstance(message, Malformed) and reason != message.reason):
                yield Violation("I6 reason", f"{reason}: {body[:80]}")
            continue
        if isinstance(message, Pack) and message.id in cloud.world.ledgers:
            # A copy became a dead letter while another copy was processed. After a redrive the work
            # is done.
            cloud.trace.counts["copy of a done pack buried"] += 1
            continue
        if not _blamed(plan, cloud, message):
            yield Violation("I6 only the culprit", f"{reason}: {body[:200]}")


def _blamed(plan: Scenario, cloud: Cloud, message: object) -> bool:
    """True for a poison page (it kills its worker), or a page at which workers happened to die."""
    if not isinstance(message, Pack) or len(message.targets) != 1:
        return False
    counts = cloud.trace.counts
    by_chance = plan.faults.killed and counts["kill"] >= 5 * STRIKES_MAX
    if by_chance and cloud.world.strikes.get(message.id, 0) >= STRIKES_MAX:
        counts["struck out"] += 1
        return True
    return _poison(plan, message.targets[0].url)


def _taken_in(plan: Scenario, world: World) -> Iterator[Violation]:
    """I1: messages that users sent to the queue themselves belong to the default crawl."""
    claimed = {url for url, _ in world.claimed(DEFAULT_CRAWL)}
    for _, body in plan.loose:
        message = decoded(body)
        if not isinstance(message, Loose) or not claimed.issuperset(message.references):
            yield Violation("I1 taken in", body)


def _poison(plan: Scenario, url: str) -> bool:
    for site in plan.sites:
        if url.startswith(site.origin + "/"):
            page = site.page(url.removeprefix(site.origin))
            return page is not None and page.poison
    return False


def _counters(
    world: World, crawl_id: str, records: list[PageRecord], *, stuck: bool
) -> Iterator[Violation]:
    """I1, I2, I3, I8: each claimed URL has one outcome and one record, and the counters agree."""
    crawl = world.crawls[crawl_id]
    claimed = Counter(url for url, _ in world.claimed(crawl_id))
    total = world.total(crawl_id)
    yield from _counted(world, crawl_id, claimed, total, stuck=stuck)
    urls = Counter(record.url for record in records)
    if len(urls) != urls.total() and not crawl.continuous:
        twice = [url for url, count in urls.items() if count > 1]
        yield Violation("I3 recorded once", f"{crawl_id}: {twice[:3]}")
    if set(urls) - set(claimed):
        yield Violation("I1 recorded, not claimed", f"{crawl_id}: {set(urls) - set(claimed)}")
    # A worker died between storing and committing, and the crawl was cancelled meanwhile. Its work
    # is not counted.
    late = _uncommitted(world, crawl_id) if crawl.stop is Stop.CANCELLED else frozenset()
    outcomes = Counter(record.outcome for record in records if record.url not in late)
    unrecorded = count_unrecorded(world, crawl_id)
    for outcome in Outcome:
        silent = sum(total[f"{outcome}.{reason}"] for reason in UNRECORDED) + unrecorded[outcome]
        if outcomes[outcome] != total[outcome] - silent and not crawl.continuous:
            yield Violation(
                "I8 records", f"{crawl_id} {outcome}: {outcomes[outcome]} {total[outcome]}"
            )


def _uncommitted(world: World, crawl_id: str) -> frozenset[str]:
    """Return URLs that a crawl's packs requested but did not count."""
    return frozenset(
        record.url
        for pack, journal in world.journals.items()
        if pack not in world.ledgers
        for record in journal.records
        if record.crawl == crawl_id
    )


def _counted(
    world: World, crawl_id: str, claimed: Counter[str], total: Counter[str], *, stuck: bool
) -> Iterator[Violation]:
    """I2: a crawl is finished if and only if its counters balance."""
    crawl = world.crawls[crawl_id]
    # Claims of a continuous crawl expire after its window, so the crawl can claim a URL again.
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
        # A cancelled crawl ends without waiting for its URLs.
        if (stuck and crawl.stop is not Stop.CANCELLED) or total["claimed"] != done:
            yield Violation("I2 never before", crawl_id)
        if all(announced.id != crawl_id for announced, _ in world.announced):
            yield Violation("I2 announced", crawl_id)


def _budget(world: World, plan: CrawlPlan, crawl_id: str) -> Iterator[Violation]:
    """I5: the budget is never exceeded, not even temporarily."""
    claimed = 0
    for owner, ledger, counts in world.commits:
        if owner == crawl_id:
            claimed += len(ledger.children) - counts.get(UNSPENT, 0)
            if claimed > plan.pages_max:
                yield Violation("I5 budget", f"{crawl_id}: {claimed} of {plan.pages_max}")
                return
    total = world.total(crawl_id)
    forbidden = sum(total[f"{Outcome.SKIPPED}.{reason}"] for reason in FORBIDDEN)
    if total[UNSPENT] > forbidden:
        yield Violation("I5 given back", f"{crawl_id}: {total[UNSPENT]} of {forbidden}")


def _nothing_new(crawl: CrawlPlan, crawl_id: str, world: World, web: SimWeb) -> Iterator[Violation]:
    """Check the URLs left by a crawl that stopped because it found no new links.

    Each waits in the backlog band for unpromising URLs, or is found only through such URLs.
    """
    places = {
        place: one
        for place, one in world.backlog.get((crawl_id, LANE), {}).items()
        if place.rpartition(".")[2] not in world.ledgers
    }
    if promising := [place for place in places if band_at(place) < NOTHING_NEW]:
        yield Violation("nothing new: left", f"{crawl_id}: {promising[:3]}")
    claimed = {url for url, _ in world.claimed(crawl_id)}
    left = {target.url for one in places.values() for target in targets_of(one.body)} - claimed
    run = world.crawls[crawl_id]
    oracle = walked(web, run, limit(world, crawl, crawl_id), frozenset(left))
    if oracle is not None and oracle.claimed != claimed:
        differ = sorted(oracle.claimed ^ claimed)
        yield Violation("nothing new: forgotten", f"{crawl_id}: {differ[:3]}")


def _complete(
    plan: Scenario,
    runs: list[tuple[CrawlPlan, str]],
    crawl: CrawlPlan,
    crawl_id: str,
    world: World,
    web: SimWeb,
) -> Iterator[Violation]:
    """I1: the URLs of a breadth-first walk are claimed and fetched."""
    namesakes = [(other, run) for other, run in runs if other.name == crawl.name]
    if plan.poison or crawl.goes_on or _untold(namesakes, crawl_id, world):
        return  # Pages behind a poison page are found only in part.
    if any(world.crawls[run].stop is Stop.NOTHING_NEW for _, run in namesakes):
        # Another run may claim this run's open URLs, so only runs that do not overlap are checked.
        if len(namesakes) == 1 and not (crawl.extras or plan.faults.late_seeds):
            yield from _nothing_new(crawl, crawl_id, world, web)
        return
    oracle = expected_walk(web, world, crawl, crawl_id, namesakes[0])
    if oracle is None:
        return
    claimed = world.total(crawl_id)["claimed"]
    most = limit(world, crawl, crawl_id)
    expected = min(most, len(oracle.claimed))
    # A seed sent to a running crawl is accepted, or refused because the crawl had ended.
    extras = {url for url, _ in world.claimed(crawl_id) if "/extra/" in url}
    more = len(crawl.extras) + plan.faults.late_seeds
    if most >= len(oracle.claimed) + more:
        expected += len(extras)
    elif extras:
        return
    if claimed != expected:
        yield Violation("I1 complete", f"{crawl_id}: claimed {claimed} not {expected}")
    if expected < len(oracle.claimed):
        return
    meaning = Meaning(crawl.rules)
    there = {url for url in oracle.fetched if meaning.records(url)}
    fetched = {
        record.url
        for record in _records(world, crawl_id)
        if record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED)
        and not shifting(split(record.url)[1])
    }
    if fetched != there:
        lost, extra = there - fetched, fetched - there
        yield Violation(
            "I1 fetched", f"{crawl_id}: lost {sorted(lost)[:3]} extra {sorted(extra)[:3]}"
        )


def _untold(namesakes: list[tuple[CrawlPlan, str]], crawl_id: str, world: World) -> bool:
    """True if a run's result is unpredictable because of other runs of its name."""
    actions = {action for other, _ in namesakes for _, action in other.actions}
    if actions & {"cancel", EDIT} or _given_up(world, crawl_id) or disturbed(world, crawl_id):
        return True
    if any(cut(world.total(run)) for _, run in namesakes):
        return True  # The order of work decides which URLs fit its budget.
    # Concurrent runs of one name share the URLs.
    return len(namesakes) > 1 and not _apart(world, [run for _, run in namesakes])


def _given_up(world: World, crawl_id: str) -> bool:
    """True if the crawl gave up a host, although no host is silent for that long."""
    return any(record.reason is Reason.HOST_DOWN for record in _records(world, crawl_id))


def _spared(world: World, web: SimWeb) -> Iterator[Violation]:
    """I1: a host that sometimes answers is not given up, unless its answer could not be recorded.

    If a throttle or a kill prevents that record, the silences before and after it become one.
    """
    for crawl_id in world.crawls:
        for record in _records(world, crawl_id):
            if record.reason is Reason.HOST_DOWN and split(record.url)[0] not in web.unheard:
                yield Violation("I1 host given up", record.url)


def _apart(world: World, ids: list[str]) -> bool:
    """True if each run had finished before the next one began."""
    crawls = sorted((world.crawls[crawl_id] for crawl_id in ids), key=lambda it: it.started_at_ms)
    return all(
        earlier.finished_at_ms is not None
        # A wrong clock can record a wrong end, so that another run claims before it.
        and earlier.finished_at_ms + 2 * ERROR_MS_MAX < later.started_at_ms
        for earlier, later in itertools.pairwise(crawls)
    )


def _dangling(world: World, cloud: Cloud) -> Iterator[Violation]:
    """I1: a claim of a committed pack is counted by its ledger."""
    children: defaultdict[str, set[str]] = defaultdict(set)
    for crawl_id in world.crawls:
        for url, pack in world.claimed(crawl_id):
            children[pack].add(url)
    for claim in world.claims.values():
        ledger = world.ledgers.get(claim.pack)
        if ledger is None:
            continue
        if ledger.surplus and claim.pack in cloud.scarred:
            continue  # A copy that died after the budget was spent can leave one.
        if claim.url not in children[claim.pack]:
            yield Violation("I1 dangling claim", f"{claim.url} of {claim.pack}")
            return


def _records(world: World, crawl_id: str) -> list[PageRecord]:
    return [record for record in world.pages.values() if record.crawl == crawl_id]
