"""Waiting for slots: each used on time or not at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.politeness.host_schedule import FAILURES_MAX, PROBE_MS, Host, slack_ms, spacing_ms
from orbweaver.politeness.pacer import (
    BLOCK_MS,
    LAPSES_MAX,
    LEAD_MS,
    LOOK_MS,
    UNLIMITED,
    Pacer,
    WaitLimit,
)
from tests.memory import ManualClock, MemoryHosts, Moment, World
from tests.memory.world import Gate, open_gate
from tests.unit.stage import NOW_MS, SITE

DELAY_MS = 1_000


class LateClock(ManualClock):
    """A clock whose sleepers wake late, as often as told."""

    def __init__(self, late_ms: int, times: int) -> None:
        super().__init__(NOW_MS)
        self._late_ms = late_ms
        self._times = times

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self._times:
            self._times -= 1
            self.at_ms += self._late_ms


def pacer(
    world: World,
    clock: ManualClock,
    *,
    gate: Gate = open_gate,
    delay_ms: int = DELAY_MS,
    ahead_ms: int = 60_000,
    wait_limit: WaitLimit = UNLIMITED,
) -> Pacer:
    """Pace the site over a world."""
    return Pacer(
        hosts=MemoryHosts(world, gate),
        clock=clock,
        host=SITE,
        delay_ms=delay_ms,
        until_ms=NOW_MS + ahead_ms,
        wait_limit=wait_limit,
    )


@dataclass(frozen=True)
class Patient:
    """Waits for so long."""

    ms: int

    def wait_ms(self) -> float:
        """See `WaitLimit`."""
        return self.ms


async def test_slots_of_a_block_are_a_delay_apart() -> None:
    """Each is waited for; the slack lies behind the block, shared by its slots."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock)
    asked = []
    for left in (3, 2, 1):
        assert await pace.take(left) is None
        assert pace.asks(pace.turn)
        asked.append(clock.at_ms)
    first_ms = NOW_MS + LEAD_MS
    assert asked == [first_ms + place * DELAY_MS for place in range(3)]
    slack = -(-slack_ms(DELAY_MS) // 3) * 3
    assert world.hosts[SITE].tat_ms == first_ms + 3 * DELAY_MS + slack


@given(late=st.lists(st.integers(0, 40), min_size=12, max_size=12), visits=st.integers(1, 4))
async def test_requests_are_never_closer_than_the_delay(late: list[int], visits: int) -> None:
    """However late each is within its slot, and whichever of several visits asks next."""
    world, clock = World(), ManualClock(NOW_MS)
    paces = [pacer(world, clock, ahead_ms=600_000) for _ in range(visits)]
    asked = []
    for place, late_ms in enumerate(late):
        pace = paces[place % visits]
        assert await pace.take(len(late) - place) is None
        clock.at_ms += late_ms
        if pace.asks(pace.turn):
            asked.append(clock.at_ms)
    assert all(later - one >= DELAY_MS for one, later in pairwise(asked))


@pytest.mark.parametrize(("wait_ms", "asked"), [(DELAY_MS, 4), (DELAY_MS - 1, 1), (0, 1)])
async def test_who_may_not_wait_asks_once_and_comes_back(wait_ms: int, asked: int) -> None:
    """Where a wait costs more than a trip, the next slot is what to come back for."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock, wait_limit=Patient(wait_ms))
    returns = []
    for left in (4, 3, 2, 1):
        return_at_ms = await pace.take(left)
        if return_at_ms is not None:
            returns.append(return_at_ms)
            break
        assert pace.asks(pace.turn)
    assert clock.at_ms == NOW_MS + LEAD_MS + (asked - 1) * DELAY_MS
    assert returns == ([world.hosts[SITE].tat_ms] if asked == 1 else [])


@pytest.mark.parametrize(("free_ms", "asks"), [(0, True), (3_900, True), (5_100, False)])
async def test_its_first_slot_is_waited_for_whatever_that_costs(
    free_ms: int, *, asks: bool
) -> None:
    """Else a pack would go round without a request; no longer than a block, though."""
    world, clock = World(), ManualClock(NOW_MS)
    world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + free_ms)
    pace = pacer(world, clock, delay_ms=4_000, wait_limit=Patient(100))
    assert (await pace.take(2) is None) is asks


async def test_two_packs_share_the_slots_of_a_host() -> None:
    """Whoever reserves, no two asks of a host are closer than its delay."""
    world, clock = World(), ManualClock(NOW_MS)
    asked = []
    for pace in (pacer(world, clock), pacer(world, clock), pacer(world, clock)):
        assert await pace.take(1) is None
        asked.append(clock.at_ms)
    assert all(other - one >= DELAY_MS for one, other in pairwise(asked))


async def test_who_gets_no_slot_is_told_when_to_return() -> None:
    """A horizon that is full says when it is this pack's turn."""
    world, clock = World(), ManualClock(NOW_MS)
    world.hosts[SITE] = Host(name=SITE, tat_ms=NOW_MS + 90_000)
    assert await pacer(world, clock).take(2) == NOW_MS + 90_000
    assert clock.at_ms == NOW_MS


@pytest.mark.parametrize(("wanted", "slots"), [(2, 1), (5, 2), (25, 3)])
async def test_who_got_some_slots_keeps_the_place_for_the_others(wanted: int, slots: int) -> None:
    """After a part of what it wanted, a pack returns as then said, and reserves nothing again."""
    world, clock, reserved = World(), ManualClock(NOW_MS), []

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("hosts.reserve", Moment.BEFORE):
            reserved.append(clock.at_ms)

    pace = pacer(world, clock, gate=gate, ahead_ms=LEAD_MS + slots * DELAY_MS - 1)
    for place in range(slots):
        assert await pace.take(wanted - place) is None
        assert pace.asks(pace.turn)
    known = world.hosts[SITE]
    place_ms = known.tat_ms
    assert [await pace.take(wanted - slots) for _ in range(3)] == [place_ms] * 3
    assert reserved == [NOW_MS]
    assert world.hosts[SITE] == known
    assert known.line_ms > place_ms


async def test_packs_with_more_than_a_visit_return_one_after_the_other() -> None:
    """Where each has more URLs than a block, every one returns a block later."""
    world, clock = World(), ManualClock(NOW_MS)
    block = BLOCK_MS // DELAY_MS
    packs = [pacer(world, clock, ahead_ms=block * DELAY_MS - 500) for _ in range(4)]
    returns = [await pace.take(20) for pace in packs]
    assert returns[0] is None
    for place in range(1, block):
        assert packs[0].asks(packs[0].turn)
        assert await packs[0].take(20 - place) is None
    spacing = DELAY_MS + slack_ms(DELAY_MS) // block
    later = [at_ms for at_ms in returns if at_ms is not None]
    assert later[0] == NOW_MS + LEAD_MS + block * spacing
    assert [two - one for one, two in pairwise(later)] == [block * spacing] * 2


async def test_a_blocked_host_gives_no_slot() -> None:
    """A block is known before anything is reserved."""
    world, clock = World(), ManualClock(NOW_MS)
    world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 5_000)
    assert await pacer(world, clock).take(1) == NOW_MS + 5_000
    assert world.hosts[SITE].tat_ms == 0


