"""Validate a crawl's URL rules, and apply them to a claimed URL: depth limit and host delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import CrawlSettings, settings_of
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url_patterns import problems_of_rules
from orbweaver.model.url_rules import NO_RULE, RULE_SETTINGS, UrlRule, combined_rule

# A rule's values have the bounds of the crawl's own settings.
_BOUNDED = tuple(
    one
    for one in settings_of(CrawlSettings)
    if one.bounds is not None and one.name in RULE_SETTINGS
)


def rule_for_target(crawl: Crawl, target: Target) -> UrlRule:
    """Return the settings that URL rules give this URL. Rules do not apply to sitemaps."""
    return NO_RULE if target.kind is TargetKind.SITEMAP else combined_rule(crawl.rules, target.url)


def depth_limit(crawl: Crawl, said: UrlRule) -> int:
    """Return the depth limit of the rule `said` if it has one, else the crawl's limit."""
    return crawl.depth_max if said.depth_max is None else said.depth_max


def depth_limits(crawl: Crawl) -> tuple[int, int]:
    if not crawl.rules:
        return crawl.depth_max, crawl.depth_max
    return _extremes(crawl.depth_max, tuple(rule.depth_max for rule in crawl.rules))


def delay_ms(crawl: Crawl, target: Target) -> int:
    """Return the delay in ms between the request of this URL and the next request to its host."""
    said = rule_for_target(crawl, target)
    return crawl.delay_ms if said.delay_ms is None else said.delay_ms


def by_delay(crawl: Crawl, targets: Sequence[Target]) -> list[tuple[int, list[Target]]]:
    """Group URLs of one host by delay, shortest first, so that no URL waits for a longer delay."""
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


# --- validation ---------------------------------------------------------------------------------


def problems_of(rules: tuple[UrlRule, ...]) -> Iterator[tuple[str, str]]:
    """Yield (key path, message) for each problem of a crawl's rules."""
    return problems_of_rules("rules", rules, _problems_of_rule)


def _problems_of_rule(path: str, rule: UrlRule) -> Iterator[tuple[str, str]]:
    if all(getattr(rule, thing) is None for thing in RULE_SETTINGS):
        fix = "give one of depth, priority, delay, window, follow and record"
        yield path, f"it says nothing of its URLs: {fix}"
    for one in _BOUNDED:
        if (text := one.problem_of(getattr(rule, one.name))) is not None:
            yield f"{path}.{one.key.rpartition('.')[2]}", text
