"""Port of budgets and page counts (budget/budget_rules.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orbweaver.budget.budget_rules import BudgetState, ReservationRequest
from orbweaver.model.crawl import Crawl, LimitPart, Settlement


class Budgets(Protocol):
    """Used amounts of a crawl's limits.

    `Packs.commit` settles the reservations of stored journals.
    """

    async def take(self, taking: ReservationRequest) -> BudgetState | None:
        """Reserve and return None, or return the budget's state if the limit would be exceeded."""

    async def begin(self, crawl: Crawl, part: LimitPart, used: int) -> None:
        """Create the budget of one limit with this used amount, unless it exists."""

    async def settle(self, crawl: Crawl, settled: Sequence[Settlement]) -> None:
        """Settle reservations whose journal was not stored, so that no commit will settle them.

        Do not repeat the call, and do not call it if the journal might be stored.
        """

    async def count(
        self, crawl: Crawl, pack_id: str, host: str, urls: Sequence[str], limit: int
    ) -> frozenset[str]:
        """Count URLs as pages of a host, up to the limit, and return the counted URLs.

        URLs that any delivery of the pack has counted are not counted again.
        """
