"""Choice of the SQS queue for a pack (message with up to 25 URLs)."""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orbweaver.adapters.aws.sqs import SqsQueue
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Pack, decode
from orbweaver.frontier.queues import Receipt
from orbweaver.model.errors import Permanent
from tests.contract import samples
from tests.memory.outside import ManualClock


class Client:
    """A fake of SQS for sending."""

    def __init__(self) -> None:
        self.sent: defaultdict[str, list[str]] = defaultdict(list)

    async def send_message_batch(self, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        for entry in Entries:
            pack = decode(entry["MessageBody"])
            assert isinstance(pack, Pack)
            self.sent[QueueUrl].append(pack.id)
        return {}


class Visibility:
    """A fake of SQS for visibility timeouts; some messages are no longer in flight."""

    def __init__(self, code: str) -> None:
        self.set: list[tuple[str, str, int]] = []
        self.code = code

    async def change_message_visibility(
        self,
        QueueUrl: str,  # noqa: N803
        ReceiptHandle: str,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
    ) -> None:
        if ReceiptHandle == "gone":
            raise ClientError({"Error": {"Code": self.code}}, "ChangeMessageVisibility")
        self.set.append((QueueUrl, ReceiptHandle, VisibilityTimeout))


def queue_of(client: Any, render_url: str = "") -> SqsQueue:
    return SqsQueue(
        client,
        clock=ManualClock(0),
        random=Random(1),
        crawl_url="https://sqs/1/crawl",
        express_url="https://sqs/1/express",
        dead_letter_url="https://sqs/1/dead",
        render_url=render_url,
    )


@pytest.mark.parametrize(
    ("code", "raised"), [("InvalidParameterValue", False), ("AccessDenied", True)]
)
async def test_retry_soon_sets_visibility_of_each_queue(code: str, *, raised: bool) -> None:
    client = Visibility(code)
    queue = queue_of(client)
    pairs = (("a", "crawl"), ("gone", "crawl"), ("b", "seeds"))
    receipts = [Receipt(handle=handle, queue=name) for handle, name in pairs]
    with pytest.raises(Permanent) if raised else nullcontext():
        await queue.retry_soon(receipts, 15)
    if not raised:
        assert client.set == [("https://sqs/1/crawl", "a", 15), ("https://sqs/1/seeds", "b", 15)]


def marked(outgoing: OutgoingPack, *, express: bool = False, render: bool = False) -> OutgoingPack:
    targets = tuple(
        replace(target, express=express, render=render) for target in outgoing.pack.targets
    )
    return replace(outgoing, pack=replace(outgoing.pack, targets=targets))


@pytest.mark.parametrize("render_url", ["https://sqs/1/render", ""])
async def test_packs_for_browser_use_render_queue_if_present(render_url: str) -> None:
    client = Client()
    queue = queue_of(client, render_url)
    plain, high, page, both = (samples.outgoing(place) for place in range(4))
    high, page = marked(high, express=True), marked(page, render=True)
    both = marked(both, express=True, render=True)
    await queue.send([plain, high, page, both], express=False)
    expected = {"crawl": [plain], "express": [high], "render": [page, both]}
    if not render_url:
        expected = {"crawl": [plain, page], "express": [high, both]}
    assert client.sent == {
        f"https://sqs/1/{name}": [outgoing.pack.id for outgoing in packs]
        for name, packs in expected.items()
    }
