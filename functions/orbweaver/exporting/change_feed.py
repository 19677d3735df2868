"""Compute the change feed of a run: the pages that it created, updated or deleted.

exporting/changes.py decides on each page, and exporting/snapshot.py defines the files. File names
follow from the run, and contents from stored data. So repeated, doubled and killed runs write the
same files.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from orbweaver.exporting.changes import EndedRun, Orphans, as_row, has_feed, judge, run_of
from orbweaver.exporting.manifest import days_between
from orbweaver.exporting.snapshot import (
    BundleKind,
    Head,
    SnapshotPlace,
    Snapshots,
    SnapshotShard,
    entry_line,
    entry_of,
    joined,
    line_of,
    merged,
    row_of,
)
from orbweaver.frontier.ports import Crawls, Pages
from orbweaver.model.crawl import Crawl
from orbweaver.model.page_record import PageRecord, day_of
from orbweaver.model.value import value_class

# Maximum number of runs in one call. Earlier runs without a feed come first.
CHAIN_MAX = 10
# Maximum number of referrers in memory, about 100 MB of URLs. If there are more, no page is
# reported as deleted because nothing links to it.
REFERRERS_MAX = 500_000


@value_class
class ChangeFeed:
    """Makes and reads the change feeds of runs.

    `reserve_ms` is the time that one shard needs before the deadline. Memory holds one bundle of
    lines per merged stream, and the referrers of due pages (`is_due`).
    """

    pages: Pages
    crawls: Crawls
    snapshots: Snapshots
    page_retention_s: int
    reserve_ms: int = 60_000
    referrers_max: int = REFERRERS_MAX

    async def ended_on(self, day: str) -> tuple[Crawl, ...]:
        """Return the runs that ended on a day, by id."""
        found = [crawl for crawl in await self.crawls.list() if has_feed(crawl)]
        mine = [crawl for crawl in found if day_of(crawl.finished_at_ms or 0) == day]
        return tuple(sorted(mine, key=lambda crawl: crawl.id))

    async def make(self, crawl: Crawl, deadline_ms: int | None = None) -> bool:
        """Make the feed of an ended run if it is missing. Returns False if the time was not enough.

        Snapshots that earlier runs lack are made first. The feed is empty if records of the run may
        have expired. Each call finishes at least one shard, and no call reads a finished shard
        again.
        """
        if not has_feed(crawl) or await self.snapshots.head(crawl.name, crawl.id) is not None:
            return True
        crawls = await self.crawls.list()
        for run in reversed(await self._runs_without_snapshot(crawl, crawls)):
            if not await self._make_run(run, deadline_ms):
                return False
            recorded = [other.id for other in crawls if self._has_records(other)]
            await self.snapshots.prune(crawl.name, (run.id, run.previous, *recorded))
        return True

    async def rows(
        self, crawl: Crawl, shard: int | None = None
    ) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the rows of an existing feed in a fixed order: of all shards, or of one."""
        head = await self.snapshots.head(crawl.name, crawl.id)
        place = SnapshotPlace(name=crawl.name, run=crawl.id)
        for number, bundles in enumerate(() if head is None else head.shards):
            if shard in (None, number):
                for kind in (BundleKind.ROWS, BundleKind.GONE):
                    async for line in self.snapshots.lines(place, kind, number, bundles):
                        yield as_row(row_of(line))

    # --- selection of runs ------------------------------------------------------------------

    async def _runs_without_snapshot(self, crawl: Crawl, crawls: Sequence[Crawl]) -> list[EndedRun]:
        """Return this run and the runs before it that have no snapshot, latest first."""
        known = {other.id: other for other in crawls}
        runs: list[EndedRun] = []
        current = crawl
        while len(runs) < CHAIN_MAX and self._has_records(current):
            run = run_of(current, crawls)
            runs.append(run)
            if run.previous is None or await self.snapshots.head(crawl.name, run.previous):
                break
            current = known[run.previous]
        return runs

    def _has_records(self, crawl: Crawl) -> bool:
        kept_ms = self.page_retention_s * 1000
        return crawl.started_at_ms + kept_ms > self.snapshots.store.clock.now_ms()

    # --- one run ----------------------------------------------------------------------------

    async def _make_run(self, run: EndedRun, deadline_ms: int | None) -> bool:
        # Merge each shard, then decide on the due pages (`is_due`) of all shards together. The head
        # is written last, because it publishes the snapshot.
        count = self.pages.shards
        place = SnapshotPlace(name=run.crawl.name, run=run.id)
        before = await self.snapshots.head(run.crawl.name, run.previous)
        previous = None if before is None else before.crawl
        shards: list[SnapshotShard] = []
        merged_any = False
        for number in range(count):
            shard = await self.snapshots.shard(place, number)
            if shard is None or (shard.previous, shard.shards) != (previous, count):
                if merged_any and self._is_time_short(deadline_ms):
                    return False
                merged_any = True
                shard = await self._merge(run, place, before, number)
            shards.append(shard)
        shards = await self._settle(run, place, shards)
        bundles = tuple(shard.bundles for shard in shards)
        head = Head(crawl=run.id, previous=previous, shards=bundles)
        await self.snapshots.put(place.head, head)
        return True

    def _is_time_short(self, deadline_ms: int | None) -> bool:
        now_ms = self.snapshots.store.clock.now_ms()
        return deadline_ms is not None and now_ms + self.reserve_ms >= deadline_ms

    async def _merge(
        self, run: EndedRun, place: SnapshotPlace, before: Head | None, number: int
    ) -> SnapshotShard:
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
        """Decide which due pages (`is_due`) of a run are kept, and which are reported as deleted.

        Returns the shards with the numbers of written bundles.
        """
        if not any(shard.bundles[BundleKind.DUE] for shard in shards):
            return shards
        orphans = await self._find_referrers(Orphans(run=run), place, shards)
        settled = []
        for number, shard in enumerate(shards):
            kept = self.snapshots.sink(place, BundleKind.KEPT, number)
            gone = self.snapshots.sink(place, BundleKind.GONE, number)
            async for line in self.snapshots.lines(place, BundleKind.DUE, number, shard.bundles):
                entry = entry_of(line)
                if orphans is None or orphans.is_kept(entry):
                    await kept.add(entry_line(entry))
                elif (row := orphans.row(entry)) is not None:
                    await gone.add(line_of(row))
            ends = {
                BundleKind.KEPT.value: await kept.end(),
                BundleKind.GONE.value: await gone.end(),
            }
            settled.append(replace(shard, bundles={**shard.bundles, **ends}))
        return settled

    async def _find_referrers(
        self, orphans: Orphans, place: SnapshotPlace, shards: Sequence[SnapshotShard]
    ) -> Orphans | None:
        """Find the referrers of due pages. Returns None if there are more than `referrers_max`."""
        async for entry in self.snapshots.all_of(place, BundleKind.DUE, shards):
            orphans.add(entry)
            if len(orphans.referrers) > self.referrers_max:
                return None
        async for entry in self.snapshots.all_of(place, BundleKind.DUE, shards):
            orphans.link(entry)
        async for entry in self.snapshots.all_of(place, BundleKind.PAGES, shards):
            orphans.pass_by(entry)
        return orphans

    # --- records ----------------------------------------------------------------------------

    async def _records(self, crawl: Crawl, number: int) -> AsyncIterator[tuple[str, PageRecord]]:
        """Yield the records of one shard of a run, of all its days, in the order of URL hashes."""
        days = days_between(crawl.started_at_ms, crawl.finished_at_ms or crawl.started_at_ms)
        last: tuple[str, PageRecord] | None = None
        async for found in merged([self._day(crawl, day, number) for day in days]):
            if last is not None and last[0] != found[0]:
                yield last
            # A redelivered message can request a URL again on the following day. The last record
            # counts.
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
