"""Decide which URLs a crawl may claim or request. In doubt, a URL is refused.

A refused link is counted for the page that contains it. A claimed URL that is refused ends with the
refusal's reason. frontier/crawl_scope.py decides whether a URL in a message belongs to its crawl at
all.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from orbweaver.frontier.crawler_traps import is_reordered_index, trap_reason
from orbweaver.model.api_source import ApiSource, api_at, api_of
from orbweaver.model.auth import leaves_session
from orbweaver.model.crawl import Crawl, State, Stop
from orbweaver.model.crawl_rules import depth_limit, depth_limits
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.named_origins import non_public_origin_of
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import DEFAULT_BOUNDS, Bounds, host_of, same_site
from orbweaver.model.url_patterns import matches
from orbweaver.model.url_rules import UrlRule, combined_rule

if TYPE_CHECKING:
    from orbweaver.parsing.sitemap import SitemapEntry

REDIRECTS_MAX = 10
# A later run with other limits, scope or patterns might not refuse these links again.
LIFTABLE = frozenset(
    {Refusal.DEPTH, Refusal.SCOPE, Refusal.INCLUDE, Refusal.EXCLUDE, Refusal.BUDGET}
    | {Refusal.DOLLARS}
)
# Limit of nested sitemap indexes, including redirects to them. Sitemaps.org allows one level.
INDEXES_MAX = 3


def in_scope(crawl: Crawl, url: str, page_url: str, root: str | None = None) -> bool:
    """Return True if `url`, a link on the page `page_url`, is in the crawl's scope.

    `root` is an additional folder whose URLs are in the scope of a prefix crawl.
    """
    if url.startswith(scope_prefixes(crawl, page_url, root)):
        return True
    return crawl.scope is Scope.DOMAIN and same_site(url, page_url)


def logins_outside(crawl: Crawl) -> tuple[str, ...]:
    """Return the origins of logins at which no seed, sitemap, API or scope is."""
    begins = (*crawl.references, *crawl.scope_urls, *(api.url for api in crawl.apis))
    # A site often redirects its http URLs to https.
    begins += tuple(f"https{url[4:]}" for url in begins if url.startswith("http:"))
    return tuple(
        one.origin
        for one in crawl.auth
        if not any(
            host_of(url) == one.origin or in_scope(crawl, f"{one.origin}/", url) for url in begins
        )
    )


def scope_prefixes(crawl: Crawl, page_url: str, root: str | None = None) -> tuple[str, ...]:
    """Return prefixes of URLs that are in the scope as links on a page. Others can be, too."""
    match crawl.scope:
        case Scope.ANY:
            return ("",)
        case Scope.HOST | Scope.DOMAIN:
            return (host_of(page_url) + "/",)
        case Scope.PREFIX:
            folders = prefixes(crawl.scope_urls)
            return folders if root is None else (root, *folders)
        case _:
            assert_never(crawl.scope)


@lru_cache(maxsize=16)
def prefixes(seeds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders of seeds: each URL up to its last slash, without a query."""
    return tuple(dict.fromkeys(map(_folder, seeds)))


def _folder(url: str) -> str:
    return url.partition("?")[0].rpartition("/")[0] + "/"


def admit_seed(crawl: Crawl, url: str, *, planned: bool = True) -> Target | Refusal:
    """Return the target for a seed URL, or the refusal if an exclude pattern matches it.

    `planned` is False for a seed that was added to a running crawl.
    """
    # A seed that was added to a running crawl allows requests to its own non-public server.
    left_out = admit_pattern(crawl, url, seed=True)
    local = None if planned else non_public_origin_of(url)
    target = Target(url=url, depth=0, local=local)
    if crawl.apis and planned and (api := _api_of_seed(crawl, url)) is not None:
        target = replace(target, api=api.url, page=1)
    return left_out or apply_rule(target, combined_rule(crawl.rules, url))


def _api_of_seed(crawl: Crawl, url: str) -> ApiSource | None:
    # A run that retries failed URLs has them as seeds, also later pages of an API.
    if crawl.retry_of is not None:
        return api_at(crawl.apis, url)
    return api_of(crawl.apis, url)


def admit_again(crawl: Crawl, url: str, depth: int) -> Target | Refusal:
    """Return the target for a URL that failed in an earlier run, or the refusal.

    `depth` is the URL's depth in that run. The claim of that run does not prevent a new claim.
    """
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
    """Return a target that an earlier run left out, for this run. None if this run refuses it."""
    # A URL that was found as a link is treated as a link, and a redirect's target as a redirect.
    if target.kind is TargetKind.SITEMAP:
        return replace(target, attempt=1, failed=None, prior=None, first=0, counted=False)
    if target.page > 1:
        api = api_of(crawl.apis, target.api)
        if api is None or target.page > api.pages_max:
            return None
        return replace(target, attempt=1, failed=None, prior=None, counted=False)
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
    """Return the combined URL rules for a URL, or None if `depth` exceeds the depth limit."""
    _, most = depth_limits(crawl)
    if depth > most:
        return None
    said = combined_rule(crawl.rules, url)
    return said if depth <= depth_limit(crawl, said) else None


