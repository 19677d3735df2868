"""Decide whether the workers of a store have the proxies that a crawl needs.

Workers record in the store for which schemes they have proxies. A crawl needs the proxies of its
newest run that used some, up to a run with `--proxies no`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.fetching.proxy_config import DIRECT
from orbweaver.model.crawl import State

if TYPE_CHECKING:
    from pathlib import Path

    from orbweaver.adapters.sqlite.crawls import SqliteCrawls
    from orbweaver.fetching.proxy_config import ProxyConfig
    from orbweaver.model.crawl import Crawl

_FIX = (
    "give the workers proxies again (--proxy or --proxy-list of `crawl` and `serve`, or"
    " ALL_PROXY), or start a run with --proxies no (identity.proxies = false), which requests"
    " its pages directly"
)


async def refusal(crawls: SqliteCrawls, folder: Path, own: ProxyConfig | None, crawl: Crawl) -> str:
    """Return why no worker of a store may request a crawl, and the fix, or "".

    `own` are the proxies of this process if it has a worker, otherwise None.
    """
    if own is None:
        from orbweaver.adapters.sqlite.processes import StoreProcesses

        marks = StoreProcesses(folder).marks()
        # All processes of a store have the same proxies, and "" is the mark of none. A worker that
        # starts later checks its proxies itself (app/proxy_guard.py).
        if not marks or any(marks.values()):
            return ""
        own = DIRECT
    why = await lacking_proxies(crawls, crawl, own)
    return why and f"{why}: {_FIX}"


async def lacking_proxies(crawls: SqliteCrawls, crawl: Crawl, proxies: ProxyConfig) -> str:
    """Return why workers with `proxies` must not request a crawl, or ""."""
    if not crawl.proxied:
        return ""
    run, needed = await _newest_proxied(crawls, crawl)
    lacking = needed - proxies.schemes
    if not lacking:
        return ""
    uses = "used" if run.state is State.FINISHED else "uses"
    return f"{run.id} {uses} proxies, and the workers have none for {' and '.join(sorted(lacking))}"


async def _newest_proxied(crawls: SqliteCrawls, crawl: Crawl) -> tuple[Crawl, frozenset[str]]:
    """Return the newest run of a crawl, up to `crawl`, that used proxies, and their schemes."""
    if found := await crawls.proxied_schemes(crawl.id):
        return crawl, found
    for run in await crawls.list():
        if run.name != crawl.name or run.started_at_ms > crawl.started_at_ms:
            continue
        if not run.proxied:
            break
        if found := await crawls.proxied_schemes(run.id):
            return run, found
    return crawl, frozenset()
