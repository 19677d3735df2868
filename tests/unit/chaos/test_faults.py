"""Plan of injected faults: the seed determines it, and faults have the given rates."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.chaos.faults import BATCHES, SEND, Doom, Fault, Moment, Plan, Rates

CALLS = 20_000
NONE = Rates(throttle=0, error=0, lost=0, held=0, partial=0, twice=0, storm=0)


def drawn(plan: Plan, operation: str, count: int = CALLS) -> list[Fault | None]:
    return [plan.draw("dynamodb", operation) for _ in range(count)]


def test_faults_of_operation_depend_on_seed_only() -> None:
    alone = drawn(Plan(7, Rates()), SEND, 500)
    plan = Plan(7, Rates())
    among = []
    for _ in range(500):
        plan.draw("dynamodb", "GetItem")
        among.append(plan.draw("sqs", SEND))

    assert among == alone
    assert drawn(Plan(8, Rates()), SEND, 500) != alone


def test_faults_have_their_rates() -> None:
    """Tolerance: about three standard deviations."""
    rates = Rates(storm=0, held=0.02)
    counted = Counter(drawn(Plan(1, rates), SEND))

    for fault, rate in rates.of(SEND).items():
        assert counted[fault] / CALLS == pytest.approx(rate, abs=0.006)


def test_only_batches_are_partial_and_only_sends_double() -> None:
    rates = Rates()

    assert Fault.PARTIAL not in rates.of("GetItem")
    assert all(Fault.PARTIAL in rates.of(operation) for operation in BATCHES)
    assert [name for name in BATCHES if Fault.TWICE in rates.of(name)] == [SEND]


def test_other_services_have_no_faults() -> None:
    plan = Plan(1, Rates(throttle=1))

    assert plan.draw("events", "PutEvents") is None
    assert plan.draw("", "") is None
    assert plan.draw("sqs", SEND) is Fault.THROTTLE


def test_storm_throttles_consecutive_calls() -> None:
    plan = Plan(1, replace(NONE, storm=1.0, storm_throttle=1.0))

    assert plan.draw("dynamodb", "GetItem") is None
    assert drawn(plan, "GetItem", NONE.storm_calls) == [Fault.THROTTLE] * NONE.storm_calls
    assert plan.draw("dynamodb", "GetItem") is None


def test_doomed_workers_have_their_rate() -> None:
    rates = Rates(life_calls=50.0, lives=CALLS)
    plan, same = Plan(3, rates), Plan(3, rates)
    dooms = [plan.doom() for _ in range(CALLS)]
    found = [doom for doom in dooms if isinstance(doom, Doom)]

    assert dooms == [same.doom() for _ in range(CALLS)]
    assert len(found) == pytest.approx(CALLS / 50, rel=0.2)
    assert {doom.moment for doom in found} == set(Moment)
    assert all(0 <= doom.delay_s <= rates.later_s_max for doom in found)


def test_number_of_killed_workers_is_limited() -> None:
    """Some workers must survive."""
    plan = Plan(3, Rates(life_calls=1e-9, lives=2))

    assert [plan.doom() is not None for _ in range(4)] == [True, True, False, False]


def test_zero_rates_draw_no_fault() -> None:
    assert set(drawn(Plan(1, NONE), SEND)) == {None}
