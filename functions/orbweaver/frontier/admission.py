"""Admit or refuse URLs. In doubt, a URL is refused.

Refused links are counted at their page. A claimed URL that is refused ends with that reason.
frontier/crawl_scope.py decides whether a URL in a message belongs to its crawl at all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from orbweaver.frontier.crawler_traps import is_reordered_index, trap_reason
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_rules import depth_limit, depth_limits
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.named_origins import non_public_origin_of
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.registrable_domain import same_site
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.url_limits import DEFAULT_BOUNDS, Bounds
from orbweaver.model.url_patterns import matches
from orbweaver.model.url_rules import UrlRule, combined_rule

if TYPE_CHECKING:
    from orbweaver.parsing.sitemap import SitemapEntry

REDIRECTS_MAX = 10
# Refusals that another limit or scope of a later run may lift.
LIFTABLE = frozenset(
    {Refusal.DEPTH, Refusal.SCOPE, Refusal.INCLUDE, Refusal.EXCLUDE, Refusal.BUDGET}
    | {Refusal.DOLLARS}
)
# Limit of nested indexes, and of redirects to them. Sitemaps.org allows one index.
INDEXES_MAX = 3


def in_scope(crawl: Crawl, url: str, page_url: str, root: str | None = None) -> bool:
    """Return True if a link on `page_url` belongs to the crawl. `root` is an additional folder."""
    match crawl.scope:
        case Scope.ANY:
            return True
        case Scope.HOST:
            return url.startswith(host_of(page_url) + "/")
        case Scope.DOMAIN:
            return url.startswith(host_of(page_url) + "/") or same_site(url, page_url)
        case Scope.PREFIX:
            if root is not None and url.startswith(root):
                return True
            return url.startswith(prefixes(crawl.scope_urls))
        case _:
            assert_never(crawl.scope)


@lru_cache(maxsize=16)
def prefixes(seeds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of seeds: each URL up to its last slash, without a query."""
    return tuple(dict.fromkeys(map(_folder, seeds)))


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0] + "/"


def admit_seed(crawl: Crawl, url: str, *, planned: bool = True) -> Target | Refusal:
    """Decide on a seed. Only an exclude pattern can refuse it."""
    # A seed that was added later names its own server if that is not public.
    left_out = admit_pattern(crawl, url, seed=True)
    local = None if planned else non_public_origin_of(url)
    return left_out or apply_rule(
        Target(url=url, depth=0, local=local), combined_rule(crawl.rules, url)
    )


def admit_again(crawl: Crawl, url: str, depth: int) -> Target | Refusal:
    """Decide on a seed that failed in another run. Its earlier claim does not block it."""
    admitted = admit_seed(crawl, url)
    if isinstance(admitted, Refusal):
        return admitted
    return replace(
        admitted,
        depth=depth,
        root=next((root for root in crawl.roots if url.startswith(root)), None),
        modified_at_ms=_newer(crawl, crawl.started_at_ms, admitted.window_s),
    )


def admit_left_out(crawl: Crawl, target: Target, bounds: Bounds = DEFAULT_BOUNDS) -> Target | None:
    """Decide again on a URL that an earlier run left out. Return None if it is refused again."""
    # The URL is treated as it was found: as a link on a page, or as a redirect's target.
    if target.kind is TargetKind.SITEMAP:
        return replace(target, attempt=1, failed=None, prior=None, first=0, counted=False)
    admitted: Target | Refusal = Refusal.SCOPE
    if target.referrer is None:
        admitted = admit_seed(crawl, target.url) if not target.bound else Refusal.SCOPE
    elif target.hops:
        source = replace(target, url=target.referrer, hops=target.hops - 1)
        admitted = admit_redirect(crawl, target.url, source, bounds)
    elif target.site is not None:
        if is_on_hosts(crawl, target.url, frozenset({target.site})) and _is_wanted(crawl, target):
            admitted = apply_rule(target, combined_rule(crawl.rules, target.url))
    else:
        page = replace(target, url=target.referrer, depth=target.depth - 1)
        admitted = admit_link(crawl, target.url, page, bounds)
    if isinstance(admitted, Refusal):
        return None
    return replace(admitted, attempt=1, failed=None, prior=None, counted=False)


def _is_wanted(crawl: Crawl, target: Target) -> bool:
    """Return False if a page in a sitemap is too deep or excluded by a pattern."""
    wanted = _within(crawl, target.url, target.depth) is not None
    return wanted and admit_pattern(crawl, target.url) is None


