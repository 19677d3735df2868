"""A plan: what a person asks of a crawl, whether it fits or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from orbweaver.model.crawl import WEEK_S, Bodies, Scope

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Headers, HostHeaders
    from orbweaver.model.item_rules import ItemRule
    from orbweaver.model.url_rules import Rule


class PlanError(ValueError):
    """A part of a plan does not fit: `field` names it, the text says the value and the fix."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


class Overlap(StrEnum):
    """What a firing does while an earlier run of its crawl has not ended."""

    SKIP = "skip"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to crawl and how; None leaves the choice to `control/spec_checks.py`.

    `id` names the run itself: the same plan under the same id is the same crawl, however often
    it is started.
    """

    seeds: tuple[str, ...] = ()
    name: str | None = None
    id: str | None = None
    scope: Scope = Scope.HOST
    depth_max: int = 20
    pages_max: int | None = None
    host_pages_max: int | None = None
    bytes_max: int | None = None
    nanodollars_max: int | None = None
    delay_ms: int = 1_000
    concurrency: int | None = None
    window_s: int = WEEK_S
    duration_s: int = WEEK_S
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    items: tuple[ItemRule, ...] = ()
    obey_robots: bool = True
    express: bool = False
    user_agents: tuple[str, ...] = ()
    headers: Headers = field(default=(), repr=False)
    host_headers: HostHeaders = field(default=(), repr=False)
    cookies: bool = False
    proxied: bool = True
    strip_parameters: tuple[str, ...] = ()
    keep_parameters: bool = False
    sitemaps: bool = True
    sitemap_urls: tuple[str, ...] = ()
    canonical_only: bool = False
    noindex_skipped: bool = False
    bodies: Bodies = Bodies.HTML
    texts: bool = False
    redacted: tuple[str, ...] = ()
    # When it recurs (control/schedule.py); starting it starts one run all the same.
    every: str | None = None
    cron: str | None = None
    timezone: str | None = None
    overlap: Overlap = Overlap.SKIP
    # May hold a secret.
    webhook: str | None = field(default=None, repr=False)
