"""A server that answers `Query` like DynamoDB, with generated page records.

It stores only the order of the keys. A page of an answer has at most 1 MB, and the start of the
next page.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import bisect
import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from orbweaver.adapters.dynamodb.table import to_item
from orbweaver.model.page_record import page_key, shard_of, to_fields
from orbweaver.model.url import url_hash
from tests.exports_scale.records import CRAWL, DAY, SHARDS, page, segments, url_of

ANSWER_BYTES_MAX = 1_000_000
EXPIRES_S = 4_102_444_800
JSON = "application/x-amz-json-1.0"


class PagesTable:
    """Numbers of records by partition and key."""

    def __init__(self, rows: int, *, bodies: bool) -> None:
        self._bodies = bodies
        if bodies:
            for _ in segments(rows):  # records the places of the pages
                pass
        self._partitions: dict[str, list[tuple[str, int]]] = {
            f"{DAY}#{shard}": [] for shard in range(SHARDS)
        }
        for number in range(rows):
            digest = url_hash(url_of(number))
            partition = self._partitions[f"{DAY}#{shard_of(digest, SHARDS)}"]
            partition.append((f"{CRAWL}#{digest}", number))
        for partition in self._partitions.values():
            partition.sort()

    async def answer(self, request: web.Request) -> web.Response:
        operation = request.headers["X-Amz-Target"].rpartition(".")[2]
        assert operation == "Query", operation
        body = self._query(json.loads(await request.read()))
        return web.Response(body=body, content_type=JSON)

    def _query(self, asked: Mapping[str, Any]) -> bytes:
        values = {
            name: next(iter(value.values()))
            for name, value in asked["ExpressionAttributeValues"].items()
        }
        keys = self._partitions.get(values[":day"], [])
        low = values.get(":first") or values[":after"] + "\0"
        start = bisect.bisect_left(keys, (low, -1))
        end = bisect.bisect_right(keys, (values.get(":last", "\U0010ffff"), 1 << 60))
        if "ExclusiveStartKey" in asked:
            start = max(
                start, bisect.bisect_right(keys, (asked["ExclusiveStartKey"]["k"]["S"], 1 << 60))
            )
        if asked.get("Select") == "COUNT":
            return json.dumps({"Count": max(0, end - start)}).encode()
        items: list[str] = []
        size = 0
        limit = asked.get("Limit", end)
        while start < end and size < ANSWER_BYTES_MAX and len(items) < limit:
            key, number = keys[start]
            items.append(self._item(values[":day"], key, number))
            size += len(items[-1])
            start += 1
        text = f'"Items":[{",".join(items)}],"Count":{len(items)}'
        if start < end:
            last = {"day": {"S": values[":day"]}, "k": {"S": keys[start - 1][0]}}
            text += f',"LastEvaluatedKey":{json.dumps(last)}'
        return f"{{{text}}}".encode()

    def _item(self, day: str, key: str, number: int) -> str:
        record = page(number, bodies=self._bodies)
        fields = to_fields(record, packed=True)
        item = to_item({**fields, "day": day, "k": key, "expires_at": EXPIRES_S})
        return json.dumps(item, default=_in_base64)

    def check(self) -> None:
        for partition, keys in self._partitions.items():
            for key, number in keys[:3]:
                assert page_key(page(number, bodies=self._bodies), SHARDS) == (partition, key)


def _in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


async def serve(table: PagesTable) -> None:
    """Print the port and serve on this machine until standard input ends."""
    app = web.Application()
    app.router.add_post("/", table.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    try:
        await asyncio.to_thread(input)
    except EOFError:
        pass
    finally:
        await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--bodies", action="store_true")
    asked = parser.parse_args()
    table = PagesTable(asked.rows, bodies=asked.bodies)
    table.check()
    asyncio.run(serve(table))


if __name__ == "__main__":
    main()
