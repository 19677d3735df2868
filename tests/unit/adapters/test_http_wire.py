"""A single HTTP connection: no more data is read after a limit is exceeded."""

from __future__ import annotations

import asyncio

import pytest

from orbweaver.adapters.web.wire import FRAMING_BYTES_MAX, INTERIM_MAX, CountingHandler

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAME = b"1;" + b"e" * 1_000 + b"\r\nx\r\n"


class Line(asyncio.Transport):
    """A fake connection that is open until it is closed."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@pytest.mark.parametrize(
    "flood",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * (INTERIM_MAX + 1),
        CHUNKED + FRAME * (1 + FRAMING_BYTES_MAX // 1_000),
    ],
)
async def test_flood_closes_connection_at_once(flood: bytes) -> None:
    """The reader of the body checks its limit later. Until then the server would keep sending."""
    handler, line = CountingHandler(asyncio.get_running_loop()), Line()
    handler.connection_made(line)
    handler.set_response_params(read_until_eof=True)
    handler.data_received(flood)
    assert line.closed
