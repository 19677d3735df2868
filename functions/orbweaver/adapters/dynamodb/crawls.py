"""Crawls in the `crawls` table: one item per crawl, next to its counter shards.

If the response to a write is lost, the client repeats it, and the condition fails. So each write
stores a nonce: a writer that finds its own nonce has succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.dynamodb.counters import (
    CRAWL_KEPT_S,
    close_shard,
    shard,
    shard_key,
)
from orbweaver.adapters.dynamodb.seed_lists import SeedLists, is_long
from orbweaver.adapters.dynamodb.table import (
    Cancelled,
    ConditionFailed,
    Dynamo,
    Fields,
    Item,
    add,
    assign,
    put_request,
    update_request,
)
from orbweaver.frontier.claims import UnreadableCrawl
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import MOVED, Counters, Counts, Crawl, State
from orbweaver.model.errors import NOTHING, readable
from orbweaver.model.version import NewerVersion

if TYPE_CHECKING:
    from random import Random

    from orbweaver.model.ports import Clock


# Example URLs: item `<id>#samples`, with a list of URLs per reason.
SAMPLE_PREFIX = "s."
# Counts of URLs by kind (a group of similar URLs): item `<id>#kinds`, with a number per key.
KIND_PREFIX = "c."
# DynamoDB limits an expression to 4 KB.
COUNTS_AT_ONCE = 100


class DynamoCrawls:
    """Implements `Crawls` on DynamoDB."""

    def __init__(
        self,
        dynamo: Dynamo,
        *,
        clock: Clock,
        random: Random,
        crawls_table: str,
        crawl_retention_s: int = CRAWL_KEPT_S,
    ) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._random = random
        self._table = crawls_table
        self._kept_s = crawl_retention_s
        self._seed_lists = SeedLists(dynamo, crawls_table)

    async def create(self, crawl: Crawl) -> bool:
        beside: dict[str, Any] | None = {}
        if is_long(crawl):
            # Check the id before the seed list is written.
            taken = await self.get(crawl.id) is not None
            beside = None if taken else await self._seed_lists.write(crawl, self._kept_s)
        if beside is None:
            return False
        nonce = self._nonce()
        fields = {
            "k": crawl.id,
            "nonce": nonce,
            "expires_at": crawl.deletable_s(self._kept_s),
            **crawl_codec.to_fields(crawl),
            **beside,
        }
        absent = "attribute_not_exists(#k)"
        return await self._write_once("put_item", nonce, put_request(self._table, fields, absent))

    async def get(self, crawl_id: str) -> Crawl | None:
        fields = await self._dynamo.get(self._table, {"k": crawl_id})
        # Other items of the table have no `state`.
        if "state" not in fields or not self._kept(fields):
            return None
        with readable():
            return await self._seed_lists.read(fields)

    async def list(self) -> tuple[Crawl, ...]:
        return (await self._scan())[0]

    async def newer(self) -> tuple[UnreadableCrawl, ...]:
        return (await self._scan())[1]

    async def _scan(self) -> tuple[tuple[Crawl, ...], tuple[UnreadableCrawl, ...]]:
        """Return the crawls, newest first, and the crawls that are stored in a newer format."""
        pages = self._dynamo.pages(
            "scan",
            TableName=self._table,
            FilterExpression="attribute_exists(#state)",  # counter shards have none
        )
        crawls: list[Crawl] = []
        others: list[UnreadableCrawl] = []
        async for page in pages:
            for fields in filter(self._is_listed, page):
                try:
                    crawls.append(await self._seed_lists.read(fields))
                except NewerVersion as error:
                    others.append(UnreadableCrawl.from_fields(fields["k"], fields, str(error)))
        return tuple(sorted(crawls, key=_newest_first)), tuple(sorted(others, key=_newest_first))

    async def counters(self, crawl: Crawl) -> Counters:
        keys = [shard_key(crawl.id, number) for number in range(crawl.shards)]
        items = await self._dynamo.get_many(self._table, keys, consistent=True)
        by_key = {fields["k"]: fields for fields in items}
        return Counters.build(tuple(shard(by_key.get(key["k"], {})) for key in keys))

    async def seal(
        self, crawl: Crawl, counters: Counters, finished: Crawl, rest: Counts = NOTHING
    ) -> bool:
        # One transaction over the crawl and at most 99 shards. A shard closes only if it has no new
        # commit, so the counters that were read are the final ones.
        changed = ("state", "stop", "finished_at_ms")
        update, values = assign({name: getattr(finished, name) for name in changed})
        finish = update_request(
            self._table,
            {"k": crawl.id},
            update,
            values | {":was": crawl.state, ":seeds_planned": crawl.seeds_planned},
            when="#state = :was AND #seeds_planned = :seeds_planned",
        )
        closings = [
            close_shard(self._table, crawl, number, seen, NOTHING if number else rest, self._kept_s)
            for number, seen in enumerate(counters.shards)
        ]
        try:
            await self._dynamo.transact([{"Update": finish}, *closings])
        except Cancelled:
            return False
        return True

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        nonce = self._nonce()
        states = {f":was{place}": state for place, state in enumerate(allowed)}
        update, values = assign({**{name: getattr(crawl, name) for name in MOVED}, "nonce": nonce})
        when = f"#state IN ({', '.join(states)})"
        return await self._update_once(crawl.id, nonce, update, values | states, when)

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        nonce = self._nonce()
        kept_s = crawl.deletable_s(self._kept_s)
        changed = crawl_codec.edit_fields(crawl, was) | {"expires_at": kept_s, "nonce": nonce}
        update, values = assign(changed)
        values |= {":running": State.RUNNING, ":paused": State.PAUSED, ":was": was.edits}
        when = "#state IN (:running, :paused) AND #edits = :was"
        return await self._update_once(crawl.id, nonce, update, values, when)

    async def _update_once(
        self, crawl_id: str, nonce: str, update: str, values: Fields, when: str
    ) -> bool:
        request = update_request(self._table, {"k": crawl_id}, update, values, when=when)
        return await self._write_once("update_item", nonce, request)

    async def _write_once(self, operation: str, nonce: str, request: Item) -> bool:
        """Write under a condition, and return False if it fails.

        A repetition by the client of a successful write returns True: the item has its `nonce`.
        """
        try:
            await self._dynamo.call(operation, **request)
        except ConditionFailed as refusal:
            return bool(refusal.fields.get("nonce") == nonce)
        return True

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        names = {f"#{place}": SAMPLE_PREFIX + reason for place, reason in enumerate(samples)}
        values: dict[str, Any] = {
            f":{place}": tuple(urls) for place, urls in enumerate(samples.values())
        }
        sets = [f"#{place} = if_not_exists(#{place}, :{place})" for place in range(len(samples))]
        kept_s = crawl.deletable_s(self._kept_s)
        if kept_s is not None:
            values[":expires_at"] = kept_s
            sets.append("#expires_at = :expires_at")
        key = {"k": f"{crawl.id}#samples"}
        await self._dynamo.update(self._table, key, "SET " + ", ".join(sets), values, names=names)

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]:
        key = {"k": f"{crawl_id}#samples"}
        fields = await self._dynamo.get(self._table, key, consistent=False)
        return {
            name.removeprefix(SAMPLE_PREFIX): tuple(urls)
            for name, urls in fields.items()
            if name.startswith(SAMPLE_PREFIX)
        }

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        if not counts:
            return await self.learned(crawl.id)
        keys, known = list(counts), counts
        for start in range(0, len(keys), COUNTS_AT_ONCE):
            some = keys[start : start + COUNTS_AT_ONCE]
            known = await self._learn(crawl, {key: counts[key] for key in some})
        return known

    async def _learn(self, crawl: Crawl, counts: Counts) -> Counts:
        added = {KIND_PREFIX + key: count for key, count in counts.items()}
        update, values, names = add(added, crawl.deletable_s(self._kept_s))
        key = {"k": f"{crawl.id}#kinds"}
        return _kind_counts(
            await self._dynamo.updated(self._table, key, update, values, names=names)
        )

    async def learned(self, crawl_id: str) -> Counts:
        key = {"k": f"{crawl_id}#kinds"}
        return _kind_counts(await self._dynamo.get(self._table, key, consistent=False))

    async def announced(self, crawl_id: str) -> None:
        await self._dynamo.update(self._table, {"k": crawl_id}, *assign({"announced": True}))

    def _kept(self, fields: Mapping[str, Any]) -> bool:
        # TTL deletes items days late.
        expires_at: int | None = fields.get("expires_at")
        return expires_at is None or expires_at > self._clock.now_ms() // 1000

    def _is_listed(self, fields: Mapping[str, Any]) -> bool:
        return self._kept(fields) and not fields.get("forgotten")

    def _nonce(self) -> str:
        return f"{self._random.getrandbits(64):016x}"


def _kind_counts(fields: Fields) -> Counts:
    return {
        name.removeprefix(KIND_PREFIX): count
        for name, count in fields.items()
        if name.startswith(KIND_PREFIX)
    }


def _newest_first(crawl: Crawl | UnreadableCrawl) -> tuple[int, str]:
    return -crawl.started_at_ms, crawl.id
