"""Claims in the `urls` table: one item a URL and crawl name, written under a condition.

Rules
- A claim holds for others while it is neither expired nor stale as of *their* moment. TTL deletes
  days late, so both are compared, in reads and in conditions alike.
- A pack's own claim is won again by that pack, so a redelivery goes on where it stopped, and a
  write whose outcome is unknown may be repeated.
- A failed condition costs as much as a write, ten times a read: `claim` reads first and writes
  only what looks free. That read may be a moment old. It can then call a URL held whose claim was
  given back or ran out just now, which is a link found a moment too early; the other way round the
  condition decides.
- What looks absent, which is nearly all, is inserted in batches; only what turns out to be there
  by then, and what has lapsed, is put one by one under the condition above.

Source: DynamoDB developer guide, "Working with expired items and time to live".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws import all_of
from orbweaver.adapters.dynamodb import ConditionFailed, Dynamo, Item, from_item, to_item
from orbweaver.core.message import Prior
from orbweaver.core.standing import Known, Standing
from orbweaver.core.url import url_hash
from orbweaver.ports import UNMODIFIED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orbweaver.core.message import Target
    from orbweaver.core.standing import Claimer

WRITES_AT_ONCE = 32

FREE_OR_OWN = (
    "attribute_not_exists(#k) OR #expires_at <= :at_s OR #at < :stale_before OR #pack = :pack"
)
OWN = "#pack = :pack"


class DynamoFrontier:
    """Claims."""

    def __init__(self, dynamo: Dynamo, *, urls_table: str) -> None:
        self._dynamo = dynamo
        self._table = urls_table

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = UNMODIFIED
    ) -> Known:
        """See the port."""
        read = await self._read(claimer.name, urls)
        claims = {url: claim for url, claim in read.items() if claim["pack"] != claimer.pack}
        held = frozenset(
            url for url, claim in claims.items() if _holds(claim, claimer, modified.get(url))
        )
        lapsed = {
            url: Prior(crawl=claim["crawl"], at_ms=claim["at"])
            for url, claim in claims.items()
            if url not in held and "crawl" in claim  # claims did not always say
        }
        return Known(held=held, lapsed=lapsed)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """See the port."""
        wanted = {target.url: target for target in targets}
        claims = await self._read(claimer.name, tuple(wanted))
        own = {url for url, claim in claims.items() if claim["pack"] == claimer.pack}
        absent = [target for url, target in wanted.items() if url not in claims]
        inserted = await self._dynamo.insert_many(
            self._table, [_item(claimer, target) for target in absent]
        )
        new = {target.url for target, done in zip(absent, inserted, strict=True) if done}
        # What has lapsed, and what was claimed since it was read, is for the condition to decide.
        open_ = [
            target
            for url, target in wanted.items()
            if url not in own | new
            and not (url in claims and _holds(claims[url], claimer, target.modified_at_ms))
        ]
        won = await all_of((self._put(claimer, target) for target in open_), WRITES_AT_ONCE)
        taken = {target.url for target, mine in zip(open_, won, strict=True) if mine}
        return frozenset(own | new | taken)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """See the port."""
        await all_of((self._delete(claimer, url) for url in dict.fromkeys(urls)), WRITES_AT_ONCE)

    async def standing(self, name: str, url: str) -> Standing | None:
        """See the port."""
        items = await self._dynamo.get_many(
            self._table, [to_item({"k": _key(name, url)})], consistent=True
        )
        for claim in map(from_item, items):
            return Standing(
                crawl=claim.get("crawl"),
                pack=claim["pack"],
                at_ms=claim["at"],
                expires_s=claim["expires_at"],
                depth=claim.get("depth", 0),
            )
        return None

    async def _read(self, name: str, urls: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Read claims, eventually consistent: URL to fields."""
        by_key = {_key(name, url): url for url in urls}
        items = await self._dynamo.get_many(
            self._table,
            [to_item({"k": key}) for key in by_key],
            consistent=False,
            attributes=("k", "crawl", "pack", "at", "expires_at"),
        )
        claims = [from_item(item) for item in items]
        return {by_key[claim["k"]]: claim for claim in claims}

    async def _put(self, claimer: Claimer, target: Target) -> bool:
        try:
            await self._dynamo.call(
                "put_item",
                TableName=self._table,
                Item=_item(claimer, target),
                ConditionExpression=FREE_OR_OWN,
                ExpressionAttributeNames={
                    "#k": "k",
                    "#at": "at",
                    "#expires_at": "expires_at",
                    "#pack": "pack",
                },
                ExpressionAttributeValues=to_item(
                    {
                        ":at_s": claimer.at_ms // 1000,
                        ":stale_before": _stale_before_ms(claimer, target.modified_at_ms),
                        ":pack": claimer.pack,
                    }
                ),
            )
        except ConditionFailed:
            return False
        return True

    async def _delete(self, claimer: Claimer, url: str) -> None:
        try:
            await self._dynamo.call(
                "delete_item",
                TableName=self._table,
                Key=to_item({"k": _key(claimer.name, url)}),
                ConditionExpression=OWN,
                ExpressionAttributeNames={"#pack": "pack"},
                ExpressionAttributeValues=to_item({":pack": claimer.pack}),
            )
        except ConditionFailed:
            return


def _item(claimer: Claimer, target: Target) -> Item:
    return to_item(
        {
            "k": _key(claimer.name, target.url),
            "url": target.url,
            "crawl": claimer.crawl,
            "pack": claimer.pack,
            "depth": target.depth,
            "at": claimer.at_ms,
            "expires_at": claimer.expires_s,
        }
    )


def _key(name: str, url: str) -> str:
    return f"{name}#{url_hash(url)}"


def _holds(claim: Mapping[str, Any], claimer: Claimer, modified_at_ms: int | None) -> bool:
    """Whether another's claim still holds: neither expired nor stale, deleted yet or not."""
    stale_before_ms = _stale_before_ms(claimer, modified_at_ms)
    held: bool = claim["expires_at"] > claimer.at_ms // 1000 and claim["at"] >= stale_before_ms
    return held


def _stale_before_ms(claimer: Claimer, modified_at_ms: int | None) -> int:
    """Claims of a URL made before this moment do not hold, by the window or as it was changed."""
    return max(claimer.stale_before_ms, modified_at_ms or 0)
