"""Crawl rules implemented a second time, with Python's `re`, to check the product's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.url_rules import UrlRule
    from tests.simulation.scenario import CrawlPlan, Scenario

EDIT = "edit rules"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A crawl's rules for URLs, as they are at one time."""

    rules: tuple[UrlRule, ...]
    depth_max: int = 100

    def depth(self, url: str) -> int:
        return int(self._said(url, "depth_max", self.depth_max))

    def high(self, url: str) -> bool:
        return bool(self._said(url, "express", False))

    def follows(self, url: str) -> bool:
        return bool(self._said(url, "follow", True))

    def records(self, url: str) -> bool:
        return bool(self._said(url, "record", True))

    def delay_ms(self, url: str, own_ms: int) -> int:
        """Return the host's delay after a request for this URL."""
        return int(self._said(url, "delay_ms", own_ms))

    def window_s(self, url: str, own_s: int) -> int:
        return int(self._said(url, "window_s", own_s))

    def _said(self, url: str, thing: str, otherwise: Any) -> Any:
        for rule in self.rules:
            said = getattr(rule, thing)
            if said is not None and re.search(rule.match, url):
                return said
        return otherwise


def meanings(plan: Scenario, crawl: Crawl) -> tuple[Meaning, ...]:
    """Return the meaning of each rule set that a crawl had."""
    versions = {crawl.rules}
    for one in plan.crawls:
        if one.name == crawl.name and edited(one):
            versions |= {one.rules, one.rules_then}
    return tuple(Meaning(rules, crawl.depth_max) for rules in versions)


def edited(plan: CrawlPlan) -> bool:
    return any(action == EDIT for _, action in plan.actions)
