"""Breaks of what keeps limits: what is reserved, what goes back, what is counted once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from orbweaver.budget import reservation
from orbweaver.budget.budget_rules import BudgetSpent, TryLater, next_step, settlements
from orbweaver.worker import apply_journal
from tests.memory import budgets, tables
from tests.memory.budgets import settle
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def limiting(*names: str) -> Any:
    """Scenarios whose crawls have one of these limits."""

    def where(plan: Scenario) -> bool:
        return any(name in crawl.limits for crawl in plan.crawls for name in names)

    return where


async def _grant_not_found(
    self: Any, crawl: Any, pack_id: str, host: str, urls: Any, limit: int
) -> frozenset[str]:
    """Count without the earlier deliveries' counts."""
    self._world.counted.pop((crawl.id, pack_id, host), None)
    counted = await _WHOLE_COUNT(self, crawl, pack_id, host, urls, limit)
    return frozenset(counted)


_WHOLE_COUNT = budgets.MemoryBudgets.__dict__["count"]


async def _count_every_time(self: Any, host: str, targets: Any) -> Any:
    """Count a repeated URL again."""
    uncounted = [replace(target, counted=False) for target in targets]
    return await _WHOLE_COUNTING(self, host, uncounted)


_WHOLE_COUNTING = reservation.Reservations.__dict__["count"]


def _settled_nowhere(_reserved: Any, _counts: Any) -> tuple[()]:
    return ()


async def _settled_before(self: Any, crawl: Any, pack_id: str, journal: Any, won: Any) -> Any:
    """Settle before the commit, at each replay of the journal."""
    settled = settlements(journal.reserved, dict(journal.counts))
    world = self._packs._world
    for one in settled:
        await self._packs._do("packs.settle", partial(settle, world, crawl, one))
    return await _WHOLE_COMMIT(self, crawl, pack_id, replace(journal, reserved={}), won)


_WHOLE_COMMIT = apply_journal.JournalApplier.__dict__["_commit"]


def _back_twice(world: Any, crawl: Any, settled: Any) -> None:
    for _ in range(2):
        settle(world, crawl, settled)


async def _settled_by_all(self: Any, own: Any, _standing: Any) -> None:
    """Settle even if the journal is another delivery's."""
    await _WHOLE_SETTLE(self, own, replace(own, delivery=own.delivery + 1))


_WHOLE_SETTLE = reservation.Reservations.__dict__["settle"]


async def _taken_whatever_the_limit(self: Any, taking: Any) -> Any:
    """Check for room, then take without the condition."""
    standing = await _WHOLE_TAKE(self, replace(taking, amount=0))
    if standing is not None:
        return standing
    await asyncio.sleep(0)
    held = self._world.budgets[taking.crawl.id, taking.part]
    if held.used + taking.amount > taking.limit and held.reserved == 0:
        return held
    return await _WHOLE_TAKE(self, replace(taking, limit=10**18))


_WHOLE_TAKE = budgets.MemoryBudgets.__dict__["take"]


def _never_later(standing: Any, wanted: Any, **more: Any) -> Any:
    """End URLs that others' reservations leave no room for."""
    step = _WHOLE_STEP(standing, wanted, **more)
    return BudgetSpent() if isinstance(step, TryLater) else step


_WHOLE_STEP = next_step


@asynccontextmanager
async def _received_nothing(self: Any, *asked: Any) -> AsyncIterator[Any]:
    async with _WHOLE_ROOM(self, *asked) as room:
        yield room
        if isinstance(room, reservation.AllowedSize):
            room.received = 0


_WHOLE_ROOM = reservation.Reservations.__dict__["room"]

COUNT = budgets.MemoryBudgets
RESERVATION = reservation.Reservations
MUTANTS = (
    mutants(
        ("a pack's grant not found by its next delivery", COUNT, "count", _grant_not_found),
        ("a URL that comes back counted again", RESERVATION, "count", _count_every_time),
        where=limiting("host_pages_max"),
    )
    + mutants(
        ("reservations never settled", apply_journal, "settlements", _settled_nowhere),
        ("settled outside the commit", apply_journal.JournalApplier, "_commit", _settled_before),
        ("what is left given back twice", tables, "settle", _back_twice),
        ("settled without a commit", RESERVATION, "settle", _settled_by_all),
        ("a limit looked up before it is taken from", COUNT, "take", _taken_whatever_the_limit),
        ("others' reservations taken for spent", reservation, "next_step", _never_later),
        where=limiting("bytes_max", "nanodollars_max"),
    )
    + mutants(
        ("what was received not counted", RESERVATION, "room", _received_nothing),
        where=limiting("bytes_max"),
    )
)
