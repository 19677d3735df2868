"""Decisions at a budget limit: continue, wait, or end."""

from __future__ import annotations

import pytest

from orbweaver.budget.budget_rules import (
    DEAD_MS,
    WAIT_S,
    BudgetSpent,
    BudgetState,
    BudgetWanted,
    ReserveAmount,
    Step,
    TryLater,
    limit_of,
    next_step,
    settlements,
)
from orbweaver.model.crawl import Crawl, LimitPart, Settlement

NOW_MS = 10 * DEAD_MS
WANTED = BudgetWanted(plenty=30, whole=10, least=3)


def step(used: int, reserved: int = 0, *, mine: int = 0, age_ms: int = 0) -> Step:
    standing = BudgetState(used=used, reserved=reserved, taken_at_ms=NOW_MS - age_ms)
    return next_step(standing, WANTED, limit=100, mine=mine, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("used", "reserved", "mine", "expected"),
    [
        (0, 0, 0, ReserveAmount(amount=30)),
        (70, 50, 0, ReserveAmount(amount=30)),
        (71, 50, 0, ReserveAmount(amount=10)),
        (90, 50, 0, ReserveAmount(amount=10)),
        (91, 0, 0, ReserveAmount(amount=9)),
        (91, 8, 8, ReserveAmount(amount=9)),
        (91, 9, 8, TryLater()),
        (97, 0, 0, ReserveAmount(amount=3)),
        (98, 0, 0, BudgetSpent()),
        (98, 1, 0, TryLater()),
        (100, 0, 0, BudgetSpent()),
        # The limit was lowered.
        (200, 0, 0, BudgetSpent()),
        # Reservations assumed lost, but settled later.
        (97, -5, 0, ReserveAmount(amount=3)),
    ],
)
def test_remaining_budget_decides_step(used: int, reserved: int, mine: int, expected: Step) -> None:
    assert step(used, reserved, mine=mine) == expected


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        (0, TryLater(wait_s=WAIT_S)),
        (-600, TryLater(wait_s=WAIT_S)),
        (40, TryLater(wait_s=40)),
        (300, TryLater(wait_s=225)),
        (800, TryLater(wait_s=100)),
        (899, TryLater(wait_s=WAIT_S)),
        (900, ReserveAmount(amount=5, dead=True)),
        (9_000, ReserveAmount(amount=5, dead=True)),
    ],
)
def test_wait_for_reservations_of_others_is_bounded(age_s: int, expected: Step) -> None:
    assert step(95, 50, age_ms=age_s * 1000) == expected


def test_lost_reservations_can_exhaust_budget() -> None:
    assert step(99, 50, age_ms=DEAD_MS) == BudgetSpent()


def test_limit_of_returns_limits_of_crawl() -> None:
    crawl = Crawl(id="c", name="c", started_at_ms=0, bytes_max=5, nanodollars_max=7)
    assert [limit_of(crawl, part) for part in LimitPart] == [5, 7]
    assert limit_of(Crawl(id="c", name="c", started_at_ms=0), LimitPart.BYTES) is None


def test_commit_settles_reservations_of_journal() -> None:
    counts = {"received_bytes": 30, "nanodollars": 4}
    assert settlements({}, counts) == ()
    assert settlements({"nanodollars": 9, "bytes": 50}, counts) == (
        Settlement(part=LimitPart.BYTES, reserved=50, spent=30),
        Settlement(part=LimitPart.NANODOLLARS, reserved=9, spent=4),
    )
    assert settlements({"bytes": 50}, {}) == (
        Settlement(part=LimitPart.BYTES, reserved=50, spent=0),
    )
