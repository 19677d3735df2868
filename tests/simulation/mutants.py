"""Deliberate breaks of the guards: each must be caught, or the simulation proves nothing.

A mutant replaces one method, in one process, while it is active. `caught_by` says which invariant
is expected to fail; any violation counts, since one break shows in several places.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver import advance, pace, settle, worker
from orbweaver.adapters.memory import hosts, tables
from orbweaver.adapters.memory.world import Claim, ShardItem
from orbweaver.core import crawl as crawls
from orbweaver.core import journal as journals
from orbweaver.core.journal import Ledger
from orbweaver.core.record import page_key, shard_of
from orbweaver.ports import AlreadyCommitted, Closed, Committed, OverBudget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One break: `owner.name` becomes `broken`."""

    name: str
    owner: Any
    attribute: str
    broken: Callable[..., Any]

    @contextmanager
    def active(self) -> Iterator[None]:
        """Break it, for a while."""
        whole = self.owner.__dict__[self.attribute]
        setattr(self.owner, self.attribute, self.broken)
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, whole)


# --- claims -----------------------------------------------------------------------------------


def _claiming(holds: Callable[[Claim, Any], bool], *, own: bool = True) -> Callable[..., Any]:
    """Make a `MemoryFrontier._claim` with another condition."""

    async def claim(self: Any, claimer: Any, url: str) -> bool:
        def put() -> bool:
            standing = self._world.claims.get((claimer.name, url))
            mine = own and standing is not None and standing.pack == claimer.pack
            if standing is not None and not mine and holds(standing, claimer):
                return False
            self._world.claims[claimer.name, url] = Claim(
                url=url, pack=claimer.pack, at_ms=claimer.at_ms, expires_s=claimer.expires_s
            )
            return True

        return bool(await self._do("frontier.claim", put))

    return claim


async def _release_nothing(_self: Any, _claimer: Any, _urls: Any) -> None:
    await asyncio.sleep(0)


# --- journal, ledger, counters ----------------------------------------------------------------


async def _journal_overwritten(self: Any, pack_id: str, journal: Any) -> Any:
    def put() -> Any:
        self._world.journals[pack_id] = journal
        return journal

    return await self._do("packs.journal", put)


async def _counter_outside(self: Any, crawl: Any, ledger: Ledger, tally: Any) -> Any:
    """Put the ledger in one step and add the counts in another."""

    def put() -> Any:
        standing = self._world.ledgers.get(ledger.pack)
        if standing is not None:
            return AlreadyCommitted(ledger=standing)
        refused = _refusal(self, crawl, ledger, tally)
        if refused is None:
            self._world.ledgers[ledger.pack] = ledger
            self._world.commits.append((crawl.id, ledger, tally))
        return refused

    def add() -> Any:
        _add(self, crawl, ledger, tally)
        return Committed()

    return await self._do("packs.ledger", put) or await self._do("packs.count", add)


def _refusal(self: Any, crawl: Any, ledger: Ledger, tally: Any) -> Any:
    shard = _shard_item(self, crawl, ledger)
    if shard.closed:
        return Closed()
    quota = crawl.shard_quota(shard_of(ledger.pack, crawl.shards))
    left = quota - shard.tally.get("claimed", 0)
    return OverBudget(left=left) if tally.get("claimed", 0) > left else None


def _add(self: Any, crawl: Any, ledger: Ledger, tally: Any) -> None:
    shard = _shard_item(self, crawl, ledger)
    for key, number in tally.items():
        shard.tally[key] = shard.tally.get(key, 0) + number
    shard.commits += 1


def _commit_without(*, ledger_check: bool = True, budget: bool = True) -> Callable[..., Any]:
    """Make a `MemoryPacks.commit` that lacks one of its conditions."""

    async def commit(self: Any, crawl: Any, ledger: Ledger, tally: Any) -> Any:
        def transact() -> Any:
            standing = self._world.ledgers.get(ledger.pack)
            if ledger_check and standing is not None:
                return AlreadyCommitted(ledger=standing)
            refused = _refusal(self, crawl, ledger, tally)
            if refused is not None and (budget or isinstance(refused, Closed)):
                return refused
            _add(self, crawl, ledger, tally)
            self._world.ledgers[ledger.pack] = ledger
            self._world.commits.append((crawl.id, ledger, tally))
            return Committed()

        return await self._do("packs.commit", transact)

    return commit


def _shard_item(self: Any, crawl: Any, ledger: Ledger) -> ShardItem:
    number = shard_of(ledger.pack, crawl.shards)
    item: ShardItem = self._world.shards.setdefault((crawl.id, number), ShardItem())
    return item


async def _send_before_commit(self: Any, crawl: Any, pack_id: str, journal: Any) -> Any:
    claimer = settle.claimer_of(crawl, pack_id, journal.at_ms)
    won = await self._frontier.claim(claimer, journal.candidates)
    places = tuple(place for place, target in enumerate(journal.candidates) if target.url in won)
    ledger = Ledger(pack=pack_id, children=places)
    letters = journals.outbox(pack_id, crawl.id, journal, ledger)
    if letters:
        await self._queue.send(letters, express=crawl.express)
    await self._pages.store(journal.records)
    return await self._commit(crawl, pack_id, journal, won)


async def _no_store(self: Any, crawl: Any, pack_id: str, journal: Any) -> Any:
    """Commit first, store afterwards."""
    unrecorded = replace(journal, records=())
    ledger = await _WHOLE_APPLY(self, crawl, pack_id, unrecorded)
    await self._pages.store(journal.records)
    return ledger


