"""Packs that are ready to be committed, in one transaction a crawl and batch.

A commit puts a ledger and adds to a shard of the books, each at twice the price of a write. The
packs that a container is settling at the same time share the second: whoever is ready waits for
those that are about to be, and the last one commits for all.

Together or not at all: where one ledger stands already, the budget does not admit all claims or
the books are closed, nothing is written, and every pack commits by itself. So it does if that is
all there is of it, or if allowances are to be settled with it.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.core.standing import Committed
from orbweaver.patience import happens
from orbweaver.ports import PortError, Transient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orbweaver.core.allowance import Settlement
    from orbweaver.core.crawl import Crawl, Tally
    from orbweaver.core.journal import Ledger
    from orbweaver.core.standing import CommitResult
    from orbweaver.ports import Packs

# How long a pack that is ready waits for others: they are past everything but their own writes.
WAIT_S = 2.0
# A transaction holds 100 writes (and 4 MB: a ledger of 25 pages has 16 KB at most).
TOGETHER_MAX = 50


@dataclass(slots=True)
class _Group:
    """What is to be committed together."""

    crawl: Crawl
    due_s: float
    commits: list[tuple[Ledger, Tally]] = field(default_factory=list)
    # Whether that was done.
    done: asyncio.Future[bool] | None = None


class Commits:
    """Commits packs; one a container."""

    def __init__(self, packs: Packs) -> None:
        """Take the port."""
        self._packs = packs
        self._coming: dict[str, set[str]] = {}
        self._open: dict[str, _Group] = {}
        # Somebody has come, or gone, or is about to write.
        self._turn = asyncio.Event()

    @contextmanager
    def awaited(self, crawl_id: str, pack_id: str) -> Iterator[None]:
        """Settle a pack, so that others of its crawl wait until it is committed."""
        self._coming.setdefault(crawl_id, set()).add(pack_id)
        try:
            yield
        finally:
            self._came(crawl_id, pack_id)

    def _came(self, crawl_id: str, pack_id: str) -> None:
        coming = self._coming.get(crawl_id, set())
        coming.discard(pack_id)
        if not coming:
            self._coming.pop(crawl_id, None)
        self._turn.set()

    async def commit(
        self, crawl: Crawl, ledger: Ledger, tally: Tally, settled: Sequence[Settlement] = ()
    ) -> CommitResult:
        """Commit a pack, with others if they are at hand; see the port."""
        self._came(crawl.id, ledger.pack)
        if not settled and await self._together(crawl, ledger, tally):
            return Committed()
        return await self._packs.commit(crawl, ledger, tally, settled)

    async def _together(self, crawl: Crawl, ledger: Ledger, tally: Tally) -> bool:
        """Commit a pack with others; False if nothing was written."""
        running = asyncio.get_running_loop()
        group = self._open.get(crawl.id)
        if group is None:
            group = self._open[crawl.id] = _Group(crawl, running.time() + WAIT_S)
        elif group.crawl != crawl or any(one.pack == ledger.pack for one, _ in group.commits):
            return False  # it has been edited meanwhile; or this is a copy
        group.commits.append((ledger, tally))
        while group.done is None:
            full = len(group.commits) >= TOGETHER_MAX
            if full or crawl.id not in self._coming or running.time() >= group.due_s:
                return await self._write(group)
            await happens(self._turn, group.due_s - running.time())
        return await asyncio.shield(group.done)

    async def _write(self, group: _Group) -> bool:
        """Commit a group, for all who wait for that."""
        group.done = asyncio.get_running_loop().create_future()
        if self._open.get(group.crawl.id) is group:
            del self._open[group.crawl.id]
        self._turn.set()
        done = False
        try:
            if len(group.commits) > 1:
                done = await self._packs.commit_together(group.crawl, group.commits)
        except PortError:
            done = False  # each finds out for itself what became of it
        except BaseException:
            # Whoever was to write is gone; the others come back.
            group.done.set_exception(Transient("the commit was not written"))
            group.done.exception()  # somebody has seen it, whether anybody waits or not
            raise
        group.done.set_result(done)
        return done
