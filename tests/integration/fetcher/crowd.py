"""Measure the peak memory of a worker with a full batch of pages that exceed the size limit.

Run as a program with the URL of a test server: it fetches and parses, then prints its figures as
JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING

from bench.measure import peak
from orbweaver.app import container, wiring
from orbweaver.model.http_exchange import Request, Response
from orbweaver.model.settings import Settings
from orbweaver.parsing.page import parse
from orbweaver.parsing.sniffing import HTML_TYPES

if TYPE_CHECKING:
    from orbweaver.model.ports import Fetcher


async def main(origin: str) -> None:
    """Fetch as many pages from one server as an invocation may."""
    settings = Settings.of(allow_addresses="127.0.0.1:1-65535", fetch_total_s=60.0)
    async with container.connect(settings) as ports:
        wiring.worker_of(ports)  # All that a worker has in memory at its start.
        done = await _fetch_all(wiring.fetcher_of(ports), origin, settings)
    sys.stdout.write(json.dumps({"done": done, "peak_mib": peak(os.getpid()) / 2**20}))


async def _fetch_all(fetcher: Fetcher, origin: str, settings: Settings) -> int:
    async def one(place: int) -> bool:
        url = f"{origin}{place}"
        answer = await fetcher.fetch(
            Request(
                url=url,
                user_agent=settings.fetching.user_agent,
                accept=HTML_TYPES,
                body_bytes_max=settings.fetching.body_bytes_max,
                total_s=settings.fetching.fetch_total_s,
            )
        )
        assert isinstance(answer, Response), answer
        assert answer.body is not None
        page = parse(answer.body, url, "text/html")
        return answer.truncated and len(page.links) > 0

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(place)) for place in range(settings.fetching.fetch_concurrency)
        ]
    return sum(task.result() for task in tasks)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
