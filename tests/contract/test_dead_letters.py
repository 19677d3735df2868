"""The dead-letter queue: looked at without loss, put back, deleted, sent on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.frontier.messages import MessageSource
from orbweaver.model.errors import Transient
from tests.contract.faults import Faulty

if TYPE_CHECKING:
    from orbweaver.frontier.dead_letters import DeadLetter
    from orbweaver.frontier.queues import DeadLetters
    from tests.contract.faults import Answer, Call
    from tests.contract.worlds import AwsWorld, World

HOLD_S = 300


async def all_of(dead_letters: DeadLetters, count_max: int = 40) -> list[DeadLetter]:
    """Take until there are no more."""
    taken: list[DeadLetter] = []
    while some := await dead_letters.take(count_max, HOLD_S):
        assert len(some) <= count_max
        taken += some
    return taken


async def test_no_letters(world: World) -> None:
    """An empty queue has none, and nothing is put back, deleted or sent."""
    dead_letters = world.container().dead_letters
    assert await dead_letters.take(40, HOLD_S) == ()
    await dead_letters.put_back([])
    await dead_letters.delete([])
    await dead_letters.resend([])
    assert await world.receive("crawl") == []


async def test_a_letter_is_told_whole(world: World) -> None:
    """Body and reason are as they were buried; a look counts as a receive."""
    container = world.container()
    await container.queue.bury("{ü", "body is neither a URL nor valid JSON")
    (letter,) = await container.dead_letters.take(10, HOLD_S)
    assert (letter.body, letter.reason) == ("{ü", "body is neither a URL nor valid JSON")
    assert letter.receives == 1
    assert letter.id
    assert letter.sent_at_ms >= 0


async def test_what_is_held_is_hidden_until_it_is_put_back(world: World) -> None:
    """Nobody else sees a letter that somebody holds; put back, it is the same letter."""
    holder, other = world.container(), world.container()
    await holder.queue.bury("x", "why")
    (letter,) = await holder.dead_letters.take(10, HOLD_S)
    assert await other.dead_letters.take(10, HOLD_S) == ()
    await holder.dead_letters.put_back([letter])
    (again,) = await other.dead_letters.take(10, HOLD_S)
    assert (again.id, again.body, again.reason) == (letter.id, letter.body, letter.reason)
    assert again.receives == 2


async def test_a_hold_ends_by_itself(world: World) -> None:
    """A letter whose holder is gone is seen again."""
    container = world.container()
    await container.queue.bury("x", "why")
    (letter,) = await container.dead_letters.take(10, 0)
    (again,) = await container.dead_letters.take(10, HOLD_S)
    assert again.id == letter.id


async def test_all_are_found_though_they_come_in_parts(world: World) -> None:
    """Any number of letters is taken, each once, never more at once than asked for."""
    container = world.container()
    bodies = [f"{{{number}" for number in range(57)]
    await asyncio.gather(*(container.queue.bury(body, "why") for body in bodies))
    taken = await all_of(container.dead_letters, 25)
    assert sorted(letter.body for letter in taken) == sorted(bodies)
    assert len({letter.id for letter in taken}) == 57
    await container.dead_letters.put_back(taken)
    assert len(await all_of(container.dead_letters)) == 57


async def test_only_what_is_deleted_is_gone(world: World) -> None:
    """Deleting some leaves the others; deleting or putting back what is gone does no harm."""
    container = world.container()
    for number in range(13):
        await container.queue.bury(f"{{{number}", "why")
    taken = await all_of(container.dead_letters)
    gone = [letter for letter in taken if letter.body != "{7"]
    await container.dead_letters.delete(gone)
    await container.dead_letters.put_back(taken)
    assert [received.body for received in await world.receive("dead")] == ["{7"]


async def test_a_body_is_sent_back_as_it_is(world: World) -> None:
    """What is no message can be sent all the same, untouched and without its reason."""
    await world.container().dead_letters.resend(["{ü", "x" * 10])
    received = await world.receive("crawl")
    assert sorted(message.body for message in received) == ["x" * 10, "{ü"]
    assert {message.reason for message in received} == {None}


async def test_bodies_go_back_to_the_queue_that_they_belong_to(world: World) -> None:
    """What came from the seed queue is not sent to where packs are taken."""
    await world.container().dead_letters.resend(["{ü"], MessageSource.SEEDS)
    assert [message.body for message in await world.receive("seeds")] == ["{ü"]
    assert await world.receive("crawl") == []


@pytest.mark.parametrize("source", MessageSource)
async def test_a_letter_says_where_it_came_from(world: World, source: MessageSource) -> None:
    """Whether it may be read as a pack is known for as long as it lies there."""
    container = world.container()
    await container.queue.bury("x", "why", source)
    (letter,) = await container.dead_letters.take(10, HOLD_S)
    assert letter.source is source


@pytest.mark.parametrize(
    ("told", "source"),
    [
        ({}, MessageSource.SEEDS),
        ({"reason": "failed 4 times"}, MessageSource.SEEDS),
        ({"reason": "failed 4 times", "source": "seeds"}, MessageSource.SEEDS),
        ({"reason": "failed 4 times", "source": "anything"}, MessageSource.SEEDS),
        ({"source": "packs"}, MessageSource.PACKS),
    ],
    ids=["nothing", "a reason alone", "seeds", "unknown", "packs"],
)
async def test_a_letter_that_says_nothing_is_no_pack(
    aws_world: AwsWorld, told: dict[str, str], source: MessageSource
) -> None:
    """A body that left no room to say where it came from is read as seeds."""
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in told.items()}
    await aws_world.clients["sqs"].send_message(
        QueueUrl=aws_world.urls["dead"], MessageBody="x", MessageAttributes=attributes
    )
    (letter,) = await aws_world.container().dead_letters.take(10, HOLD_S)
    assert letter.source is source


@pytest.mark.parametrize(
    ("lane", "source"), [("seeds", MessageSource.SEEDS), ("crawl", MessageSource.PACKS)]
)
async def test_what_sqs_moved_is_read_by_where_sqs_says_it_lay(
    moto_world: AwsWorld, lane: str, source: MessageSource
) -> None:
    """Attributes that the sender of a message made up do not count (nor does its reason)."""
    name = f"{moto_world.name}-{lane}"

    async def moved(method: Call, parameters: Answer) -> Answer:
        answer = await method(**parameters)
        for message in answer.get("Messages", ()):
            message["Attributes"]["DeadLetterQueueSourceArn"] = f"arn:aws:sqs:r:a:{name}"
        return answer

    lies = {"reason": "failed 4 times", "source": "packs" if lane == "seeds" else "seeds"}
    await moto_world.clients["sqs"].send_message(
        QueueUrl=moto_world.urls["dead"],
        MessageBody="x",
        MessageAttributes={
            key: {"DataType": "String", "StringValue": text} for key, text in lies.items()
        },
    )
    faulty: Any = Faulty(moto_world.clients["sqs"], receive_message=moved)
    container = moto_world.container(sqs=faulty)
    (letter,) = await container.dead_letters.take(10, HOLD_S)
    assert (letter.source, letter.reason) == (source, None)


async def test_what_sqs_moved_has_no_reason(aws_world: AwsWorld) -> None:
    """A message that was received too often is a letter without a reason, its body untouched."""
    sqs = aws_world.clients["sqs"]
    crawl, dead = aws_world.urls["crawl"], aws_world.urls["dead"]
    found = await sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
    policy = {"deadLetterTargetArn": found["Attributes"]["QueueArn"], "maxReceiveCount": 1}
    await sqs.set_queue_attributes(
        QueueUrl=crawl, Attributes={"RedrivePolicy": json.dumps(policy), "VisibilityTimeout": "0"}
    )
    await sqs.send_message(QueueUrl=crawl, MessageBody="https://example.com/")
    for _ in range(2):
        await sqs.receive_message(QueueUrl=crawl)
    (letter,) = await aws_world.container().dead_letters.take(10, HOLD_S)
    assert (letter.body, letter.reason) == ("https://example.com/", None)
    assert letter.sent_at_ms > 0


async def test_an_empty_answer_is_not_the_end(moto_world: AwsWorld) -> None:
    """A standard queue may answer with nothing though there is something."""
    empty = 2

    async def sometimes(method: Call, parameters: Answer) -> Answer:
        nonlocal empty
        empty -= 1
        return {} if empty >= 0 else await method(**parameters)

    faulty: Any = Faulty(moto_world.clients["sqs"], receive_message=sometimes)
    container = moto_world.container(sqs=faulty)
    await container.queue.bury("x", "why")
    assert len(await container.dead_letters.take(10, HOLD_S)) == 1
    assert faulty.calls["receive_message"] == 3


async def test_a_partly_failed_delete_is_told(moto_world: AwsWorld) -> None:
    """Answered 200 with failures, deleting is not done; putting back needs no second try."""

    async def failed(_method: Call, parameters: Answer) -> Answer:
        return {"Failed": [{"Id": entry["Id"], "Code": "x"} for entry in parameters["Entries"]]}

    faults = {"delete_message_batch": failed, "change_message_visibility_batch": failed}
    faulty: Any = Faulty(moto_world.clients["sqs"], **faults)
    container = moto_world.container(sqs=faulty)
    await container.queue.bury("x", "why")
    taken = await container.dead_letters.take(10, HOLD_S)
    await container.dead_letters.put_back(taken)
    with pytest.raises(Transient, match="1 messages were not deleted"):
        await container.dead_letters.delete(taken)