def apply_rule(target: Target, said: UrlRule) -> Target:
    """Return the target with the priority and the dedup window that its rule sets."""
    if not said.express and said.window_s is None:
        return target
    return replace(target, express=bool(said.express), window_s=said.window_s)


def admit_redirect(
    crawl: Crawl, url: str, source: Target, bounds: Bounds = DEFAULT_BOUNDS
) -> Target | Refusal:
    """Return the target of a redirect from `source` to `url`, or the refusal.

    It has the depth of `source` and one more hop. A seed is allowed to redirect out of the scope
    (example.com to www.example.com). This widens the scope to that host or domain, or to a folder
    there. Links on the new page must be in this additional scope.
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
    target = replace(target, api=source.api, page=source.page)
    return apply_rule(target, said)


def link_target(source: Target, url: str, depth: int) -> Target:
    """Return the target for a link on the page `source`. It inherits `root` and `local`."""
    return Target(url=url, depth=depth, referrer=source.url, root=source.root, local=source.local)


def root_of(url: str, source: Target) -> str:
    """Return the folder that limits a prefix crawl whose seed `source` redirects to `url`.

    The folder never becomes wider: if `/docs/` redirects to `/login`, or to another host's `/`, it
    remains `/docs/`. If the seed's folder is `/`, the result is `/` on the host of `url`.
    """
    folder, host = _folder(url), host_of(url)
    kept = source.root or _folder(source.url)
    before = kept[len(host_of(kept)) :]
    keeps = before == "/" or before.startswith(folder[len(host) :])
    return host + before if keeps else folder


def leaves_scope(crawl: Crawl, url: str, source: Target) -> bool:
    """Return True if an admitted redirect from `source` to `url` leaves the crawl's scope."""
    if source.kind is TargetKind.SITEMAP:
        return False  # a sitemap's entries are checked one by one
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
    """Return the target for a sitemap, or the refusal if the crawl follows no links.

    `site` is the host whose robots.txt names the sitemap, or None if a person listed it.
    """
    # A sitemap can have any address. Every run requests it, because its entries may have changed.
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
    """Return the hosts whose pages a sitemap is allowed to list.

    If the robots.txt of a host names the sitemap, this is only that host (sitemaps.org: a cross
    submit). If a person listed the sitemap, these are the sitemap's own host and the hosts of the
    seeds.
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
    """Return the target for a page that a sitemap lists, or the refusal. Its depth is 1.

    `hosts` are the hosts whose pages the sitemap is allowed to list.
    """
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
        # A page on another host than the sitemap belongs to the crawl only because `site` named the
        # sitemap.
        site=None if host_of(url) == host_of(sitemap.url) else sitemap.site,
    )
    return apply_rule(target, said)


def admit_child(
    crawl: Crawl, entry: SitemapEntry, index: Target, hosts: frozenset[str]
) -> Target | Refusal:
    """Return the target for a sitemap that the sitemap index `index` lists, or the refusal.

    The sitemap must be on the index's own host or on one of `hosts`.
    """
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
    """Return a modification time, at most the crawl's start. None: unknown or too old."""
    if modified_at_ms is None:
        return None
    # At most the crawl's start. Otherwise a wrong time in a sitemap would invalidate the crawl's
    # own claims.
    modified_at_ms = min(modified_at_ms, crawl.started_at_ms)
    # A change before the start of the dedup window has no effect.
    stale_before_ms = crawl.stale_before_ms(crawl.started_at_ms, window_s)
    return modified_at_ms if modified_at_ms > stale_before_ms else None


def admit_target(crawl: Crawl, now_ms: int) -> Reason | None:
    """Return why the crawl must not request its claimed URLs at `now_ms`, or None."""
    if crawl.state in (State.STOPPING, State.FINISHED):
        return Reason.DURATION if crawl.stop is Stop.DURATION else Reason.CANCELLED
    if not crawl.continuous and now_ms >= crawl.deadline_ms:
        return Reason.DURATION
    return None


def admit_pattern(crawl: Crawl, url: str, *, seed: bool = False) -> Refusal | None:
    """Return the refusal if patterns of the crawl or of its login exclude a URL, else None.

    Include patterns do not apply to seeds. Links that end the session of a login are refused, too.
    """
    if crawl.auth and leaves_session(crawl.auth, url):
        return Refusal.LOGOUT
    if crawl.exclude and matches(crawl.exclude, url):
        return Refusal.EXCLUDE
    if crawl.include and not seed and not matches(crawl.include, url):
        return Refusal.INCLUDE
    return None
