"""Crawlee for Python with the Parsel crawler, the fastest that its documentation names.

It uses its own link extraction (`enqueue_links`), obeys robots.txt, stores everything in memory,
and logs no lines per page. Concurrency is fixed as for the others. It may use all of the CPU,
because its CPU guard would slow it down next to a server on two cores.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler
from crawlee.http_clients import HttpClient, ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient

sys.path.insert(0, str(Path(__file__).parents[2]))  # the interpreter has only Crawlee
from bench.clients.said import arguments, said


def client_for(url: str) -> HttpClient:
    """Return the default client, or over TLS a client with configurable authorities."""
    if url.startswith("https:"):
        from crawlee.http_clients import HttpxHttpClient

        return HttpxHttpClient(
            verify=ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"])
        )
    return ImpitHttpClient()


async def crawl(url: str, at_once: int) -> dict[str, int]:
    got = {"pages": 0, "titles": 0, "bytes": 0}
    crawler = ParselCrawler(
        http_client=client_for(url),
        storage_client=MemoryStorageClient(),
        configuration=Configuration(max_used_cpu_ratio=1.0),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
        ),
        respect_robots_txt_file=True,
        configure_logging=False,
    )

    @crawler.router.default_handler  # type: ignore[untyped-decorator]
    async def handle(context: Any) -> None:
        body = await context.http_response.read()
        got["pages"] += 1
        got["bytes"] += len(body)
        got["titles"] += bool((context.selector.css("title::text").get() or "").strip())
        await context.enqueue_links()

    await crawler.run([url])
    return got


def main() -> None:
    asked = arguments()
    logging.basicConfig(level=logging.ERROR)
    got = asyncio.run(crawl(asked.url, asked.at_once))
    said(got, {"crawlee": version("crawlee"), "python": sys.version.split()[0]})


if __name__ == "__main__":
    main()
