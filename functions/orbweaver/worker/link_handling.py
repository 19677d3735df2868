"""Links of a page: admitted a slice at a time, so that other pages have their turns; then noted.

A page can have thousands of links, each as long as a URL may be, and a crawl patterns for them.
They are judged first and noted as a whole: a page that is given up in between leaves no half of
its counts behind.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.frontier.admission import LIFTABLE, admit_link, in_scope, led
from orbweaver.model.outcome import Refusal
from orbweaver.model.url_rules import said_of

if TYPE_CHECKING:
    from orbweaver.model.target import Target
    from orbweaver.model.url_limits import Bounds
    from orbweaver.parsing.page import Page
    from orbweaver.worker.pack_context import Visit

# Links that are admitted before other pages have a turn: 5 ms of them, at most 20.
LINKS_AT_ONCE = 250


async def follow(visit: Visit, target: Target, page: Page, bounds: Bounds) -> None:
    """Note the links of a page in its pack's draft, or why they are not to be claimed."""
    if said_of(visit.crawl.rules, target.url).follow is False:
        followed: dict[str, Target | Refusal] = dict.fromkeys(page.links, Refusal.UNFOLLOWED)
    else:
        followed = await _admitted(visit, target, page, bounds)
    draft = visit.draft
    for refusal, count in (
        (Refusal.INVALID, page.links_invalid),
        (Refusal.NOFOLLOW, page.links_nofollow),
        (Refusal.CUT, page.links_cut),
    ):
        if count:
            draft.refuse(refusal, count)
    for url, admitted in followed.items():
        if isinstance(admitted, Refusal):
            draft.refuse(admitted, urls=(url,))
            if admitted in LIFTABLE:
                draft.leave_out(led(target, url, target.depth + 1))
        else:
            draft.link(admitted)


async def _admitted(
    visit: Visit, target: Target, page: Page, bounds: Bounds
) -> dict[str, Target | Refusal]:
    """Judge the links of a page that are not known to be claimed."""
    crawl, draft = visit.crawl, visit.draft
    # Most links of a page are those of others, admitted then.
    found: dict[str, Target | Refusal] = {}
    for start in range(0, len(page.links), LINKS_AT_ONCE):
        if start:
            await asyncio.sleep(0)
        links = page.links[start : start + LINKS_AT_ONCE]
        # What is claimed is left out nowhere, though it may lie too deep here.
        seen = visit.seen(links)
        for url in links:
            if draft.links_to(url, target.depth + 1):
                continue
            if url in seen and in_scope(crawl, url, target.url, target.root):
                continue
            found[url] = admit_link(crawl, url, target, bounds)
    return found
