"""Mutants of batches: common commits, and packs' knowledge of each other's links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from orbweaver.frontier.claims import Closed
from orbweaver.worker import group_commit, link_dedup
from tests.memory import tables
from tests.simulation.mutant import mutants


def _together(
    *, ledgers: bool = True, budget: bool = True, every: bool = True
) -> Callable[..., Any]:
    """Build a `MemoryPacks.commit_together` without a condition or some of the counts."""

    async def commit_together(self: Any, crawl: Any, commits: Any) -> bool:
        def transact() -> bool:
            counted = commits if every else commits[:1]
            total: Counter[str] = Counter()
            for _, counts in counted:
                total.update(counts)
            standing = any(ledger.pack in self._world.ledgers for ledger, _ in commits)
            refused = self.refused(crawl, commits[0][0], total)
            if (ledgers and standing) or (budget and refused) or isinstance(refused, Closed):
                return False
            self.count(crawl, counted)
            self.record(crawl, commits)
            return True

        return bool(await self._do("packs.commit", transact))

    return commit_together


async def _taken_for_done(self: Any, batch: Any) -> bool:
    """Commit a batch and treat it as done in any case."""
    await _WHOLE_WRITE(self, batch)
    return len(batch.commits) > 1


_WHOLE_WRITE = group_commit.Commits.__dict__["_write"]


async def _seen_too_early(self: Any, pack: Any, *, look: bool) -> Any:
    """Treat links as claimed before a journal lists them."""
    links, looked_up = await _WHOLE_NEW_LINKS(self, pack, look=look)
    self._seen._note_claimed(pack.crawl, [link.url for link in links], None)
    return links, looked_up


_WHOLE_NEW_LINKS = link_dedup.LinkDeduplicator.__dict__["_new_links"]

PACKS = tables.MemoryPacks
MUTANTS = mutants(
    ("together: ledgers not checked", PACKS, "commit_together", _together(ledgers=False)),
    ("together: budget not checked", PACKS, "commit_together", _together(budget=False)),
    ("together: one pack counted for all", PACKS, "commit_together", _together(every=False)),
    ("together: a refusal taken for done", group_commit.Commits, "_write", _taken_for_done),
    (
        "links seen before they are journaled",
        link_dedup.LinkDeduplicator,
        "_new_links",
        _seen_too_early,
    ),
)
