"""Contract of hosts: exclusive slots (request times), blocks that never get shorter, robots.txt."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.dynamodb.hosts import HOST_KEPT_S
from orbweaver.politeness.host_schedule import FAILURES_MAX, HORIZON_MS, Host, RobotsEntry
from tests.contract.samples import NOW_MS
from tests.memory import MemoryHosts
from tests.memory import World as MemoryState

if TYPE_CHECKING:
    from orbweaver.politeness.ports import Hosts
    from tests.contract.worlds import AwsWorld, World

HOST = "https://example.com:8443"
SPACING_MS = 1_050
# Maximum age of a container's cached host state.
STALE_MS = 5_000


async def test_unknown_host_has_no_history(world: World) -> None:
    assert await world.container().hosts.read_host(HOST) == Host(name=HOST)


async def test_slots_are_one_spacing_apart(world: World) -> None:
    slots = await world.container().hosts.reserve(HOST, 4, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    assert slots.at_ms == tuple(NOW_MS + place * SPACING_MS for place in range(4))


async def test_reservations_follow_each_other(world: World) -> None:
    await world.container().hosts.reserve(HOST, 3, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    slots = await world.container().hosts.reserve(HOST, 2, 2_000, NOW_MS + 10, NOW_MS + 60_000)
    first_ms = NOW_MS + 3 * SPACING_MS
    assert slots.at_ms == (first_ms, first_ms + 2_000)


async def test_released_slots_never_make_others_start_too_early(world: World, hosts: Hosts) -> None:
    """A table may keep them reserved. Slots that others reserved since then stay theirs."""
    await hosts.reserve(HOST, 4, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    free_ms, end_ms = NOW_MS + SPACING_MS, NOW_MS + 4 * SPACING_MS
    await hosts.release(HOST, free_ms, end_ms)
    other = world.container().hosts
    second = await other.reserve(HOST, 1, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    assert second.at_ms[0] in (free_ms, end_ms)
    await hosts.release(HOST, free_ms, end_ms)
    third = await other.reserve(HOST, 1, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    assert third.at_ms[0] == second.at_ms[0] + SPACING_MS


async def test_idle_host_starts_from_now(hosts: Hosts) -> None:
    await hosts.reserve(HOST, 2, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    later_ms = NOW_MS + 50_000
    slots = await hosts.reserve(HOST, 2, SPACING_MS, later_ms, later_ms + 60_000)
    assert slots.at_ms == (later_ms, later_ms + SPACING_MS)


async def test_slot_may_begin_when_last_one_ends(world: World) -> None:
    await world.container().hosts.reserve(HOST, 2, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    next_ms = NOW_MS + 2 * SPACING_MS
    slots = await world.container().hosts.reserve(HOST, 2, SPACING_MS, next_ms, next_ms + 60_000)
    assert slots.at_ms == (next_ms, next_ms + SPACING_MS)


async def test_no_slot_starts_beyond_horizon(hosts: Hosts) -> None:
    until_ms = NOW_MS + 2 * SPACING_MS
    slots = await hosts.reserve(HOST, 10, SPACING_MS, NOW_MS, until_ms)
    assert slots.at_ms == tuple(NOW_MS + place * SPACING_MS for place in range(3))
    assert slots.return_at_ms >= NOW_MS + 3 * SPACING_MS
    full = await hosts.reserve(HOST, 4, SPACING_MS, NOW_MS, until_ms)
    assert full.at_ms == ()
    assert slots.return_at_ms < full.return_at_ms <= NOW_MS + HORIZON_MS


async def test_waiting_packs_get_increasing_delays(hosts: Hosts) -> None:
    until_ms = NOW_MS + 24 * SPACING_MS
    turns = [
        (await hosts.reserve(HOST, 30, SPACING_MS, NOW_MS, until_ms)).return_at_ms
        for _ in range(60)
    ]
    assert turns == sorted(turns)
    assert len(set(turns[:20])) == 20
    assert turns[-1] == NOW_MS + HORIZON_MS


async def test_end_of_waiting_line_is_shared(world: World) -> None:
    until_ms = NOW_MS + 9 * SPACING_MS
    first = await world.container().hosts.reserve(HOST, 20, SPACING_MS, NOW_MS, until_ms)
    second = await world.container().hosts.reserve(HOST, 20, SPACING_MS, NOW_MS, until_ms)
    assert (len(first.at_ms), second.at_ms) == (10, ())
    assert second.return_at_ms >= first.return_at_ms + 9 * SPACING_MS


async def test_waiting_visit_takes_places_of_one_visit(hosts: Hosts) -> None:
    until_ms = NOW_MS + 4 * SPACING_MS
    turns = [
        (await hosts.reserve(HOST, 500, SPACING_MS, NOW_MS, until_ms)).return_at_ms
        for _ in range(10)
    ]
    gaps = [later - earlier for earlier, later in pairwise(turns)]
    assert gaps == [5 * SPACING_MS] * 9


async def test_concurrent_slots_never_overlap(world: World) -> None:
    containers = [world.container().hosts for _ in range(8)]
    given = await asyncio.gather(
        *(
            hosts.reserve(HOST, 1 + place % 4, SPACING_MS, NOW_MS, NOW_MS + 600_000)
            for place, hosts in enumerate([*containers, *containers])
        )
    )
    slots = sorted(slot for slots in given for slot in slots.at_ms)
    assert len(slots) >= 20
    assert slots[0] == NOW_MS
    assert min(later - earlier for earlier, later in pairwise(slots)) >= SPACING_MS


async def test_concurrent_reservations_keep_horizon(world: World) -> None:
    until_ms = NOW_MS + 9 * SPACING_MS
    given = await asyncio.gather(
        *(world.container().hosts.reserve(HOST, 3, SPACING_MS, NOW_MS, until_ms) for _ in range(8))
    )
    slots = sorted(slot for slots in given for slot in slots.at_ms)
    assert slots == sorted(set(slots))
    assert 1 <= len(slots) <= 10
    assert slots[-1] <= until_ms


async def test_host_without_delay_gives_slots_now(world: World) -> None:
    slots = await world.container().hosts.reserve(HOST, 3, 0, NOW_MS, NOW_MS + 1_000)
    assert slots.at_ms == (NOW_MS,) * 3
    assert await world.container().hosts.read_host(HOST) == Host(name=HOST)


@pytest.mark.parametrize("spacing_ms", [0, SPACING_MS])
async def test_blocked_host_gives_no_slot(world: World, spacing_ms: int) -> None:
    await world.container().hosts.block(HOST, NOW_MS + 60_000, 1, NOW_MS)
    hosts = world.container().hosts
    slots = await hosts.reserve(HOST, 3, spacing_ms, NOW_MS, NOW_MS + 120_000)
    assert slots.at_ms == ()
    assert slots.return_at_ms >= NOW_MS + 60_000
    world.clock.at_ms = later_ms = NOW_MS + 60_000
    slots = await hosts.reserve(HOST, 1, spacing_ms, later_ms, later_ms + 60_000)
    assert slots.at_ms == (later_ms,)


async def test_block_reaches_containers_with_cached_host(world: World) -> None:
    warm = world.container().hosts
    await warm.reserve(HOST, 1, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    await world.container().hosts.block(HOST, NOW_MS + 30_000, 1, NOW_MS)
    slots = await warm.reserve(HOST, 1, SPACING_MS, NOW_MS + 1, NOW_MS + 60_000)
    assert slots.at_ms == ()
    other = world.container().hosts
    await other.read_host(HOST)
    await warm.block(HOST, NOW_MS + 90_000, 2, NOW_MS)
    world.clock.at_ms += STALE_MS
    assert (await other.read_host(HOST)).blocked_until_ms == NOW_MS + 90_000


async def test_block_is_visible_at_once_to_its_container(world: World) -> None:
    for hosts in (world.container().hosts, world.container().hosts):
        await hosts.block(HOST, NOW_MS + 30_000, 2, NOW_MS)
        state = await hosts.read_host(HOST)
        assert (state.blocked_until_ms, state.strikes, state.struck_at_ms) == (
            NOW_MS + 30_000,
            2,
            NOW_MS,
        )


async def test_block_is_never_shortened(world: World, hosts: Hosts) -> None:
    await hosts.read_host(HOST)
    await world.container().hosts.block(HOST, NOW_MS + 90_000, 3, NOW_MS)
    await hosts.block(HOST, NOW_MS + 60_000, 1, NOW_MS + 1)
    for container in (hosts, world.container().hosts):
        state = await container.read_host(HOST)
        assert state.blocked_until_ms == NOW_MS + 90_000
        assert state.strikes == 3


async def test_concurrent_blocks_keep_longest(world: World) -> None:
    untils = [NOW_MS + seconds * 1000 for seconds in (10, 50, 30, 40, 20)]
    await asyncio.gather(
        *(world.container().hosts.block(HOST, until_ms, 1, NOW_MS) for until_ms in untils)
    )
    assert (await world.container().hosts.read_host(HOST)).blocked_until_ms == NOW_MS + 50_000


async def test_block_keeps_slots_and_robots(world: World, hosts: Hosts) -> None:
    entry = RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow")
    await hosts.reserve(HOST, 5, SPACING_MS, NOW_MS, NOW_MS + 60_000)
    await hosts.keep_robots(HOST, entry)
    await hosts.block(HOST, NOW_MS + 1_000, 1, NOW_MS)
    state = await world.container().hosts.read_host(HOST)
    assert state.tat_ms == NOW_MS + 5 * SPACING_MS
    assert state.robots == entry


@pytest.mark.parametrize(
    "entry",
    [
        RobotsEntry(fetched_at_ms=1_768_478_400_000, body=b"User-agent: *\nDisallow: /\xff\x00\n"),
        RobotsEntry(fetched_at_ms=1_768_478_400_000, body=b""),
        RobotsEntry(fetched_at_ms=1_768_478_400_000, verdict="allow"),
        RobotsEntry(fetched_at_ms=1_768_478_400_000, verdict="unreachable", detail="HTTP 503"),
        RobotsEntry(
            fetched_at_ms=1_768_478_400_000, verdict="unreachable", detail="gone", reason="connect"
        ),
        RobotsEntry(
            fetched_at_ms=1_768_478_400_000,
            body=b"".join(b"Disallow: /private/%d\n" % number for number in range(20_000)),
        ),
    ],
    ids=["rules", "empty", "allow", "answered", "unreachable", "large"],
)
async def test_robots_are_read_as_stored(world: World, hosts: Hosts, entry: RobotsEntry) -> None:
    await hosts.read_host(HOST)
    await hosts.keep_robots(HOST, entry)
    assert (await hosts.read_host(HOST)).robots == entry
    assert (await world.container().hosts.read_host(HOST)).robots == entry
    assert (await hosts.read_host("https://other.example")).robots is None


async def test_host_item_expires_after_last_slot(moto_world: AwsWorld) -> None:
    now_ms = moto_world.clock.now_ms()
    await moto_world.container().hosts.reserve(HOST, 1, 1_000, now_ms, now_ms + 60_000)
    found = await moto_world.clients["dynamodb"].get_item(
        TableName=moto_world.table("hosts"), Key={"host": {"S": HOST}}
    )
    assert found["Item"]["expires_at"]["N"] == str(now_ms // 1000 + HOST_KEPT_S)


async def test_newer_robots_replace_older_ones(world: World, hosts: Hosts) -> None:
    await hosts.keep_robots(HOST, RobotsEntry(fetched_at_ms=NOW_MS, verdict="allow"))
    await hosts.read_host(HOST)
    newer = RobotsEntry(fetched_at_ms=NOW_MS + 1, body=b"User-agent: *\nDisallow: /\n")
    await world.container().hosts.keep_robots(HOST, newer)
    world.clock.at_ms += STALE_MS
    assert (await hosts.read_host(HOST)).robots == newer


async def test_random_host_history_matches_memory_adapter(world: World) -> None:
    random = Random(77)
    model, hosts = MemoryHosts(MemoryState()), world.container().hosts
    for _ in range(40):
        world.clock.at_ms = now_ms = world.clock.at_ms + random.choice((0, 700, 5_000, 30_000))
        if random.random() < 0.15:
            block = (HOST, now_ms + random.choice((500, 4_000)), 1, now_ms)
            await model.block(*block)
            await hosts.block(*block)
        asked = (HOST, random.randint(1, 30), random.choice((0, 525, 1_050)), now_ms)
        until_ms = now_ms + random.choice((0, 10_000, 60_000))
        expected = await model.reserve(*asked, until_ms)
        assert (await hosts.reserve(*asked, until_ms)).at_ms == expected.at_ms
    assert (await hosts.read_host(HOST)).tat_ms == (await model.read_host(HOST)).tat_ms


async def fail(world: World, times: int) -> Host:
    """Record failed requests, each in a new container."""
    state = Host(name=HOST)
    for _ in range(times):
        hosts = world.container().hosts
        state = await hosts.fail(HOST, world.clock.now_ms(), 0.0, probe=False)
    return state


async def test_failures_add_up_over_containers(world: World) -> None:
    """The fifth failure in a row blocks the host (case 32)."""
    assert (await fail(world, FAILURES_MAX - 1)).blocked_until_ms == 0
    state = await fail(world, 1)
    assert state.failures == FAILURES_MAX
    assert state.blocked_until_ms == NOW_MS + 60_000
    assert await fail(world, 3) == state
    found = await world.container().hosts.read_host(HOST)
    assert (found.failures, found.failed_at_ms) == (FAILURES_MAX, NOW_MS)


async def test_concurrent_failures_are_each_counted_once(world: World) -> None:
    hosts = [world.container().hosts for _ in range(4)]
    await asyncio.gather(*(each.fail(HOST, NOW_MS, 0.0, probe=False) for each in hosts))
    assert (await world.container().hosts.read_host(HOST)).failures == 4
    await asyncio.gather(*(each.fail(HOST, NOW_MS, 0.0, probe=False) for each in hosts))
    found = await world.container().hosts.read_host(HOST)
    assert (found.failures, found.blocked_until_ms) == (FAILURES_MAX, NOW_MS + 60_000)


async def test_one_container_probes_silent_host(world: World) -> None:
    """After the block one request is sent; other containers wait for its result (case 32)."""
    await fail(world, FAILURES_MAX)
    hosts = [world.container().hosts for _ in range(4)]
    now_ms = world.clock.now_ms()
    assert not await hosts[0].take_probe(HOST, now_ms + 30_000, now_ms)  # Still blocked.
    world.clock.at_ms = now_ms = now_ms + 60_000
    tries = await asyncio.gather(
        *(each.take_probe(HOST, now_ms + 30_000, now_ms) for each in hosts)
    )
    assert sorted(tries) == [False, False, False, True]
    slots = await world.container().hosts.reserve(HOST, 1, SPACING_MS, now_ms, now_ms + 5_000)
    assert (slots.at_ms, slots.return_at_ms) == ((), now_ms + 30_000)
    state = await hosts[tries.index(True)].fail(HOST, now_ms, 0.0, probe=True)
    assert (state.failures, state.blocked_until_ms) == (FAILURES_MAX + 1, now_ms + 120_000)


async def test_answer_resets_failure_count_and_keeps_block(world: World) -> None:
    state = await fail(world, FAILURES_MAX)
    await world.container().hosts.recover(HOST)
    await world.container().hosts.recover(HOST)
    found = await world.container().hosts.read_host(HOST)
    assert (found.failures, found.blocked_until_ms) == (0, state.blocked_until_ms)
    now_ms = state.blocked_until_ms
    assert not await world.container().hosts.take_probe(HOST, now_ms + 30_000, now_ms)


async def test_recovery_of_unknown_host_writes_nothing(hosts: Hosts) -> None:
    await hosts.recover(HOST)
    assert await hosts.read_host(HOST) == Host(name=HOST)


async def test_state_of_login_is_written_only_if_unchanged(world: World) -> None:
    """Of several workers, one gets the lease of a login."""
    one, two, now_ms = world.container().hosts, world.container().hosts, NOW_MS
    at = ("c-1", "https://example.com")
    assert await one.session(*at) is None
    assert await one.keep_session(*at, "first", None, now_ms)
    assert not await two.keep_session(*at, "other", None, now_ms)
    assert await two.keep_session(*at, "second", "first", now_ms)
    assert not await one.keep_session(*at, "third", "first", now_ms)
    assert [await hosts.session(*at) for hosts in (one, two)] == ["second", "second"]
    assert await one.session("c-2", "https://example.com") is None
    assert await one.cookies("c-1", "example.com") is None


async def test_cookies_are_kept_per_crawl_and_site(world: World) -> None:
    one, two, now_ms = world.container().hosts, world.container().hosts, NOW_MS
    assert await one.cookies("c-1", "example.com") is None
    await one.keep_cookies("c-1", "example.com", '[["a","1"]]', now_ms)
    await two.keep_cookies("c-1", "example.com", '[["a","2"]]', now_ms)
    await two.keep_cookies("c-2", "example.com", "[]", now_ms)
    for hosts in (one, two):
        assert await hosts.cookies("c-1", "example.com") == '[["a","2"]]'
        assert await hosts.cookies("c-2", "example.com") == "[]"
        assert await hosts.cookies("c-1", "example.org") is None
    assert await one.read_host("https://example.com") == Host(name="https://example.com")
