"""What rules mean, written once more, with Python's own expressions."""

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
    """What rules mean for URLs of a crawl that they are of, as they stand at one time."""

    rules: tuple[UrlRule, ...]
    depth_max: int = 100

    def depth(self, url: str) -> int:
        """How deep a URL may lie."""
        return int(self._said(url, "depth_max", self.depth_max))

    def high(self, url: str) -> bool:
        """Whether a URL goes past others."""
        return bool(self._said(url, "express", False))

    def follows(self, url: str) -> bool:
        """Whether links of a page are taken."""
        return bool(self._said(url, "follow", True))

    def records(self, url: str) -> bool:
        """Whether a record of a page is kept."""
        return bool(self._said(url, "record", True))

    def delay_ms(self, url: str, own_ms: int) -> int:
        """How long a host is left alone after a URL."""
        return int(self._said(url, "delay_ms", own_ms))

    def window_s(self, url: str, own_s: int) -> int:
        """For how long claims of a URL hold."""
        return int(self._said(url, "window_s", own_s))

    def _said(self, url: str, thing: str, otherwise: Any) -> Any:
        for rule in self.rules:
            said = getattr(rule, thing)
            if said is not None and re.search(rule.match, url):
                return said
        return otherwise


def meanings(plan: Scenario, crawl: Crawl) -> tuple[Meaning, ...]:
    """Say what the rules of a crawl meant while it ran: once for each that it had."""
    versions = {crawl.rules}
    for one in plan.crawls:
        if one.name == crawl.name and edited(one):
            versions |= {one.rules, one.rules_then}
    return tuple(Meaning(rules, crawl.depth_max) for rules in versions)


def edited(plan: CrawlPlan) -> bool:
    """Whether the rules of a crawl change while it runs."""
    return any(action == EDIT for _, action in plan.actions)
