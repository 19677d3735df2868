"""Claims in the `urls` table: records that make a URL belong to one pack (batch of URLs).

A claim lapses when it expires, or when it is stale: older than the dedup window or than the page's
last change. TTL deletes items days late, so readers compare the times. A claim that replaces a
lapsed claim contains that claim as `was`. Source: DynamoDB developer guide, "Working with expired
items and time to live".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.table import ConditionFailed, Dynamo, Fields
from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import NOTHING, Transient
from orbweaver.model.target import Prior, Target
from orbweaver.model.url import url_hash

WRITES_AT_ONCE = 32

# Attempts to write a claim that other workers change.
TAKE_OVER_TRIES = 5
ABSENT = "attribute_not_exists(#pack)"
AS_READ = "#pack = :pack AND #at = :at"
# Fields of a replaced claim that are kept in `was`. `unasked` is set if the URL was never
# requested: the claim then counts within its run only.
KEPT = ("crawl", "pack", "depth", "at", "expires_at", "unasked")


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
        read = await self._read(claimer.name, urls)
        others = {url: claim for url, claim in read.items() if claim["pack"] != claimer.pack}
        held = frozenset(
            url for url, claim in others.items() if _holds(claim, claimer, modified.get(url))
        )
        claims = {url: seen for url, claim in others.items() if (seen := _seen_by(claimer, claim))}
        lapsed = {
            url: Prior(crawl=claim["crawl"], at_ms=claim["at"])
            for url, claim in claims.items()
            if url not in held
        }
        own = frozenset(url for url in held if others[url]["crawl"] == claimer.crawl)
        return ClaimStates(held=held, own=own, lapsed=lapsed)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        wanted = {target.url: target for target in targets}
        # The insert of a URL with an earlier claim would fail, and still cost a write.
        fresh = [target for target in wanted.values() if target.prior is None]
        inserted = await self._dynamo.insert_many(
            self._table, [_claim(claimer, target) for target in fresh]
        )
        new = {target.url for target, done in zip(fresh, inserted, strict=True) if done}
        # Consistent, because another read might miss the item that made the insert fail.
        refused = [target.url for target in fresh if target.url not in new]
        claims = await self._read(claimer.name, refused, consistent=True)
        claims |= await self._read(claimer.name, [*wanted.keys() - {one.url for one in fresh}])
        # A pack wins its own claim again, so that a repeated message or write continues.
        own = {url for url, claim in claims.items() if claim["pack"] == claimer.pack}
        # The condition decides on lapsed claims and on claims made since the read.
        open_ = [target for url, target in wanted.items() if url not in own | new]
        won = await all_of(
            (self._take_over(claimer, target, claims.get(target.url)) for target in open_),
            WRITES_AT_ONCE,
        )
        taken = {target.url for target, mine in zip(open_, won, strict=True) if mine}
        return frozenset(own | new | taken)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        keys = [{"k": _key(claimer.name, url)} for url in dict.fromkeys(urls)]
        claims = await self._dynamo.get_many(self._table, keys, consistent=True)
        await all_of((self._give_back(claimer.pack, claim) for claim in claims), WRITES_AT_ONCE)

    async def abandon(self, crawl: Crawl, urls: Sequence[str]) -> None:
        await all_of((self._mark(crawl, url) for url in dict.fromkeys(urls)), WRITES_AT_ONCE)

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        key = {"k": _key(name, url)}
        for claim in await self._dynamo.get_many(self._table, [key], consistent=True):
            return StoredClaim(
                crawl=claim["crawl"],
                pack=claim["pack"],
                at_ms=claim["at"],
                expires_s=claim["expires_at"],
                depth=claim["depth"],
            )
        return None

    async def _read(
        self, name: str, urls: Sequence[str], *, consistent: bool = False
    ) -> dict[str, Fields]:
        by_key = {_key(name, url): url for url in urls}
        claims = await self._dynamo.get_many(
            self._table,
            [{"k": key} for key in by_key],
            consistent=consistent,
            attributes=("k", *KEPT, "was"),
        )
        return {by_key[claim["k"]]: claim for claim in claims}

    async def _take_over(self, claimer: Claimer, target: Target, standing: Fields | None) -> bool:
        """Replace a lapsed or absent claim. Return True if the pack now has the claim.

        The last argument is the claim that was read.
        """
        for _ in range(TAKE_OVER_TRIES):
            if standing is not None and standing["pack"] == claimer.pack:
                return True
            if standing is not None and _holds(standing, claimer, target.modified_at_ms):
                await self._give_back(claimer.pack, standing)
                return False
            try:
                # Keep the claim that is valid for all runs, or else an abandoned one.
                former = standing and (_seen_by(claimer, standing) or standing)
                await self._put(_claim(claimer, target, former), standing)
            except ConditionFailed as refusal:
                standing = refusal.fields or None
            else:
                return True
        raise Transient(f"{target.url} is claimed again and again")

    async def _mark(self, crawl: Crawl, url: str, *, former: bool = False) -> None:
        """Mark a run's claim as abandoned.

        With `former`, mark the claim that another run replaced.
        """
        within = "#was." if former else ""
        try:
            await self._dynamo.update(
                self._table,
                {"k": _key(crawl.name, url)},
                f"SET {within}#unasked = :yes",
                {":yes": True, ":crawl": crawl.id},
                when=f"{within}#crawl = :crawl",
            )
        except ConditionFailed as refusal:
            was = refusal.fields.get("was", {})
            if not former and was.get("crawl") == crawl.id:
                await self._mark(crawl, url, former=True)

    async def _give_back(self, pack: str, claim: Fields) -> None:
        """Remove a pack's claim, which can be current or kept in `was`."""
        # Other workers may replace or restore it meanwhile. A later claim of the same pack is kept.
        at_ms = (claim if claim["pack"] == pack else claim.get("was", claim))["at"]
        for _ in range(TAKE_OVER_TRIES):
            try:
                if _belongs_to(claim, pack, at_ms):
                    await self._undo(claim)
                elif _belongs_to(claim.get("was", {}), pack, at_ms):
                    await self._remove_former(claim)
            except ConditionFailed as refusal:
                claim = refusal.fields
            else:
                return
        raise Transient(f"{claim['k']} is claimed again and again")

    async def _remove_former(self, claim: Fields) -> None:
        when, values = _unchanged(claim)
        await self._dynamo.update(self._table, {"k": claim["k"]}, "REMOVE #was", values, when=when)

    async def _undo(self, claim: Fields) -> None:
        if "was" in claim:
            former = {"k": claim["k"], "url": claim["url"], **claim["was"]}
            await self._put(former, claim)
        else:
            await self._dynamo.delete(self._table, {"k": claim["k"]}, *_unchanged(claim))

    async def _put(self, claim: Fields, standing: Fields | None) -> None:
        await self._dynamo.put(self._table, claim, *_unchanged(standing))


