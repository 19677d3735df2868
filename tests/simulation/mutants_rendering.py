"""Breaks of the way of pages to workers with a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.model.crawl_settings import RenderMode
from orbweaver.worker import render_lane
from orbweaver.worker.page_rendering import PageLoader
from orbweaver.worker.render_lane import RenderLane
from orbweaver.worker.rendering_choice import RenderChoice
from tests.simulation.mutant import mutants

if TYPE_CHECKING:
    from tests.simulation.scenario import Scenario


def rendering(plan: Scenario) -> bool:
    """Take those with a crawl of which pages are rendered."""
    return any(crawl.render is not RenderMode.NEVER for crawl in plan.crawls)


def polite(plan: Scenario) -> bool:
    """Take those of them that leave hosts alone between two requests."""
    return rendering(plan) and any(crawl.delay_ms for crawl in plan.crawls)


def at_once(plan: Scenario) -> bool:
    """Take those of which each page is to be rendered."""
    return any(crawl.render is RenderMode.ALWAYS for crawl in plan.crawls)


def _unmarked(target: Any, key: str) -> Any:
    """Send a page on as any other."""
    sent = _WHOLE_SENDING(target, key)
    return replace(sent, end=replace(sent.end, target=target))


async def _passed_over(self: Any, crawl: Any, result: Any, targets: Any) -> Any:
    """Leave what is for others out, and do not send it there."""
    return [one for one in targets if not await self._chooser.expects(crawl, one.url)]


async def _kept(*_: Any) -> Any:
    """Take every page as it was fetched."""
    return RenderChoice(render=False)


async def _at_once(*_: Any) -> Any:
    """Ask for what a page asks for without waiting for a slot."""
    return None


_WHOLE_SENDING = render_lane.__dict__["_sent"]

MUTANTS = (
    mutants(
        ("a page sent on loses its mark", render_lane, "_sent", _unmarked),
        ("a page is kept without its scripts", RenderLane, "after", _kept),
        where=rendering,
    )
    + mutants(
        ("pages for others are passed over", RenderLane, "before", _passed_over), where=at_once
    )
    + mutants(("scripts ask at once", PageLoader, "_waited", _at_once), where=polite)
)
