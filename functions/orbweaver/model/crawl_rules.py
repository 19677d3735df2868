"""A crawl's rules for a claimed URL: its greatest depth, and its host's delay."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from orbweaver.model.crawl import Crawl
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url_rules import NOTHING, UrlRule, said_of


def said_of_target(crawl: Crawl, target: Target) -> UrlRule:
    """Put together what a crawl's rules say of a claimed URL; nothing of sitemaps."""
    return NOTHING if target.kind is TargetKind.SITEMAP else said_of(crawl.rules, target.url)


def depth_limit(crawl: Crawl, said: UrlRule) -> int:
    """How deep a URL may lie of which rules say this."""
    return crawl.depth_max if said.depth_max is None else said.depth_max


def depth_limits(crawl: Crawl) -> tuple[int, int]:
    """Bound how deep a URL may lie, whichever it is: at least, at most."""
    if not crawl.rules:
        return crawl.depth_max, crawl.depth_max
    return _extremes(crawl.depth_max, tuple(rule.depth_max for rule in crawl.rules))


def delay_ms(crawl: Crawl, target: Target) -> int:
    """How long a crawl waits between two requests to a host, the first of them this one."""
    said = said_of_target(crawl, target)
    return crawl.delay_ms if said.delay_ms is None else said.delay_ms


def by_delay(crawl: Crawl, targets: Sequence[Target]) -> list[tuple[int, list[Target]]]:
    """Group a host's targets by their delay, the shortest first, so that none waits for longer."""
    if not crawl.rules:
        return [(crawl.delay_ms, list(targets))]
    groups: dict[int, list[Target]] = {}
    for target in targets:
        groups.setdefault(delay_ms(crawl, target), []).append(target)
    return sorted(groups.items(), key=lambda group: group[0])


@lru_cache(maxsize=16)
def _extremes(depth_max: int, said: tuple[int | None, ...]) -> tuple[int, int]:
    limits = [depth_max, *(depth for depth in said if depth is not None)]
    return min(limits), max(limits)
