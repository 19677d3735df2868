"""Contract of the export queue: all orders arrive, in any number."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.adapters.aws.sqs import SqsOrders
from orbweaver.model.errors import Transient

if TYPE_CHECKING:
    from tests.contract.worlds import AwsWorld


def orders_of(world: AwsWorld, client: Any = None) -> SqsOrders:
    return SqsOrders(
        client or world.clients["sqs"],
        clock=world.clock,
        random=Random(1),
        queue_url=world.urls["crawl"],
    )


async def test_orders_arrive_in_several_batches(aws_world: AwsWorld) -> None:
    bodies = [(f'{{"n": {number}}}', f"crawl-{number % 3}") for number in range(25)]
    await orders_of(aws_world).send(bodies)
    await orders_of(aws_world).send([])
    found = await aws_world.receive("crawl")
    assert sorted(message.body for message in found) == sorted(body for body, _ in bodies)
    assert {message.group for message in found} <= {"", "crawl-0", "crawl-1", "crawl-2"}


class Busy:
    """Client that accepts only part of each batch."""

    def __init__(self, client: Any, taken: int) -> None:
        self._client, self._taken = client, taken

    async def send_message_batch(self, **given: Any) -> dict[str, Any]:
        entries = given["Entries"]
        if self._taken:
            await self._client.send_message_batch(**{**given, "Entries": entries[: self._taken]})
        rest = entries[self._taken :]
        code = {"Code": "InternalError", "SenderFault": False}
        return {"Failed": [{"Id": entry["Id"], **code} for entry in rest]}


async def test_unsent_rest_of_batch_is_sent_again(aws_world: AwsWorld) -> None:
    client = aws_world.clients["sqs"]
    bodies = [(str(number), "crawl") for number in range(10)]
    await orders_of(aws_world, Busy(client, 3)).send(bodies)
    assert len(await aws_world.receive("crawl")) == 10
    with pytest.raises(Transient, match="10 messages were not taken"):
        await orders_of(aws_world, Busy(client, 0)).send(bodies)
