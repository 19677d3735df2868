"""The floor: the cost of fetching, parsing and an in-memory set in Python.

It uses aiohttp, lexbor and ada like the crawler, with 64 tasks on one queue. It has no retries,
limits, records or protection, so it is a lower bound for a crawler.
"""

from __future__ import annotations

import asyncio
import sys

import ada_url
import aiohttp
from selectolax.lexbor import LexborHTMLParser

from bench.clients.said import arguments, said

OK = 200


async def crawl(start: str, at_once: int) -> dict[str, int]:
    origin = ada_url.join_url(start, "/")
    got = {"pages": 0, "titles": 0, "bytes": 0}
    seen = {start}
    todo: asyncio.Queue[str] = asyncio.Queue()
    todo.put_nowait(start)
    connector = aiohttp.TCPConnector(limit=at_once)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def visit(url: str) -> None:
            async with session.get(url) as answer:
                if answer.status != OK or answer.content_type != "text/html":
                    await answer.read()
                    return
                body = await answer.read()
                base = str(answer.url)
            tree = LexborHTMLParser(body)
            title = tree.css_first("title")
            got["pages"] += 1
            got["titles"] += title is not None and bool(title.text(strip=True))
            got["bytes"] += len(body)
            for link in tree.css("a[href], area[href]"):
                reference = (link.attributes["href"] or "").partition("#")[0]
                try:
                    target = ada_url.join_url(base, reference).removesuffix("#")
                except ValueError:
                    continue
                if target not in seen and target.startswith(origin):
                    seen.add(target)
                    todo.put_nowait(target)

        async def work() -> None:
            while True:
                url = await todo.get()
                await visit(url)
                todo.task_done()

        async with session.get(f"{origin}robots.txt") as robots:
            await robots.read()
        tasks = [asyncio.create_task(work()) for _ in range(at_once)]
        await todo.join()
        for task in tasks:
            task.cancel()
    return got


def main() -> None:
    asked = arguments()
    versions = {"aiohttp": aiohttp.__version__, "python": sys.version.split()[0]}
    said(asyncio.run(crawl(asked.url, asked.at_once)), versions)


if __name__ == "__main__":
    main()
