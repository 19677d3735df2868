"""The pacer (assigns request times): each slot is used on time or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.politeness.host_schedule import FAILURES_MAX, PROBE_MS, Host, slack_ms, spacing_ms
from orbweaver.politeness.pacer import (
    BLOCK_MS,
    LAPSES_MAX,
    LEAD_MS,
    LOOK_FRESH_MS,
    LOOK_MS,
    HostRequests,
    Pacer,
    Turn,
    unlimited_ms,
)
from tests.memory import ManualClock, MemoryHosts, Moment, World
from tests.memory.world import Gate, open_gate
from tests.unit.stage import NOW_MS, SITE, call_on, noting

DELAY_MS = 1_000


class LateClock(ManualClock):
    """A clock whose first `times` sleeps wake up late."""

    def __init__(self, late_ms: int, times: int) -> None:
        super().__init__(NOW_MS)
        self._late_ms = late_ms
        self._times = times

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if self._times:
            self._times -= 1
            self.at_ms += self._late_ms


@dataclass
class Visits:
    """Visits of one host, with its state and a clock."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    world: World = field(default_factory=World)

    def pacer(
        self,
        *,
        gate: Gate = open_gate,
        delay_ms: int = DELAY_MS,
        ahead_ms: int = 60_000,
        wait_limit_ms: Callable[[], float] = unlimited_ms,
        requests: HostRequests | None = None,
    ) -> Pacer:
        return Pacer(
            requests or self.requests(gate),
            delay_ms=delay_ms,
            until_ms=NOW_MS + ahead_ms,
            wait_limit_ms=wait_limit_ms,
        )

    def requests(self, gate: Gate = open_gate) -> HostRequests:
        return HostRequests(SITE, MemoryHosts(self.world, gate), self.clock)

    def know(self, *, tat_ms: int = 0, blocked_until_ms: int = 0, failures: int = 0) -> None:
        """Store the state of the host."""
        self.world.hosts[SITE] = Host(
            name=SITE, tat_ms=tat_ms, blocked_until_ms=blocked_until_ms, failures=failures
        )

    async def ask(self, pace: Pacer, left: int = 1) -> int:
        """Send a request in the next slot, and return its time."""
        assert await pace.wait_for_slot(left) is None
        assert pace.start_request(pace.turn)
        return self.clock.at_ms


@pytest.fixture
def host() -> Visits:
    return Visits()


