"""Endless data outside of bodies: all received bytes count, and cost little.

The servers would send forever. The tests limit the bytes and the CPU time of this process, which
includes the servers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import tracemalloc
from collections.abc import AsyncIterator

import pytest

from orbweaver.adapters.web.wire import FRAMING_BYTES_MAX, HEAD_BYTES_MAX, INTERIM_MAX
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.integration.fetcher.origin import answer, chunked, fetching, request, serving

MIB = 1024 * 1024
CPU_S_MAX = 1.0
CHUNKED = chunked(lines=["Content-Type: text/html"])
HEAD, FRAMING = Reason.HEADERS_TOO_LARGE, Reason.PROTOCOL
FLOODS = {
    "interim answers": (b"", b"HTTP/1.1 100 \r\n\r\n", HEAD),
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", HEAD),
    "switching protocols": (b"", b"HTTP/1.1 102 \r\nUpgrade: x\r\n\r\n", HEAD),
    "blank lines": (b"", b"\r\n", HEAD),
    "line feeds": (b"", b"\n", HEAD),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", HEAD),
    "a header": (b"HTTP/1.1 200 OK\r\na: ", b"b" * 100, HEAD),
    "a folded header": (b"HTTP/1.1 200 OK\r\na: b\r\n", b" c\r\n", None),
    "a reason": (b"HTTP/1.1 200 ", b"OK", HEAD),
    "an extension": (CHUNKED + b"5;", b"e" * 100, FRAMING),
    "extensions": (CHUNKED, b"1;" + b"e" * 200 + b"\r\nx\r\n", FRAMING),
    "zeros": (CHUNKED, b"0" * 100, FRAMING),
    "sizes with zeros": (CHUNKED, b"0" * 14 + b"1\r\nx\r\n", FRAMING),
    "chunks of a byte": (CHUNKED, b"1\r\nx\r\n", FRAMING),
    "trailers": (CHUNKED + b"1\r\nx\r\n0\r\n", b"a: b\r\n", HEAD),
    "a trailer": (CHUNKED + b"1\r\nx\r\n0\r\na: ", b"b" * 100, None),
}


class Flood:
    """A server that sends a head, then the same unit endlessly."""

    def __init__(self, head: bytes, unit: bytes) -> None:
        self._head = head
        self._unit = unit * (65_536 // len(unit) + 1)
        self.sent = 0
        self.url = ""

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._head)
            while True:
                writer.write(self._unit)
                await writer.drain()
                self.sent += len(self._unit)
        writer.close()


@contextlib.asynccontextmanager
async def flooding(head: bytes, unit: bytes) -> AsyncIterator[Flood]:
    flood = Flood(head, unit)
    server = await asyncio.start_server(flood.meet, "127.0.0.1", 0)
    flood.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield flood
    finally:
        server.close()


@pytest.mark.parametrize("name", FLOODS)
async def test_flood_ends_with_reason(name: str) -> None:
    head, unit, reason = FLOODS[name]
    async with flooding(head, unit) as flood, fetching() as fetcher:
        tracemalloc.start()
        began_s = time.process_time()
        try:
            result = await fetcher.fetch(request(flood.url, body_bytes_max=5 * MIB, total_s=30))
            took_s = time.process_time() - began_s
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(result, Failure), result
    assert result.reason in ({reason} if reason else {HEAD, FRAMING})
    assert result.received <= HEAD_BYTES_MAX + FRAMING_BYTES_MAX
    # The server sends as much ahead as sockets and buffers hold, some MiB.
    assert flood.sent < 16 * MIB
    assert took_s < CPU_S_MAX
    assert peak < 32 * MIB


async def test_framing_bytes_count_as_received() -> None:
    async with flooding(CHUNKED, b"1;" + b"e" * 200 + b"\r\nx\r\n") as flood, fetching() as fetcher:
        result = await fetcher.fetch(request(flood.url))
    assert isinstance(result, Failure)
    assert result.received > FRAMING_BYTES_MAX // 2
    page = answer(b"x" * 1_000, "X-Long: " + "y" * 8_000)
    async with serving([page]) as origin, fetching() as fetcher:
        fetched = await fetcher.fetch(request(origin.url()))
    assert isinstance(fetched, Response)
    assert fetched.received == 1_000


@pytest.mark.parametrize("size", [8, 40, 1_000])
async def test_page_in_small_chunks_is_no_flood(size: int) -> None:
    piece = b"p" * size
    steps = (CHUNKED, (b"%x\r\n%s\r\n" % (size, piece)) * (100_000 // size), b"0\r\n\r\n")
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url()))
    assert isinstance(result, Response), result
    assert result.body == piece * (100_000 // size)


async def test_large_body_in_usual_chunks_is_no_flood() -> None:
    """Framing may be an eighth of a body; usual chunks need a hundredth."""
    steps = (CHUNKED, (b"1000\r\n%s\r\n" % (b"x" * 4_096)) * 1_000, b"0\r\n\r\n")
    async with serving(steps) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url(), body_bytes_max=5 * MIB))
    assert isinstance(result, Response), result
    assert len(result.body or b"") == 4_096_000


async def test_interim_answers_at_limit_are_accepted() -> None:
    interim = b"HTTP/1.1 103 Hint\r\n\r\n"
    for number, kind in ((INTERIM_MAX, Response), (INTERIM_MAX + 1, Failure)):
        async with serving([interim * number + answer(b"x")]) as origin, fetching() as fetcher:
            assert isinstance(await fetcher.fetch(request(origin.url())), kind)


async def test_unsolicited_answers_end_connection() -> None:
    page = answer(b"x", "Content-Type: text/html")
    async with flooding(page, answer(b"unasked")) as flood, fetching() as fetcher:
        for _ in range(2):
            result = await fetcher.fetch(request(flood.url))
            assert isinstance(result, Response)
            assert result.body == b"x"
    assert flood.sent < 32 * MIB
