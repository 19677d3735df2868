"""Requests of a page after the page has closed."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from orbweaver.rendering.paused_requests import PausedRequests, SharedAssets
from orbweaver.rendering.process import Connection
from orbweaver.rendering.task import RenderLimits
from tests.rendering.stage import URL, Site, page, task_of


def paused(url: str) -> dict[str, Any]:
    request = {"url": url, "method": "GET", "headers": {}}
    return {"requestId": url, "resourceType": "Fetch", "request": request}


async def test_request_during_close_is_not_started_or_counted() -> None:
    site = Site(delay_s=60)
    requests = PausedRequests(
        Mock(Connection), task_of(page("x")), site, SharedAssets(), RenderLimits(), lambda: None
    )
    requests.take("s", paused(URL + "before"), main=False, popup=False)
    assert requests.open == 1
    await requests.close()
    requests.take("s", paused(URL + "after"), main=False, popup=False)
    assert requests.open == 0
    assert requests.paused == 1
