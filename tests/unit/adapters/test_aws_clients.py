"""The clients of one container: opened once, and followed from their first request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbweaver.adapters.aws.clients import Aws

if TYPE_CHECKING:
    import pytest


class Noting:
    """What follows clients, and notes which."""

    def __init__(self) -> None:
        self.followed: list[Any] = []

    def watch(self, client: Any) -> None:
        """See `Watcher`."""
        self.followed.append(client)


async def test_every_client_is_followed_by_all_that_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is opened once, and each watcher is told of it before it is handed out."""
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    first, second = Noting(), Noting()
    async with Aws(None, first, second) as aws:
        client = await aws.client("sqs")
        assert await aws.client("sqs") is client
        assert first.followed == second.followed == [client]
