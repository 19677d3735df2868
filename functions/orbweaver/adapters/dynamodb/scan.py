"""Scan whole tables, in parallel segments with strong consistency.

A scan costs one read unit per 4 KB, about $0.03 per GB. Source: Amazon DynamoDB developer guide,
"Parallel scan".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from orbweaver.adapters.dynamodb.table import Dynamo, Item

SEGMENTS = 4


async def scan(dynamo: Dynamo, table: str) -> AsyncGenerator[Item, None]:
    """Yield all items of a table, reading one page of each segment ahead."""
    segments = [
        dynamo.pages(
            "scan",
            TableName=table,
            Segment=segment,
            TotalSegments=SEGMENTS,
            ConsistentRead=True,
        )
        for segment in range(SEGMENTS)
    ]
    reading = {asyncio.ensure_future(anext(pages, None)): pages for pages in segments}
    try:
        while reading:
            done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                pages = reading.pop(task)
                if (found := await task) is not None:
                    reading[asyncio.ensure_future(anext(pages, None))] = pages
                    for item in found:
                        yield item
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
