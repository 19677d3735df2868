"""Cost of rendering a page: pages per second, CPU and memory, for applications without a network.

    python -m bench.rendering [--pages 60] [--tabs 4] [--packed] [--page app|timer]

- An `app` page is a shell whose script fetches a list, shows 60 links, waits 700 ms, and fetches
  and shows 60 more. Answers take 20 ms. A `timer` page shows 120 links after 200 ms, by an inline
  script.
- `page_s` is the time of a page in the renderer, `pages_cut` counts the pages ended by a limit. CPU
  is reported for all browser processes including start and end, and separately for this program.
- `--packed` uses the functions' browser on AWS, which npm fetches. Unpacking it counts neither as
  time nor as CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from orbweaver.parsing.page import parse
from orbweaver.rendering.launch import INSTALL, BrowserProgram, PackedBrowser, find_browser
from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import (
    Rendered,
    RenderLimits,
    RenderResult,
    RenderTask,
    ResourceAnswer,
    ResourceRequest,
)

LINKS, ANSWER_S = 60, 0.02
SHELL = b"<!doctype html><div id=root></div><script type=module src=/app.js></script>"
TIMER = b"""<!doctype html><div id=root></div><script>setTimeout(() => {
  for (let one = 0; one < 120; one += 1) {
    const link = document.createElement('a');
    link.href = '/item/' + one;
    document.getElementById('root').append(link);
  }
}, 200)</script>"""
APP = b"""
const root = document.getElementById('root');
const show = async (from) => {
  for (const one of await (await fetch('/data?from=' + from)).json()) {
    const link = document.createElement('a');
    link.href = '/item/' + one;
    link.textContent = 'Item ' + one;
    root.append(link, new Image());
  }
};
await show(0);
await new Promise((done) => setTimeout(done, 700));
await show(60);
"""


class Site:
    """Answers from memory, after a short wait."""

    waiting = 0

    async def load(self, request: ResourceRequest) -> ResourceAnswer:
        await asyncio.sleep(ANSWER_S)
        if request.url.endswith("/app.js"):
            return ResourceAnswer(
                status=200, headers=(("Content-Type", "text/javascript"),), body=APP
            )
        first = int(request.url.rpartition("=")[2])
        return ResourceAnswer(
            status=200,
            headers=(("Content-Type", "application/json"),),
            body=json.dumps(list(range(first, first + LINKS))).encode(),
        )


async def measure(
    program: str | Callable[[], BrowserProgram], pages: int, tabs: int, body: bytes = SHELL
) -> dict[str, float]:
    html = (("Content-Type", "text/html"),)
    document = ResourceAnswer(status=200, headers=html, body=body)
    site, renderer = Site(), Renderer(program, RenderLimits(tabs=tabs))
    began_s, own_s = time.monotonic(), time.process_time()
    browsers_s = _children_s()
    begun = asyncio.Semaphore(tabs)
    pages_s: list[float] = []

    async def render(number: int) -> RenderResult:
        async with begun:
            page_began_s = time.monotonic()
            task = RenderTask(url=f"https://shop.example/{number}", document=document)
            result = await renderer.render(task, site)
            pages_s.append(time.monotonic() - page_began_s)
            return result

    async with renderer:
        results = await asyncio.gather(*map(render, range(pages)))
        took_s = time.monotonic() - began_s
    found = [
        len(parse(one.html, "https://shop.example/", "text/html").links)
        for one in results
        if isinstance(one, Rendered)
    ]
    return {
        "pages_per_s": round(pages / took_s, 2),
        "page_s_median": round(median(pages_s), 2),
        "page_s_max": round(max(pages_s), 2),
        "pages_cut": sum(isinstance(one, Rendered) and one.cut is not None for one in results),
        "cpu_s_browser": round((_children_s() - browsers_s) / pages, 3),
        "cpu_s_program": round((time.process_time() - own_s) / pages, 3),
        "memory_mb_highest": renderer.memory_bytes_highest // 1_000_000,
        "links_found_percent": round(100 * sum(found) / (2 * LINKS * pages), 1),
    }


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rendering")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--tabs", type=int, default=4)
    parser.add_argument("--packed", action="store_true", help="the browser of functions on AWS")
    parser.add_argument("--page", choices=("app", "timer"), default="app")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        program = _packed(Path(folder)) if given.packed else find_browser()
        if program is None:
            raise SystemExit(INSTALL)
        body = SHELL if given.page == "app" else TIMER
        print(json.dumps(asyncio.run(measure(program, given.pages, given.tabs, body))))


def _packed(folder: Path) -> Callable[[], BrowserProgram]:
    from infra.asset import ROOT, STORE
    from infra.browser import obtain

    packed = PackedBrowser(folder=obtain(ROOT, STORE), parent=folder)
    packed.unpacked()
    return packed.unpacked


if __name__ == "__main__":
    main()
