"""Packs that are ready to be committed, in one transaction a crawl and batch.

A commit puts a ledger and adds to a shard of the counters, each at twice the price of a write. The
packs that a container is settling at the same time share the second: one that is ready waits for
those that are about to be, and the last one commits for all.

Together or not at all. Where one ledger stands already, the budget does not admit all claims, or
the counters are sealed, nothing is written and every pack commits by itself. So does a pack that is
alone, or that has budgets to settle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.frontier.claims import CommitResult, Committed
from orbweaver.frontier.journal import Ledger
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.errors import PortError
from orbweaver.model.limits import Settlement
from orbweaver.worker.call_batching import Gathering

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Packs

# How long a pack that is ready waits for others: they are past everything but their own writes.
WAIT_S = 2.0
# A transaction holds 100 writes (and 4 MB: a ledger of 25 pages has 16 KB at most).
TOGETHER_MAX = 50


@dataclass(frozen=True, slots=True)
class _Batch:
    """Ledgers and counts to commit in one transaction."""

    crawl: Crawl
    commits: list[tuple[Ledger, Counts]] = field(default_factory=list)


class Commits:
    """Commits packs; one a container."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        # By crawl; and whether the batch was committed.
        self._gathering: Gathering[_Batch, bool] = Gathering(WAIT_S)

    @contextmanager
    def awaited(self, crawl_id: str, pack_id: str) -> Iterator[None]:
        """Settle a pack, so that others of its crawl wait until it is committed."""
        self._gathering.expect(crawl_id, pack_id)
        try:
            yield
        finally:
            self._gathering.came(crawl_id, pack_id)

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Commit a pack, with others if they are at hand; see the port."""
        self._gathering.came(crawl.id, ledger.pack)
        if not settled and await self._together(crawl, ledger, counts):
            return Committed()
        return await self._packs.commit(crawl, ledger, counts, settled)

    async def _together(self, crawl: Crawl, ledger: Ledger, counts: Counts) -> bool:
        """Commit a pack with others; False if nothing was written."""
        group = self._gathering.group(crawl.id, lambda: _Batch(crawl))
        batch = group.what
        if batch.crawl != crawl or any(one.pack == ledger.pack for one, _ in batch.commits):
            return False  # it has been edited meanwhile; or this is a copy
        batch.commits.append((ledger, counts))
        done, _ = await self._gathering.outcome(group, _is_full, self._write)
        return done

    async def _write(self, batch: _Batch) -> bool:
        """Commit a batch; False if nothing was, or it is unknown: each finds out for itself."""
        if len(batch.commits) == 1:
            return False
        try:
            return await self._packs.commit_together(batch.crawl, batch.commits)
        except PortError:
            return False


def _is_full(batch: _Batch) -> bool:
    return len(batch.commits) >= TOGETHER_MAX
