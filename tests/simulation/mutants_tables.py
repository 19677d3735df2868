"""Mutants of table guards: claims, journals, ledgers, budgets, counters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from orbweaver.frontier.claims import (
    AlreadyCommitted,
    ClaimStates,
    Closed,
    Committed,
    OverBudget,
    Recalled,
)
from orbweaver.frontier.journal import Ledger
from orbweaver.model.page_record import page_key
from tests.memory import claims, pages, tables
from tests.memory.budgets import settle
from tests.memory.world import Claim, ShardItem
from tests.simulation.mutant import cancelled, forced_in_bounds, mutants

# --- claims -----------------------------------------------------------------------------------


def _claiming(holds: Callable[[Claim, Any], bool], *, own: bool = True) -> Callable[..., Any]:
    """Build a `MemoryFrontier._claim` with another condition."""

    async def claim(self: Any, claimer: Any, target: Any) -> bool:
        def put() -> bool:
            standing = self._world.claims.get((claimer.name, target.url))
            mine = own and standing is not None and standing.pack == claimer.pack
            if standing is not None and not mine and holds(standing, claimer):
                return False
            self._world.claims[claimer.name, target.url] = Claim(
                url=target.url,
                pack=claimer.pack,
                at_ms=claimer.at_ms,
                expires_s=claimer.expires_s,
                crawl=claimer.crawl,
            )
            return True

        return bool(await self._do("frontier.claim", put))

    return claim


async def _known_by_presence(self: Any, claimer: Any, urls: Any, *_: Any) -> Any:
    """Treat every existing claim as valid."""

    def read() -> ClaimStates:
        claims = (self._world.claims.get((claimer.name, url)) for url in urls)
        held = (claim.url for claim in claims if claim and claim.pack != claimer.pack)
        return ClaimStates(held=frozenset(held))

    return await self._do("frontier.known", read)


async def _release_nothing(_self: Any, _claimer: Any, _urls: Any) -> None:
    await asyncio.sleep(0)


async def _nothing_recalled(self: Any, pack_ids: Any) -> Any:
    """Request and claim before the check for a finished pack."""
    strikes = self._world.strikes
    return await self._do(
        "packs.recall",
        lambda: {pack: Recalled(strikes=strikes[pack]) for pack in pack_ids if pack in strikes},
    )


# --- journal, ledger, counters ----------------------------------------------------------------


async def _journal_overwritten(self: Any, pack_id: str, journal: Any) -> Any:
    def put() -> Any:
        self._world.journals[pack_id] = journal
        return journal

    return await self._do("packs.journal", put)


async def _counter_outside(
    self: Any, crawl: Any, ledger: Ledger, counts: Any, _settled: Any = ()
) -> Any:
    """Store the ledger in one step and add the counts in another."""

    def put() -> Any:
        standing = self._world.ledgers.get(ledger.pack)
        if standing is not None:
            return AlreadyCommitted(ledger=standing)
        refused = self.refused(crawl, ledger, counts)
        if refused is None:
            self.record(crawl, [(ledger, counts)])
        return refused

    def add() -> Any:
        self.count(crawl, [(ledger, counts)])
        return Committed()

    return await self._do("packs.ledger", put) or await self._do("packs.count", add)


def _commit_without(*, ledger_check: bool = True, budget: bool = True) -> Callable[..., Any]:
    """Build a `MemoryPacks.commit` without one of its conditions."""

    async def commit(self: Any, crawl: Any, ledger: Ledger, counts: Any, settled: Any = ()) -> Any:
        def transact() -> Any:
            standing = self._world.ledgers.get(ledger.pack)
            if ledger_check and standing is not None:
                return AlreadyCommitted(ledger=standing)
            refused = self.refused(crawl, ledger, counts)
            if refused is not None and (budget or isinstance(refused, Closed)):
                return refused
            for each in settled:
                settle(self._world, crawl, each)
            self.count(crawl, [(ledger, counts)])
            self.record(crawl, [(ledger, counts)])
            return Committed()

        return await self._do("packs.commit", transact)

    return commit


async def _budget_looked_up_before(
    self: Any, crawl: Any, ledger: Ledger, counts: Any, settled: Any = ()
) -> Any:
    """Read the budget, then commit without its condition."""
    refused = await self._do("packs.look", lambda: self.refused(crawl, ledger, counts))
    if isinstance(refused, OverBudget) and ledger.pack not in self._world.ledgers:
        return refused
    return await _commit_without(budget=False)(self, crawl, ledger, counts, settled)


# --- end of a crawl ---------------------------------------------------------------------------


def _seal(*, state: bool) -> Callable[..., Any]:
    """Build a `MemoryCrawls.seal` that trusts the sum of shards read one by one, which is wrong."""

    async def seal(self: Any, crawl: Any, _counters: Any, finished: Any, _rest: Any = None) -> bool:
        def transact() -> bool:
            standing = self._world.crawls[crawl.id].state
            if state and standing is not crawl.state:
                return False
            for number in range(crawl.shards):
                self._world.shards.setdefault((crawl.id, number), ShardItem()).closed = True
            self._world.crawls[crawl.id] = finished
            return True

        return bool(await self._do("crawls.seal", transact))

    return seal


async def _park_whatever(self: Any, crawl: str, body: str, pack_id: str) -> bool:
    """Park without a check that the crawl is still paused."""

    def put() -> bool:
        self._world.parked[crawl, pack_id] = body
        return True

    return bool(await self._do("packs.park", put))


async def _store_by_today(self: Any, records: Any) -> None:
    """Store a record under its storage day, not its fetch day."""
    loop_ms = round(asyncio.get_running_loop().time() * 1000)
    for record in records:
        _, key = page_key(record, self._shards)
        partition = f"{loop_ms // 3_000}#0"
        await self._do(
            "pages.store",
            lambda partition=partition, key=key, record=record: self._put((partition, key), record),
        )


def _seal_without_rest(self: Any, crawl: Any, counters: Any, finished: Any, *_: Any) -> Any:
    return _WHOLE_SEAL(self, crawl, counters, finished)


_WHOLE_SEAL = tables.MemoryCrawls.__dict__["seal"]


def _nothing_before(_claim: Any, _claimer: Any) -> None:
    return None


FRONTIER, PACKS = claims.MemoryFrontier, tables.MemoryPacks
MUTANTS = mutants(
    (
        "no `claimed by this pack` arm",
        FRONTIER,
        "_claim",
        _claiming(lambda claim, by: claims._holds(claim, by, None), own=False),
    ),
    (
        "expiry not compared: TTL trusted",
        FRONTIER,
        "_claim",
        _claiming(lambda claim, by: claim.at_ms >= by.stale_before_ms),
    ),
    ("TTL trusted in the cheap read", FRONTIER, "known", _known_by_presence),
    (
        "an earlier run's claims hold in a forced run",
        FRONTIER,
        "_claim",
        _claiming(lambda claim, by: claim.expires_s > by.at_ms // 1000),
    ),
    ("every claim is won", FRONTIER, "_claim", _claiming(lambda *_: False)),
    ("surplus never given back", FRONTIER, "release", _release_nothing),
    ("asked and claimed before the ledger check", PACKS, "recall", _nothing_recalled),
    ("journal overwritten", PACKS, "write_journal", _journal_overwritten),
    ("counter outside the transaction", PACKS, "commit", _counter_outside),
    ("ledger not checked", PACKS, "commit", _commit_without(ledger_check=False)),
    ("budget not checked in commit", PACKS, "commit", _commit_without(budget=False)),
    ("budget looked up before the commit", PACKS, "commit", _budget_looked_up_before),
    ("sealed whatever happened since", tables.MemoryCrawls, "seal", _seal(state=False)),
    ("shards read one by one, and believed", tables.MemoryCrawls, "seal", _seal(state=True)),
    ("parked after resume", PACKS, "park", _park_whatever),
    ("record filed by the day it is stored", pages.MemoryPages, "store", _store_by_today),
)
MUTANTS += mutants(
    ("what a claim replaced forgotten", claims, "_former", _nothing_before), where=forced_in_bounds
)
MUTANTS += mutants(
    ("what is left at the close not counted", tables.MemoryCrawls, "seal", _seal_without_rest),
    where=cancelled,
)
