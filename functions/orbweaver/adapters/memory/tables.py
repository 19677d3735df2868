"""Claims, packs, crawls and pages in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.adapters.memory.world import Claim, Gated, ShardItem
from orbweaver.core.crawl import Books, Crawl, Shard, State, Tally
from orbweaver.core.message import Prior
from orbweaver.core.record import shard_of
from orbweaver.core.standing import (
    AlreadyCommitted,
    Claimer,
    Closed,
    CommitResult,
    Committed,
    Known,
    OverBudget,
    Recalled,
    Standing,
)
from orbweaver.ports import UNMODIFIED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from orbweaver.core.journal import Journal, Ledger
    from orbweaver.core.message import Target


class MemoryFrontier(Gated):
    """Claims."""

    async def known(
        self, claimer: Claimer, urls: Sequence[str], modified: Mapping[str, int] = UNMODIFIED
    ) -> Known:
        """See the port."""

        def read() -> Known:
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
                claim.url: Prior(crawl=claim.crawl, at_ms=claim.at_ms)
                for claim in claims
                if claim.url not in held
            }
            return Known(held=held, lapsed=lapsed)

        return await self._do("frontier.known", read)

    async def claim(self, claimer: Claimer, targets: Sequence[Target]) -> frozenset[str]:
        """See the port."""
        won = await asyncio.gather(*(self._claim(claimer, target) for target in targets))
        return frozenset(target.url for target, mine in zip(targets, won, strict=True) if mine)

    async def release(self, claimer: Claimer, urls: Sequence[str]) -> None:
        """See the port."""

        def drop(url: str) -> None:
            claim = self._world.claims.get((claimer.name, url))
            if claim is not None and claim.pack == claimer.pack:
                del self._world.claims[claimer.name, url]

        for url in urls:
            await self._do("frontier.release", lambda url=url: drop(url))  # type: ignore[misc]

    async def standing(self, name: str, url: str) -> Standing | None:
        """See the port."""

        def read() -> Standing | None:
            claim = self._world.claims.get((name, url))
            if claim is None:
                return None
            return Standing(
                crawl=claim.crawl or None,
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
                return False
            self._world.claims[key] = Claim(
                url=url,
                pack=claimer.pack,
                at_ms=claimer.at_ms,
                expires_s=claimer.expires_s,
                crawl=claimer.crawl,
                depth=target.depth,
            )
            return True

        return await self._do("frontier.claim", put)


def _holds(claim: Claim, claimer: Claimer, modified_at_ms: int | None) -> bool:
    """Whether another's claim still holds: neither expired nor stale, deleted yet or not."""
    stale_before_ms = max(claimer.stale_before_ms, modified_at_ms or 0)
    return claim.expires_s > claimer.at_ms // 1000 and claim.at_ms >= stale_before_ms


