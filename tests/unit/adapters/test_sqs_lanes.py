"""Which queue a pack is sent to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from orbweaver.adapters.aws.sqs import SqsQueue
from orbweaver.frontier.journal import OutgoingPack
from orbweaver.frontier.messages import Pack, decode
from tests.contract import samples
from tests.memory.outside import ManualClock


class Client:
    """SQS, as far as sending goes."""

    def __init__(self) -> None:
        self.sent: defaultdict[str, list[str]] = defaultdict(list)

    async def send_message_batch(self, QueueUrl: str, Entries: list[Any]) -> dict[str, Any]:  # noqa: N803
        """Take all of them."""
        for entry in Entries:
            pack = decode(entry["MessageBody"])
            assert isinstance(pack, Pack)
            self.sent[QueueUrl].append(pack.id)
        return {}


def marked(outgoing: OutgoingPack, *, express: bool = False, render: bool = False) -> OutgoingPack:
    """Mark all targets of a pack."""
    targets = tuple(
        replace(target, express=express, render=render) for target in outgoing.pack.targets
    )
    return replace(outgoing, pack=replace(outgoing.pack, targets=targets))


@pytest.mark.parametrize("render_url", ["render", ""])
async def test_packs_for_workers_with_a_browser_take_their_lane(render_url: str) -> None:
    """Where there is one; what goes past others there waits with the others."""
    client = Client()
    queue = SqsQueue(
        client,
        clock=ManualClock(0),
        random=Random(1),
        crawl_url="crawl",
        express_url="express",
        dead_letter_url="dead",
        render_url=render_url,
    )
    plain, high, page, both = (samples.outgoing(place) for place in range(4))
    high, page = marked(high, express=True), marked(page, render=True)
    both = marked(both, express=True, render=True)
    await queue.send([plain, high, page, both], express=False)
    expected = {"crawl": [plain], "express": [high], "render": [page, both]}
    if not render_url:
        expected = {"crawl": [plain, page], "express": [high, both]}
    assert client.sent == {
        url: [outgoing.pack.id for outgoing in packs] for url, packs in expected.items()
    }