def _belongs_to(claim: Mapping[str, Any], pack: str, at_ms: int) -> bool:
    return (claim.get("pack"), claim.get("at")) == (pack, at_ms)


def _unchanged(standing: Fields | None) -> tuple[str, Fields]:
    """Return the condition that a claim has not changed after it was read, or is still absent."""
    if standing is None:
        return ABSENT, {}
    return AS_READ, {":pack": standing["pack"], ":at": standing["at"]}


def _claim(claimer: Claimer, target: Target, former: Mapping[str, Any] | None = None) -> Fields:
    fields: Fields = {
        "k": _key(claimer.name, target.url),
        "url": target.url,
        "crawl": claimer.crawl,
        "pack": claimer.pack,
        "depth": target.depth,
        "at": claimer.at_ms,
        "expires_at": claimer.expires_s,
    }
    if former is not None:
        fields["was"] = {name: former[name] for name in KEPT if name in former}
    return fields


def _key(name: str, url: str) -> str:
    return f"{name}#{url_hash(url)}"


def _holds(claim: Mapping[str, Any], claimer: Claimer, modified_at_ms: int | None) -> bool:
    """Whether another pack's claim is valid for `claimer`: not expired and not stale.

    It is stale if it is older than `modified_at_ms`, the page's last modification.
    """
    seen = _seen_by(claimer, claim)
    if seen is None:
        return False
    stale_before_ms = _stale_before_ms(claimer, modified_at_ms)
    held: bool = seen["expires_at"] > claimer.at_ms // 1000 and seen["at"] >= stale_before_ms
    return held


def _seen_by(claimer: Claimer, claim: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the claim that counts for a claimer. Ignores claims that other runs abandoned."""
    seen: Mapping[str, Any] | None = claim
    while seen is not None and seen.get("unasked") and seen.get("crawl") != claimer.crawl:
        seen = seen.get("was")
    return seen


def _stale_before_ms(claimer: Claimer, modified_at_ms: int | None) -> int:
    return max(claimer.stale_before_ms, modified_at_ms or 0)
