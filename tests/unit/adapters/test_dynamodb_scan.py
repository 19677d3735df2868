"""A scan reads every segment, each once, and leaves no request behind when it is left early."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest

from orbweaver.adapters.dynamodb.scan import SEGMENTS, scan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orbweaver.adapters.dynamodb.table import Dynamo

PAGES = {0: [["a", "b"], ["c"]], 1: [], 2: [[], ["d"]], 3: [["e"]]}


class Table:
    """A table of four segments; requests of the last one may hang until they are cancelled."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.hangs = hangs
        self.asked: list[dict[str, Any]] = []
        self.ended: list[str] = []

    async def pages(self, operation: str, **asked: Any) -> AsyncIterator[list[str]]:
        """See Dynamo."""
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


async def test_every_item_is_read() -> None:
    """All pages of all segments, strongly consistent: what was just written is found."""
    table = Table()
    found = [item async for item in scan(cast("Dynamo", table), "urls")]
    assert sorted(cast("list[str]", found)) == list("abcde")
    assert table.asked == [
        {
            "TableName": "urls",
            "Segment": segment,
            "TotalSegments": SEGMENTS,
            "ConsistentRead": True,
        }
        for segment in range(SEGMENTS)
    ]


async def test_a_scan_that_is_left_early_ends_its_requests() -> None:
    """What it had asked for is cancelled, and awaited to its end."""
    table = Table(hangs=True)
    async with aclosing(scan(cast("Dynamo", table), "urls")) as items:
        async for _ in items:
            break
    assert table.ended == ["hanging"]


async def test_a_fault_of_one_segment_ends_all() -> None:
    """A segment that cannot be read is no end of the table: the scan fails, and the others end."""
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
