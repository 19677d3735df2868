"""Contract of the dead-letter queue: inspect without loss, put back, delete, redrive."""

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
    from tests.contract.worlds import AwsWorld, Container, World

HOLD_S = 300


async def all_of(dead_letters: DeadLetters, count_max: int = 40) -> list[DeadLetter]:
    taken: list[DeadLetter] = []
    while some := await dead_letters.take(count_max, HOLD_S):
        assert len(some) <= count_max
        taken += some
    return taken


async def test_empty_queue_has_no_letters(world: World) -> None:
    dead_letters = world.container().dead_letters
    assert await dead_letters.take(40, HOLD_S) == ()
    await dead_letters.put_back([])
    await dead_letters.delete([])
    await dead_letters.resend([])
    assert await world.receive("crawl") == []


async def test_letter_is_read_with_body_and_reason(container: Container) -> None:
    await container.queue.dead_letter("{ü", "body is neither a URL nor valid JSON")
    (letter,) = await container.dead_letters.take(10, HOLD_S)
    assert (letter.body, letter.reason) == ("{ü", "body is neither a URL nor valid JSON")
    assert letter.receives == 1
    assert letter.id
    assert letter.sent_at_ms >= 0


async def test_held_letter_is_hidden_until_put_back(world: World) -> None:
    holder, other = world.container(), world.container()
    await holder.queue.dead_letter("x", "why")
    (letter,) = await holder.dead_letters.take(10, HOLD_S)
    assert await other.dead_letters.take(10, HOLD_S) == ()
    await holder.dead_letters.put_back([letter])
    (again,) = await other.dead_letters.take(10, HOLD_S)
    assert (again.id, again.body, again.reason) == (letter.id, letter.body, letter.reason)
    assert again.receives == 2


async def test_hold_expires(container: Container) -> None:
    await container.queue.dead_letter("x", "why")
    (letter,) = await container.dead_letters.take(10, 0)
    (again,) = await container.dead_letters.take(10, HOLD_S)
    assert again.id == letter.id


async def test_take_returns_every_letter_once(container: Container) -> None:
    bodies = [f"{{{number}" for number in range(57)]
    await asyncio.gather(*(container.queue.dead_letter(body, "why") for body in bodies))
    taken = await all_of(container.dead_letters, 25)
    assert sorted(letter.body for letter in taken) == sorted(bodies)
    assert len({letter.id for letter in taken}) == 57
    await container.dead_letters.put_back(taken)
    assert len(await all_of(container.dead_letters)) == 57


async def test_delete_removes_only_given_letters(world: World, container: Container) -> None:
    for number in range(13):
        await container.queue.dead_letter(f"{{{number}", "why")
    taken = await all_of(container.dead_letters)
    gone = [letter for letter in taken if letter.body != "{7"]
    await container.dead_letters.delete(gone)
    await container.dead_letters.put_back(taken)
    assert [received.body for received in await world.receive("dead")] == ["{7"]


async def test_redrive_sends_body_unchanged(world: World) -> None:
    await world.container().dead_letters.resend(["{ü", "x" * 10])
    received = await world.receive("crawl")
    assert sorted(message.body for message in received) == ["x" * 10, "{ü"]
    assert {message.reason for message in received} == {None}


async def test_redrive_returns_body_to_its_own_queue(world: World) -> None:
    await world.container().dead_letters.resend(["{ü"], MessageSource.SEEDS)
    assert [message.body for message in await world.receive("seeds")] == ["{ü"]
    assert await world.receive("crawl") == []


@pytest.mark.parametrize("source", MessageSource)
async def test_letter_reports_its_source_queue(container: Container, source: MessageSource) -> None:
    await container.queue.dead_letter("x", "why", source)
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
async def test_letter_without_source_is_read_as_seeds(
    aws_world: AwsWorld, told: dict[str, str], source: MessageSource
) -> None:
    attributes = {name: {"DataType": "String", "StringValue": text} for name, text in told.items()}
    await aws_world.clients["sqs"].send_message(
        QueueUrl=aws_world.urls["dead"], MessageBody="x", MessageAttributes=attributes
    )
    (letter,) = await aws_world.container().dead_letters.take(10, HOLD_S)
    assert letter.source is source


@pytest.mark.parametrize(
    ("lane", "source"), [("seeds", MessageSource.SEEDS), ("crawl", MessageSource.PACKS)]
)
async def test_source_of_letter_moved_by_sqs_is_its_sqs_attribute(
    moto_world: AwsWorld, lane: str, source: MessageSource
) -> None:
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


async def test_letter_moved_by_sqs_has_no_reason(aws_world: AwsWorld) -> None:
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


async def test_empty_receive_is_not_end_of_queue(moto_world: AwsWorld) -> None:
    """A standard queue may return nothing although it has messages."""
    empty = 2

    async def sometimes(method: Call, parameters: Answer) -> Answer:
        nonlocal empty
        empty -= 1
        return {} if empty >= 0 else await method(**parameters)

    faulty: Any = Faulty(moto_world.clients["sqs"], receive_message=sometimes)
    container = moto_world.container(sqs=faulty)
    await container.queue.dead_letter("x", "why")
    assert len(await container.dead_letters.take(10, HOLD_S)) == 1
    assert faulty.calls["receive_message"] == 3


async def test_partly_failed_delete_is_reported(moto_world: AwsWorld) -> None:
    """SQS answers 200 with failures. Putting letters back needs no retry."""

    async def failed(_method: Call, parameters: Answer) -> Answer:
        return {"Failed": [{"Id": entry["Id"], "Code": "x"} for entry in parameters["Entries"]]}

    faults = {"delete_message_batch": failed, "change_message_visibility_batch": failed}
    faulty: Any = Faulty(moto_world.clients["sqs"], **faults)
    container = moto_world.container(sqs=faulty)
    await container.queue.dead_letter("x", "why")
    taken = await container.dead_letters.take(10, HOLD_S)
    await container.dead_letters.put_back(taken)
    with pytest.raises(Transient, match="1 messages were not deleted"):
        await container.dead_letters.delete(taken)
