"""Membership of a message's URL in its crawl: what the message says is not enough.

- Senders to the seed queue are trusted with seeds alone. A named crawl takes from there what lies
  where its own seeds do, if its patterns take it. Such a URL never widens its scope. The crawl
  `default` takes any URL: that is what it is for.
- Packs come from the stack's own functions; their URLs are looked at again all the same, when a
  pack is taken up. A pack says where its URLs were found, and is believed in nothing else. What a
  person asked for, a seed or a sitemap, may lie anywhere.
- What is no page by its name (`frontier/file_names.py`) ends there, too, unless it was asked for
  by name, or its crawl stores files of all types.
"""

from __future__ import annotations

from functools import lru_cache
from typing import assert_never

from orbweaver.frontier.admission import (
    admit_pattern,
    admit_seed,
    in_scope,
    of_hosts,
    prefixes,
    ruled,
)
from orbweaver.frontier.file_names import names_file
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_rules import depth_limits
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.outcome import Reason, Refusal
from orbweaver.model.registrable_domain import site_of
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of, hostname_of, is_canonical
from orbweaver.model.url_rules import said_of


def admit_dropped(crawl: Crawl, url: str) -> Target | Refusal:
    """Decide on a URL from the seed queue: the target it becomes, or why it is left out."""
    if crawl.continuous or url in crawl.seeds:
        return admit_seed(crawl, url, planned=False)
    if not lies_with_seeds(crawl, url):
        return Refusal.SCOPE
    left_out = admit_pattern(crawl, url)
    target = Target(url=url, depth=0, bound=True)
    return left_out or ruled(target, said_of(crawl.rules, url))


def lies_with_seeds(crawl: Crawl, url: str) -> bool:
    """Whether a URL lies in the scope as measured by the crawl's own seeds alone."""
    match crawl.scope:
        case Scope.ANY:
            return True
        case Scope.HOST:
            return host_of(url) in _hosts(crawl.anchored)
        case Scope.DOMAIN:
            return site_of(hostname_of(url)) in _sites(crawl.anchored)
        case Scope.PREFIX:
            return url.startswith(prefixes(crawl.anchored) + crawl.roots)
        case _:
            assert_never(crawl.scope)


def is_of_one_host(crawl: Crawl) -> bool:
    """Whether all that a crawl follows lies on one host, but for redirects and later seeds."""
    return crawl.scope in (Scope.HOST, Scope.PREFIX) and len(_hosts(crawl.anchored)) == 1


@lru_cache(maxsize=16)
def _hosts(seeds: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(host_of, seeds))


@lru_cache(maxsize=16)
def _sites(seeds: tuple[str, ...]) -> frozenset[str]:
    return frozenset(site_of(hostname_of(seed)) for seed in seeds)


def admit_claimed(crawl: Crawl, target: Target) -> Reason | None:
    """Decide whether a claimed URL is to be asked for, as its pack shows it: None, or why not."""
    if not is_canonical(target.url):
        return Reason.INVALID
    if target.depth > depth_limits(crawl)[1]:
        return Reason.DEPTH
    belongs = crawl.scope is Scope.ANY or _is_linked(crawl, target)
    if not (belongs or lies_with_seeds(crawl, target.url)):
        return Reason.SCOPE
    page = target.kind is not TargetKind.SITEMAP and target.depth > 0
    return admit_name(crawl, target.url) if page else None


def admit_name(crawl: Crawl, url: str) -> Reason | None:
    """Decide whether what a link leads to may be a page, by its name; None if it may."""
    wanted = crawl.bodies is Bodies.ALL or not names_file(url)
    return None if wanted else Reason.CONTENT_TYPE


def _is_linked(crawl: Crawl, target: Target) -> bool:
    """Whether a claimed URL needs no seed beside it: asked for, or linked to from its own part."""
    if target.bound:
        return False
    if target.kind is TargetKind.SITEMAP or target.depth == 0 or target.referrer is None:
        return True
    if in_scope(crawl, target.url, target.referrer, target.root):
        return True
    return target.site is not None and of_hosts(crawl, target.url, frozenset({target.site}))
