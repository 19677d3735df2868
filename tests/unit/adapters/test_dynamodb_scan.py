"""A table scan reads every segment once and cancels its requests when it is abandoned."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from orbweaver.adapters.dynamodb.erasure import SEGMENTS, scan
from orbweaver.adapters.dynamodb.table import Dynamo

PAGES = {0: [["a", "b"], ["c"]], 1: [], 2: [[], ["d"]], 3: [["e"]]}


class Table:
    """A table of four segments. Requests for the last one can hang until they are cancelled."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs
        self.asked: list[dict[str, Any]] = []
        self.ended: list[str] = []

    async def pages(self, operation: str, **asked: Any) -> AsyncIterator[list[str]]:
        assert operation == "scan"
        self.asked.append(asked)
        segment = asked["Segment"]
        if self.hangs and segment == SEGMENTS - 1:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                self.ended.append("hanging")
        for page in PAGES[segment]:
            await asyncio.sleep(0)
            yield page


async def test_scan_reads_every_item_consistently() -> None:
    table = Table()
    found = [item async for item in scan(cast("Dynamo", table), "urls")]
    assert sorted(cast("list[str]", found)) == list("abcde")
    common = {"TableName": "urls", "TotalSegments": SEGMENTS, "ConsistentRead": True}
    assert table.asked == [{**common, "Segment": segment} for segment in range(SEGMENTS)]


async def test_abandoned_scan_cancels_its_requests() -> None:
    table = Table(hangs=True)
    async with aclosing(scan(cast("Dynamo", table), "urls")) as items:
        async for _ in items:
            break
    assert table.ended == ["hanging"]


async def test_fault_of_one_segment_fails_scan() -> None:
    table = Table(hangs=True)
    fault = RuntimeError("throttled")

    async def failing(operation: str, **asked: Any) -> AsyncIterator[list[str]]:
        async for page in Table.pages(table, operation, **asked):
            if asked["Segment"] == 0:
                raise fault
            yield page

    table.pages = failing  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="throttled"):
        _ = [item async for item in scan(cast("Dynamo", table), "urls")]
    assert table.ended == ["hanging"]