@pytest.mark.parametrize("delay_ms", [DELAY_MS, 0])
async def test_a_block_while_waiting_is_seen(delay_ms: int) -> None:
    """A host that another worker had to leave alone meanwhile is not asked."""
    world, clock = World(), ManualClock(NOW_MS)

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("hosts.reserve", Moment.AFTER):
            world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 99_000)

    pace = pacer(world, clock, gate=gate, delay_ms=delay_ms)
    assert await pace.take(1) == NOW_MS + 99_000


async def test_a_host_that_another_worker_tries_first_is_left_to_it() -> None:
    """Of two that see a silent host rested, one asks; the other returns when that is known."""
    world, clock = World(), ManualClock(NOW_MS)
    rested = Host(name=SITE, failures=FAILURES_MAX, blocked_until_ms=NOW_MS)
    world.hosts[SITE] = rested

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("hosts.probe", Moment.BEFORE):
            world.hosts[SITE] = replace(rested, blocked_until_ms=NOW_MS + PROBE_MS)

    assert await pacer(world, clock, gate=gate, delay_ms=0).take(1) == NOW_MS + PROBE_MS
    world.hosts[SITE] = rested
    first = pacer(world, clock, delay_ms=0)
    assert await first.take(1) is None
    assert first.turn.probe


async def test_without_a_delay_nothing_is_waited_for() -> None:
    """A crawl of one's own site asks as fast as it can, and writes no slots."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock, delay_ms=0)
    for left in (3, 2, 1):
        assert await pace.take(left) is None
    assert clock.at_ms == NOW_MS
    assert SITE not in world.hosts


async def test_without_a_delay_what_is_known_of_blocks_does_not_grow_old() -> None:
    """Slots that were handed out a second ago are asked for anew."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock, delay_ms=0)
    assert await pace.take(2) is None
    clock.at_ms += LOOK_MS + 1
    assert await pace.take(1) is None
    world.hosts[SITE] = Host(name=SITE, blocked_until_ms=NOW_MS + 99_000)
    assert await pace.take(1) == NOW_MS + 99_000


