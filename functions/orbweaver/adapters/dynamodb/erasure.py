"""Find and delete all stored data about URLs, hosts and crawls in all tables.

An item is changed only if it did not change after it was read. An item of a newer version raises
StoredNewer, because it might contain data that must be erased. Scans of whole tables use parallel
segments and strong consistency. A scan costs one read unit per 4 KB, about $0.03 per GB. Source:
Amazon DynamoDB developer guide, "Parallel scan".
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.crawls import SAMPLE_PREFIX
from orbweaver.adapters.dynamodb.hosts import cookies_key, cookies_of_key, robots_key
from orbweaver.adapters.dynamodb.seed_lists import SeedLists
from orbweaver.adapters.dynamodb.table import ConditionFailed, Dynamo, Fields, assign
from orbweaver.erasure.ports import ClaimTrace, RecordTrace
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import readable
from orbweaver.model.page_record import from_fields
from orbweaver.model.ports import Clock
from orbweaver.model.value import value_class

SEGMENTS = 4
WRITES_AT_ONCE = 16
# A host with an error or a 429 within this time is kept, so that it is not requested too fast
# (politeness/host_schedule.py).
QUIET_MS = 30 * 60_000


@value_class
class TableNames:
    """Names of the DynamoDB tables."""

    urls: str
    pages: str
    hosts: str
    crawls: str


class DynamoTraces:
    """Implements `Traces` on DynamoDB."""

    def __init__(
        self, dynamo: Dynamo, *, clock: Clock, tables: TableNames, ledger_retention_s: int
    ) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._tables = tables
        self._ledgers_kept_s = ledger_retention_s

    # --- claims and records -----------------------------------------------------------------

    async def claims(self) -> AsyncIterator[ClaimTrace]:
        async for fields in scan(self._dynamo, self._tables.urls):
            yield ClaimTrace(
                key=fields["k"],
                name=fields["k"].rpartition("#")[0],
                url=fields["url"],
                crawl=fields.get("crawl", ""),
                pack=fields["pack"],
                at_ms=fields["at"],
                was=fields.get("was", {}).get("crawl", ""),
            )

    async def remove_claims(self, claims: Sequence[ClaimTrace]) -> None:
        await all_of((self._remove(claim) for claim in claims), WRITES_AT_ONCE)

    async def strip_claims(self, claims: Sequence[ClaimTrace]) -> None:
        await all_of((self._remove(claim, "REMOVE #was") for claim in claims), WRITES_AT_ONCE)

    async def _remove(self, claim: ClaimTrace, update: str = "") -> None:
        table, key, when = self._tables.urls, {"k": claim.key}, "#pack = :pack AND #at = :at"
        values = {":pack": claim.pack, ":at": claim.at_ms}
        with suppress(ConditionFailed):
            if update:
                await self._dynamo.update(table, key, update, values, when=when)
            else:
                await self._dynamo.delete(table, key, when, values)

    async def records(self) -> AsyncIterator[RecordTrace]:
        async for fields in scan(self._dynamo, self._tables.pages):
            with readable():
                record = from_fields(fields)
            yield RecordTrace(key=(fields["day"], fields["k"]), record=record)

    async def remove_records(self, records: Sequence[RecordTrace]) -> None:
        keys = dict.fromkeys(trace.key for trace in records)
        items = ({"day": day, "k": key} for day, key in keys)
        await self._dynamo.delete_many(self._tables.pages, items)

    # --- crawls -----------------------------------------------------------------------------

    async def redefine(self, crawl: Crawl, was: Crawl) -> bool:
        changed = crawl_codec.edit_fields(crawl, was)
        if (crawl.seeds, crawl.sitemap_urls) != (was.seeds, was.sitemap_urls):
            changed |= await SeedLists(self._dynamo, self._tables.crawls).erase(crawl)
        update, values = assign(changed)
        values[":was"] = was.edits
        key, when = {"k": crawl.id}, "#edits = :was"
        try:
            await self._dynamo.update(self._tables.crawls, key, update, values, when=when)
        except ConditionFailed:
            return False
        return True

    async def put_samples(self, crawl_id: str, samples: dict[str, Sequence[str]]) -> None:
        # Attributes are numbered, because reasons are not valid names in expressions.
        await self._dynamo.update(
            self._tables.crawls,
            {"k": f"{crawl_id}#samples"},
            "SET " + ", ".join(f"#{place} = :{place}" for place in range(len(samples))),
            {f":{place}": tuple(urls) for place, urls in enumerate(samples.values())},
            names={f"#{place}": SAMPLE_PREFIX + reason for place, reason in enumerate(samples)},
        )

    async def tombstone_crawl(self, crawl: Crawl) -> None:
        table = self._tables.crawls
        async for item in scan(self._dynamo, table):
            if item["k"].startswith(f"{crawl.id}#"):
                await self._dynamo.delete_many(table, [{"k": item["k"]}])
        # The finished crawl remains until all copies of its messages are gone, so that they end.
        stone = {
            "k": crawl.id,
            "id": crawl.id,
            "name": crawl.id,
            "started_at_ms": crawl.started_at_ms,
            "finished_at_ms": crawl.finished_at_ms,
            "state": State.FINISHED,
            "announced": True,
            "forgotten": True,
            "expires_at": self._clock.now_ms() // 1000 + self._ledgers_kept_s,
        }
        await self._dynamo.put(table, stone)

    # --- hosts ------------------------------------------------------------------------------

    async def hosts(self) -> AsyncIterator[str]:
        seen = set()
        async for item in scan(self._dynamo, self._tables.hosts):
            host = item["host"].removesuffix(robots_key(""))
            if host not in seen and cookies_of_key(host) is None:
                seen.add(host)
                yield host

    async def cookies(self) -> AsyncIterator[tuple[str, str]]:
        async for item in scan(self._dynamo, self._tables.hosts):
            if (named := cookies_of_key(item["host"])) is not None:
                yield named

    async def remove_cookies(self, crawl_id: str, site: str) -> None:
        key = {"host": cookies_key(crawl_id, site)}
        await self._dynamo.delete_many(self._tables.hosts, [key])

    async def remove_host(self, host: str, now_ms: int) -> bool:
        table = self._tables.hosts
        await self._dynamo.delete_many(table, [{"host": robots_key(host)}])
        # Only past times are removed, so the host gets no earlier request.
        past = ("tat", "line", "blocked_until", "struck_at", "failed_at")
        limits = {f":{name}": now_ms for name in ("tat", "line", "blocked_until")}
        limits |= {f":{name}": now_ms - QUIET_MS for name in ("struck_at", "failed_at")}
        conditions = (f"(attribute_not_exists(#{name}) OR #{name} <= :{name})" for name in past)
        try:
            when = " AND ".join(conditions)
            await self._dynamo.delete(table, {"host": host}, when, limits)
        except ConditionFailed:
            return False
        return True


async def scan(dynamo: Dynamo, table: str) -> AsyncGenerator[Fields, None]:
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
