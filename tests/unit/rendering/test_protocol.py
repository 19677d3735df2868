"""Commands and events over the browser's pipe."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from orbweaver.rendering import process
from orbweaver.rendering.process import BrowserGone, CommandFailed, Connection


@dataclass
class Peer:
    """The browser's end of a connection, with the events received at our end."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connection: Connection
    events: list[tuple[str | None, str, dict[str, Any]]]
    ends: list[bool] = field(default_factory=list)

    async def asked(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads((await self.reader.readuntil(b"\0"))[:-1])
        return message

    def say(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\0")


@asynccontextmanager
async def connected() -> AsyncIterator[Peer]:
    ours, theirs = socket.socketpair()
    events: list[tuple[str | None, str, dict[str, Any]]] = []
    ends: list[bool] = []
    connection = await Connection.over(
        ours, lambda *told: events.append(told), lambda: ends.append(True)
    )
    reader, writer = await asyncio.open_connection(sock=theirs)
    try:
        yield Peer(reader, writer, connection, events, ends)
    finally:
        await connection.close()
        writer.close()
        await writer.wait_closed()
    assert ends == [True]


async def test_results_are_matched_to_commands_in_any_order() -> None:
    async with connected() as peer:
        one = asyncio.create_task(peer.connection.call("One.do", "session", value=1))
        two = asyncio.create_task(peer.connection.call("Two.do"))
        first, second = await peer.asked(), await peer.asked()
        assert (first["method"], first["sessionId"], first["params"]) == (
            "One.do",
            "session",
            {"value": 1},
        )
        assert "sessionId" not in second
        peer.say(method="Some.event", sessionId="session", params={"a": 1})
        peer.say(id=second["id"], result={"b": 2})
        peer.say(id=99, result={})
        peer.say(id=first["id"], error={"code": -1, "message": "no such thing"})
        assert await two == {"b": 2}
        with pytest.raises(CommandFailed, match="no such thing"):
            await one
        assert peer.events == [("session", "Some.event", {"a": 1})]


@pytest.mark.parametrize("said", [b"", b"no json\0", b"[1]\0", b'"x"\0', b"\xff\0", b"{}\0"])
async def test_protocol_violation_closes_connection(said: bytes) -> None:
    async with connected() as peer:
        waiting = asyncio.create_task(peer.connection.call("One.do"))
        await peer.asked()
        peer.writer.write(said)
        peer.writer.write_eof()
        with pytest.raises(BrowserGone):
            await waiting
        assert peer.connection.gone
        with pytest.raises(BrowserGone):
            await peer.connection.call("One.do")
        peer.connection.post("One.do")


async def test_message_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MESSAGE_BYTES_MAX", 10_000)
    async with connected() as peer:
        waiting = asyncio.create_task(peer.connection.call("One.do"))
        await peer.asked()
        peer.writer.write(b'{"id": 1, "result": "' + b"x" * 200_000)
        with pytest.raises(BrowserGone):
            await waiting


async def test_late_result_of_cancelled_command_is_ignored() -> None:
    async with connected() as peer:
        waiting = asyncio.create_task(peer.connection.call("One.do"))
        number = (await peer.asked())["id"]
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        peer.say(id=number, result={})
        other = asyncio.create_task(peer.connection.call("Two.do"))
        peer.say(id=(await peer.asked())["id"], result={"a": 1})
        assert await other == {"a": 1}
