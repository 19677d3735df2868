"""The site in its own process, so that its log times do not include delays of the run.

    python -m tests.chaos.site --seed 7 --pages 3000

It prints a JSON list of its hosts' URLs when all of them listen, and ends with its standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.chaos.layout import (
    DELAYS_MS,
    FORBIDDEN_PREFIX,
    RETRY_AFTER_S,
    Kind,
    Layout,
    generate,
)
from tests.sites.child import Child
from tests.sites.graph import Graph, Script, page, redirect, robots
from tests.sites.server import Answer, listening

ROOT = Path(__file__).parents[2]
STOP_S = 10
FAILED = Answer(status=500)
BUSY = Answer(status=429, headers=(("Retry-After", str(RETRY_AFTER_S)),))


def scripts_of(layout: Layout, host: int, hosts: Sequence[str]) -> dict[str, Script]:
    delay_s = DELAYS_MS[host] / 1000
    text = f"User-agent: *\nCrawl-delay: {delay_s:g}\nDisallow: {FORBIDDEN_PREFIX}\n"
    scripts: dict[str, Script] = {"/robots.txt": robots(text)}
    for item in layout.pages:
        if item.place.host == host:
            path = item.place.path
            read = page(f"Page {path}", [link.url(hosts) for link in item.links])
            scripts[path] = _script(item.kind, read)
    for place, target in layout.redirects.items():
        if place.host == host:
            scripts[place.path] = redirect(target.url(hosts))
    return scripts


def _script(kind: Kind, read: Answer) -> Script:
    match kind:
        case Kind.PLAIN:
            return read
        case Kind.FAILING:
            return (FAILED, read)
        case Kind.BUSY:
            return (BUSY, read)


async def serve(layout: Layout) -> None:
    """Serve until the standard input ends."""
    async with contextlib.AsyncExitStack() as stack:
        graphs = [Graph({}) for _ in DELAYS_MS]
        for graph in graphs:
            await stack.enter_async_context(listening(graph))
        hosts = [graph.url for graph in graphs]
        for number, graph in enumerate(graphs):
            graph.scripts.update(scripts_of(layout, number, hosts))
        print(json.dumps(hosts), flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextlib.contextmanager
def running(seed: int, pages: int) -> Iterator[tuple[Child, ...]]:
    """Run the site during a block: one process with all hosts, and a handle for each host."""
    words = [sys.executable, "-m", "tests.chaos.site", "--seed", str(seed), "--pages", str(pages)]
    process = subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:  # Leaving the block closes the pipes, which stops the child.
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise RuntimeError(f"the site ended with code {process.wait(STOP_S)}")
            yield tuple(Child(url, process.pid) for url in json.loads(line))
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.site")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--pages", type=int, required=True)
    asked = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(generate(asked.seed, asked.pages)))


if __name__ == "__main__":
    main()
