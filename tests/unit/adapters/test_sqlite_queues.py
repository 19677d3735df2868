"""Queues of the embedded store: receiving, visibility, fairness, dead letters and events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.adapters.sqlite.messages import (
    LEFT_MS,
    Outgoing,
    QueueDepth,
    QueueName,
    ReceivedMessage,
    Sharing,
    SqliteMessages,
)
from orbweaver.adapters.sqlite.receiving import deliveries_of
from orbweaver.app.store_ports import StorePorts
from orbweaver.delivery.plan import order_of
from orbweaver.frontier.dead_letters import RECEIVED_TOO_OFTEN, read
from orbweaver.frontier.envelope import WaitingMessage
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import MessageSource, encode
from orbweaver.model.settings import Settings
from orbweaver.worker.pack import Delivery
from tests.contract import samples
from tests.contract.test_events import DONE, EXPORT
from tests.memory import ManualClock

HOLD_S = 30
NOW_MS = samples.NOW_MS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS)


@pytest.fixture
def ports(tmp_path: Path, clock: ManualClock) -> Iterator[StorePorts]:
    opened = StorePorts(Settings.of(receive_max=3), tmp_path, clock=clock)
    yield opened
    opened.ending.close()


@pytest.fixture
def messages(ports: StorePorts) -> SqliteMessages:
    return SqliteMessages(ports.store, clock=ports.clock, receive_max=3)


def send(messages: SqliteMessages, *bodies: str, group: str = "", delay_s: float = 0) -> None:
    outgoing = [Outgoing(body=body, group=group, delay_s=delay_s) for body in bodies]
    messages.send(QueueName.CRAWL, outgoing)


def take(messages: SqliteMessages, count_max: int = 10) -> list[str]:
    """Receive bodies from the crawl queue and keep them in flight."""
    return [one.body for one in messages.take(QueueName.CRAWL, count_max, HOLD_S)]


# --- receiving --------------------------------------------------------------------------------


async def test_received_message_is_hidden_until_hold_ends(
    ports: StorePorts, messages: SqliteMessages, clock: ManualClock
) -> None:
    send(messages, "a")
    inbox = ports.inbox(QueueName.CRAWL)
    (first,) = await inbox.receive(10, HOLD_S)
    assert (inbox.depth(), inbox.next_due_ms()) == (QueueDepth(in_flight=1), NOW_MS + 30_000)
    clock.at_ms += 29_999
    assert await inbox.receive(10, HOLD_S) == ()
    clock.at_ms += 1
    (second,) = await inbox.receive(10, HOLD_S)
    assert (first.receives, second.receives, second.id) == (1, 2, first.id)
    assert second.first_taken_at_ms == NOW_MS
    # The first reader returns late: the message now belongs to another reader.
    await inbox.delete([first])
    await inbox.show([first])
    assert inbox.depth() == QueueDepth(in_flight=1)
    await inbox.delete([second])
    assert (inbox.depth(), inbox.next_due_ms()) == (QueueDepth(), None)


async def test_partial_batch_response_returns_failed_messages(
    ports: StorePorts, messages: SqliteMessages
) -> None:
    send(messages, *"abc")
    inbox = ports.inbox(QueueName.CRAWL)
    taken = await inbox.receive(10, HOLD_S)
    await inbox.settle(taken, {taken[1].id})
    assert inbox.depth() == QueueDepth(waiting=1)
    (again,) = await inbox.receive(10, HOLD_S)
    assert again.body == "b"
    await inbox.settle([again], {again.id}, 60)
    assert (inbox.depth(), inbox.next_due_ms()) == (QueueDepth(in_flight=1), NOW_MS + 60_000)


async def test_deliveries_contain_queue_and_waiting_time(ports: StorePorts) -> None:
    outgoing = samples.outgoing()
    await ports.queue.send([outgoing], express=True)
    waiting = WaitingMessage(body="{}", crawl="shop-1", since_ms=7)
    await ports.queue.hold([waiting], express=False)
    taken = await ports.inbox(QueueName.EXPRESS).receive(10, HOLD_S)
    (delivery,) = deliveries_of(taken, QueueName.EXPRESS)
    body = encode(outgoing.pack)
    assert delivery == Delivery(id=taken[0].id, body=body, receives=1, queue="express")
    assert ports.settings.queues.is_express(delivery.queue)
    source = MessageSource.from_queue(delivery.queue, ports.settings.queues.pack_queues)
    assert source is MessageSource.PACKS
    assert (
        MessageSource.from_queue(QueueName.SEEDS, ports.settings.queues.pack_queues)
        is MessageSource.SEEDS
    )
    assert isinstance(ports.clock, ManualClock)
    ports.clock.at_ms += 900_000
    taken = await ports.inbox(QueueName.CRAWL).receive(10, HOLD_S)
    assert [one.since_ms for one in deliveries_of(taken, QueueName.CRAWL)] == [7]


async def test_receive_waits_for_first_message(
    ports: StorePorts, messages: SqliteMessages, clock: ManualClock
) -> None:
    inbox = ports.inbox(QueueName.CRAWL)
    assert await inbox.receive(10, HOLD_S, wait_s=5) == ()
    assert clock.at_ms == NOW_MS + 5_000
    send(messages, "a", delay_s=1)
    assert [one.body for one in await inbox.receive(10, HOLD_S, wait_s=5)] == ["a"]
    assert clock.at_ms == NOW_MS + 6_000


# --- fairness ---------------------------------------------------------------------------------


def test_groups_take_turns(messages: SqliteMessages) -> None:
    send(messages, *(f"large-{number}" for number in range(100)), group="large")
    send(messages, "small-0", "small-1", group="small")
    send(messages, "other-0", group="other")
    assert take(messages, 4) == ["large-0", "other-0", "small-0", "large-1"]
    assert take(messages, 2) == ["small-1", "large-2"]
    assert take(messages, 2) == ["large-3", "large-4"]


def test_turn_continues_after_last_group(messages: SqliteMessages) -> None:
    for group in "abc":
        send(messages, *(f"{group}{number}" for number in range(3)), group=group)
    assert [take(messages, 1) for _ in range(7)] == [
        [body] for body in ("a0", "b0", "c0", "a1", "b1", "c1", "a2")
    ]


def test_message_delayed_too_far_is_due_after_clock_was_set_back(
    messages: SqliteMessages, clock: ManualClock
) -> None:
    clock.at_ms += 86_400_000
    send(messages, "a", "b")
    clock.at_ms -= 86_400_000
    send(messages, "held back", delay_s=900)
    assert take(messages) == []
    messages.bring_near()
    assert take(messages) == ["a", "b"]


def test_messages_are_received_by_due_time(messages: SqliteMessages, clock: ManualClock) -> None:
    send(messages, "late", delay_s=2)
    send(messages, "early", delay_s=1)
    send(messages, "next")
    assert messages.next_due_ms(QueueName.CRAWL) == NOW_MS
    assert messages.depth(QueueName.CRAWL) == QueueDepth(waiting=1, delayed=2)
    clock.at_ms += 2_000
    assert take(messages) == ["next", "early", "late"]


# --- shares of processes ----------------------------------------------------------------------


class Crew:
    """Processes that share the crawl queue."""

    def __init__(self, ports: StorePorts, processes: int, held_max: int = 30) -> None:
        self._sharing = Sharing(processes=lambda: processes, held_max=held_max)
        self._members: list[SqliteMessages] = []
        self.held: list[list[ReceivedMessage]] = []
        for number in range(processes):
            member = SqliteMessages(ports.store, clock=ports.clock)
            member.holder = f"process-{number}"
            self._members.append(member)
            self.held.append([])

    def take(self, number: int, count_max: int = 10) -> int:
        taken = self._members[number].take(QueueName.CRAWL, count_max, HOLD_S, self._sharing)
        self.held[number] += taken
        return len(taken)

    def finish(self, number: int, count: int) -> None:
        done, self.held[number] = self.held[number][:count], self.held[number][count:]
        self._members[number].delete(one.handle for one in done)


def test_processes_share_waiting_messages(ports: StorePorts, messages: SqliteMessages) -> None:
    crew = Crew(ports, 2)
    send(messages, *map(str, range(15)), group="a")
    send(messages, *map(str, range(5)), group="b")
    assert [crew.take(0) for _ in range(3)] == [10, 0, 0]
    assert [crew.take(1, 4) for _ in range(4)] == [4, 4, 2, 0]


def test_process_finishing_first_takes_more(ports: StorePorts, messages: SqliteMessages) -> None:
    crew = Crew(ports, 2)
    send(messages, *"abcdef")
    assert (crew.take(0), crew.take(1)) == (3, 3)
    send(messages, "g", "h")
    crew.finish(0, 3)
    assert (crew.take(1), crew.take(0), crew.take(1)) == (0, 2, 0)
    crew.finish(1, 3)
    send(messages, "i")
    assert (crew.take(0), crew.take(1)) == (0, 1)


def test_long_queue_is_not_shared(ports: StorePorts, messages: SqliteMessages) -> None:
    crew = Crew(ports, 3, held_max=4)
    send(messages, *map(str, range(12)))
    assert crew.take(0) == 10
    assert (crew.take(1), crew.take(2)) == (2, 0)


def test_unclaimed_share_is_taken_after_a_while(
    ports: StorePorts, messages: SqliteMessages, clock: ManualClock
) -> None:
    """The other process may be stopped or full. Messages are then taken one at a time."""
    crew = Crew(ports, 2)
    send(messages, *"abcd")
    assert (crew.take(0), crew.take(0)) == (2, 0)
    clock.at_ms += LEFT_MS
    assert crew.take(0) == 0
    clock.at_ms += 1
    assert [crew.take(0) for _ in range(3)] == [1, 1, 0]


def test_expired_holds_do_not_count_as_work(
    ports: StorePorts, messages: SqliteMessages, clock: ManualClock
) -> None:
    crew = Crew(ports, 2)
    send(messages, *"abcd")
    send(messages, "later", delay_s=900)
    assert crew.take(0) == 2
    clock.at_ms += HOLD_S * 1000
    assert crew.take(1) == 2
    assert crew.take(0) == 2


@settings(max_examples=25, deadline=None)  # each example creates a store
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["take", "finish", "send"]), st.integers(0, 9))
    )
)
def test_shares_are_even_and_leave_no_message(steps: list[tuple[int, str, int]]) -> None:
    with TemporaryDirectory() as folder:
        clock = ManualClock(NOW_MS)
        ports = StorePorts(Settings.of(receive_max=3), Path(folder), clock=clock)
        messages = SqliteMessages(ports.store, clock=clock)
        crew, left = Crew(ports, 3), 0
        for number, deed, count in steps:
            if deed == "send":
                send(messages, *("x" * count))
                left += count
            elif deed == "finish":
                done = min(count, len(crew.held[number]))
                crew.finish(number, count)
                left -= done
            elif taken := crew.take(number, count):
                assert taken <= count
                assert len(crew.held[number]) <= -(-left // 3)
        clock.at_ms += LEFT_MS + 1
        while crew.take(0):
            pass
        assert sum(map(len, crew.held)) == left
        ports.ending.close()


# --- dead letters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "source"),
    [(QueueName.CRAWL, MessageSource.PACKS), (QueueName.SEEDS, MessageSource.SEEDS)],
)
async def test_message_received_too_often_is_dead_letter(
    ports: StorePorts,
    clock: ManualClock,
    messages: SqliteMessages,
    queue: QueueName,
    source: MessageSource,
) -> None:
    messages.send(queue, [Outgoing(body=encode(samples.outgoing().pack))])
    inbox = ports.inbox(queue)
    (taken,) = await inbox.receive(10, HOLD_S)
    clock.at_ms += 30_000
    (taken,) = await inbox.receive(10, HOLD_S)
    await inbox.show([taken])
    (taken,) = await inbox.receive(10, HOLD_S)
    assert taken.receives == 3
    clock.at_ms += 30_000
    assert await inbox.receive(10, HOLD_S) == ()
    assert inbox.depth() == QueueDepth()
    (letter,) = await ports.dead_letters.take(10, HOLD_S)
    assert (letter.id, letter.reason, letter.source) == (taken.id, None, source)
    assert letter.first_received_at_ms == NOW_MS
    if source is MessageSource.PACKS:
        assert read(letter).cause == f"{RECEIVED_TOO_OFTEN} (pack)"


async def test_failed_export_orders_have_own_dead_letters(
    ports: StorePorts, clock: ManualClock
) -> None:
    await ports.orders.send([("{}", "shop-1")])
    inbox = ports.inbox(QueueName.EXPORTS)
    for _ in range(3):
        assert len(await inbox.receive(10, HOLD_S)) == 1
        clock.at_ms += 30_000
    assert await inbox.receive(10, HOLD_S) == ()
    assert await ports.dead_letters.take(10, HOLD_S) == ()
    assert ports.inbox(QueueName.FAILED_EXPORTS).depth() == QueueDepth(waiting=1)


# --- orders, deliveries, events ---------------------------------------------------------------


async def test_orders_arrive_with_their_groups(ports: StorePorts) -> None:
    bodies = [(f"{number}", f"crawl-{number % 3}") for number in range(9)]
    await ports.orders.send(bodies)
    await ports.orders.send([])
    taken = await ports.inbox(QueueName.EXPORTS).receive(10, HOLD_S)
    assert sorted((one.body, one.group) for one in taken) == bodies


async def test_deliveries_are_postponed_or_put_aside(ports: StorePorts, clock: ManualClock) -> None:
    await ports.deliveries.send("{}")
    inbox = ports.inbox(QueueName.DELIVERIES)
    (first,) = await inbox.receive(1, HOLD_S)
    await ports.deliveries.postpone(first.handle, 3_600)
    clock.at_ms += 3_599_999
    assert await inbox.receive(1, HOLD_S) == ()
    clock.at_ms += 1
    (second,) = await inbox.receive(1, HOLD_S)
    assert (second.id, second.receives) == (first.id, 2)
    await ports.deliveries.dead_letter("{}", "no\x00 answer" + "!" * 500)
    (dead,) = await ports.inbox(QueueName.FAILED_DELIVERIES).receive(1, HOLD_S)
    assert (dead.reason or "").startswith("no\ufffd answer!!!")
    assert len(dead.reason or "") == 256


async def test_events_equal_events_of_aws_bus(ports: StorePorts) -> None:
    await ports.events.completed(DONE, {"fetched.ok": 2, "claimed": 2})
    await ports.events.exported(EXPORT, "exports/manifests/dt=2026-11-21.json")
    taken = await ports.inbox(QueueName.EVENTS).receive(10, HOLD_S)
    completed, exported = (json.loads(one.body) for one in taken)
    assert (completed["detail-type"], exported["detail-type"]) == (
        "CrawlCompleted",
        "ExportCompleted",
    )
    assert completed["detail"]["crawl"] == "shop-1"
    assert completed["detail"]["counts"] == {"claimed": 2, "fetched.ok": 2}
    order = order_of(taken[1].body)
    assert (order.day, order.crawl) == (EXPORT.day, EXPORT.crawl)


async def test_taken_packs_of_ended_process_are_due(
    ports: StorePorts, messages: SqliteMessages, clock: ManualClock
) -> None:
    pack = samples.outgoing().pack
    for process in ("1-alive", "2-dead"):
        ports.held_by(process)
        both = [OutgoingPack(pack=pack, delay_s=50, taken=taken) for taken in (True, False)]
        await ports.queue.send(both, express=False)
    assert ports.take_back("2-dead") == 1
    (first,) = messages.take(QueueName.CRAWL, 10, HOLD_S)
    assert first.receives == 1
    messages.delete([first.handle])
    clock.at_ms += 50_000
    assert [one.receives for one in messages.take(QueueName.CRAWL, 10, HOLD_S)] == [1, 1, 1]
    assert ports.take_back("1-alive") == 0


async def test_release_makes_only_own_taken_pack_due(ports: StorePorts, clock: ManualClock) -> None:
    """Another process's pack, and messages without a taker, keep their delays."""
    ports.held_by("one")
    outgoing = [replace(samples.outgoing(place, delay_s=60), taken=place < 3) for place in range(4)]
    await ports.queue.send(outgoing[:2], express=False)
    ports.held_by("two")
    await ports.queue.send(outgoing[2:], express=False)
    found = [await ports.queue.release(one.pack, 5, express=False) for one in outgoing]
    assert found == [False, False, True, False]
    clock.at_ms += 5_000
    inbox = ports.inbox(QueueName.CRAWL)
    (due,) = await inbox.receive(10, HOLD_S)
    assert due.body == encode(outgoing[2].pack)
    assert inbox.depth() == QueueDepth(in_flight=1, delayed=1, copies=2)
