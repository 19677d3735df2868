"""Contract of the queues: sent messages arrive complete, express ones on their own queue."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Malformed, Pack, SeedsMessage, decode
from orbweaver.model.target import Target
from tests.contract import samples
from tests.contract.worlds import AwsWorld

if TYPE_CHECKING:
    from tests.contract.worlds import World

BATCH_BYTES_MAX = 1024 * 1024


def seeds(place: int = 0) -> SeedsMessage:
    return SeedsMessage(
        id=f"seeds-{place}",
        crawl="shop-1",
        at_ms=samples.NOW_MS,
        references=("https://example.com/ü", "HTTP://EXAMPLE.com"),
        planned=True,
    )


async def test_outgoing_packs_arrive_once(world: World) -> None:
    outgoing_packs = [samples.outgoing(place) for place in range(23)]
    await world.container().queue.send(outgoing_packs, express=False)
    messages = [decode(received.body) for received in await world.receive("crawl")]
    packs = [message for message in messages if isinstance(message, Pack)]
    assert sorted(pack.id for pack in packs) == sorted(
        outgoing.pack.id for outgoing in outgoing_packs
    )
    assert {pack.targets for pack in packs} == {outgoing_packs[0].pack.targets}
    assert await world.receive("express") == []


async def test_priority_packs_use_express_lane(world: World) -> None:
    queue = world.container().queue
    plain, high = samples.outgoing(1), samples.outgoing(2)
    targets = tuple(replace(target, express=True) for target in high.pack.targets)
    high = replace(high, pack=replace(high.pack, targets=targets))
    await queue.send([plain, high], express=False)
    (received,) = await world.receive("express")
    assert decode(received.body) == high.pack
    (received,) = await world.receive("crawl")
    assert decode(received.body) == plain.pack
    await queue.send([plain, high], express=True)
    assert len(await world.receive("express")) == 2
    assert await world.receive("crawl") == []


async def test_empty_outbox_sends_nothing(world: World) -> None:
    queue = world.container().queue
    await queue.send([], express=False)
    await queue.send_seeds([], express=True)
    assert await world.receive("crawl") == []


async def test_seeds_arrive_as_sent(world: World) -> None:
    await world.container().queue.send_seeds([seeds(0), seeds(1)], express=False)
    received = [decode(message.body) for message in await world.receive("crawl")]
    assert sorted(received, key=str) == [seeds(0), seeds(1)]


async def test_express_lane_does_not_wait_for_normal_lane(world: World) -> None:
    queue = world.container().queue
    await queue.send([samples.outgoing(1)], express=True)
    await queue.send_seeds([seeds()], express=True)
    assert await world.receive("crawl") == []
    assert len(await world.receive("express")) == 2


async def test_each_crawl_is_a_fairness_group(world: World) -> None:
    queue = world.container().queue
    await queue.send([samples.outgoing(1), samples.outgoing(2, crawl_id="news-1")], express=False)
    await queue.send_seeds([seeds()], express=False)
    groups = sorted(received.group for received in await world.receive("crawl"))
    assert groups == ["news-1", "shop-1", "shop-1"]


@pytest.mark.parametrize("crawl_id", ["Bücher", "two words", "x" * 128, "a" * 129, "\U0001f578"])
async def test_any_crawl_id_can_be_sent(world: World, crawl_id: str) -> None:
    """The id need not be a valid message group."""
    await world.container().queue.send([samples.outgoing(crawl_id=crawl_id)], express=False)
    (received,) = await world.receive("crawl")
    assert isinstance(message := decode(received.body), Pack | Malformed)
    assert not isinstance(message, Pack) or message.crawl == crawl_id
    if isinstance(world, AwsWorld):
        assert re.fullmatch("[!-~]{1,128}", received.group)


async def test_delayed_packs_are_held_back(world: World) -> None:
    queue = world.container().queue
    await queue.send([samples.outgoing(1, delay_s=900), samples.outgoing(2)], express=False)
    assert await world.delayed("crawl") == 1
    (received,) = await world.receive("crawl")
    message = decode(received.body)
    assert isinstance(message, Pack)
    assert message.id == samples.outgoing(2).pack.id


async def test_large_packs_are_sent_in_separate_batches(world: World) -> None:
    """All packs (batches of URLs) arrive (case 13)."""
    targets = tuple(
        Target(url=f"https://example.com/{'ü' * 2_000}{number}", depth=1) for number in range(25)
    )
    outgoing_packs = [
        OutgoingPack(pack=Pack(id=pack, crawl="shop-1", at_ms=samples.NOW_MS, targets=targets))
        for pack in samples.pack_ids(9)
    ]
    await world.container().queue.send(outgoing_packs, express=False)
    received = await world.receive("crawl")
    assert sum(len(message.body) for message in received) > 2 * BATCH_BYTES_MAX
    assert len(received) == 9


@pytest.mark.parametrize(
    ("body", "reason", "stored"),
    [
        (
            "{not json",
            "body is neither a URL nor valid JSON",
            "body is neither a URL nor valid JSON",
        ),
        ("\U0001f578 ü\t\r\n" * 10, "x" * 1_000, "x" * 256),
        ("x", "a\u0000b\u000bc\ufffe\udcffd", "a\ufffdb\ufffdc\ufffd\ufffdd"),
        ("x", "", "unknown"),
    ],
    ids=["plain", "long", "characters", "none"],
)
async def test_dead_letter_has_reason_and_original_body(
    world: World, body: str, reason: str, stored: str
) -> None:
    await world.container().queue.dead_letter(body, reason)
    (received,) = await world.receive("dead")
    assert received.body == body
    assert received.reason in {stored, reason}
    assert await world.receive("crawl") == []


async def test_message_of_maximum_size_is_dead_lettered(world: World) -> None:
    """SQS leaves no room for a reason."""
    body = "x" * BATCH_BYTES_MAX
    await world.container().queue.dead_letter(body, "too large to be a pack")
    (received,) = await world.receive("dead")
    assert received.body == body
    assert received.reason is None or not isinstance(world, AwsWorld)
