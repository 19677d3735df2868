"""List single URLs of a crawl that wait for a retry or response, and count pages in flight."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from orbweaver.control.progress.queued import QueuedUrl
from orbweaver.frontier.claims import Recalled
from orbweaver.frontier.messages import Pack, decode

if TYPE_CHECKING:
    from orbweaver.app.store_ports import StorePorts

RETRIES_MAX, IN_WORK_MAX = 50, 20


async def pages_in_work(ports: StorePorts) -> Counter[str]:
    """Count the pages of uncommitted packs that processes hold, by crawl."""
    found = map(decode, ports.messages.held_bodies())
    packs = {one.id: one for one in found if isinstance(one, Pack) and not one.late}
    known = await ports.packs.recall([*packs]) if packs else {}
    pages: Counter[str] = Counter()
    for pack in packs.values():
        if known.get(pack.id, Recalled()).ledger is None:
            pages[pack.crawl] += len(pack.targets)
    return pages


async def queued_urls(ports: StorePorts, crawl_id: str) -> list[QueuedUrl]:
    """Return the next retries of a crawl, and single URLs in flight.

    Messages of committed packs are copies, and are ignored.
    """
    found = [
        *((body, at_ms, False) for body, at_ms in ports.messages.retries_of(crawl_id, RETRIES_MAX)),
        *((body, at_ms, True) for body, at_ms in ports.messages.in_work_of(crawl_id, IN_WORK_MAX)),
    ]
    packs = [(decode(body), at_ms, in_work) for body, at_ms, in_work in found]
    ids = [pack.id for pack, _, _ in packs if isinstance(pack, Pack)]
    known = await ports.packs.recall(ids) if ids else {}
    return [
        QueuedUrl(target=target, at_ms=at_ms, in_work=in_work)
        for pack, at_ms, in_work in packs
        if isinstance(pack, Pack)
        and not pack.late
        and known.get(pack.id, Recalled()).ledger is None
        and (not in_work or len(pack.targets) == 1)
        for target in pack.targets
    ]
