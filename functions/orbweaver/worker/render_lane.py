"""Send pages that need a browser to workers with a browser, from a worker without one.

The worker with the browser fetches the page again, and compares both versions of it. If the page
needed no browser, this costs one more request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.pack_result import PackResult, PageResult, Returning
from orbweaver.model.crawl import Crawl
from orbweaver.model.http_exchange import Response
from orbweaver.model.render_rules import renders
from orbweaver.model.target import Target, TargetKind
from orbweaver.parsing.page import Page
from orbweaver.worker.rendering_choice import RenderChoice, RenderingChooser, marks_of

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock
    from orbweaver.worker.crawl_cache import RecentCrawls

SENT_UNASKED, SENT_ASKED = "render.sent_unasked", "render.sent_asked"


class RenderLane:
    """Selects pages for workers with a browser. One instance per container."""

    def __init__(self, crawls: RecentCrawls, clock: Clock) -> None:
        self._chooser = RenderingChooser(crawls, clock)

    async def route_before_fetch(
        self, crawl: Crawl, result: PackResult, targets: Sequence[Target]
    ) -> list[Target]:
        """Requeue the targets that need a browser. Return the targets to request here."""
        if not renders(crawl):
            return list(targets)
        here: list[Target] = []
        for target in targets:
            page = target.kind is TargetKind.PAGE
            if page and await self._chooser.expects(crawl, target.url):
                result.add(_sent(target, SENT_UNASKED))
            else:
                here.append(target)
        return here

    async def route_after_fetch(
        self, crawl: Crawl, target: Target, page: Page, answer: Response
    ) -> RenderChoice | PageResult:
        """Requeue a fetched page that needs a browser, or return why it is not rendered."""
        marked, scripts = marks_of(page, answer)
        choice = await self._chooser.choose(crawl, target.url, marked=marked, scripts=scripts)
        return _sent(target, SENT_ASKED) if choice.render else choice


def _sent(target: Target, key: str) -> PageResult:
    end = Returning(target=replace(target, render=True), delay_s=0)
    return PageResult(end=end, counts={key: 1})
