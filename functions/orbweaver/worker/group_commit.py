"""Commit packs that are ready at the same time in one transaction.

A commit adds a pack's ledger and updates the crawl's counters, each at twice the cost of a plain
write. Packs that commit together share the update of the counters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING

from orbweaver.frontier.claims import CommitResult, Committed
from orbweaver.frontier.journal import Ledger
from orbweaver.model.crawl import Counts, Crawl, Settlement
from orbweaver.model.errors import PortError
from orbweaver.model.value import positional_value_class
from orbweaver.worker.call_batching import CallBatcher

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Packs

# Longest wait in seconds for other packs, which only have to finish their own writes.
WAIT_S = 2.0
# A transaction holds 100 writes (and 4 MB: a ledger of 25 pages has at most 16 KB).
TOGETHER_MAX = 50


@positional_value_class
class _Batch:
    crawl: Crawl
    commits: list[tuple[Ledger, Counts]] = field(default_factory=list)


class Commits:
    """Commits packs (messages with up to 25 URLs). One instance per container."""

    def __init__(self, packs: Packs) -> None:
        self._packs = packs
        # By crawl. The result is True if the batch was committed.
        self._gathering: CallBatcher[_Batch, bool] = CallBatcher(WAIT_S)

    @contextmanager
    def awaited(self, crawl_id: str, pack_id: str) -> Iterator[None]:
        """Open a context that ends with a pack's commit. Other packs of the crawl wait for it."""
        self._gathering.expect(crawl_id, pack_id)
        try:
            yield
        finally:
            self._gathering.cancel_wait(crawl_id, pack_id)

    async def commit(
        self, crawl: Crawl, ledger: Ledger, counts: Counts, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Commit a pack, together with other packs of the crawl that are ready (`Packs.commit`)."""
        self._gathering.cancel_wait(crawl.id, ledger.pack)
        if not settled and await self._together(crawl, ledger, counts):
            return Committed()
        return await self._packs.commit(crawl, ledger, counts, settled)

    async def _together(self, crawl: Crawl, ledger: Ledger, counts: Counts) -> bool:
        """Commit a pack together with others. Return False if the transaction wrote nothing."""
        group = self._gathering.group(crawl.id, lambda: _Batch(crawl))
        batch = group.input
        if batch.crawl != crawl or any(one.pack == ledger.pack for one, _ in batch.commits):
            return False  # the crawl was edited meanwhile, or this delivery is a copy
        batch.commits.append((ledger, counts))
        # The transaction writes all or nothing. If a ledger exists already, a claim exceeds the
        # budget, or the counters are closed, each pack commits separately.
        done, _ = await self._gathering.outcome(group, _is_full, self._write)
        return done

    async def _write(self, batch: _Batch) -> bool:
        if len(batch.commits) == 1:
            return False
        try:
            return await self._packs.commit_together(batch.crawl, batch.commits)
        except PortError:
            return False


def _is_full(batch: _Batch) -> bool:
    return len(batch.commits) >= TOGETHER_MAX
