"""Mutants of the route of pages to workers with a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.model.crawl_settings import RenderMode
from orbweaver.worker import render_lane
from orbweaver.worker.page_rendering import PageLoader
from orbweaver.worker.render_lane import RenderLane
from orbweaver.worker.rendering_choice import RenderChoice
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def rendering(plan: Scenario) -> bool:
    """Scenarios with rendered pages."""
    return any(crawl.render is not RenderMode.NEVER for crawl in plan.crawls)


def polite(plan: Scenario) -> bool:
    """Those with a delay between requests."""
    return rendering(plan) and any(crawl.delay_ms for crawl in plan.crawls)


def at_once(plan: Scenario) -> bool:
    """Those in which every page is rendered."""
    return any(crawl.render is RenderMode.ALWAYS for crawl in plan.crawls)


def _unmarked(target: Any, key: str) -> Any:
    """Send a page on without its mark."""
    sent = _WHOLE_SENDING(target, key)
    return replace(sent, end=replace(sent.end, target=target))


async def _passed_over(self: Any, crawl: Any, result: Any, targets: Any) -> Any:
    """Leave pages for other workers out, without sending them there."""
    return [one for one in targets if not await self._chooser.expects(crawl, one.url)]


async def _kept(*_: Any) -> Any:
    """Accept every page as fetched."""
    return RenderChoice(render=False)


async def _at_once(*_: Any) -> Any:
    """Send a page's requests without waiting for a slot."""
    return None


_WHOLE_SENDING = render_lane.__dict__["_sent"]

MUTANTS = (
    mutants(
        ("a page sent on loses its mark", render_lane, "_sent", _unmarked),
        ("a page is kept without its scripts", RenderLane, "route_after_fetch", _kept),
        where=rendering,
    )
    + mutants(
        ("pages for others are passed over", RenderLane, "route_before_fetch", _passed_over),
        where=at_once,
    )
    + mutants(("scripts ask at once", PageLoader, "_waited", _at_once), where=polite)
)
