"""Packs (batches of URLs), crawls and their counters in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from orbweaver.frontier.claims import (
    AlreadyCommitted,
    Closed,
    CommitResult,
    Committed,
    OverBudget,
    Recalled,
    UnreadableCrawl,
)
from orbweaver.frontier.journal import Journal, Ledger
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import (
    MOVED,
    Counters,
    CounterShard,
    Counts,
    Crawl,
    Settlement,
    State,
    spent,
)
from orbweaver.model.errors import NOTHING
from orbweaver.model.page_record import shard_of
from tests.memory.budgets import settle
from tests.memory.world import Gated, ShardItem


class MemoryPacks(Gated):
    """Results of packs (journals), their commits (ledgers), counters and parked packs."""

    async def recall(self, pack_ids: Sequence[str]) -> Mapping[str, Recalled]:
        def read() -> dict[str, Recalled]:
            world = self._world
            parts = (world.journals, world.ledgers, world.strikes, world.newer)
            return {
                pack_id: Recalled(
                    journal=world.journals.get(pack_id),
                    ledger=world.ledgers.get(pack_id),
                    strikes=world.strikes.get(pack_id, 0),
                    newer=world.newer.get(pack_id),
                )
                for pack_id in pack_ids
                if any(pack_id in part for part in parts)
            }

        return await self._do("packs.recall", read)

    async def write_journal(self, pack_id: str, journal: Journal) -> Journal:
        def put() -> Journal:
            self._world.check(pack_id)
            return self._world.journals.setdefault(pack_id, journal)

        return await self._do("packs.journal", put)

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        def transact() -> CommitResult:
            standing = self._world.ledgers.get(ledger.pack)
            if standing is not None:
                return AlreadyCommitted(ledger=standing)
            if (refused := self.refused(crawl, ledger, counts)) is not None:
                return refused
            for each in settled:
                settle(self._world, crawl, each)
            self.count(crawl, [(ledger, counts)])
            self.record(crawl, [(ledger, counts)])
            return Committed()

        return await self._do("packs.commit", transact)

    async def commit_together(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> bool:
        def transact() -> bool:
            total: Counter[str] = Counter()
            for _, counts in commits:
                total.update(counts)
            done = any(ledger.pack in self._world.ledgers for ledger, _ in commits)
            if done or self.refused(crawl, commits[0][0], total) is not None:
                return False
            self.count(crawl, commits)
            self.record(crawl, commits)
            return True

        return await self._do("packs.commit", transact)

    def refused(self, crawl: Crawl, ledger: Ledger, counts: Counts) -> Closed | OverBudget | None:
        """Return why the counters of a commit's shard refuse these counts."""
        shard = self._shard(crawl, ledger)
        if shard.closed:
            return Closed()
        left = crawl.shard_quota(shard_of(ledger.pack, crawl.shards)) - spent(shard.counts)
        wanted = counts.get("claimed", 0)
        return OverBudget(left=max(0, left)) if wanted and wanted > left else None

    def count(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> None:
        """Add the counts of commits to their shard."""
        shard = self._shard(crawl, commits[0][0])
        for _, counts in commits:
            shard.counts = dict(Counter(shard.counts) + Counter(dict(counts)))
        shard.commits += 1

    def record(self, crawl: Crawl, commits: Sequence[tuple[Ledger, Counts]]) -> None:
        """Store the ledgers of commits."""
        for ledger, counts in commits:
            self._world.ledgers[ledger.pack] = ledger
            self._world.commits.append((crawl.id, ledger, counts))

    def _shard(self, crawl: Crawl, ledger: Ledger) -> ShardItem:
        number = shard_of(ledger.pack, crawl.shards)
        return self._world.shards.setdefault((crawl.id, number), ShardItem())

    async def add_strike(self, pack_id: str) -> int:
        def add() -> int:
            self._world.strikes[pack_id] = self._world.strikes.get(pack_id, 0) + 1
            return self._world.strikes[pack_id]

        return await self._do("packs.strike", add)

    async def set_strikes(self, pack_id: str, strikes: int) -> None:
        await self._do("packs.absolve", lambda: self._world.strikes.update({pack_id: strikes}))

    async def note_sent(self, pack_id: str, leases: int) -> bool:
        def put() -> bool:
            ledger = self._world.ledgers[pack_id]
            if ledger.leases != leases and not ledger.sent:
                return False
            self._world.ledgers[pack_id] = replace(ledger, sent=True)
            return True

        return await self._do("packs.sent", put)

    async def park(self, crawl: str, body: str, pack_id: str) -> bool:
        def transact() -> bool:
            if self._world.crawls[crawl].state is not State.PAUSED:
                return False
            self._world.parked[crawl, pack_id] = body
            return True

        return await self._do("packs.park", transact)

    async def parked(self, crawl: str) -> Mapping[str, str]:
        return await self._do(
            "packs.parked",
            lambda: {
                pack_id: body
                for (owner, pack_id), body in self._world.parked.items()
                if owner == crawl
            },
        )

    async def unpark(self, crawl: str, pack_ids: Sequence[str]) -> None:
        for pack_id in pack_ids:
            await self._do(
                "packs.unpark",
                lambda pack_id=pack_id: self._world.parked.pop((crawl, pack_id), None),  # type: ignore[misc]
            )


class MemoryCrawls(Gated):
    """Crawls and their counters."""

    async def create(self, crawl: Crawl) -> bool:
        def put() -> bool:
            return self._world.crawls.setdefault(crawl.id, crawl) is crawl

        return await self._do("crawls.create", put)

    async def get(self, crawl_id: str) -> Crawl | None:
        def read() -> Crawl | None:
            self._world.check(crawl_id)
            return self._world.crawls.get(crawl_id)

        return await self._do("crawls.get", read)

    async def list(self) -> tuple[Crawl, ...]:
        return await self._do(
            "crawls.list",
            lambda: tuple(sorted(self._world.listed(), key=lambda crawl: -crawl.started_at_ms)),
        )

    async def newer(self) -> tuple[UnreadableCrawl, ...]:
        return await self._do("crawls.list", self._world.unreadable)

    async def counters(self, crawl: Crawl) -> Counters:
        shards = [
            await self._do("crawls.shard", lambda number=number: self._shard(crawl.id, number))  # type: ignore[misc]
            for number in range(crawl.shards)
        ]
        return Counters.build(tuple(shards))

    async def seal(
        self, crawl: Crawl, counters: Counters, finished: Crawl, rest: Counts = NOTHING
    ) -> bool:
        def transact() -> bool:
            if self._world.crawls[crawl.id].state is not crawl.state:
                return False
            now = [self._shard(crawl.id, number) for number in range(crawl.shards)]
            if any(
                is_now.closed or is_now.commits != then.commits
                for is_now, then in zip(now, counters.shards, strict=True)
            ):
                return False
            for number in range(crawl.shards):
                item = self._world.shards.setdefault((crawl.id, number), ShardItem())
                item.closed = True
                if number == 0:
                    item.counts = dict(Counter(item.counts) + Counter(dict(rest)))
            # As with the item of the table, a concurrent edit stays.
            self._world.crawls[crawl.id] = replace(
                self._world.crawls[crawl.id],
                state=finished.state,
                stop=finished.stop,
                finished_at_ms=finished.finished_at_ms,
            )
            return True

        return await self._do("crawls.seal", transact)

    async def move(self, crawl: Crawl, allowed: Iterable[State]) -> bool:
        def put() -> bool:
            standing = self._world.crawls.get(crawl.id)
            if standing is None or standing.state not in set(allowed):
                return False
            moved = {name: getattr(crawl, name) for name in MOVED}
            self._world.crawls[crawl.id] = replace(standing, **moved)
            return True

        return await self._do("crawls.move", put)

    async def edit(self, crawl: Crawl, was: Crawl) -> bool:
        def put() -> bool:
            standing = self._world.crawls.get(crawl.id)
            if standing is None or not standing.live or standing.edits != was.edits:
                return False
            changed = {name: getattr(crawl, name) for name in crawl_codec.changes(crawl, was)}
            edited = replace(standing, **changed, edits=was.edits + 1)
            self._world.crawls[crawl.id] = edited
            return True

        return await self._do("crawls.edit", put)

    async def keep_samples(self, crawl: Crawl, samples: Mapping[str, Sequence[str]]) -> None:
        def put() -> None:
            kept = self._world.samples.setdefault(crawl.id, {})
            for reason, urls in samples.items():
                kept.setdefault(reason, tuple(urls))

        await self._do("crawls.samples", put)

    async def samples(self, crawl_id: str) -> Mapping[str, Sequence[str]]:
        return await self._do(
            "crawls.read_samples", lambda: dict(self._world.samples.get(crawl_id, {}))
        )

    async def learn(self, crawl: Crawl, counts: Counts) -> Counts:
        def add() -> Counts:
            total = Counter(self._world.kinds.get(crawl.id, {}))
            total.update(counts)
            self._world.kinds[crawl.id] = dict(total)
            return dict(total)

        return await self._do("crawls.learn", add)

    async def learned(self, crawl_id: str) -> Counts:
        return await self._do(
            "crawls.read_kinds", lambda: dict(self._world.kinds.get(crawl_id, {}))
        )

    async def announced(self, crawl_id: str) -> None:
        def put() -> None:
            self._world.crawls[crawl_id] = replace(self._world.crawls[crawl_id], announced=True)

        await self._do("crawls.announced", put)

    def _shard(self, crawl_id: str, number: int) -> CounterShard:
        item = self._world.shards.get((crawl_id, number), ShardItem())
        return CounterShard(commits=item.commits, closed=item.closed, counts=dict(item.counts))