@pytest.mark.parametrize(("late_ms", "asked"), [(LOOK_MS, True), (LOOK_MS + 1, False)])
async def test_without_a_delay_a_turn_lasts_from_the_look_at_its_host(
    late_ms: int, *, asked: bool
) -> None:
    """However long ago its slot was handed out, beside those of a pack's other URLs."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock, delay_ms=0)
    assert await pace.take(2) is None
    clock.at_ms += LOOK_MS - 1
    assert await pace.take(1) is None
    clock.at_ms += late_ms
    assert pace.asks(pace.turn) is asked


@pytest.mark.parametrize(
    ("late_ms", "first"), [(slack_ms(DELAY_MS), True), (slack_ms(DELAY_MS) + 1, False)]
)
async def test_a_slot_may_be_used_a_little_late(late_ms: int, *, first: bool) -> None:
    """Within its slack a slot counts; later it is forfeited for another one."""
    world, clock = World(), LateClock(late_ms, times=1)
    assert await pacer(world, clock).take(1) is None
    slot_ms = NOW_MS + LEAD_MS
    assert (clock.at_ms == slot_ms + late_ms) is first
    assert world.hosts[SITE].tat_ms == clock.at_ms - late_ms * first + spacing_ms(DELAY_MS)


async def test_slots_that_passed_meanwhile_are_not_used_up_in_a_burst() -> None:
    """After a long stop (a slow server, a frozen process) the next ask is in a slot of its own."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock)
    asked = []
    for left in (5, 4, 3):
        assert await pace.take(left) is None
        assert pace.asks(pace.turn)
        asked.append(clock.at_ms)
        clock.at_ms += 3_500
    slots = {NOW_MS + LEAD_MS + place * DELAY_MS for place in range(5)}
    assert asked[1] in slots
    assert all(other - one >= 3_500 for one, other in pairwise(asked))


async def test_any_number_of_slots_may_pass_meanwhile() -> None:
    """However long a stop was, the slots behind it cost no attempt at meeting one."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock)
    assert await pace.take(25) is None
    clock.at_ms += 20 * spacing_ms(DELAY_MS)
    assert await pace.take(24) is None
    assert clock.at_ms - NOW_MS < 22 * spacing_ms(DELAY_MS)


async def test_a_process_that_is_never_on_time_gives_up() -> None:
    """Having missed slot after slot, the URLs are sent round, and nothing was asked."""
    world, clock = World(), LateClock(10_000, times=100)
    assert await pacer(world, clock, ahead_ms=10**9).take(1) == clock.at_ms
    assert world.hosts[SITE].tat_ms - NOW_MS > 10_000 * (LAPSES_MAX - 1)


async def test_slow_reservations_meet_later_slots() -> None:
    """Each slot that lapsed is followed by one further ahead, until the process meets it."""
    world, clock = World(), ManualClock(NOW_MS)

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("hosts.reserve", Moment.AFTER):
            clock.at_ms += 2_500  # longer than the spacing: a slot that is near is always missed

    assert await pacer(world, clock, gate=gate).take(1) is None
    assert clock.at_ms == world.hosts[SITE].tat_ms - spacing_ms(DELAY_MS)


async def test_nothing_is_asked_after_the_end_of_the_invocation() -> None:
    """Whoever wakes when time is up comes back in another invocation (case 10)."""
    world, clock = World(), LateClock(30, times=1)
    assert await pacer(world, clock, ahead_ms=LEAD_MS).take(1) == clock.at_ms
    assert clock.at_ms > NOW_MS + LEAD_MS
