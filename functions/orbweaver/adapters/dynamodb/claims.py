"""Claims in the `urls` table: records that make a URL belong to one pack (batch of URLs).

A claim lapses when it expires, or when it is stale: older than the dedup window or than the page's
last change. TTL deletes items days late, so readers compare the times. A claim that replaces a
lapsed claim contains that claim as `was`. Source: DynamoDB developer guide, "Working with expired
items and time to live".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.table import ConditionFailed, Dynamo, Fields
from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import NOTHING, Transient
from orbweaver.model.target import Target
from orbweaver.model.url import url_hash

WRITES_AT_ONCE = 32

# Attempts to write a claim that other workers change.
TAKE_OVER_TRIES = 5
ABSENT = "attribute_not_exists(#pack)"
AS_READ = "#pack = :pack AND #at = :at"
ATTRIBUTES = ("k", "crawl", "pack", "depth", "at", "expires_at", "unasked", "was")


class DynamoFrontier:
    """Implements `Frontier` on DynamoDB."""

    def __init__(self, dynamo: Dynamo, *, urls_table: str) -> None:
        self._dynamo = dynamo
        self._table = urls_table

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        # A failed conditional write costs ten times a read, so claims are read first. The read may
        # be slightly old: the condition decides.
        return ClaimStates.build(claimer, await self._read(claimer.name, urls), modified)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        wanted = {target.url: target for target in targets}
        # The insert of a URL with an earlier claim would fail, and still cost a write.
        fresh = [target for target in wanted.values() if target.prior is None]
        inserted = await self._dynamo.insert_many(
            self._table,
            [_item(claimer.name, one.url, StoredClaim.create(claimer, one)) for one in fresh],
        )
        new = {target.url for target, done in zip(fresh, inserted, strict=True) if done}
        # Consistent, because another read might miss the item that made the insert fail.
        refused = [target.url for target in fresh if target.url not in new]
        claims = await self._read(claimer.name, refused, consistent=True)
        claims |= await self._read(claimer.name, [*wanted.keys() - {one.url for one in fresh}])
        # A pack wins its own claim again, so that a repeated message or write continues.
        own = {url for url, claim in claims.items() if claim.pack == claimer.pack}
        # The condition decides on lapsed claims and on claims made since the read.
        open_ = [target for url, target in wanted.items() if url not in own | new]
        won = await all_of(
            (self._take_over(claimer, target, claims.get(target.url)) for target in open_),
            WRITES_AT_ONCE,
        )
        taken = {target.url for target, mine in zip(open_, won, strict=True) if mine}
        return frozenset(own | new | taken)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        claims = await self._read(claimer.name, list(dict.fromkeys(urls)), consistent=True)
        await all_of(
            (self._give_back(claimer, url, claim) for url, claim in claims.items()),
            WRITES_AT_ONCE,
        )

    async def abandon(self, crawl: Crawl, urls: Sequence[str], *, failed: bool = False) -> None:
        marks = (self._mark(crawl, url, failed=failed) for url in dict.fromkeys(urls))
        await all_of(marks, WRITES_AT_ONCE)

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        return (await self._read(name, [url], consistent=True)).get(url)

    async def _read(
        self, name: str, urls: Sequence[str], *, consistent: bool = False
    ) -> dict[str, StoredClaim]:
        by_key = {_key(name, url): url for url in urls}
        claims = await self._dynamo.get_many(
            self._table,
            [{"k": key} for key in by_key],
            consistent=consistent,
            attributes=ATTRIBUTES,
        )
        return {by_key[fields["k"]]: _stored(fields) for fields in claims}

    async def _take_over(
        self, claimer: Claimer, target: Target, current: StoredClaim | None
    ) -> bool:
        """Replace a lapsed or absent claim. Return True if the pack now has the claim.

        The last argument is the claim that was read.
        """
        for _ in range(TAKE_OVER_TRIES):
            if current is not None and current.pack == claimer.pack:
                return True
            if current is not None and current.holds(claimer, target.modified_at_ms):
                await self._give_back(claimer, target.url, current)
                return False
            try:
                mine = StoredClaim.create(claimer, target, current)
                await self._put(claimer.name, target.url, mine, current)
            except ConditionFailed as refusal:
                current = _stored(refusal.fields) if refusal.fields else None
            else:
                return True
        raise Transient(f"{target.url} is claimed again and again")

    async def _mark(
        self, crawl: Crawl, url: str, *, failed: bool = False, former: bool = False
    ) -> None:
        """Mark a run's claim as abandoned. With `failed`, delete the claim that it replaced.

        With `former`, mark the claim that another run replaced.
        """
        within = "#was." if former else ""
        try:
            await self._dynamo.update(
                self._table,
                {"k": _key(crawl.name, url)},
                f"SET {within}#unasked = :yes" + " REMOVE #was" * failed,
                {":yes": True, ":crawl": crawl.id},
                when=f"{within}#crawl = :crawl",
            )
        except ConditionFailed as refusal:
            was = refusal.fields.get("was", {})
            if not former and was.get("crawl") == crawl.id:
                await self._mark(crawl, url, former=True)

    async def _give_back(self, claimer: Claimer, url: str, claim: StoredClaim) -> None:
        """Remove a pack's claim, which can be current or kept in `was`."""
        # Other workers may replace or restore it meanwhile. A later claim of the same pack is kept.
        former = claim if claim.pack == claimer.pack else claim.was or claim
        key, own = {"k": _key(claimer.name, url)}, (claimer.pack, former.at_ms)
        for _ in range(TAKE_OVER_TRIES):
            was = claim.was
            try:
                if (claim.pack, claim.at_ms) == own:
                    if was is None:
                        await self._dynamo.delete(self._table, key, *_unchanged(claim))
                    else:
                        await self._put(claimer.name, url, was, claim)
                elif was is not None and (was.pack, was.at_ms) == own:
                    when, values = _unchanged(claim)
                    await self._dynamo.update(self._table, key, "REMOVE #was", values, when=when)
            except ConditionFailed as refusal:
                if not refusal.fields:
                    return
                claim = _stored(refusal.fields)
            else:
                return
        raise Transient(f"{url} is claimed again and again")

    async def _put(
        self, name: str, url: str, claim: StoredClaim, current: StoredClaim | None
    ) -> None:
        await self._dynamo.put(self._table, _item(name, url, claim), *_unchanged(current))


def _unchanged(current: StoredClaim | None) -> tuple[str, Fields]:
    """Return the condition that a claim has not changed after it was read, or is still absent."""
    if current is None:
        return ABSENT, {}
    return AS_READ, {":pack": current.pack, ":at": current.at_ms}


def _item(name: str, url: str, claim: StoredClaim) -> Fields:
    was = claim.was and _fields(claim.was)
    return {"k": _key(name, url), "url": url, **_fields(claim), "was": was}


def _fields(claim: StoredClaim) -> Fields:
    return {
        "crawl": claim.crawl,
        "pack": claim.pack,
        "depth": claim.depth,
        "at": claim.at_ms,
        "expires_at": claim.expires_s,
        "unasked": claim.unasked or None,
    }


def _stored(fields: Fields) -> StoredClaim:
    return StoredClaim(
        crawl=fields["crawl"],
        pack=fields["pack"],
        at_ms=fields["at"],
        expires_s=fields["expires_at"],
        depth=fields["depth"],
        unasked=fields.get("unasked", False),
        was=_stored(fields["was"]) if "was" in fields else None,
    )


def _key(name: str, url: str) -> str:
    return f"{name}#{url_hash(url)}"
