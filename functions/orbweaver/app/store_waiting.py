"""List a crawl's URLs that wait for a retry or a response, and count pages in flight."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

from orbweaver.control.progress.hosts import QueuedUrl
from orbweaver.frontier.messages import Pack, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orbweaver.app.store_ports import StorePorts

RETRIES_MAX, IN_WORK_MAX = 50, 20
# Progress is shown several times a second, and mostly the same messages wait each time.
_decoded = lru_cache(RETRIES_MAX + IN_WORK_MAX)(decode)


async def pages_in_work(ports: StorePorts) -> Counter[str]:
    """Count the URLs in the uncommitted packs that processes work on, by crawl id."""
    pages: Counter[str] = Counter()
    packs = _uncommitted(ports, (body for body, *_ in ports.messages.in_work_of()))
    for pack in {pack.id: pack for pack in packs if pack is not None}.values():
        pages[pack.crawl] += len(pack.targets)
    return pages


async def queued_urls(ports: StorePorts, crawl_id: str) -> list[QueuedUrl]:
    """Return the next retries of a crawl, and its URLs in flight.

    Each process has a list of its URLs in flight. For other processes, the list contains only URLs
    that are alone in their pack.
    """
    retries = ports.messages.retries_of(crawl_id, RETRIES_MAX)
    held = ports.messages.in_work_of(crawl_id, IN_WORK_MAX)
    found = [
        *((body, at_ms, False, False) for body, at_ms in retries),
        *((body, at_ms, True, own) for body, at_ms, own in held),
    ]
    packs = _uncommitted(ports, (body for body, *_ in found))
    unanswered = ports.unanswered
    return [
        QueuedUrl(target=target, at_ms=unanswered.get(target.url, at_ms), in_work=in_work)
        for pack, (_, at_ms, in_work, own) in zip(packs, found, strict=True)
        if pack is not None
        for target in pack.targets
        if not in_work or target.url in unanswered or (len(pack.targets) == 1 and not own)
    ]


def _uncommitted(ports: StorePorts, bodies: Iterable[str]) -> list[Pack | None]:
    """Return the pack of each message body, or None without an uncommitted pack.

    A late pack gives None too.
    """
    messages = [_decoded(body) for body in bodies]
    # The URLs of a late pack are deferred links, which are not in flight.
    packs = [one if isinstance(one, Pack) and not one.late else None for one in messages]
    # A message of a committed pack is a copy.
    committed = ports.packs.committed({pack.id for pack in packs if pack is not None})
    return [pack if pack is not None and pack.id not in committed else None for pack in packs]
