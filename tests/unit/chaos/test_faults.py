"""The plan of faults: by the seed alone, within its rates, and only where it may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.chaos.faults import BATCHES, SEND, Doom, Fault, Moment, Plan, Rates

CALLS = 20_000
NONE = Rates(throttle=0, error=0, lost=0, held=0, partial=0, twice=0, storm=0)


def drawn(plan: Plan, operation: str, count: int = CALLS) -> list[Fault | None]:
    """Draw for calls in a row."""
    return [plan.draw("dynamodb", operation) for _ in range(count)]


def test_a_seed_gives_the_same_faults_whatever_comes_between() -> None:
    """The faults of one operation do not depend on the calls of others."""
    alone = drawn(Plan(7, Rates()), SEND, 500)
    plan = Plan(7, Rates())
    among = []
    for _ in range(500):
        plan.draw("dynamodb", "GetItem")
        among.append(plan.draw("sqs", SEND))

    assert among == alone
    assert drawn(Plan(8, Rates()), SEND, 500) != alone


def test_faults_come_as_often_as_the_rates_say() -> None:
    """Each kind has its share of the calls, within three standard deviations or so."""
    rates = Rates(storm=0, held=0.02)
    counted = Counter(drawn(Plan(1, rates), SEND))

    for fault, rate in rates.of(SEND).items():
        assert counted[fault] / CALLS == pytest.approx(rate, abs=0.006)


def test_only_batches_are_done_in_part_and_only_sends_twice() -> None:
    """An operation without entries has no part, and only messages are sent twice."""
    rates = Rates()

    assert Fault.PARTIAL not in rates.of("GetItem")
    assert all(Fault.PARTIAL in rates.of(operation) for operation in BATCHES)
    assert [name for name in BATCHES if Fault.TWICE in rates.of(name)] == [SEND]


def test_other_services_are_left_alone() -> None:
    """Nothing happens to what is neither the database nor the queue."""
    plan = Plan(1, Rates(throttle=1))

    assert plan.draw("events", "PutEvents") is None
    assert plan.draw("", "") is None
    assert plan.draw("sqs", SEND) is Fault.THROTTLE


def test_a_storm_refuses_many_calls_in_a_row() -> None:
    """Once begun, a storm throttles as many of the next calls as it is strong, and then ends."""
    plan = Plan(1, replace(NONE, storm=1.0, storm_throttle=1.0))

    assert plan.draw("dynamodb", "GetItem") is None
    assert drawn(plan, "GetItem", NONE.storm_calls) == [Fault.THROTTLE] * NONE.storm_calls
    assert plan.draw("dynamodb", "GetItem") is None


def test_workers_die_as_often_as_the_rates_say() -> None:
    """One of so many calls is somebody's last, at any moment of it, the same ones for a seed."""
    rates = Rates(life_calls=50.0, lives=CALLS)
    plan, same = Plan(3, rates), Plan(3, rates)
    dooms = [plan.doom() for _ in range(CALLS)]
    found = [doom for doom in dooms if isinstance(doom, Doom)]

    assert dooms == [same.doom() for _ in range(CALLS)]
    assert len(found) == pytest.approx(CALLS / 50, rel=0.2)
    assert {doom.moment for doom in found} == set(Moment)
    assert all(0 <= doom.delay_s <= rates.later_s_max for doom in found)


def test_no_more_workers_die_than_there_are_lives() -> None:
    """Whoever works must come to something in the end."""
    plan = Plan(3, Rates(life_calls=1e-9, lives=2))

    assert [plan.doom() is not None for _ in range(4)] == [True, True, False, False]


def test_rates_of_zero_are_no_faults() -> None:
    """Nothing goes wrong where nothing may."""
    assert set(drawn(Plan(1, NONE), SEND)) == {None}
