"""Used amounts of crawls' limits, and the URLs that packs (batches of URLs) have counted per host.

crawls  <crawl>#allowance#<part>   used, reserved, taken_at, expires_at
        <crawl>#host#<hash>        pages: number of counted URLs of a host
packs   <pack> / counted#<hash>    urls: the pack's counted URLs, so that each counts once
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.dynamodb.counters import CRAWL_KEPT_S
from orbweaver.adapters.dynamodb.table import (
    Cancelled,
    ConditionFailed,
    Dynamo,
    Item,
    from_item,
    to_item,
)
from orbweaver.budget.budget_rules import BudgetState, ReservationRequest
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import Transient
from orbweaver.model.limits import LimitPart, Settlement
from orbweaver.model.url import url_hash

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

# Attempts to count pages of a host while other workers count too.
COUNT_TRIES = 10


class DynamoBudgets:
    """Implements `Budgets` on DynamoDB."""

    def __init__(
        self,
        dynamo: Dynamo,
        *,
        clock: Clock,
        packs_table: str,
        crawls_table: str,
        ledger_retention_s: int,
        crawl_retention_s: int = CRAWL_KEPT_S,
    ) -> None:
        self._dynamo = dynamo
        self._clock = clock
        self._packs = packs_table
        self._crawls = crawls_table
        self._retention_s = ledger_retention_s
        self._crawl_kept_s = crawl_retention_s

    async def take(self, taking: ReservationRequest) -> BudgetState | None:
        try:
            await self._dynamo.call("update_item", TableName=self._crawls, **_reservation(taking))
        except ConditionFailed as refusal:
            return _budget_state(refusal.item)
        return None

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        expires_at = crawl.deletable_s(self._crawl_kept_s)
        fields = {"used": used, "reserved": 0, "taken_at": 0, "expires_at": expires_at}
        try:
            await self._dynamo.call(
                "put_item",
                TableName=self._crawls,
                Item=_key(crawl.id, part) | to_item(fields),
                ConditionExpression="attribute_not_exists(#k)",
            )
        except ConditionFailed:
            return

    async def settle(self, crawl: Crawl, settled: Sequence[Settlement]) -> None:
        # The transaction's token prevents that a retry of the client applies it twice.
        await self._dynamo.transact([settling(self._crawls, crawl, each) for each in settled])

    async def count(
        self, crawl: Crawl, pack_id: str, host: str, urls: Sequence[str], limit: int
    ) -> frozenset[str]:
        by_hash = {url_hash(url): url for url in urls}
        grant = {"k": pack_id, "part": f"counted#{url_hash(host)}"}
        pages: int | None = None
        counted: list[str] | None = None
        for _ in range(COUNT_TRIES):
            left = len(by_hash) if pages is None else max(0, limit - pages)
            new = [digest for digest in by_hash if digest not in (counted or ())]
            new = new[: min(left, limit)]
            if not new:
                if counted is None:
                    counted = await self._counted(grant)
                    continue
                return frozenset(by_hash[digest] for digest in counted if digest in by_hash)
            expires_at = crawl.deletable_s(self._crawl_kept_s)
            counting = _host_count_update(self._crawls, crawl, host, len(new), limit, expires_at)
            granting = self._grant_put(grant, counted or [], new)
            try:
                await self._dynamo.transact([granting, counting])
            except Cancelled as cancelled:
                if 0 in cancelled.items:
                    counted = from_item(cancelled.items[0]).get("urls", [])
                if 1 in cancelled.items:
                    pages = from_item(cancelled.items[1]).get("pages", 0)
            else:
                held = [*(counted or ()), *new]
                return frozenset(by_hash[digest] for digest in held if digest in by_hash)
        raise Transient(f"pages of {host} are counted again and again")

    async def _counted(self, grant: dict[str, Any]) -> list[str]:
        answer = await self._dynamo.call(
            "get_item", TableName=self._packs, Key=to_item(grant), ConsistentRead=True
        )
        counted: list[str] = from_item(answer.get("Item", {})).get("urls", [])
        return counted

    def _grant_put(self, grant: dict[str, Any], counted: list[str], new: list[str]) -> Item:
        """Return a Put of a pack's URLs that count towards the page limit of a host.

        `counted` are the stored URLs, to which the Put adds `new`. It fails if another worker has
        changed them.
        """
        expires_at = self._clock.now_ms() // 1000 + self._retention_s
        fields = {**grant, "urls": [*counted, *new], "expires_at": expires_at}
        put: Item = {
            "TableName": self._packs,
            "Item": to_item(fields),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if counted:
            put["ConditionExpression"] = "#urls = :seen"
            put["ExpressionAttributeValues"] = to_item({":seen": counted})
        else:
            put["ConditionExpression"] = "attribute_not_exists(#k)"
        return {"Put": put}


def settling(table: str, crawl: Crawl, settlement: Settlement) -> Item:
    """Return an Update that gives back the part of a reservation that was not spent."""
    back = settlement.spent - settlement.reserved
    return {
        "Update": {
            "TableName": table,
            "Key": _key(crawl.id, settlement.part),
            "UpdateExpression": "ADD #used :used, #reserved :reserved",
            "ExpressionAttributeValues": to_item(
                {":used": back, ":reserved": -settlement.reserved}
            ),
        }
    }


def _key(crawl_id: str, part: str) -> Item:
    return to_item({"k": f"{crawl_id}#allowance#{part}"})


def _budget_state(item: Item) -> BudgetState:
    fields = from_item(item)
    if not fields:
        return BudgetState(is_started=False)
    return BudgetState(
        used=fields["used"], reserved=fields["reserved"], taken_at_ms=fields["taken_at"]
    )


def _reservation(taking: ReservationRequest) -> dict[str, Any]:
    # If the response is lost, the client may reserve twice. That only reduces the amount left.
    values = {
        ":amount": taking.amount,
        ":at": taking.at_ms,
        ":room": taking.limit - taking.amount,
    }
    reserved, condition = "#reserved + :amount", "#used <= :room"
    seen = taking.instead
    if seen is not None:
        reserved = ":mine"
        condition += " AND #reserved = :reserved AND #taken_at = :taken_at"
        values |= {
            ":mine": taking.mine + taking.amount,
            ":reserved": seen.reserved,
            ":taken_at": seen.taken_at_ms,
        }
    return {
        "Key": _key(taking.crawl.id, taking.part),
        "UpdateExpression": (
            f"SET #used = #used + :amount, #reserved = {reserved}, #taken_at = :at"
        ),
        "ConditionExpression": condition,
        "ExpressionAttributeValues": to_item(values),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _host_count_update(
    table: str, crawl: Crawl, host: str, count: int, limit: int, expires_at: int | None
) -> Item:
    update = "ADD #pages :count"
    values = {":count": count, ":room": limit - count}
    if expires_at is not None:
        update += " SET #expires_at = :expires_at"
        values[":expires_at"] = expires_at
    return {
        "Update": {
            "TableName": table,
            "Key": to_item({"k": f"{crawl.id}#host#{url_hash(host)}"}),
            "UpdateExpression": update,
            # First count, or enough left. `count` is never above the limit.
            "ConditionExpression": "attribute_not_exists(#pages) OR #pages <= :room",
            "ExpressionAttributeValues": to_item(values),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }
