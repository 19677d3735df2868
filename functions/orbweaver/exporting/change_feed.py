"""The change feed: what is different at the end of a run from what was known before it.

Order of effects for a run (exporting/changes.py decides, exporting/snapshot.py says where all of
it lies):

    1  shard by shard: records and the snapshot before, merged, into bundles; then the shard's file
    2  what was due and not asked for is decided on, for all shards together
    3  the head, and with it the snapshot stands; then snapshots that no run needs are removed

- Everything is named after the run and follows from what is stored, so runs that are repeated,
  doubled or killed come to the same files. A shard that is done is not read again.
- Where the snapshot before is not made yet, it is made first: it matters which run ended first,
  and not which was exported first. A run whose records may be gone is the beginning of no feed.
- Rows of a feed are read from its files: a later export of the same day needs no other run.
- Memory: a bundle for each stream that is merged, and the referrers of what was due.
- With little time left, the rest is left for another call. Each does at least a shard.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from orbweaver.exporting.changes import EndedRun, Orphans, as_row, has_feed, judge, run_of
from orbweaver.exporting.manifest import days_between
from orbweaver.exporting.snapshot import (
    BundleKind,
    Head,
    SnapshotPlace,
    SnapshotShard,
    entry_line,
    entry_of,
    line_of,
    row_of,
)
from orbweaver.exporting.snapshot_store import Snapshots, joined, merged
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord, day_of

# How many runs are caught up with, at most, of which no feed was made.
CHAIN_MAX = 10
# About 100 MB of URLs; beyond that nothing is said to be deleted because nothing led to it.
REFERRERS_MAX = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """Makes the feeds of runs, and reads them; `reserve_ms` is what one shard may need."""

    pages: Pages
    crawls: Crawls
    snapshots: Snapshots
    page_retention_s: int
    reserve_ms: int = 60_000
    referrers_max: int = REFERRERS_MAX

    async def ended_on(self, day: str) -> tuple[Crawl, ...]:
        """Name the runs whose feed belongs to a day: those that ended on it, by id."""
        found = [crawl for crawl in await self.crawls.list() if has_feed(crawl)]
        mine = [crawl for crawl in found if day_of(crawl.finished_at_ms or 0) == day]
        return tuple(sorted(mine, key=lambda crawl: crawl.id))

    async def make(self, crawl: Crawl, deadline_ms: int | None = None) -> bool:
        """Make the feed of a run that has ended, if it is not there; False if time was short.

        Where none can be made any more, because records are gone, it has no rows.
        """
        if not has_feed(crawl) or await self.snapshots.head(crawl.name, crawl.id) is not None:
            return True
        crawls = await self.crawls.list()
        for run in reversed(await self._lacking(crawl, crawls)):
            if not await self._made(run, deadline_ms):
                return False
            recorded = [other.id for other in crawls if self._recorded(other)]
            await self.snapshots.prune(crawl.name, (run.id, run.previous, *recorded))
        return True

    async def rows(
        self, crawl: Crawl, shard: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Read the rows of a feed that was made, of all shards or of one, in a fixed order."""
        head = await self.snapshots.head(crawl.name, crawl.id)
        place = SnapshotPlace(name=crawl.name, run=crawl.id)
        for number, bundles in enumerate(() if head is None else head.shards):
            if shard in (None, number):
                for kind in (BundleKind.ROWS, BundleKind.GONE):
                    async for line in self.snapshots.lines(place, kind, number, bundles):
                        yield as_row(row_of(line))

    # --- which runs -------------------------------------------------------------------------

    async def _lacking(self, crawl: Crawl, crawls: Sequence[Crawl]) -> list[EndedRun]:
        """List a run and those before it that have no snapshot, the last one first."""
        known = {other.id: other for other in crawls}
        runs: list[EndedRun] = []
        current = crawl
        while len(runs) < CHAIN_MAX and self._recorded(current):
            run = run_of(current, crawls)
            runs.append(run)
            if run.previous is None or await self.snapshots.head(crawl.name, run.previous):
                break
            current = known[run.previous]
        return runs

    def _recorded(self, crawl: Crawl) -> bool:
        """Whether all records of a run are still there."""
        kept_ms = self.page_retention_s * 1000
        return crawl.started_at_ms + kept_ms > self.snapshots.store.clock.now_ms()

    # --- one run ----------------------------------------------------------------------------

    async def _made(self, run: EndedRun, deadline_ms: int | None) -> bool:
        count = self.pages.shards
        place = SnapshotPlace(name=run.crawl.name, run=run.id)
        before = await self.snapshots.head(run.crawl.name, run.previous)
        previous = None if before is None else before.crawl
        shards: list[SnapshotShard] = []
        merged_any = False
        for number in range(count):
            shard = await self.snapshots.shard(place, number)
            if shard is None or (shard.previous, shard.shards) != (previous, count):
                if merged_any and self._short(deadline_ms):
                    return False
                merged_any = True
                shard = await self._merge(run, place, before, number)
            shards.append(shard)
        shards = await self._settle(run, place, shards)
        bundles = tuple(shard.bundles for shard in shards)
        head = Head(crawl=run.id, previous=previous, shards=bundles)
        await self.snapshots.put(place.head, head)
        return True

    def _short(self, deadline_ms: int | None) -> bool:
        now_ms = self.snapshots.store.clock.now_ms()
        return deadline_ms is not None and now_ms + self.reserve_ms >= deadline_ms

    async def _merge(
        self, run: EndedRun, place: SnapshotPlace, before: Head | None, number: int
    ) -> SnapshotShard:
        """Bring one shard's records and entries together, URL by URL."""
        count = self.pages.shards
        sinks = {kind: self.snapshots.sink(place, kind, number) for kind in BundleKind}
        entries = self.snapshots.entries(run.crawl.name, before, number, count)
        async for entry, record in joined(entries, self._records(run.crawl, number)):
            verdict = judge(run, entry, record)
            if verdict.row is not None:
                await sinks[BundleKind.ROWS].add(line_of(verdict.row))
            if verdict.entry is not None:
                kind = BundleKind.DUE if verdict.pending else BundleKind.PAGES
                await sinks[kind].add(entry_line(verdict.entry))
        bundles = {kind.value: await sink.end() for kind, sink in sinks.items()}
        previous = None if before is None else before.crawl
        shard = SnapshotShard(previous=previous, shards=count, bundles=bundles)
        await self.snapshots.put(place.shard(number), shard)
        return shard

    async def _settle(
        self, run: EndedRun, place: SnapshotPlace, shards: list[SnapshotShard]
    ) -> list[SnapshotShard]:
        """Decide on what was due and not asked for; the shards with the bundles of that, too."""
        if not any(shard.bundles[BundleKind.DUE] for shard in shards):
            return shards
        orphans = await self._looked_into(Orphans(run=run), place, shards)
        settled = []
        for number, shard in enumerate(shards):
            kept = self.snapshots.sink(place, BundleKind.KEPT, number)
            gone = self.snapshots.sink(place, BundleKind.GONE, number)
            async for line in self.snapshots.lines(place, BundleKind.DUE, number, shard.bundles):
                entry = entry_of(line)
                if orphans is None or orphans.stands(entry):
                    await kept.add(entry_line(entry))
                elif (row := orphans.row(entry)) is not None:
                    await gone.add(line_of(row))
            ends = {
                BundleKind.KEPT.value: await kept.end(),
                BundleKind.GONE.value: await gone.end(),
            }
            settled.append(replace(shard, bundles={**shard.bundles, **ends}))
        return settled

    async def _looked_into(
        self, orphans: Orphans, place: SnapshotPlace, shards: Sequence[SnapshotShard]
    ) -> Orphans | None:
        """Find what had led to what was due; None if that is too much to hold."""
        async for entry in self.snapshots.all_of(place, BundleKind.DUE, shards):
            orphans.see(entry)
            if len(orphans.referrers) > self.referrers_max:
                return None
        async for entry in self.snapshots.all_of(place, BundleKind.DUE, shards):
            orphans.link(entry)
        async for entry in self.snapshots.all_of(place, BundleKind.PAGES, shards):
            orphans.pass_by(entry)
        return orphans

    # --- records ----------------------------------------------------------------------------

    async def _records(self, crawl: Crawl, number: int) -> AsyncIterator[tuple[str, PageRecord]]:
        """Read the records of one shard of a run, of all its days, in the order of their hashes."""
        days = days_between(crawl.started_at_ms, crawl.finished_at_ms or crawl.started_at_ms)
        last: tuple[str, PageRecord] | None = None
        async for found in merged([self._day(crawl, day, number) for day in days]):
            if last is not None and last[0] != found[0]:
                yield last
            # A URL that is there twice was asked for again on the day after, which then counts.
            last = found
        if last is not None:
            yield last

    async def _day(
        self, crawl: Crawl, day: str, number: int
    ) -> AsyncIterator[tuple[str, PageRecord]]:
        reading = self.snapshots.store.patience.read_shard(self.pages, day, number, crawl=crawl.id)
        async with aclosing(reading) as rows:
            async for key, record in rows:
                yield key.rpartition("#")[2], record
