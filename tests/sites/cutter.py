"""TCP proxy on loopback that counts bytes and cuts connections on demand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HOST = "127.0.0.1"
PIECE_BYTES = 16 * 1024


@dataclass(slots=True)
class Cutter:
    """A cutting proxy; `sent` counts the clients' bytes per connection.

    `limits` cut the next connections after this many bytes from the client, one limit each.
    """

    port: int = 0
    limits: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.sent)


@asynccontextmanager
async def cutting(target: int) -> AsyncIterator[Cutter]:
    cutter = Cutter()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_carry(cutter, target, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, HOST, 0)
    cutter.port = server.sockets[0].getsockname()[1]
    try:
        yield cutter
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _carry(
    cutter: Cutter, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    place = len(cutter.sent)
    cutter.sent.append(0)
    limit = cutter.limits.pop(0) if cutter.limits else None
    there, onward = await asyncio.open_connection(HOST, target)
    back = asyncio.create_task(_back(there, writer))
    try:
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(PIECE_BYTES):
                left = None if limit is None else limit - cutter.sent[place]
                piece = piece[:left]
                cutter.sent[place] += len(piece)
                onward.write(piece)
                await onward.drain()
                if limit is not None and cutter.sent[place] >= limit:
                    # Both ends see a broken connection at once.
                    break
    finally:
        back.cancel()
        for end in (writer, onward):
            end.transport.abort()


async def _back(there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await there.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.close()
