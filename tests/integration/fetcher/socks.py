"""A SOCKS5 proxy on loopback, with user and password, and its failures."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_address

from tests.integration.fetcher.proxy import pump


@dataclasses.dataclass(slots=True)
class SocksProxy:
    """`asked` are the requested hosts and ports, `book` resolves names, `reply` is its reply."""

    book: Mapping[str, str] = dataclasses.field(default_factory=dict)
    user: tuple[bytes, bytes] | None = None
    reply: int = 0
    refused: tuple[str, ...] = ()
    greeting: bytes = b"\5"
    port: int = 0
    asked: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    connections: int = 0

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = await reader.readexactly((await reader.readexactly(2))[1])
        method = 0 if self.user is None else 2
        writer.write(self.greeting + bytes([method if method in methods else 255]))
        if self.user is not None and method in methods:
            await reader.readexactly(1)
            given = [await reader.readexactly((await reader.readexactly(1))[0]) for _ in range(2)]
            writer.write(b"\1" + bytes([tuple(given) != self.user]))
        kind = (await reader.readexactly(4))[3]
        size = (await reader.readexactly(1))[0] if kind == 3 else 4 if kind == 1 else 16
        raw = await reader.readexactly(size)
        host = raw.decode() if kind == 3 else str(ip_address(raw))
        port = int.from_bytes(await reader.readexactly(2), "big")
        self.asked.append((host, port))
        # A bound name, whose length the client must read.
        reply = 5 if host in self.refused else self.reply
        writer.write(bytes([5, reply, 0, 3, 4]) + b"here" + bytes(2))
        if reply:
            return
        theirs, ours = await asyncio.open_connection(self.book.get(host, host), port)
        await asyncio.gather(pump(reader, ours), pump(theirs, writer))


@contextlib.asynccontextmanager
async def socksing(proxy: SocksProxy | None = None) -> AsyncIterator[SocksProxy]:
    running = proxy or SocksProxy()
    server = await asyncio.start_server(running.meet, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
