"""What a backlog promises: an order, and that nothing stays in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.frontier.messages import Pack
from orbweaver.model.crawl import State
from tests.simulation.check_web import Violation
from tests.simulation.sqs import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from orbweaver.frontier.backlog import WaitingPack
    from tests.memory import World


def check_backlog(world: World, stuck: AbstractSet[str]) -> Iterator[Violation]:
    """Check every pack that was taken, and what is left; `stuck` crawls have dead letters.

    A worker that was held up may have a pack wait again that is done with (frontier/backlog.py), by
    a commit or as its crawl was over; nothing comes of that if its URLs are free.
    """
    for taken, waited in world.taken:
        if any(_rank(other.body) < _rank(taken.body) for other in waited):
            yield Violation("backlog order", taken.place)
            break
    for (crawl_id, host), places in world.backlog.items():
        crawl = world.crawls.get(crawl_id)
        left = [one for one in places.values() if _is_wanted(world, crawl_id, one)]
        if left and crawl_id not in stuck and crawl and crawl.state is State.FINISHED:
            yield Violation("backlog left", f"{crawl_id} {host}: {len(left)}")


def _is_wanted(world: World, crawl_id: str, waiting: WaitingPack) -> bool:
    """Whether a pack was not committed, and holds URLs that were not given back."""
    pack = decoded(waiting.body)
    if not isinstance(pack, Pack) or pack.id in world.ledgers:
        return False
    urls = {target.url for target in pack.targets}
    claims = (claim for claim in world.claims.values() if claim.crawl == crawl_id)
    return any(claim.url in urls and not claim.unasked for claim in claims)


def _rank(body: str) -> tuple[bool, int]:
    """What goes past others first, then by the depth at which it was found."""
    pack = decoded(body)
    if not isinstance(pack, Pack):
        return False, 0
    express = any(target.express for target in pack.targets)
    return not express, min(target.depth for target in pack.targets)
