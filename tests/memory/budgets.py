"""Budgets of crawls in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orbweaver.budget.budget_rules import BudgetState, ReservationRequest
from orbweaver.model.crawl import Crawl, LimitPart, Settlement
from tests.memory.world import Gated, World


class MemoryBudgets(Gated):
    """Used parts of crawls' limits."""

    async def take(self, taking: ReservationRequest) -> BudgetState | None:
        budgets, key = self._world.budgets, (taking.crawl.id, taking.part)

        def reserve() -> BudgetState | None:
            standing = budgets.get(key)
            if standing is None:
                return BudgetState(is_started=False)
            if taking.instead not in (None, standing):
                return standing
            if standing.used + taking.amount > taking.limit:
                return standing
            reserved = standing.reserved if taking.instead is None else taking.mine
            budgets[key] = replace(
                standing,
                used=standing.used + taking.amount,
                reserved=reserved + taking.amount,
                taken_at_ms=taking.at_ms,
            )
            return None

        return await self._do("allowances.take", reserve)

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        await self._do(
            "allowances.begin",
            lambda: self._world.budgets.setdefault((crawl.id, part), BudgetState(used=used)),
        )

    async def settle(self, crawl: Crawl, settled: Sequence[Settlement]) -> None:
        def give_back() -> None:
            for each in settled:
                settle(self._world, crawl, each)
                self._world.spent_in_vain[crawl.id, each.part] += each.spent

        await self._do("allowances.settle", give_back)

    async def count(
        self, crawl: Crawl, pack_id: str, host: str, urls: Sequence[str], limit: int
    ) -> frozenset[str]:
        world = self._world

        def add() -> frozenset[str]:
            key = (crawl.id, pack_id, host)
            counted = world.counted.get(key, frozenset())
            used = world.host_pages.get((crawl.id, host), 0)
            new = [url for url in urls if url not in counted][: max(0, limit - used)]
            world.host_pages[crawl.id, host] = used + len(new)
            world.counted[key] = counted | frozenset(new)
            return world.counted[key].intersection(urls)

        return await self._do("allowances.count", add)


def settle(world: World, crawl: Crawl, settlement: Settlement) -> None:
    """Return the unspent part of a reservation."""
    standing = world.budgets[crawl.id, settlement.part]
    world.budgets[crawl.id, settlement.part] = replace(
        standing,
        used=standing.used + settlement.spent - settlement.reserved,
        reserved=standing.reserved - settlement.reserved,
    )
