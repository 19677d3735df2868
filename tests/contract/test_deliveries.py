"""Contract of the delivery queue: orders are sent, deferred or dead-lettered with a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.aws.sqs import SqsDeliveries
from tests.contract.worlds import AWS_WORLDS, AwsWorld

if TYPE_CHECKING:
    from tests.contract.worlds import Opener

BODY = '{"day": "2026-11-21"}'


@pytest.mark.parametrize("name", AWS_WORLDS)
async def test_orders_are_sent_deferred_and_dead_lettered(opener: Opener, name: str) -> None:
    async with opener(name) as world:
        assert isinstance(world, AwsWorld)
        deliveries = SqsDeliveries(
            world.aws, queue_url=world.urls["crawl"], dead_letter_url=world.urls["dead"]
        )
        await deliveries.send(BODY)
        url = world.urls["crawl"]
        answer = await world.clients["sqs"].receive_message(QueueUrl=url, VisibilityTimeout=0)
        (message,) = answer["Messages"]
        answer = await world.clients["sqs"].receive_message(QueueUrl=url)
        (message,) = answer["Messages"]
        assert message["Body"] == BODY
        await deliveries.postpone(message["ReceiptHandle"], 0)
        answer = await world.clients["sqs"].receive_message(QueueUrl=url)
        (message,) = answer["Messages"]
        await deliveries.postpone(message["ReceiptHandle"], 3_600)
        assert await world.receive("crawl") == []
        await deliveries.dead_letter(BODY, "no\x00 answer" + "!" * 500)
        (dead,) = await world.receive("dead")
        assert dead.body == BODY
        assert dead.reason is not None
        assert dead.reason.startswith("no\ufffd answer!!!")
        assert len(dead.reason) == 256
