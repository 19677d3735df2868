"""Pages that need scripts, and workers with a browser and their own queue.

The links that a script adds are known beforehand, so the expected result includes them. Such a page
also requests data from its host while its scripts run, in its own slot like any request.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from orbweaver.model.crawl_settings import RenderMode
from orbweaver.rendering.task import RenderCounts, Rendered, ResourceRequest
from tests.simulation.web import html_of, split

if TYPE_CHECKING:
    from orbweaver.rendering.task import RenderResult, RenderTask, ResourceLoader
    from tests.simulation.process import Process
    from tests.simulation.scenario import CrawlPlan
    from tests.simulation.sites import Site

# Path of data that pages request while their scripts run.
DATA = "/data/"
QUEUE, BROWSER = "render", "a browser"
PLAIN_LINKS_MAX = 3


def scripted(seed: int, sites: list[Site], plans: list[CrawlPlan]) -> list[CrawlPlan]:
    """Let scripts add links to pages of some seeds, by a separate random generator."""
    random = Random(f"rendering/{seed}")
    if random.random() < 0.75:
        return plans
    for site in sites:
        for path, page in site.pages.items():
            html = page.status == 200 and page.kind == "text/html" and page.location is None
            if html and page.links and not page.poison and random.random() < 0.4:
                plain = random.randint(0, min(PLAIN_LINKS_MAX, len(page.links) - 1))
                fetched, shown = page.links[:plain], page.links[plain:]
                # Conditional requests only concern pages as fetched.
                site.pages[path] = replace(page, links=fetched, scripted=shown, etag=None)
    mode = random.choice((RenderMode.AUTO, RenderMode.AUTO, RenderMode.ALWAYS))
    return [replace(plan, render=mode) for plan in plans]


class SimRenderer:
    """Browser of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def render(self, task: RenderTask, loader: ResourceLoader) -> RenderResult:
        """Return the page as its scripts show it, after they have loaded its data."""
        cloud = self._process.cloud
        cloud.trace.counts["rendered"] += 1
        origin, path = split(task.url)
        site = cloud.web.sites[origin]
        page = site.page(path)
        await asyncio.sleep(0.2)
        if page is None or not page.scripted:
            return Rendered(html=task.document.body, counts=RenderCounts())
        await loader.load(ResourceRequest(url=f"{origin}{DATA}{path[1:]}", kind="fetch"))
        return Rendered(html=html_of(page, shown=True), counts=RenderCounts(asked=1))
