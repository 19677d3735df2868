"""Why a URL is refused: the one file that answers that question.

`admit_link` decides for a link before it is claimed; a refusal is counted at its page.
`admit_target` decides for a claimed URL before it is asked for; a refusal is its outcome.
Doubt refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from orbweaver.core.crawl import Crawl, Scope, State, Stop
from orbweaver.core.message import Target
from orbweaver.core.outcome import Reason, Refusal
from orbweaver.core.url import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable

REDIRECTS_MAX = 10


def in_scope(crawl: Crawl, url: str, page_url: str) -> bool:
    """Whether a link found on `page_url` belongs to the crawl."""
    match crawl.scope:
        case Scope.ANY:
            return True
        case Scope.HOST:
            return host_of(url) == host_of(page_url)
        case Scope.PREFIX:
            return any(url.startswith(prefix) for prefix in prefixes(crawl.seeds))
        case _:
            assert_never(crawl.scope)


def prefixes(seeds: Iterable[str]) -> tuple[str, ...]:
    """The folders that seeds lie in: a seed's URL up to its last slash, without a query."""
    return tuple(seed.partition("?")[0].rpartition("/")[0] + "/" for seed in seeds)


def admit_link(crawl: Crawl, url: str, page: Target) -> Target | Refusal:
    """Decide on a link of a page: the target it becomes, or why it is left out."""
    if page.depth >= crawl.depth_max:
        return Refusal.DEPTH
    if not in_scope(crawl, url, page.url):
        return Refusal.SCOPE
    return Target(url=url, depth=page.depth + 1, referrer=page.url)


def admit_redirect(crawl: Crawl, url: str, source: Target) -> Target | Refusal:
    """Decide on where a redirect leads: same depth, one hop more.

    A seed may lead to another host (example.com to www.example.com); what is found there stays
    on that host.
    """
    if source.hops >= REDIRECTS_MAX:
        return Refusal.REDIRECTS
    seed = source.depth == 0 and crawl.scope is Scope.HOST
    if not seed and not in_scope(crawl, url, source.url):
        return Refusal.SCOPE
    return Target(url=url, depth=source.depth, hops=source.hops + 1, referrer=source.url)


def admit_target(crawl: Crawl, now_ms: int) -> Reason | None:
    """Decide whether a crawl's claimed URLs may be asked for now: None, or why not."""
    if crawl.state in (State.STOPPING, State.FINISHED):
        return Reason.DURATION if crawl.stop is Stop.DURATION else Reason.CANCELLED
    if not crawl.continuous and now_ms >= crawl.started_at_ms + crawl.duration_max_s * 1000:
        return Reason.DURATION
    return None