def admit_link(
    crawl: Crawl, url: str, page: Target, bounds: Bounds = DEFAULT_BOUNDS
) -> Target | Refusal:
    said = _within(crawl, url, page.depth + 1)
    if said is None:
        return Refusal.DEPTH
    if not in_scope(crawl, url, page.url, page.root):
        return Refusal.SCOPE
    left_out = admit_pattern(crawl, url) or trap_reason(url, bounds)
    if left_out is not None:
        return left_out
    if is_reordered_index(url, page.url):
        return Refusal.INDEX_ORDER
    return apply_rule(link_target(page, url, page.depth + 1), said)


def _within(crawl: Crawl, url: str, depth: int) -> UrlRule | None:
    """Return the rule for a URL at a depth, or None if it is too deep."""
    _, most = depth_limits(crawl)
    if depth > most:
        return None
    said = combined_rule(crawl.rules, url)
    return said if depth <= depth_limit(crawl, said) else None


def apply_rule(target: Target, said: UrlRule) -> Target:
    """Add the priority and the dedup window that a rule sets for the link."""
    if not said.express and said.window_s is None:
        return target
    return replace(target, express=bool(said.express), window_s=said.window_s)


def admit_redirect(
    crawl: Crawl, url: str, source: Target, bounds: Bounds = DEFAULT_BOUNDS
) -> Target | Refusal:
    """Decide on the target of a redirect, which has the same depth and one more hop.

    A seed may redirect out of the scope (example.com to www.example.com). This widens the scope to
    that host or domain, or to a folder there. Links found there must stay there.
    """
    if source.hops >= REDIRECTS_MAX:
        return Refusal.REDIRECTS
    if source.kind is TargetKind.SITEMAP:
        hops = source.hops + 1
        new = replace(source, attempt=1, failed=None, first=0, prior=None, counted=False)
        return replace(new, url=url, hops=hops, referrer=source.url)
    root = source.root
    if not in_scope(crawl, url, source.url, root):
        if source.depth > 0 or source.bound:
            return Refusal.SCOPE
        root = root_of(url, source) if crawl.scope is Scope.PREFIX else None
    asked_for = source.depth == 0 and not source.bound
    left_out = admit_pattern(crawl, url, seed=asked_for) or trap_reason(url, bounds)
    if left_out is not None:
        return left_out
    said = combined_rule(crawl.rules, url)
    if crawl.rules and source.depth > depth_limit(crawl, said):
        return Refusal.DEPTH
    hops = source.hops + 1
    target = replace(
        link_target(source, url, source.depth), hops=hops, root=root, bound=source.bound
    )
    return apply_rule(target, said)


def link_target(source: Target, url: str, depth: int) -> Target:
    """Return the target of a link on `source`, in the same part of the crawl."""
    return Target(url=url, depth=depth, referrer=source.url, root=source.root, local=source.local)


def root_of(url: str, source: Target) -> str:
    """Return the folder that limits a prefix crawl whose seed redirects to `url`.

    The folder never becomes wider: if `/docs/` redirects to `/login`, or to another host's `/`, it
    stays `/docs/`. A crawl of a whole host covers the whole other host.
    """
    folder, host = _folder(url), host_of(url)
    kept = source.root or _folder(source.url)
    before = kept[len(host_of(kept)) :]
    keeps = before == "/" or before.startswith(folder[len(host) :])
    return host + before if keeps else folder


def leaves_scope(crawl: Crawl, url: str, source: Target) -> bool:
    """Return True if an admitted redirect leads out of the present scope."""
    if source.kind is TargetKind.SITEMAP:
        return False  # its entries are checked one by one
    return not in_scope(crawl, url, source.url, source.root)


# --- sitemaps -----------------------------------------------------------------------------------


def admit_sitemap(
    crawl: Crawl,
    url: str,
    *,
    site: str | None = None,
    referrer: str | None = None,
    root: str | None = None,
    local: str | None = None,
) -> Target | Refusal:
    """Decide on a sitemap that a person listed, or that the robots.txt of the host `site` names."""
    # It may have any address, and every run requests it, because its entries may have changed.
    if depth_limits(crawl)[1] < 1:
        return Refusal.DEPTH
    return Target(
        url=url,
        depth=0,
        referrer=referrer,
        root=root,
        local=local,
        kind=TargetKind.SITEMAP,
        site=site,
        modified_at_ms=_newer(crawl, crawl.started_at_ms),
    )


