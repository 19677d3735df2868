"""Invariants of the backlog: packs (batches of URLs) are taken in order, and none is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from orbweaver.frontier.backlog import WaitingPack
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.target import Target
from orbweaver.worker.apply_journal import LATE_WAITS_S
from tests.memory import World
from tests.simulation.check_web import Violation
from tests.simulation.scenario import Scenario
from tests.simulation.sqs import decoded


def check_backlog(
    world: World, stuck: AbstractSet[str], redriven: AbstractSet[str]
) -> Iterator[Violation]:
    """Check every pack taken from a backlog and those left; `stuck` crawls have dead letters.

    `redriven` contains the bodies of redriven dead letters. A delayed worker can requeue a pack
    that is already done (frontier/backlog.py), by a commit or after its crawl's end. This is
    harmless if its URLs cost no request.
    """
    for taken, waited in world.taken:
        if any(_rank(other.body) < _rank(taken.body) for other in waited):
            yield Violation("backlog order", taken.place)
            break
    for (crawl_id, host), places in world.backlog.items():
        crawl = world.crawls.get(crawl_id)
        if crawl_id in stuck or crawl is None or crawl.state is not State.FINISHED:
            continue
        if host == LANE:
            late = [place for place in places if place.rpartition(".")[2] not in world.ledgers]
            yield from _check_late(world, crawl, late, redriven)
        elif left := [one for one in places.values() if _is_wanted(world, crawl_id, one)]:
            yield Violation("backlog left", f"{crawl_id} {host}: {len(left)}")


def check_sendings(plan: Scenario, sent_s: Mapping[str, Sequence[float]]) -> Iterator[Violation]:
    """Check that without faults no second worker sends a recently sent late pack.

    A late pack holds links that a worker sends after the commit of their pack.
    """
    if not plan.faults.none:
        return
    least_s = sum(LATE_WAITS_S)
    for pack_id, moments in sent_s.items():
        if any(later - earlier < least_s for earlier, later in pairwise(moments)):
            yield Violation("late sent once", f"{pack_id}: {moments}")


def _check_late(
    world: World, crawl: Crawl, left: list[str], redriven: AbstractSet[str]
) -> Iterator[Violation]:
    """Check that late packs are taken before a crawl ends, and that all remain at its limit."""
    if crawl.stop is Stop.FINISHED and left:
        yield Violation("late left", f"{crawl.id}: {len(left)}")
    total = world.total(crawl.id)
    dead = _dead(world, crawl, left, redriven)
    spared = total["late_packs"] - total["late_packs_taken"] - len(dead)
    if crawl.stop is not Stop.CANCELLED and spared != len(left):
        yield Violation("late lost", f"{crawl.id}: {spared} wait, {len(left)} are there")
    links = sum(len(targets_of(world.backlog[crawl.id, LANE][place].body)) for place in left)
    links += sum(dead.values())
    if spared == len(left) and total["late_links"] - total["late_links_taken"] != links:
        yield Violation("late counted", f"{crawl.id}: {links}")


def _dead(
    world: World, crawl: Crawl, left: list[str], redriven: AbstractSet[str]
) -> dict[str, int]:
    """Count links of late packs that became dead letters and arrived after the crawl's end.

    The backlog no longer holds these packs. A later run finds their links in the journals that
    queued them.
    """
    gone = {place.rpartition(".")[2] for place in left} | world.ledgers.keys()
    dead = {
        pack: journal.counts["late_links_taken"]
        for pack, journal in world.journals.items()
        if journal.crawl == crawl.id and journal.counts.get("late_packs_taken")
    }
    for message in map(decoded, redriven):
        if isinstance(message, Pack) and message.late and message.crawl == crawl.id:
            dead[message.id] = len(message.targets)
    return {pack: links for pack, links in dead.items() if pack not in gone}


def targets_of(body: str) -> tuple[Target, ...]:
    pack = decoded(body)
    return pack.targets if isinstance(pack, Pack) else ()


def _is_wanted(world: World, crawl_id: str, waiting: WaitingPack) -> bool:
    """True if a pack was not committed and holds URLs that were not returned."""
    pack = decoded(waiting.body)
    if not isinstance(pack, Pack) or pack.id in world.ledgers:
        return False
    urls = {target.url for target in pack.targets}
    claims = (claim for claim in world.claims.values() if claim.crawl == crawl_id)
    return any(claim.url in urls and not claim.unasked for claim in claims)


def _rank(body: str) -> tuple[bool, int]:
    pack = decoded(body)
    if not isinstance(pack, Pack):
        return False, 0
    express = any(target.express for target in pack.targets)
    return not express, min(target.depth for target in pack.targets)
