"""Packs (batches of up to 25 URLs) that wait for their host, in the `packs` table.

Key: `backlog#<crawl>#<hash of the host>`. Sort key: `!` for the item with the place of the pack in
flight, or the place of a waiting pack. `!` is written only if it did not change after it was read.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.dynamodb.packs import LEDGER
from orbweaver.adapters.dynamodb.table import (
    Cancelled,
    ConditionFailed,
    Dynamo,
    Fields,
    Item,
    from_item,
    put_request,
    query_request,
    update_request,
)
from orbweaver.frontier.backlog import Lease, LeaseRequest, WaitingPack, kept_s
from orbweaver.model.url import url_hash

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

BACKLOG = "backlog#"
OUT = "!"  # sorts before all places
# Packs per read: a finished pack, the leased pack, and the first waiting pack.
PLACES_READ = 3


class DynamoBacklog:
    """Implements `Backlog` on DynamoDB."""

    def __init__(self, dynamo: Dynamo, *, clock: Clock, packs_table: str) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._packs = packs_table

    async def put(self, crawl: str, host: str, waiting: Sequence[WaitingPack]) -> None:
        items = [
            {
                "k": backlog_key(crawl, host),
                "part": one.place,
                "host": host,
                "body": zlib.compress(one.body.encode()),
                "due": one.due_ms,
                "expires_at": self._clock.now_ms() // 1000 + kept_s(host),
            }
            for one in {one.place: one for one in reversed(waiting)}.values()
        ]
        await self._dynamo.insert_many(self._packs, items)

    async def read(self, crawl: str, host: str, own: str = "") -> Lease:
        key = backlog_key(crawl, host)
        values, most = {":k": key}, 1 + PLACES_READ
        query = query_request(self._packs, "#k = :k", values, ConsistentRead=True, Limit=most)
        answer = await self._dynamo.call("query", **query)
        places = _by_part(map(from_item, answer["Items"]))
        line = places.pop(OUT, {"edits": 0})
        out = line.get("out", "")
        if "LastEvaluatedKey" in answer and out > max(places, default=""):
            behind = [{"k": key, "part": out}]
            places |= _by_part(await self._dynamo.get_many(self._packs, behind, consistent=True))
        first = min((place for place in places if place not in (out, own)), default=None)
        return Lease(
            epoch=line["edits"],
            place=out,
            is_held=out in places,
            holder=line.get("by", ""),
            first=None if first is None else _waiting(places[first]),
        )

    async def acquire(self, request: LeaseRequest) -> bool:
        actions = [self._lease_put(request)]
        if request.unsent:
            counted = update_request(
                self._packs,
                {"k": request.unsent, "part": LEDGER},
                "ADD #leases :one",
                {":one": 1},
                when="attribute_exists(#k) AND attribute_not_exists(#sent)",
            )
            actions.append({"Update": counted})
        try:
            await self._dynamo.transact(actions)
        except Cancelled:
            return False
        return True

    async def get(self, crawl: str, host: str, place: str) -> WaitingPack | None:
        key = {"k": backlog_key(crawl, host), "part": place}
        fields = await self._dynamo.get(self._packs, key)
        return _waiting(fields) if fields else None

    async def forget(self, crawl: str, host: str, place: str) -> None:
        await self._dynamo.delete(self._packs, {"k": backlog_key(crawl, host), "part": place})

    async def release(self, crawl: str, host: str, place: str, by: str = "") -> None:
        values: dict[str, Any] = {":one": 1, ":place": place}
        named, unnamed = "", ", #by"
        if by:
            values[":by"] = by
            named, unnamed = ", #by = :by", ""
        with contextlib.suppress(ConditionFailed):  # it is not leased
            await self._dynamo.update(
                self._packs,
                {"k": backlog_key(crawl, host), "part": OUT},
                f"SET #edits = #edits + :one{named} REMOVE #out{unnamed}",
                values,
                when="#out = :place",
            )
        await self.forget(crawl, host, place)

    async def first_places(self, crawl: str, host: str, count_max: int) -> tuple[WaitingPack, ...]:
        found: list[WaitingPack] = []
        pages = self._dynamo.query(
            self._packs,
            "#k = :k AND #part > :out",
            {":k": backlog_key(crawl, host), ":out": OUT},
            ConsistentRead=True,
            Limit=count_max,
        )
        async for page in pages:
            found += map(_waiting, page)
            if len(found) >= count_max:
                break
        return tuple(found[:count_max])

    async def note_sent(self, crawl: str, host: str, read: WaitingPack, at_ms: int) -> bool:
        values = {":at": at_ms}
        as_read = "attribute_exists(#k) AND attribute_not_exists(#sent)"
        if read.sent_at_ms:
            as_read, values[":read"] = "#sent = :read", read.sent_at_ms
        try:
            await self._dynamo.update(
                self._packs,
                {"k": backlog_key(crawl, host), "part": read.place},
                "SET #sent = :at",
                values,
                when=as_read,
            )
        except ConditionFailed:
            return False
        return True

    def _lease_put(self, request: LeaseRequest) -> Item:
        """Return a Put of a host's lease. Its condition: the item has not changed."""
        fields = {
            "k": backlog_key(request.crawl, request.host),
            "part": OUT,
            **_without_empty({"out": request.place, "by": request.holder}),
            "edits": request.epoch + 1,
            "expires_at": self._clock.now_ms() // 1000 + kept_s(request.host),
        }
        if not request.epoch:
            return {"Put": put_request(self._packs, fields, "attribute_not_exists(#k)")}
        edits = {":edits": request.epoch}
        return {"Put": put_request(self._packs, fields, "#edits = :edits", edits)}


def backlog_key(crawl: str, host: str) -> str:
    return f"{BACKLOG}{crawl}#{url_hash(host)}"


def _by_part(items: Iterable[Fields]) -> dict[str, Fields]:
    return {fields["part"]: fields for fields in items}


def _without_empty(texts: Mapping[str, str]) -> dict[str, str]:
    # Old versions of DynamoDB reject empty texts.
    return {name: text for name, text in texts.items() if text}


def _waiting(fields: Mapping[str, Any]) -> WaitingPack:
    return WaitingPack(
        place=fields["part"],
        body=zlib.decompress(fields["body"]).decode(),
        due_ms=fields["due"],
        sent_at_ms=fields.get("sent", 0),
    )
