"""State of packs (queue messages with up to 25 URLs) in the `packs` table.

- `<pack>` / `journal`: the redo log, written once (journal.py).
- `<pack>` / `ledger`: the commit record, written once with the counts (counters.py).
- `parked#<crawl>` / pack id: the message of a paused crawl.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.dynamodb import journal as dynamodb_journal
from orbweaver.adapters.dynamodb import ledger as dynamodb_ledger
from orbweaver.adapters.dynamodb.budgets import settling
from orbweaver.adapters.dynamodb.counters import CRAWL_KEPT_S, add_counts, shard
from orbweaver.adapters.dynamodb.journal import JOURNAL
from orbweaver.adapters.dynamodb.ledger import LEDGER
from orbweaver.adapters.dynamodb.table import (
    Cancelled,
    ConditionFailed,
    Dynamo,
    Item,
    from_item,
    to_item,
)
from orbweaver.adapters.local.journal_blob import encoded
from orbweaver.frontier.claims import (
    AlreadyCommitted,
    Closed,
    CommitResult,
    Committed,
    OverBudget,
    Recalled,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.model.crawl import UNSPENT, Counts, Crawl, State
from orbweaver.model.errors import StoredNewer
from orbweaver.model.limits import Settlement
from orbweaver.model.page_record import shard_of

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

STRIKES = "strikes"
# Retention of parked packs. It exceeds the retention of every crawl that can be resumed.
PARKED_KEPT_S = 365 * 86_400


def _no_usage(_crawl: str) -> AbstractContextManager[Counts]:
    return nullcontext({})


class DynamoPacks:
    """Implements `Packs` on DynamoDB."""

    def __init__(
        self,
        dynamo: Dynamo,
        *,
        clock: Clock,
        packs_table: str,
        crawls_table: str,
        ledger_retention_s: int,
        crawl_retention_s: int = CRAWL_KEPT_S,
        booking: Callable[[str], AbstractContextManager[Counts]] = _no_usage,
    ) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._packs = packs_table
        self._crawls = crawls_table
        self._retention_s = ledger_retention_s
        self._crawl_kept_s = crawl_retention_s
        # Yields the crawl's AWS usage for its commit. If the commit raises, the next gets it.
        self._booking = booking

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        keys = [
            to_item({"k": pack_id, "part": part})
            for pack_id in dict.fromkeys(pack_ids)
            for part in (JOURNAL, LEDGER, STRIKES)
        ]
        # An expired item that TTL has not deleted yet counts.
        items = await self._dynamo.get_many(self._packs, keys, consistent=True)
        recalled: dict[str, Recalled] = {}
        for item in items:
            fields = from_item(item)
            known = recalled.get(fields["k"], Recalled())
            try:
                part = await self._part(item, fields)
            except StoredNewer as newer:
                part = {"newer": str(newer)}
            recalled[fields["k"]] = replace(known, **part)
        return recalled

    async def _part(self, item: Item, fields: Mapping[str, Any]) -> dict[str, Any]:
        if fields["part"] == LEDGER:
            return {"ledger": dynamodb_ledger.read(item)}
        if fields["part"] == STRIKES:
            return {"strikes": fields["strikes"]}
        return {"journal": await dynamodb_journal.read(self._dynamo, self._packs, fields)}

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        expires_s = self._expires_s()
        held = await dynamodb_journal.write_blob(
            self._dynamo,
            self._packs,
            pack_id,
            await encoded(journal),
            expires_s=expires_s,
        )
        head = {"k": pack_id, "part": JOURNAL, "expires_at": expires_s, **held}
        try:
            await self._dynamo.call("put_item", **self._if_absent(head))
        except ConditionFailed as refusal:
            standing = from_item(refusal.item)
            return await dynamodb_journal.read(self._dynamo, self._packs, standing)
        return journal

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        number = shard_of(ledger.pack, crawl.shards)
        put, unspent = self._ledger_put(ledger), 0
        settlings = [settling(self._crawls, crawl, each) for each in settled]
        while True:
            try:
                with self._booking(crawl.id) as used:
                    kept_s, total = self._crawl_kept_s, {**counts, **used}
                    update = add_counts(self._crawls, crawl, number, total, kept_s, unspent=unspent)
                    await self._dynamo.transact([put, update, *settlings])
            except Cancelled as cancelled:
                # A committed pack stays committed, whatever happened to the crawl. DynamoDB may
                # omit reasons, so the ledger is read.
                standing = cancelled.items.get(0) or await self._read_ledger(ledger.pack)
                if standing:
                    return AlreadyCommitted(ledger=dynamodb_ledger.read(standing))
                counters = shard(cancelled.items[1])
                if counters.closed:
                    return Closed()
                left = crawl.shard_quota(number) - counters.spent
                given_back = counters.counts.get(UNSPENT, 0)
                if given_back <= unspent or left < counts.get("claimed", 0):
                    return OverBudget(left=max(0, left))
                unspent = given_back  # try again with the claims that were given back
            else:
                return Committed()

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        number = shard_of(commits[0][0].pack, crawl.shards)
        total: Counter[str] = Counter()
        for _, counts in commits:
            total.update(counts)
        puts = [self._ledger_put(ledger) for ledger, _ in commits]
        try:
            with self._booking(crawl.id) as used:
                total.update(used)
                update = add_counts(self._crawls, crawl, number, total, self._crawl_kept_s)
                await self._dynamo.transact([*puts, update])
        except Cancelled:
            return False
        return True

    async def add_strike(self, pack_id: str) -> int:
        answer = await self._dynamo.call(
            "update_item",
            TableName=self._packs,
            Key=to_item({"k": pack_id, "part": STRIKES}),
            UpdateExpression="ADD #strikes :one SET #expires_at = :expires_at",
            ExpressionAttributeValues=to_item({":one": 1, ":expires_at": self._expires_s()}),
            ReturnValues="ALL_NEW",
        )
        return int(from_item(answer["Attributes"])["strikes"])

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        await self._dynamo.call(
            "update_item",
            TableName=self._packs,
            Key=to_item({"k": pack_id, "part": STRIKES}),
            UpdateExpression="SET #strikes = :left, #expires_at = :expires_at",
            ExpressionAttributeValues=to_item({":left": strikes, ":expires_at": self._expires_s()}),
        )

    async def sent(self, pack_id: str) -> None:
        try:
            await self._dynamo.call(
                "update_item",
                TableName=self._packs,
                Key=to_item({"k": pack_id, "part": LEDGER}),
                UpdateExpression="SET #sent = :yes",
                # Do not create a ledger that has expired.
                ConditionExpression="attribute_exists(#k)",
                ExpressionAttributeValues=to_item({":yes": True}),
            )
        except ConditionFailed:
            return

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        fields = {
            "k": _parked_key(crawl),
            "part": pack_id,
            "body": zlib.compress(body.encode()),
            "expires_at": self._clock.now_ms() // 1000 + PARKED_KEPT_S,
        }
        paused = {
            "TableName": self._crawls,
            "Key": to_item({"k": crawl}),
            "ConditionExpression": "#state = :paused",
            "ExpressionAttributeValues": to_item({":paused": State.PAUSED}),
        }
        put = {"TableName": self._packs, "Item": to_item(fields)}
        try:
            await self._dynamo.transact([{"ConditionCheck": paused}, {"Put": put}])
        except Cancelled:
            return False
        return True

    async def parked(self, crawl: str) -> Mapping[str, str]:
        pages = self._dynamo.pages(
            "query",
            TableName=self._packs,
            KeyConditionExpression="#k = :k",
            ExpressionAttributeValues=to_item({":k": _parked_key(crawl)}),
            ConsistentRead=True,
        )
        found = [from_item(item) async for page in pages for item in page]
        return {fields["part"]: zlib.decompress(fields["body"]).decode() for fields in found}

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        key = _parked_key(crawl)
        ids = dict.fromkeys(pack_ids)
        await self._dynamo.delete_many(
            self._packs, (to_item({"k": key, "part": pack_id}) for pack_id in ids)
        )

    async def _read_ledger(self, pack_id: str) -> Item:
        answer = await self._dynamo.call(
            "get_item",
            TableName=self._packs,
            Key=to_item({"k": pack_id, "part": LEDGER}),
            ConsistentRead=True,
        )
        item: Item = answer.get("Item") or {}
        return item

    def _ledger_put(self, ledger: Ledger) -> Item:
        fields = {**dynamodb_ledger.fields_of(ledger), "expires_at": self._expires_s()}
        return {"Put": self._if_absent(fields)}

    def _if_absent(self, fields: Mapping[str, object]) -> Item:
        return {
            "TableName": self._packs,
            "Item": to_item(fields),
            "ConditionExpression": "attribute_not_exists(#k)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _expires_s(self) -> int:
        return self._clock.now_ms() // 1000 + self._retention_s


def _parked_key(crawl: str) -> str:
    return f"parked#{crawl}"