def hosts_for_sitemap(crawl: Crawl, sitemap: Target) -> frozenset[str]:
    """Return the hosts whose pages a sitemap may list.

    If robots.txt of a host names the sitemap, only that host (sitemaps.org: a cross submit). If a
    person listed it, its own host and the hosts of the seeds.
    """
    if sitemap.site is not None:
        return frozenset({sitemap.site})
    return frozenset({host_of(sitemap.url), *map(host_of, crawl.anchors or crawl.seeds)})


def admit_entry(
    crawl: Crawl,
    entry: SitemapEntry,
    sitemap: Target,
    hosts: frozenset[str],
    bounds: Bounds = DEFAULT_BOUNDS,
) -> Target | Refusal:
    """Decide on a page in a sitemap that may list pages of `hosts`. It has depth 1."""
    url, depth = entry.url, sitemap.depth + 1
    said = _within(crawl, url, depth)
    if said is None:
        return Refusal.DEPTH
    if crawl.scope is Scope.PREFIX:
        belongs = in_scope(crawl, url, sitemap.url, sitemap.root)
    else:
        belongs = is_on_hosts(crawl, url, hosts)
    if not belongs:
        return Refusal.SCOPE
    left_out = admit_pattern(crawl, url) or trap_reason(url, bounds)
    if left_out is not None:
        return left_out
    target = replace(
        link_target(sitemap, url, depth),
        modified_at_ms=_newer(crawl, entry.modified_at_ms, said.window_s),
        # Its referrer does not prove that it belongs to the crawl. The host that named the sitemap
        # does.
        site=None if host_of(url) == host_of(sitemap.url) else sitemap.site,
    )
    return apply_rule(target, said)


def admit_child(
    crawl: Crawl, entry: SitemapEntry, index: Target, hosts: frozenset[str]
) -> Target | Refusal:
    """Decide on a sitemap in an index: it must be on the index's own host, or on one of `hosts`."""
    if index.hops >= INDEXES_MAX:
        return Refusal.DEPTH
    if not is_on_hosts(crawl, entry.url, hosts | {host_of(index.url)}):
        return Refusal.SCOPE
    # Every run requests a sitemap without a modification time.
    modified_at_ms = entry.modified_at_ms
    if modified_at_ms is None:
        modified_at_ms = crawl.started_at_ms
    return replace(
        index,
        url=entry.url,
        attempt=1,
        hops=index.hops + 1,
        referrer=index.url,
        prior=None,
        modified_at_ms=_newer(crawl, modified_at_ms),
        first=0,
        counted=False,
    )


def is_on_hosts(crawl: Crawl, url: str, hosts: frozenset[str]) -> bool:
    """Return True if a URL is on one of these hosts, or on their sites in a domain crawl."""
    if host_of(url) in hosts:
        return True
    return crawl.scope is Scope.DOMAIN and any(same_site(url, host) for host in hosts)


def _newer(crawl: Crawl, modified_at_ms: int | None, window_s: int | None = None) -> int | None:
    """Return the modification time to compare with claims of earlier runs, or None."""
    if modified_at_ms is None:
        return None
    # Never later than the crawl's start, so that the crawl's own claims hold, whatever a sitemap
    # states.
    modified_at_ms = min(modified_at_ms, crawl.started_at_ms)
    # A change before the dedup window has no effect.
    stale_before_ms = crawl.stale_before_ms(crawl.started_at_ms, window_s)
    return modified_at_ms if modified_at_ms > stale_before_ms else None


def admit_target(crawl: Crawl, now_ms: int) -> Reason | None:
    """Return why a crawl's claimed URLs may not be requested now, or None if they may."""
    if crawl.state in (State.STOPPING, State.FINISHED):
        return Reason.DURATION if crawl.stop is Stop.DURATION else Reason.CANCELLED
    if not crawl.continuous and now_ms >= crawl.started_at_ms + crawl.duration_max_s * 1000:
        return Reason.DURATION
    return None


def admit_pattern(crawl: Crawl, url: str, *, seed: bool = False) -> Refusal | None:
    """Return the pattern refusal of a URL, if any. Include patterns do not apply to seeds."""
    if crawl.exclude and matches(crawl.exclude, url):
        return Refusal.EXCLUDE
    if crawl.include and not seed and not matches(crawl.include, url):
        return Refusal.INCLUDE
    return None
