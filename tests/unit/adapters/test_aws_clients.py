"""The clients of one container: opened once, and followed from their first request."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from tests.memory import ManualClock

if TYPE_CHECKING:
    import pytest


class Noting:
    """What follows clients, and notes which."""

    def __init__(self) -> None:
        self.followed: list[Any] = []

    def watch(self, client: Any) -> None:
        """See `Watcher`."""
        self.followed.append(client)


class Longest(Random):
    """Chance that draws as much as it may."""

    def random(self) -> float:
        return 1.0


async def test_every_client_is_followed_by_all_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is opened once, and each watcher is told of it before it is handed out."""
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    first, second = Noting(), Noting()
    async with Aws(None, first, second) as aws:
        client = await aws.client("sqs")
        assert await aws.client("sqs") is client
        assert first.followed == second.followed == [client]
        files = await aws.client("s3")
        waits_s = [one.meta.config.read_timeout for one in (client, files)]
        assert waits_s == [clients.READ_S, clients.READ_FILE_S]


async def test_pauses_double_up_to_a_ceiling() -> None:
    """However often something was tried, the next try is a second away at most."""
    clock, ends_ms = ManualClock(0), [0]
    for attempt in range(1, 9):
        await clients.pause(clock, Longest(), attempt)
        ends_ms.append(clock.at_ms)
    assert [end - begin for begin, end in pairwise(ends_ms)] == [
        *(25, 50, 100, 200, 400, 800),
        *(1_000, 1_000),
    ]