async def test_slots_of_block_are_a_delay_apart(host: Visits) -> None:
    """Slots that are reserved together share one slack, which follows the last of them."""
    pace = host.pacer()
    asked = [await host.ask(pace, left) for left in (3, 2, 1)]
    first_ms = NOW_MS + LEAD_MS
    assert asked == [first_ms + place * DELAY_MS for place in range(3)]
    slack = -(-slack_ms(DELAY_MS) // 3) * 3
    assert host.world.hosts[SITE].tat_ms == first_ms + 3 * DELAY_MS + slack


@given(late=st.lists(st.integers(0, 40), min_size=12, max_size=12), visits=st.integers(1, 4))
async def test_requests_are_never_closer_than_delay(late: list[int], visits: int) -> None:
    host = Visits()
    paces = [host.pacer(ahead_ms=600_000) for _ in range(visits)]
    asked = []
    for place, late_ms in enumerate(late):
        pace = paces[place % visits]
        assert await pace.wait_for_slot(len(late) - place) is None
        host.clock.at_ms += late_ms
        if pace.start_request(pace.turn):
            asked.append(host.clock.at_ms)
    assert all(later - one >= DELAY_MS for one, later in pairwise(asked))


@pytest.mark.parametrize(("wait_ms", "asked"), [(DELAY_MS, 4), (DELAY_MS - 1, 1), (0, 1)])
async def test_pack_with_short_wait_limit_asks_once_and_returns(
    host: Visits, wait_ms: int, asked: int
) -> None:
    """If waiting costs more than another delivery, the pack returns at its next slot."""
    pace = host.pacer(wait_limit_ms=lambda: wait_ms)
    for left in range(4, 4 - asked, -1):
        await host.ask(pace, left)
    assert host.clock.at_ms == NOW_MS + LEAD_MS + (asked - 1) * DELAY_MS
    if asked == 1:
        assert await pace.wait_for_slot(3) == host.world.hosts[SITE].tat_ms


@pytest.mark.parametrize(("free_ms", "asks"), [(0, True), (3_900, True), (5_100, False)])
async def test_first_slot_is_waited_for_at_any_cost(
    host: Visits, free_ms: int, *, asks: bool
) -> None:
    """Otherwise a pack could return forever without a request."""
    host.know(tat_ms=NOW_MS + free_ms)
    pace = host.pacer(delay_ms=4_000, wait_limit_ms=lambda: 100)
    assert (await pace.wait_for_slot(2) is None) is asks


async def test_packs_share_slots_of_host(host: Visits) -> None:
    asked = [await host.ask(host.pacer()) for _ in range(3)]
    assert all(other - one >= DELAY_MS for one, other in pairwise(asked))


@pytest.mark.parametrize(
    ("state", "left"), [("tat_ms", 2), ("blocked_until_ms", 1)], ids=["no slot", "blocked"]
)
async def test_pack_without_slot_gets_return_time(host: Visits, state: str, left: int) -> None:
    host.know(**{state: NOW_MS + 90_000})
    known = host.world.hosts[SITE].tat_ms
    assert await host.pacer().wait_for_slot(left) == NOW_MS + 90_000
    assert (host.clock.at_ms, host.world.hosts[SITE].tat_ms) == (NOW_MS, known)


@pytest.mark.parametrize(("wanted", "slots"), [(2, 1), (5, 2), (25, 3)])
async def test_pack_with_some_slots_keeps_place_for_rest(
    host: Visits, wanted: int, slots: int
) -> None:
    reserved: list[int] = []
    gate = call_on("hosts.reserve", lambda: reserved.append(host.clock.at_ms))
    pace = host.pacer(gate=gate, ahead_ms=LEAD_MS + slots * DELAY_MS - 1)
    for place in range(slots):
        await host.ask(pace, wanted - place)
    known = host.world.hosts[SITE]
    place_ms = known.tat_ms
    assert [await pace.wait_for_slot(wanted - slots) for _ in range(3)] == [place_ms] * 3
    assert reserved == [NOW_MS]
    assert host.world.hosts[SITE] == known
    assert known.line_ms > place_ms


async def test_long_packs_return_one_block_apart(host: Visits) -> None:
    block = BLOCK_MS // DELAY_MS
    packs = [host.pacer(ahead_ms=block * DELAY_MS - 500) for _ in range(4)]
    returns = [await pace.wait_for_slot(20) for pace in packs]
    assert returns[0] is None
    for place in range(1, block):
        assert packs[0].start_request(packs[0].turn)
        assert await packs[0].wait_for_slot(20 - place) is None
    spacing = DELAY_MS + slack_ms(DELAY_MS) // block
    later = [at_ms for at_ms in returns if at_ms is not None]
    assert later[0] == NOW_MS + LEAD_MS + block * spacing
    assert [two - one for one, two in pairwise(later)] == [block * spacing] * 2


@pytest.mark.parametrize("delay_ms", [DELAY_MS, 0])
async def test_block_during_wait_is_noticed(host: Visits, delay_ms: int) -> None:
    block = partial(host.know, blocked_until_ms=NOW_MS + 99_000)
    pace = host.pacer(gate=call_on("hosts.reserve", block, Moment.AFTER), delay_ms=delay_ms)
    assert await pace.wait_for_slot(1) == NOW_MS + 99_000


async def test_probe_of_silent_host_is_left_to_first_worker(host: Visits) -> None:
    rest = partial(host.know, failures=FAILURES_MAX)
    rest(blocked_until_ms=NOW_MS)
    gate = call_on("hosts.probe", lambda: rest(blocked_until_ms=NOW_MS + PROBE_MS))
    assert await host.pacer(gate=gate, delay_ms=0).wait_for_slot(1) == NOW_MS + PROBE_MS
    rest(blocked_until_ms=NOW_MS)
    first = host.pacer(delay_ms=0)
    assert await first.wait_for_slot(1) is None
    assert first.turn.probe


async def test_pacer_without_delay_waits_and_writes_no_slots(host: Visits) -> None:
    pace = host.pacer(delay_ms=0)
    for left in (3, 2, 1):
        assert await pace.wait_for_slot(left) is None
    assert host.clock.at_ms == NOW_MS
    assert SITE not in host.world.hosts


async def test_pacer_without_delay_rereads_blocks(host: Visits) -> None:
    pace = host.pacer(delay_ms=0)
    assert await pace.wait_for_slot(2) is None
    host.clock.at_ms += LOOK_MS + 1
    assert await pace.wait_for_slot(1) is None
    host.know(blocked_until_ms=NOW_MS + 99_000)
    assert await pace.wait_for_slot(1) == NOW_MS + 99_000


@pytest.mark.parametrize(("failures", "reads"), [(0, 2), (1, 3)])
async def test_requests_without_delay_share_recent_read_of_host(
    host: Visits, failures: int, reads: int
) -> None:
    """A host with failures is read for each request, because it may have recovered."""
    effects: list[str] = []
    host.know(failures=failures)
    requests = host.requests(noting(effects))
    for passed_ms in (0, LOOK_FRESH_MS - 1, 1):
        host.clock.at_ms += passed_ms
        assert await host.pacer(delay_ms=0, requests=requests).wait_for_slot(1) is None
    assert effects.count("hosts.look") == reads


@pytest.mark.parametrize(("late_ms", "asked"), [(LOOK_MS, True), (LOOK_MS + 1, False)])
async def test_turn_without_delay_lasts_from_read_of_host(
    host: Visits, late_ms: int, *, asked: bool
) -> None:
    pace = host.pacer(delay_ms=0)
    assert await pace.wait_for_slot(2) is None
    host.clock.at_ms += LOOK_MS - 1
    assert await pace.wait_for_slot(1) is None
    host.clock.at_ms += late_ms
    assert pace.start_request(pace.turn) is asked


@pytest.mark.parametrize(
    ("late_ms", "first"), [(slack_ms(DELAY_MS), True), (slack_ms(DELAY_MS) + 1, False)]
)
async def test_slot_is_valid_within_slack(late_ms: int, *, first: bool) -> None:
    host = Visits(LateClock(late_ms, times=1))
    assert await host.pacer().wait_for_slot(1) is None
    slot_ms, now_ms = NOW_MS + LEAD_MS, host.clock.at_ms
    assert (now_ms == slot_ms + late_ms) is first
    assert host.world.hosts[SITE].tat_ms == now_ms - late_ms * first + spacing_ms(DELAY_MS)


async def test_missed_slots_cause_no_burst(host: Visits) -> None:
    """After a long pause (slow server, frozen process) one request uses its slot at once."""
    pace = host.pacer()
    asked = []
    for left in (5, 4, 3):
        asked.append(await host.ask(pace, left))
        host.clock.at_ms += 3_500
    assert asked[1] - asked[0] == 3_500
    assert all(other - one >= 3_500 for one, other in pairwise(asked))


async def test_late_requests_lose_only_their_lateness(host: Visits) -> None:
    """The third request no longer fits into its block, and gets a slot without a gap."""
    pace = host.pacer()
    late_ms = slack_ms(DELAY_MS) - 20
    asked = []
    for left in (3, 2, 1):
        assert await pace.wait_for_slot(left) is None
        host.clock.at_ms += late_ms
        assert pace.start_request(pace.turn)
        asked.append(host.clock.at_ms)
    assert [other - one for one, other in pairwise(asked)] == [DELAY_MS + late_ms] * 2


@pytest.mark.parametrize("same_visit", [True, False])
async def test_delay_counts_from_sending_of_request(host: Visits, *, same_visit: bool) -> None:
    """A connection may take a while, also beyond the block; the time of sending is rounded up."""
    first, second = host.pacer(), host.pacer()
    await host.ask(first, 3 if same_visit else 1)
    host.clock.at_ms += 300
    sent_ms = host.clock.at_ms
    first.note_sent()
    if not same_visit:
        await first.release()
    assert await (first if same_visit else second).wait_for_slot(1 + same_visit) is None
    assert host.clock.at_ms == sent_ms + 1 + DELAY_MS


async def test_late_request_delays_slot_of_other_visit(host: Visits) -> None:
    requests, clock = host.requests(), host.clock
    first, second = (host.pacer(requests=requests) for _ in range(2))
    await host.ask(first)
    sent_ms: list[int] = []

    async def send_late(_seconds: float) -> None:
        # The connection of the first request takes 300 ms.
        clock.at_ms += 300
        sent_ms.append(clock.at_ms)
        first.note_sent()
        del clock.sleep  # the class's method again

    clock.sleep = send_late  # type: ignore[method-assign, assignment]
    assert await second.wait_for_slot(1) is None
    assert clock.at_ms >= sent_ms[0] + DELAY_MS


async def test_refused_turn_uses_slot_again(host: Visits) -> None:
    pace = host.pacer()
    await host.ask(pace, 3)
    assert await pace.wait_for_slot(2) is None
    host.clock.at_ms += slack_ms(DELAY_MS) + 1
    refused_ms = host.clock.at_ms
    assert not pace.start_request(pace.turn)
    assert await pace.wait_for_slot(2) is None
    assert host.clock.at_ms == refused_ms


@pytest.mark.parametrize(("moment", "sends"), [("hosts.reserve", True), ("hosts.look", False)])
async def test_turn_refused_after_its_block_uses_no_slot_of_another_visit(
    host: Visits, moment: str, *, sends: bool
) -> None:
    """While a visit waits for its next block, the request of its last turn finds the turn over."""
    clock, hosts = host.clock, host.world.hosts
    other, third = host.pacer(), host.pacer()
    turns: list[Turn] = []

    def refuse() -> None:
        if turns:
            assert not pace.start_request(turns.pop())
            if not sends:
                hosts[SITE] = replace(hosts[SITE], blocked_until_ms=clock.at_ms + 1)

    pace = host.pacer(gate=call_on(moment, refuse))
    asked = [await host.ask(pace)]
    assert await pace.wait_for_slot(1) is None
    refused = pace.turn
    asked.append(await host.ask(other))
    turns.append(refused)
    assert (await pace.wait_for_slot(1) is None) == sends
    assert not turns
    if sends:
        assert pace.start_request(pace.turn)
        asked.append(clock.at_ms)
    await pace.release()
    clock.at_ms += 1
    asked.append(await host.ask(third))
    assert all(later - one >= DELAY_MS for one, later in pairwise(asked))


async def test_missed_slots_are_skipped_in_one_step(host: Visits) -> None:
    pace = host.pacer()
    assert await pace.wait_for_slot(25) is None
    host.clock.at_ms += 20 * spacing_ms(DELAY_MS)
    assert await pace.wait_for_slot(24) is None
    assert host.clock.at_ms - NOW_MS < 22 * spacing_ms(DELAY_MS)


async def test_process_always_late_gives_up() -> None:
    host = Visits(LateClock(10_000, times=100))
    assert await host.pacer(ahead_ms=10**9).wait_for_slot(1) == host.clock.at_ms
    assert host.world.hosts[SITE].tat_ms - NOW_MS > 10_000 * (LAPSES_MAX - 1)


async def test_slow_reservations_get_later_slots(host: Visits) -> None:
    def wait() -> None:
        host.clock.at_ms += 2_500  # longer than the spacing, so a near slot is always missed

    gate = call_on("hosts.reserve", wait, Moment.AFTER)
    assert await host.pacer(gate=gate).wait_for_slot(1) is None
    assert host.clock.at_ms == host.world.hosts[SITE].tat_ms - spacing_ms(DELAY_MS)


async def test_no_request_after_end_of_invocation() -> None:
    """A worker that wakes up too late leaves the URL to another invocation (case 10)."""
    host = Visits(LateClock(30, times=1))
    assert await host.pacer(ahead_ms=LEAD_MS).wait_for_slot(1) == host.clock.at_ms
    assert host.clock.at_ms > NOW_MS + LEAD_MS


@pytest.mark.parametrize("used", [0, 1, 3])
async def test_interrupted_visit_releases_its_unused_slots(host: Visits, used: int) -> None:
    """Another visit may start one delay after the last request."""
    visiting = host.pacer()
    for _ in range(used):
        await host.ask(visiting, 8)
    if not used:
        cut = asyncio.create_task(visiting.wait_for_slot(8))
        host.clock.at_ms = NOW_MS
        await asyncio.sleep(0)
        cut.cancel()
    reserved_ms = host.world.hosts[SITE].tat_ms
    await visiting.release()
    await visiting.release()
    free_ms = host.world.hosts[SITE].tat_ms
    assert free_ms < reserved_ms
    if used:
        assert free_ms == visiting.turn.slot_ms + DELAY_MS
