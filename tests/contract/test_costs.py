"""Call counts of the adapters: common cases must cost no extra read or write."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.dynamodb import hosts as dynamodb_hosts
from orbweaver.politeness.host_schedule import RobotsEntry
from tests.contract import samples
from tests.contract.faults import Faulty
from tests.contract.test_frontier import claimer

if TYPE_CHECKING:
    from tests.contract.worlds import AwsWorld, Container

HOST = "https://example.com"


def counted(world: AwsWorld) -> tuple[Container, Faulty]:
    client = Faulty(world.clients["dynamodb"])
    return world.container(dynamodb=client), client


async def test_full_horizon_costs_no_write(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    await container.hosts.reserve(HOST, 25, 1_000, now_ms, now_ms + 5_000)
    before = client.calls.copy()
    for _ in range(20):
        slots = await container.hosts.reserve(HOST, 25, 1_000, now_ms, now_ms + 5_000)
        assert slots.at_ms == ()
    assert client.calls == before


async def test_blocked_host_costs_no_write(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    await container.hosts.read_host(HOST)
    await container.hosts.block(HOST, now_ms + 60_000, 1, now_ms)
    before = client.calls.copy()
    await container.hosts.reserve(HOST, 25, 1_000, now_ms, now_ms + 5_000)
    assert client.calls == before


async def test_host_without_delay_costs_no_write(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    for _ in range(50):
        now_ms = moto_world.clock.now_ms()
        await container.hosts.reserve(HOST, 10, 0, now_ms, now_ms)
        moto_world.clock.at_ms += 100
    assert client.calls == {"batch_get_item": 1}


async def test_many_slots_cost_one_write(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    await container.hosts.reserve(HOST, 25, 1_000, now_ms, now_ms + 60_000)
    assert client.calls == {"batch_get_item": 1, "update_item": 1}


async def test_stale_host_state_costs_one_failed_write(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    await container.hosts.read_host(HOST)
    await moto_world.container().hosts.reserve(HOST, 10, 1_000, now_ms, now_ms + 60_000)
    slots = await container.hosts.reserve(HOST, 2, 1_000, now_ms, now_ms + 60_000)
    assert slots.at_ms == (now_ms + 10_000, now_ms + 11_000)
    assert client.calls == {"batch_get_item": 1, "update_item": 2}


async def test_host_read_is_cached_for_5_seconds(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    for step_ms, reads in ((0, 1), (4_999, 1), (1, 2), (-10_000, 3), (0, 3)):
        moto_world.clock.at_ms += step_ms
        await container.hosts.read_host(HOST)
        assert client.calls["batch_get_item"] == reads


async def test_host_cache_is_bounded_by_count_and_bytes(
    moto_world: AwsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamodb_hosts, "ROBOTS_BYTES_KEPT_MAX", 3_000)
    container, client = counted(moto_world)
    hosts = [f"https://{number}.example" for number in range(5)]
    for host in hosts:
        entry = RobotsEntry(fetched_at_ms=moto_world.clock.now_ms(), body=b"x" * 1_000)
        await container.hosts.keep_robots(host, entry)
        await container.hosts.read_host(host)
    for host, reads in ((hosts[-1], 0), (hosts[-3], 0), (hosts[0], 1)):
        before = client.calls["batch_get_item"]
        await container.hosts.read_host(host)
        assert client.calls["batch_get_item"] == before + reads


@pytest.mark.parametrize("separator", [b"\n", b""], ids=["lines", "one line"])
async def test_robots_larger_than_item_is_truncated_at_line(
    moto_world: AwsWorld, separator: bytes
) -> None:
    random = Random(9)
    body = separator.join(random.randbytes(500).replace(b"\n", b"") for _ in range(1_100))
    entry = RobotsEntry(fetched_at_ms=moto_world.clock.now_ms(), body=body)
    await moto_world.container().hosts.keep_robots(HOST, entry)
    robots = (await moto_world.container().hosts.read_host(HOST)).robots
    assert robots is not None
    assert robots.body is not None
    assert body.startswith(robots.body + separator)


async def test_new_claims_cost_no_read(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    targets = [samples.target(number) for number in range(50)]
    await container.frontier.claim(claimer("a", now_ms), targets)
    assert client.calls == {"batch_execute_statement": 2}
    await container.frontier.claim(claimer("a", now_ms), targets)
    await container.frontier.claim(claimer("b", now_ms), targets)
    assert client.calls == {"batch_get_item": 2, "batch_execute_statement": 6}


async def test_only_lapsed_claims_are_written_one_by_one(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    now_ms = moto_world.clock.now_ms()
    targets = [samples.target(number) for number in range(30)]
    await container.frontier.claim(claimer("a", now_ms), targets[:4])
    client.calls.clear()
    later = claimer("b", now_ms + 86_400_000)
    known = await container.frontier.known(later, [target.url for target in targets])
    targets = [replace(one, prior=known.lapsed.get(one.url)) for one in targets]
    assert len(await container.frontier.claim(later, targets)) == 30
    assert client.calls == {"batch_get_item": 2, "batch_execute_statement": 2, "put_item": 4}


async def test_messages_are_sent_in_batches_of_ten(moto_world: AwsWorld) -> None:
    client = Faulty(moto_world.clients["sqs"])
    queue = moto_world.container(sqs=client).queue
    await queue.send([samples.outgoing(place) for place in range(41)], express=False)
    assert client.calls == {"send_message_batch": 5}


async def test_batch_is_recalled_with_one_read(moto_world: AwsWorld) -> None:
    container, client = counted(moto_world)
    await container.packs.recall(samples.pack_ids(10))
    assert client.calls == {"batch_get_item": 1}