class MemoryPacks(Gated):
    """Journals, ledgers, counters, parked packs."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        """See the port."""

        def read() -> dict[str, Recalled]:
            world = self._world
            return {
                pack_id: Recalled(
                    journal=world.journals.get(pack_id),
                    ledger=world.ledgers.get(pack_id),
                    strikes=world.strikes.get(pack_id, 0),
                )
                for pack_id in pack_ids
                if any(pack_id in part for part in (world.journals, world.ledgers, world.strikes))
            }

        return await self._do("packs.recall", read)

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        """See the port."""
        return await self._do(
            "packs.journal", lambda: self._world.journals.setdefault(pack_id, journal)
        )

    async def commit(self, crawl: Crawl, ledger: Ledger, tally: Tally) -> CommitResult:
        """See the port."""

        def transact() -> CommitResult:
            standing = self._world.ledgers.get(ledger.pack)
            if standing is not None:
                return AlreadyCommitted(ledger=standing)
            number = shard_of(ledger.pack, crawl.shards)
            shard = self._world.shards.setdefault((crawl.id, number), ShardItem())
            if shard.closed:
                return Closed()
            claimed = shard.tally.get("claimed", 0)
            left = crawl.shard_quota(number) - claimed
            if tally.get("claimed", 0) > left:
                return OverBudget(left=left)
            shard.tally = dict(Counter(shard.tally) + Counter(dict(tally)))
            shard.commits += 1
            self._world.ledgers[ledger.pack] = ledger
            self._world.commits.append((crawl.id, ledger, tally))
            return Committed()

        return await self._do("packs.commit", transact)

    async def strike(self, pack_id: str) -> int:
        """See the port."""

        def add() -> int:
            self._world.strikes[pack_id] = self._world.strikes.get(pack_id, 0) + 1
            return self._world.strikes[pack_id]

        return await self._do("packs.strike", add)

    async def absolve(self, pack_id: str, strikes: int) -> None:
        """See the port."""
        await self._do("packs.absolve", lambda: self._world.strikes.update({pack_id: strikes}))

    async def sent(self, pack_id: str) -> None:
        """See the port."""

        def put() -> None:
            self._world.ledgers[pack_id] = replace(self._world.ledgers[pack_id], sent=True)

        await self._do("packs.sent", put)

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        """See the port."""

        def transact() -> bool:
            if self._world.crawls[crawl].state is not State.PAUSED:
                return False
            self._world.parked[crawl, pack_id] = body
            return True

        return await self._do("packs.park", transact)

    async def parked(self, crawl: str) -> Mapping[str, str]:
        """See the port."""
        return await self._do(
            "packs.parked",
            lambda: {
                pack_id: body
                for (owner, pack_id), body in self._world.parked.items()
                if owner == crawl
            },
        )

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        """See the port."""
        for pack_id in pack_ids:
            await self._do(
                "packs.unpark",
                lambda pack_id=pack_id: self._world.parked.pop((crawl, pack_id), None),  # type: ignore[misc]
            )


class MemoryCrawls(Gated):
    """Crawls and their books."""

    async def create(self, crawl: Crawl) -> bool:
        """See the port."""

        def put() -> bool:
            return self._world.crawls.setdefault(crawl.id, crawl) is crawl

        return await self._do("crawls.create", put)

    async def get(self, crawl_id: str) -> Crawl | None:
        """See the port."""
        return await self._do("crawls.get", lambda: self._world.crawls.get(crawl_id))

    async def list(self) -> tuple[Crawl, ...]:
        """See the port."""
        return await self._do(
            "crawls.list",
            lambda: tuple(
                sorted(self._world.crawls.values(), key=lambda crawl: -crawl.started_at_ms)
            ),
        )

    async def books(self, crawl: Crawl) -> Books:
        """See the port."""
        shards = [
            await self._do("crawls.shard", lambda number=number: self._shard(crawl.id, number))  # type: ignore[misc]
            for number in range(crawl.shards)
        ]
        return Books.of(tuple(shards))

    async def seal(self, crawl: Crawl, books: Books, finished: Crawl) -> bool:
        """See the port."""

        def transact() -> bool:
            if self._world.crawls[crawl.id].state is not crawl.state:
                return False
            now = [self._shard(crawl.id, number) for number in range(crawl.shards)]
            if any(
                is_now.closed or is_now.commits != then.commits
                for is_now, then in zip(now, books.shards, strict=True)
            ):
                return False
            for number in range(crawl.shards):
                item = self._world.shards.setdefault((crawl.id, number), ShardItem())
                item.closed = True
            self._world.crawls[crawl.id] = finished
            return True

        return await self._do("crawls.seal", transact)

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        """See the port."""

        def put() -> bool:
            standing = self._world.crawls.get(crawl.id)
            if standing is None or standing.state not in set(allowed):
                return False
            self._world.crawls[crawl.id] = replace(standing, state=crawl.state, stop=crawl.stop)
            return True

        return await self._do("crawls.move", put)

    async def announced(self, crawl_id: str) -> None:
        """See the port."""

        def put() -> None:
            self._world.crawls[crawl_id] = replace(self._world.crawls[crawl_id], announced=True)

        await self._do("crawls.announced", put)

    def _shard(self, crawl_id: str, number: int) -> Shard:
        item = self._world.shards.get((crawl_id, number), ShardItem())
        return Shard(commits=item.commits, closed=item.closed, tally=dict(item.tally))
