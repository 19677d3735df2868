"""Peak memory of a worker whose pages all have the maximum size."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from orbweaver.model.settings import Settings
from tests.integration.fetcher.origin import Asked, serving
from tests.sites.steps import Act, Step

# Part of a worker's minimum of 375 MiB (`infra/config.py`): programs, bodies, and one page being
# parsed. Elsewhere the parser has its own process.
MEMORY_MIB = 220
CHUNK = (b"<p>x <a href=/y>z</a> " + b"lorem ipsum " * 20) * 250
NOWHERE = {
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
}


async def test_full_batch_of_largest_pages_fits() -> None:
    """64 pages at once, each cut at the limit (case 60)."""
    chunks = Settings().fetching.body_bytes_max // len(CHUNK) + 2

    def say(_asked: Asked) -> list[Step]:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        return [head, *[CHUNK] * chunks, Act.CLOSE]

    async with serving(say) as origin:
        crowd = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.integration.fetcher.crowd",
            origin.url(),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **NOWHERE, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        printed, _ = await crowd.communicate()
    came = json.loads(printed)
    assert came["done"] == Settings().fetching.fetch_concurrency
    assert came["peak_mib"] < MEMORY_MIB, came
