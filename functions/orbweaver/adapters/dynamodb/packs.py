"""State of packs (queue messages with up to 25 URLs) in the `packs` table.

- `<pack>` / `journal`: the redo log, written once. The chunks of a long one are written first, with
  its digest in their keys, so that chunks of two different journals of a pack do not mix.
- `<pack>` / `ledger`: the commit record, written once with the counts (counters.py).
- `parked#<crawl>` / pack id: the message of a paused crawl.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.budgets import settling
from orbweaver.adapters.dynamodb.counters import CRAWL_KEPT_S, add_counts, shard
from orbweaver.adapters.dynamodb.table import (
    BLOB_BYTES_MAX,
    Cancelled,
    ConditionFailed,
    Dynamo,
    Fields,
    Item,
    assign,
    put_request,
    to_item,
)
from orbweaver.adapters.local.journal_blob import encoded
from orbweaver.frontier import ledger_codec
from orbweaver.frontier.claims import (
    AlreadyCommitted,
    Closed,
    CommitResult,
    Committed,
    OverBudget,
    Recalled,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.frontier.journal_codec import VERSION, WHAT, decode
from orbweaver.model.crawl import UNSPENT, Counts, Crawl, Settlement, State
from orbweaver.model.errors import Permanent, StoredNewer, readable
from orbweaver.model.page_record import shard_of
from orbweaver.model.version import FIELD, check

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

JOURNAL, LEDGER, STRIKES = "journal", "ledger", "strikes"
PUTS_AT_ONCE = 4
ABSENT = "attribute_not_exists(#k)"
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
            {"k": pack_id, "part": part}
            for pack_id in dict.fromkeys(pack_ids)
            for part in (JOURNAL, LEDGER, STRIKES)
        ]
        recalled: dict[str, Recalled] = {}
        # An expired item that TTL has not deleted yet counts.
        for fields in await self._dynamo.get_many(self._packs, keys, consistent=True):
            known = recalled.get(fields["k"], Recalled())
            try:
                part = await self._part(fields)
            except StoredNewer as newer:
                part = {"newer": str(newer)}
            recalled[fields["k"]] = replace(known, **part)
        return recalled

    async def _part(self, fields: Fields) -> dict[str, Any]:
        if fields["part"] == LEDGER:
            return {"ledger": read_ledger(fields)}
        if fields["part"] == STRIKES:
            return {"strikes": fields["strikes"]}
        return {"journal": await read_journal(self._dynamo, self._packs, fields)}

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        expires_s = self._expires_s()
        blob = await encoded(journal)
        held = await write_blob(self._dynamo, self._packs, pack_id, blob, expires_s=expires_s)
        head = {"k": pack_id, "part": JOURNAL, "expires_at": expires_s, **held}
        try:
            await self._dynamo.put(self._packs, head, ABSENT)
        except ConditionFailed as refusal:
            return await read_journal(self._dynamo, self._packs, refusal.fields)
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
                key = {"k": ledger.pack, "part": LEDGER}
                standing = cancelled.fields.get(0) or await self._dynamo.get(self._packs, key)
                if standing:
                    return AlreadyCommitted(ledger=read_ledger(standing))
                counters = shard(cancelled.fields[1])
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
        fields = await self._dynamo.updated(
            self._packs,
            {"k": pack_id, "part": STRIKES},
            "ADD #strikes :one SET #expires_at = :expires_at",
            {":one": 1, ":expires_at": self._expires_s()},
        )
        return int(fields["strikes"])

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        await self._dynamo.update(
            self._packs,
            {"k": pack_id, "part": STRIKES},
            *assign({"strikes": strikes, "expires_at": self._expires_s()}),
        )

    async def note_sent(self, pack_id: str, leases: int) -> bool:
        values: dict[str, Any] = {":yes": True}
        unchanged = "attribute_exists(#k) AND attribute_not_exists(#leases)"
        if leases:
            values[":leases"] = leases
            unchanged = "#leases = :leases"
        try:
            await self._dynamo.update(
                self._packs,
                {"k": pack_id, "part": LEDGER},
                "SET #sent = :yes",
                values,
                when=unchanged,
            )
        except ConditionFailed as failed:
            return not failed.fields or "sent" in failed.fields  # expired, or recorded already
        return True

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
        put = put_request(self._packs, fields)
        try:
            await self._dynamo.transact([{"ConditionCheck": paused}, {"Put": put}])
        except Cancelled:
            return False
        return True

    async def parked(self, crawl: str) -> Mapping[str, str]:
        pages = self._dynamo.query(
            self._packs, "#k = :k", {":k": _parked_key(crawl)}, ConsistentRead=True
        )
        return {
            fields["part"]: zlib.decompress(fields["body"]).decode()
            async for page in pages
            for fields in page
        }

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        key = _parked_key(crawl)
        keys = ({"k": key, "part": pack_id} for pack_id in dict.fromkeys(pack_ids))
        await self._dynamo.delete_many(self._packs, keys)

    def _ledger_put(self, ledger: Ledger) -> Item:
        fields = {**ledger_fields(ledger), "expires_at": self._expires_s()}
        return {"Put": put_request(self._packs, fields, ABSENT)}

    def _expires_s(self) -> int:
        return self._clock.now_ms() // 1000 + self._retention_s


def _parked_key(crawl: str) -> str:
    return f"parked#{crawl}"


def ledger_fields(ledger: Ledger) -> Fields:
    return {"k": ledger.pack, "part": LEDGER, **ledger_codec.to_fields(ledger)}


def read_ledger(fields: Fields) -> Ledger:
    """Decode a ledger. Raises StoredNewer for a newer version."""
    with readable():
        return ledger_codec.from_fields(fields["k"], fields)


async def write_blob(
    dynamo: Dynamo, table: str, pack_id: str, blob: bytes, *, expires_s: int
) -> Fields:
    """Return the fields of a journal's head item. If `blob` is long, write it as chunks first."""
    if len(blob) <= BLOB_BYTES_MAX:
        return {FIELD: VERSION, "blob": blob}
    digest = blake2b(blob, digest_size=16).hexdigest()
    starts = range(0, len(blob), BLOB_BYTES_MAX)
    items = [
        {
            **_chunk_key(pack_id, digest, place),
            "blob": blob[start : start + BLOB_BYTES_MAX],
            "expires_at": expires_s,
        }
        for place, start in enumerate(starts)
    ]
    # Separate puts, because a batch of up to 12 MB would exceed the client's timeout.
    await all_of((dynamo.put(table, item) for item in items), PUTS_AT_ONCE)
    return {FIELD: VERSION, "digest": digest, "chunks": len(items)}


async def read_journal(dynamo: Dynamo, table: str, head: Fields) -> Journal:
    """Read the journal of a head item. Raises StoredNewer for a newer version."""
    with readable():
        check(head, WHAT, VERSION)
        return decode(await _blob(dynamo, table, head))


async def _blob(dynamo: Dynamo, table: str, head: Fields) -> bytes:
    if "blob" in head:
        return bytes(head["blob"])
    pack_id, digest, count = head["k"], head["digest"], head["chunks"]
    keys = [_chunk_key(pack_id, digest, place) for place in range(count)]
    items = await dynamo.get_many(table, keys, consistent=True)
    chunks = {fields["part"]: fields["blob"] for fields in items}
    if len(chunks) < count:
        message = f"journal of {pack_id}: {len(chunks)} of {count} chunks are there"
        raise Permanent(message)
    return b"".join(chunks[key["part"]] for key in keys)


def _chunk_key(pack_id: str, digest: str, place: int) -> Fields:
    return {"k": pack_id, "part": f"{JOURNAL}.{digest}.{place}"}
