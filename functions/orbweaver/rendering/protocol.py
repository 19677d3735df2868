"""Speak the DevTools protocol over a browser's pipe: JSON messages, each ended by a zero byte.

An invalid or too long message ends the connection. Then all waiting calls fail, and the browser can
no longer be used. Callers set time limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable
from typing import Any, TypeAlias

# Maximum length of a message. The longest contains the HTML of a page as JSON.
MESSAGE_BYTES_MAX = 64 * 1024 * 1024

# Session (None: the browser's own), method, parameters.
_Result: TypeAlias = dict[str, Any]
EventHandler: TypeAlias = Callable[[str | None, str, dict[str, Any]], None]


class BrowserGone(Exception):
    """The connection to the browser has ended, and so has the browser."""


class CommandFailed(Exception):
    """The browser refused a command, usually because the target no longer exists."""


class Connection:
    """Sends commands to a browser, and receives results and events."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_event: EventHandler,
        on_end: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._on_end = on_end
        self._number = 0
        self._waiting: dict[int, asyncio.Future[_Result]] = {}
        self.gone = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def over(
        cls, ours: socket.socket, on_event: EventHandler, on_end: Callable[[], None]
    ) -> Connection:
        """Create a connection over a socket. The connection closes the socket."""
        reader, writer = await asyncio.open_connection(sock=ours, limit=MESSAGE_BYTES_MAX)
        return cls(reader, writer, on_event, on_end)

    async def call(
        self, method: str, session: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Send a command and return its result. Raises CommandFailed, BrowserGone.

        `session` belongs to a target. None: the browser itself.
        """
        if self.gone:
            raise BrowserGone
        number = self._send(method, session, parameters)
        reply: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()
            return await reply
        finally:
            self._waiting.pop(number, None)

    def post(self, method: str, session: str | None = None, **parameters: Any) -> None:
        if not self.gone:
            self._send(method, session, parameters)

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._end()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._writer.write(json.dumps(message).encode() + b"\0")
        return self._number

    async def _read(self) -> None:
        ends = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError)
        try:
            with contextlib.suppress(*ends, ValueError, LookupError, TypeError):
                while True:
                    self._take(json.loads((await self._reader.readuntil(b"\0"))[:-1]))
        finally:
            self._end()

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise TypeError
        number = message.get("id")
        if number is None:
            self._on_event(message.get("sessionId"), message["method"], message.get("params", {}))
            return
        reply = self._waiting.get(number)
        if reply is None or reply.done():
            return
        if "error" in message:
            reply.set_exception(CommandFailed(str(message["error"].get("message"))))
        else:
            reply.set_result(message.get("result", {}))

    def _end(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._writer.close()
        self._on_end()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(BrowserGone())
        self._waiting.clear()
