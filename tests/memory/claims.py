"""Claims in memory: each gives one pack (batch of URLs) the right to request a URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from orbweaver.frontier.claims import Claimer, ClaimStates, StoredClaim
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import NOTHING
from orbweaver.model.target import Prior, Target
from tests.memory.world import Claim, Gated


class MemoryFrontier(Gated):
    """Claims of URLs."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = NOTHING
    ) -> ClaimStates:
        def read() -> ClaimStates:
            claims = [
                claim
                for url in urls
                if (claim := self._world.claims.get((claimer.name, url))) is not None
                and claim.pack != claimer.pack
            ]
            held = frozenset(
                claim.url for claim in claims if _holds(claim, claimer, modified.get(claim.url))
            )
            lapsed = {
                claim.url: Prior(crawl=seen.crawl, at_ms=seen.at_ms)
                for claim in claims
                if claim.url not in held and (seen := _seen_by(claimer, claim))
            }
            own = frozenset(
                claim.url for claim in claims if claim.url in held and claim.crawl == claimer.crawl
            )
            return ClaimStates(held=held, own=own, lapsed=lapsed)

        return await self._do("frontier.known", read)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        won = await asyncio.gather(*(self._claim(claimer, target) for target in targets))
        return frozenset(target.url for target, mine in zip(targets, won, strict=True) if mine)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        claims = self._world.claims

        def give_back(url: str) -> None:
            claim = claims.get((claimer.name, url))
            if claim is not None and claim.pack == claimer.pack:
                del claims[claimer.name, url]
                if claim.was is not None:
                    claims[claimer.name, url] = claim.was
            elif claim is not None and claim.was is not None and claim.was.pack == claimer.pack:
                claims[claimer.name, url] = replace(claim, was=None)

        for url in urls:
            await self._do("frontier.release", lambda url=url: give_back(url))  # type: ignore[misc]

    async def abandon(self, crawl: Crawl, urls: Sequence[str], *, failed: bool = False) -> None:
        claims = self._world.claims

        def mark(url: str) -> None:
            claim = claims.get((crawl.name, url))
            if claim is not None and claim.crawl == crawl.id:
                was = None if failed else claim.was
                claims[crawl.name, url] = replace(claim, unasked=True, was=was)
            elif claim is not None and claim.was is not None and claim.was.crawl == crawl.id:
                claims[crawl.name, url] = replace(claim, was=replace(claim.was, unasked=True))

        for url in urls:
            await self._do("frontier.abandon", lambda url=url: mark(url))  # type: ignore[misc]

    async def last_claim(self, name: str, url: str) -> StoredClaim | None:
        def read() -> StoredClaim | None:
            claim = self._world.claims.get((name, url))
            if claim is None:
                return None
            return StoredClaim(
                crawl=claim.crawl,
                pack=claim.pack,
                at_ms=claim.at_ms,
                expires_s=claim.expires_s,
                depth=claim.depth,
            )

        return await self._do("frontier.standing", read)

    async def _claim(self, claimer: Claimer, target: Target) -> bool:
        url = target.url

        def put() -> bool:
            key = (claimer.name, url)
            claim = self._world.claims.get(key)
            if (
                claim is not None
                and claim.pack != claimer.pack
                and _holds(claim, claimer, target.modified_at_ms)
            ):
                if claim.was is not None and claim.was.pack == claimer.pack:
                    self._world.claims[key] = replace(claim, was=None)
                return False
            self._world.claims[key] = Claim(
                url=url,
                pack=claimer.pack,
                at_ms=claimer.at_ms,
                expires_s=claimer.expires_s,
                crawl=claimer.crawl,
                depth=target.depth,
                was=_former(claim, claimer),
            )
            return True

        return await self._do("frontier.claim", put)


def _former(claim: Claim | None, claimer: Claimer) -> Claim | None:
    """Return the lapsed claim that a new one replaces; the claimer's own claim is none."""
    if claim is None:
        return None
    if claim.pack == claimer.pack:
        return claim.was
    return replace(_seen_by(claimer, claim) or claim, was=None)


def _seen_by(claimer: Claimer, claim: Claim) -> Claim | None:
    """Return a claim as a claimer sees it: claims that another run has abandoned do not exist."""
    seen: Claim | None = claim
    while seen is not None and seen.unasked and seen.crawl != claimer.crawl:
        seen = seen.was
    return seen


def _holds(claim: Claim, claimer: Claimer, modified_at_ms: int | None) -> bool:
    """True if another claim still holds: not expired and not stale, deleted or not."""
    seen = _seen_by(claimer, claim)
    if seen is None:
        return False
    stale_before_ms = max(claimer.stale_before_ms, modified_at_ms or 0)
    return seen.expires_s > claimer.at_ms // 1000 and seen.at_ms >= stale_before_ms
