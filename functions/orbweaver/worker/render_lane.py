"""Pages for workers with a browser, of a worker that has none: they are sent to those.

    before   by their URLs: the mode says `always`, or their kinds are known to gain
    after    by what was fetched, which is passed over: the worker with the browser fetches it again

That worker chooses by itself, and compares. So a page that was nominated in vain costs a request
more, and none is rendered that would not be where each worker has a browser. Of pages of which
nothing is known all are sent there, and wait there for what the first of them shows.
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
    """Tells which pages are for workers with a browser; one a container."""

    def __init__(self, crawls: RecentCrawls, clock: Clock) -> None:
        self._chooser = RenderingChooser(crawls, clock)

    async def before(
        self, crawl: Crawl, result: PackResult, targets: Sequence[Target]
    ) -> list[Target]:
        """Return the targets that are to be asked for here; the others are sent on."""
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

    async def after(
        self, crawl: Crawl, target: Target, page: Page, answer: Response
    ) -> RenderChoice | PageResult:
        """Send a page on that was fetched; else why it is not rendered."""
        marked, scripts = marks_of(page, answer)
        choice = await self._chooser.nominate(crawl, target.url, marked=marked, scripts=scripts)
        return _sent(target, SENT_ASKED) if choice.render else choice


def _sent(target: Target, key: str) -> PageResult:
    end = Returning(target=replace(target, render=True), delay_s=0)
    return PageResult(end=end, counts={key: 1})