_WHOLE_APPLY = settle.Settler.__dict__["apply"]


async def _no_resend(_self: Any, _crawl: Any, _pack: str, _journal: Any, _ledger: Any) -> None:
    await asyncio.sleep(0)


# --- the end ----------------------------------------------------------------------------------


async def _seal_blindly(self: Any, crawl: Any, _books: Any, finished: Any) -> bool:
    def transact() -> bool:
        for number in range(crawl.shards):
            self._world.shards.setdefault((crawl.id, number), ShardItem()).closed = True
        self._world.crawls[crawl.id] = finished
        return True

    return bool(await self._do("crawls.seal", transact))


def _balance_without_seeds(self: Any, _crawl: Any) -> bool:
    return bool(self.claimed == self.done)


async def _taken_for_announced(_self: Any, _crawl: Any) -> bool:
    return True


# --- worker -----------------------------------------------------------------------------------


async def _ack_everything(self: Any, deliveries: Any, deadline_ms: int) -> tuple[str, ...]:
    await _WHOLE_RUN(self, deliveries, deadline_ms)
    return ()


_WHOLE_RUN = worker.Worker.__dict__["run"]


async def _park_whatever(self: Any, crawl: str, body: str, pack_id: str) -> bool:
    """Park without looking whether the crawl is still paused."""

    def put() -> bool:
        self._world.parked[crawl, pack_id] = body
        return True

    return bool(await self._do("packs.park", put))


def _never_suspect(_pack: Any, _delivery: Any, _known: Any) -> bool:
    return False


def _never_apart(pack: Any, at_ms: int) -> Any:
    return replace(_WHOLE_APART(pack, at_ms), alone=False)


_WHOLE_APART = journals.apart


def _random_child(_parent: str, _place: object) -> str:
    return f"{_CHANCE.getrandbits(128):032x}"


_CHANCE = Random(0)


# --- politeness -------------------------------------------------------------------------------


async def _free_slots(_self: Any, _wanted: int) -> None:
    """Ask without a slot."""
    await asyncio.sleep(0)


async def _block_ignored(_self: Any, _host: str, *_: Any) -> None:
    await asyncio.sleep(0)


def _late_is_fine(_delay_ms: int) -> int:
    return 60_000


def _grant_from_now(
    _tat_ms: int, wanted: int, spacing: int, now_ms: int, until_ms: int
) -> tuple[int, int]:
    return now_ms, min(wanted, max(0, until_ms - now_ms) // spacing + 1)


async def _store_by_today(self: Any, records: Any) -> None:
    """File a record under the day it is stored, not the day it was fetched."""
    loop_ms = round(asyncio.get_running_loop().time() * 1000)
    for record in records:
        _, key = page_key(record, self._shards)
        partition = f"{loop_ms // 3_000}#0"
        await self._do(
            "pages.store",
            lambda partition=partition, key=key, record=record: self._put((partition, key), record),
        )


MUTANTS = tuple(
    Mutant(name=name, owner=owner, attribute=attribute, broken=broken)
    for name, owner, attribute, broken in (
        (
            "no `claimed by this pack` arm",
            tables.MemoryFrontier,
            "_claim",
            _claiming(tables._holds, own=False),
        ),
        (
            "expiry not compared: TTL trusted",
            tables.MemoryFrontier,
            "_claim",
            _claiming(lambda claim, by: claim.at_ms >= by.stale_before_ms),
        ),
        (
            "an earlier run's claims hold in a forced run",
            tables.MemoryFrontier,
            "_claim",
            _claiming(lambda claim, by: claim.expires_s > by.at_ms // 1000),
        ),
        ("every claim is won", tables.MemoryFrontier, "_claim", _claiming(lambda *_: False)),
        ("surplus never given back", tables.MemoryFrontier, "release", _release_nothing),
        ("journal overwritten", tables.MemoryPacks, "write_journal", _journal_overwritten),
        ("counter outside the transaction", tables.MemoryPacks, "commit", _counter_outside),
        (
            "ledger not checked",
            tables.MemoryPacks,
            "commit",
            _commit_without(ledger_check=False),
        ),
        (
            "budget not checked in commit",
            tables.MemoryPacks,
            "commit",
            _commit_without(budget=False),
        ),
        ("send before commit", settle.Settler, "apply", _send_before_commit),
        ("store after commit", settle.Settler, "apply", _no_store),
        ("outbox not sent again", settle.Settler, "resend", _no_resend),
        ("sealed whatever happened since", tables.MemoryCrawls, "seal", _seal_blindly),
        ("finished before all seeds are in", crawls.Books, "balance", _balance_without_seeds),
        ("a finish seen is a finish told", settle.Settler, "_announced_soon", _taken_for_announced),
        ("acknowledged on failure", worker.Worker, "run", _ack_everything),
        ("parked after resume", tables.MemoryPacks, "park", _park_whatever),
        ("suspects among the crowd", worker, "suspect", _never_suspect),
        ("crashed packs stay together", advance, "apart", _never_apart),
        ("child ids drawn at random", journals, "child_id", _random_child),
        ("no slot reserved", pace.Pacer, "take", _free_slots),
        ("slots that overlap", hosts, "grant", _grant_from_now),
        ("late slots used", pace, "slack_ms", _late_is_fine),
        ("blocks forgotten", hosts.MemoryHosts, "block", _block_ignored),
        ("record filed by the day it is stored", tables.MemoryPages, "store", _store_by_today),
    )
)
