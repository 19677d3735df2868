"""Used amounts of crawls' limits, and the URLs that packs (batches of URLs) have counted per host.

crawls  <crawl>#allowance#<part>   used, reserved, taken_at, expires_at
        <crawl>#host#<hash>        pages: number of counted URLs of a host
packs   <pack> / counted#<hash>    urls: the pack's counted URLs, so that each counts once
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from orbweaver.adapters.dynamodb.counters import CRAWL_KEPT_S
from orbweaver.adapters.dynamodb.table import (
    Cancelled,
    ConditionFailed,
    Dynamo,
    Fields,
    Item,
    add,
    put_request,
    update_request,
)
from orbweaver.budget.budget_rules import BudgetState, ReservationRequest
from orbweaver.model.crawl import Crawl, LimitPart, Settlement
from orbweaver.model.errors import Transient
from orbweaver.model.url import url_hash

if TYPE_CHECKING:
    from orbweaver.model.ports import Clock

# Attempts to count pages of a host while other workers count too.
COUNT_TRIES = 10
ABSENT = "attribute_not_exists(#k)"


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
            await self._dynamo.call("update_item", **_reservation(self._crawls, taking))
        except ConditionFailed as refusal:
            return _budget_state(refusal.fields)
        return None

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        expires_at = crawl.deletable_s(self._crawl_kept_s)
        fields = {"used": used, "reserved": 0, "taken_at": 0, "expires_at": expires_at}
        with suppress(ConditionFailed):
            await self._dynamo.put(self._crawls, _key(crawl.id, part) | fields, ABSENT)

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
                    counted = (await self._dynamo.get(self._packs, grant)).get("urls", [])
                    continue
                return frozenset(by_hash[digest] for digest in counted if digest in by_hash)
            expires_at = crawl.deletable_s(self._crawl_kept_s)
            counting = _host_count_update(self._crawls, crawl, host, len(new), limit, expires_at)
            granting = self._grant_put(grant, counted or [], new)
            try:
                await self._dynamo.transact([granting, counting])
            except Cancelled as cancelled:
                if 0 in cancelled.fields:
                    counted = cancelled.fields[0].get("urls", [])
                if 1 in cancelled.fields:
                    pages = cancelled.fields[1].get("pages", 0)
            else:
                held = [*(counted or ()), *new]
                return frozenset(by_hash[digest] for digest in held if digest in by_hash)
        raise Transient(f"pages of {host} are counted again and again")

    def _grant_put(self, grant: Fields, counted: list[str], new: list[str]) -> Item:
        """Return a Put of a pack's URLs that count towards the page limit of a host.

        `counted` are the stored URLs, to which the Put adds `new`. It fails if another worker has
        changed them.
        """
        expires_at = self._clock.now_ms() // 1000 + self._retention_s
        fields = {**grant, "urls": [*counted, *new], "expires_at": expires_at}
        if not counted:
            return {"Put": put_request(self._packs, fields, ABSENT)}
        return {"Put": put_request(self._packs, fields, "#urls = :seen", {":seen": counted})}


def settling(table: str, crawl: Crawl, settlement: Settlement) -> Item:
    """Return an Update that gives back the part of a reservation that was not spent."""
    back = settlement.spent - settlement.reserved
    key = _key(crawl.id, settlement.part)
    values = {":used": back, ":reserved": -settlement.reserved}
    return {"Update": update_request(table, key, "ADD #used :used, #reserved :reserved", values)}


def _key(crawl_id: str, part: str) -> Fields:
    return {"k": f"{crawl_id}#allowance#{part}"}


def _budget_state(fields: Fields) -> BudgetState:
    if not fields:
        return BudgetState(is_started=False)
    return BudgetState(
        used=fields["used"], reserved=fields["reserved"], taken_at_ms=fields["taken_at"]
    )


def _reservation(table: str, taking: ReservationRequest) -> Item:
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
    return update_request(
        table,
        _key(taking.crawl.id, taking.part),
        f"SET #used = #used + :amount, #reserved = {reserved}, #taken_at = :at",
        values,
        when=condition,
    )


def _host_count_update(
    table: str, crawl: Crawl, host: str, count: int, limit: int, expires_at: int | None
) -> Item:
    update, values, names = add({"pages": count}, expires_at)
    values[":room"] = limit - count
    key = {"k": f"{crawl.id}#host#{url_hash(host)}"}
    # First count, or enough left. `count` is never above the limit.
    room = "attribute_not_exists(#pages) OR #pages <= :room"
    return {"Update": update_request(table, key, update, values, when=room, names=names)}
