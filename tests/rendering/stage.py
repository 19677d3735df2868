"""Pages to render in tests, with an in-memory site that answers their requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from orbweaver.rendering.launch import find_browser
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    NotRendered,
    Rendered,
    RenderResult,
    RenderTask,
    ResourceAnswer,
    ResourceRefused,
    ResourceRequest,
)

PROGRAM = find_browser() or ""
NEEDS_BROWSER = [
    pytest.mark.thorough,
    pytest.mark.skipif(not PROGRAM, reason="no Chromium is installed"),
]
URL = "https://shop.example/"
HTML = (("Content-Type", "text/html; charset=utf-8"),)
SCRIPT = (("Content-Type", "text/javascript"),)
LINKS = 60


@dataclass
class Site:
    """Answers requests: files by path, after a delay."""

    files: Mapping[str, ResourceAnswer] = field(default_factory=dict)
    asked: list[ResourceRequest] = field(default_factory=list)
    delay_s: float = 0.0
    waiting: int = 0

    async def load(self, request: ResourceRequest) -> ResourceAnswer | ResourceRefused:
        self.asked.append(request)
        await asyncio.sleep(self.delay_s)
        path = "/" + request.url.partition("://")[2].partition("/")[2]
        return self.files.get(path, ResourceAnswer(status=404))

    def paths(self) -> list[str]:
        return ["/" + one.url.partition("://")[2].partition("/")[2] for one in self.asked]


def file(body: str, kind: str = "text/javascript", **headers: str) -> ResourceAnswer:
    lines = (("Content-Type", kind), *headers.items())
    return ResourceAnswer(status=200, headers=lines, body=body.encode())


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def scripted(script: str) -> str:
    """Build a page that is empty until its script has run."""
    return page(f'<div id="root"></div><script>{script}</script>')


def links_into(parent: str = "document.body", number: int = LINKS) -> str:
    return (
        f"for (let i = 0; i < {number}; i += 1) {{ const one = document.createElement('a');"
        f" one.href = '/item/' + i; one.textContent = 'Item ' + i; {parent}.append(one); }};"
    )


def task_of(html: str, url: str = URL, **given: Any) -> RenderTask:
    document = ResourceAnswer(status=200, headers=HTML, body=html.encode())
    return RenderTask(url=url, document=document, **given)


async def rendered(
    renderer: Renderer, html: str, site: Site | None = None, **given: Any
) -> Rendered:
    result = await renderer.render(task_of(html, **given), site or Site())
    assert isinstance(result, Rendered), result
    return result


def links_of(result: RenderResult) -> int:
    """Count a page's links outside scripts."""
    assert not isinstance(result, NotRendered), result
    return len(re.findall(r"<a\s[^>]*href=", text_of(result)))


def text_of(result: Rendered) -> str:
    return re.sub(r"<script.*?</script>", "", result.html.decode(), flags=re.DOTALL)
