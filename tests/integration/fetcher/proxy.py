"""A forward proxy on loopback: plain requests, tunnels, and its failures."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import ssl
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from urllib.parse import urlsplit


class Way(Enum):
    """Behaviour of a proxy."""

    FORWARD = "forward"
    AUTHENTICATE = "authenticate"  # Other users get a 407.
    BAD_GATEWAY = "bad gateway"
    FORBID = "forbid"
    HANG = "hang"
    CLOSE = "close"


STATUS = {
    Way.AUTHENTICATE: b"407 Proxy Authentication Required",
    Way.BAD_GATEWAY: b"502 Bad Gateway",
    Way.FORBID: b"403 Forbidden",
}


@dataclasses.dataclass(slots=True)
class ForwardProxy:
    """A forward proxy; `heads` are its requests, `book` resolves names."""

    way: Way = Way.FORWARD
    authorization: str | None = None
    book: Mapping[str, str] = dataclasses.field(default_factory=dict)
    port: int = 0
    scheme: str = "http"
    heads: list[str] = dataclasses.field(default_factory=list)
    tasks: set[asyncio.Task[None]] = dataclasses.field(default_factory=set)

    def url(self, credentials: str = "") -> str:
        return f"{self.scheme}://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            while await self._serve(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # A side left, or the test ended.
        finally:
            self.tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heads.append(head)
        way = self.way
        if way is Way.AUTHENTICATE and f"Proxy-Authorization: {self.authorization}\r\n" in head:
            way = Way.FORWARD
        if way is Way.CLOSE:
            return False
        if way is Way.HANG:
            await reader.read(1)
            return False
        if way is not Way.FORWARD:
            writer.write(b"HTTP/1.1 " + STATUS[way] + b"\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return True
        method, target, _ = head.split(" ", 2)
        if method == "CONNECT":
            await self._tunnel(target, reader, writer)
            return False
        await self._forward(target, head, writer)
        return True

    async def _tunnel(
        self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        host, _, port = target.rpartition(":")
        theirs, ours = await asyncio.open_connection(self.book.get(host, host), int(port))
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await asyncio.gather(pump(reader, ours), pump(theirs, writer))
        finally:
            ours.transport.abort()

    async def _forward(self, target: str, head: str, writer: asyncio.StreamWriter) -> None:
        url = urlsplit(target)
        host = url.hostname or ""
        theirs, ours = await asyncio.open_connection(self.book.get(host, host), url.port)
        lines = [line for line in head.split("\r\n")[1:] if not line.startswith("Proxy-")]
        path = target.split("/", 3)[3]
        ours.write("\r\n".join([f"GET /{path} HTTP/1.1", "Connection: close", *lines]).encode())
        await ours.drain()
        while chunk := await theirs.read(65_536):
            writer.write(chunk)
            await writer.drain()
        ours.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(65_536):
            writer.write(chunk)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def proxying(
    proxy: ForwardProxy | None = None, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ForwardProxy]:
    running = proxy or ForwardProxy()
    server = await asyncio.start_server(
        running.meet, "127.0.0.1", 0, ssl=tls, ssl_handshake_timeout=1 if tls else None
    )
    running.port = server.sockets[0].getsockname()[1]
    running.scheme = "https" if tls else "http"
    try:
        yield running
    finally:
        server.close()
        for task in running.tasks:
            task.cancel()
        await asyncio.gather(*running.tasks, return_exceptions=True)
