"""AWS clients of a container: each is opened once and observed from its first request."""

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
    """A watcher that records its clients."""

    def __init__(self) -> None:
        self.followed: list[Any] = []

    def watch(self, client: Any) -> None:
        self.followed.append(client)


class Longest(Random):
    """A random source that always returns the maximum."""

    def random(self) -> float:
        return 1.0


async def test_client_is_opened_once_and_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    first, second = Noting(), Noting()
    async with Aws(None, first, second) as aws:
        client = await aws.client("sqs")
        assert await aws.client("sqs") is client
        assert first.followed == second.followed == [client]
        files = await aws.client("s3")
        waits_s = [one.meta.config.read_timeout for one in (client, files)]
        assert waits_s == [clients.READ_S, clients.READ_FILE_S]


async def test_pauses_double_up_to_one_second() -> None:
    clock, ends_ms = ManualClock(0), [0]
    for attempt in range(1, 9):
        await clients.pause(clock, Longest(), attempt)
        ends_ms.append(clock.at_ms)
    assert [end - begin for begin, end in pairwise(ends_ms)] == [
        *(25, 50, 100, 200, 400, 800),
        *(1_000, 1_000),
    ]
