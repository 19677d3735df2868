"""The ports of budget states and page counts (budget/budget_rules.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.budget.budget_rules import BudgetState, Taking
from orbweaver.model.crawl import Crawl
from orbweaver.model.limits import LimitPart, Settlement


class Budgets(Protocol):
    """What is used of a crawl's limits: reserved before anything is asked for.

    What is reserved is settled by `Packs.commit`, as the journal that stands says.
    """

    async def take(self, taking: Taking) -> BudgetState | None:
        """Reserve, if the limit is not passed by that: None. Else the budget as it stands."""

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        """Put a budget there of which so much is used, if there is none."""

    async def settle(self, crawl: Crawl, settled: Sequence[Settlement]) -> None:
        """Settle what a delivery has reserved whose journal does not stand, so that no commit will.

        Not twice, and not for a delivery whose journal may stand.
        """

    async def count(
        self, crawl: Crawl, pack_id: str, host: str, urls: Sequence[str], limit: int
    ) -> frozenset[str]:
        """Count URLs as pages of a host, as many as the limit admits; those that are counted.

        What was counted for a pack, by whatever delivery, is not counted again.
        """
