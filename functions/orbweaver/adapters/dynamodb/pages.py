"""Page records in the `pages` table: one item per URL and crawl, partitioned by day and shard.

A key derives from its record, so storing a record twice changes nothing. Records past their
retention are not returned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws import clients
from orbweaver.adapters.dynamodb.table import Dynamo, query_request
from orbweaver.model.errors import readable
from orbweaver.model.page_record import PageRecord, from_fields, page_key, prior_keys, to_fields
from orbweaver.model.target import Prior
from orbweaver.model.version import NewerVersion

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

FIRST = " "  # before every key. LAST is after every key
LAST = "\U0010ffff"
SHARDS_AT_ONCE = 16


class DynamoPages:
    """Implements `Pages` and `History` on DynamoDB."""

    def __init__(
        self, dynamo: Dynamo, *, clock: Clock, pages_table: str, retention_s: int, shards: int
    ) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._table = pages_table
        self._retention_s = retention_s
        self._shards = shards

    @property
    def shards(self) -> int:
        return self._shards

    async def store(self, records: Sequence[PageRecord]) -> None:
        # DynamoDB rejects a batch with a repeated key. The last record counts.
        items = {page_key(record, self._shards): record for record in records}
        await self._dynamo.put_many(
            self._table,
            (
                {
                    **to_fields(record, packed=True),
                    "day": day,
                    "k": key,
                    "expires_at": record.fetched_at // 1000 + self._retention_s,
                }
                for (day, key), record in items.items()
            ),
        )

    async def earlier_records(self, priors: Mapping[str, Prior]) -> Mapping[str, PageRecord]:
        keys = [
            {"day": day, "k": key}
            for url, prior in priors.items()
            for day, key in prior_keys(prior, url, self._shards)
        ]
        items = await self._dynamo.get_many(self._table, keys, consistent=False)
        now_s = self._clock.now_ms() // 1000
        # The record of the later day counts.
        found = sorted(items, key=lambda item: str(item["day"]))
        records: dict[str, PageRecord] = {}
        for item in found:
            if item["expires_at"] > now_s:
                try:
                    records[item["url"]] = from_fields(item)
                except NewerVersion:  # as without a record, the URL is requested in full
                    records.pop(item.get("url", ""), None)
        return records

    async def read_shard(
        self, day: str, shard: int, *, after: str | None = None, crawl: str | None = None
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        # "$" follows "#" in ASCII, so all keys of a crawl are between the two.
        first, last = (FIRST, LAST) if crawl is None else (f"{crawl}#", f"{crawl}$")
        first = max(first, after or first)
        if first > last:
            return
        pages = self._dynamo.pages("query", **self._range(f"{day}#{shard}", first, last))
        async for page in pages:
            for fields in page:
                if fields["k"] != after:
                    with readable():
                        record = from_fields(fields)
                    yield fields["k"], record

    async def crawls_of(self, day: str) -> tuple[str, ...]:
        found = await clients.all_of(
            (self._crawls_in(day, shard) for shard in range(self._shards)), SHARDS_AT_ONCE
        )
        return tuple(sorted({crawl for crawls in found for crawl in crawls}))

    async def _crawls_in(self, day: str, shard: int) -> list[str]:
        # Read the first key of each crawl, then skip the rest of the crawl.
        crawls: list[str] = []
        after = FIRST
        while True:
            query = query_request(
                self._table,
                "#day = :day AND #k > :after",
                {":day": f"{day}#{shard}", ":after": after},
                ProjectionExpression="#k",
                Limit=1,
            )
            answer = await self._dynamo.call("query", **query)
            if not answer["Items"]:
                return crawls
            crawls.append(answer["Items"][0]["k"]["S"].rpartition("#")[0])
            after = f"{crawls[-1]}$"

    async def count(self, day: str, shard: int, crawl: str, rows_max: int) -> int:
        found = 0
        parameters = self._range(f"{day}#{shard}", f"{crawl}#", f"{crawl}$", Select="COUNT")
        while found < rows_max:
            answer = await self._dynamo.call("query", **parameters)
            found += answer["Count"]
            if "LastEvaluatedKey" not in answer:
                break
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return min(found, rows_max)

    def _range(self, part: str, first: str, last: str, **options: Any) -> dict[str, Any]:
        """Return a query for the records of a partition that have not expired."""
        return query_request(
            self._table,
            "#day = :day AND #k BETWEEN :first AND :last",
            {":day": part, ":first": first, ":last": last, ":now_s": self._clock.now_ms() // 1000},
            FilterExpression="#expires_at > :now_s",
            **options,
        )
