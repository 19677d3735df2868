"""Waiting for slots: each used on time or not at all."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from orbweaver.politeness.host_schedule import FAILURES_MAX, PROBE_MS, Host, slack_ms, spacing_ms
from orbweaver.politeness.pacer import LAPSES_MAX, LEAD_MS, LOOK_MS, Pacer
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
) -> Pacer:
    """Pace the site over a world."""
    return Pacer(
        hosts=MemoryHosts(world, gate),
        clock=clock,
        host=SITE,
        delay_ms=delay_ms,
        until_ms=NOW_MS + ahead_ms,
    )


async def test_slots_are_used_on_time() -> None:
    """Each slot is waited for, and they are a delay and its slack apart."""
    world, clock = World(), ManualClock(NOW_MS)
    pace = pacer(world, clock)
    asked = []
    for left in (3, 2, 1):
        assert await pace.take(left) is None
        asked.append(clock.at_ms)
    spacing = spacing_ms(DELAY_MS)
    assert asked == [NOW_MS + LEAD_MS + place * spacing for place in range(3)]
    assert world.hosts[SITE].tat_ms == asked[-1] + spacing


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


@pytest.mark.parametrize(("wanted", "slots"), [(2, 1), (20, 5), (25, 24)])
async def test_who_got_some_slots_keeps_the_place_for_the_others(wanted: int, slots: int) -> None:
    """After a part of what it wanted, a pack returns as then said, and reserves nothing again."""
    world, clock, reserved = World(), ManualClock(NOW_MS), []
    spacing = spacing_ms(DELAY_MS)

    async def gate(effect: str, moment: Moment) -> None:
        if (effect, moment) == ("hosts.reserve", Moment.BEFORE):
            reserved.append(clock.at_ms)

    pace = pacer(world, clock, gate=gate, ahead_ms=LEAD_MS + (slots - 1) * spacing)
    for place in range(slots):
        assert await pace.take(wanted - place) is None
    known = world.hosts[SITE]
    place_ms = NOW_MS + LEAD_MS + slots * spacing
    assert [await pace.take(wanted - slots) for _ in range(3)] == [place_ms] * 3
    assert reserved == [NOW_MS]
    assert world.hosts[SITE] == known
    assert known.tat_ms == place_ms
    assert known.line_ms == place_ms + min(wanted - slots, slots) * spacing


async def test_packs_with_more_than_a_visit_return_when_its_slots_are_due() -> None:
    """Of packs with twenty URLs each, every one returns as many slots later as a visit has."""
    world, clock = World(), ManualClock(NOW_MS)
    spacing = spacing_ms(DELAY_MS)
    packs = [pacer(world, clock, ahead_ms=4 * spacing + 500) for _ in range(4)]
    returns = [await pace.take(20) for pace in packs]
    assert returns[0] is None
    for place in range(1, 5):
        assert await packs[0].take(20 - place) is None
    returns[0] = await packs[0].take(15)
    first_ms = NOW_MS + LEAD_MS + 5 * spacing
    assert returns == [first_ms + visit * 5 * spacing for visit in range(4)]


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
        asked.append(clock.at_ms)
        clock.at_ms += 3_500
    slots = {NOW_MS + LEAD_MS + place * spacing_ms(DELAY_MS) for place in range(5)}
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
