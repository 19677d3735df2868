"""Connections that count what comes in: an answer has limits beside those of its body.

The parser is fast, but what it makes of bytes is not: an interim answer of 16 bytes, or a chunk of
one byte, costs as much as a page's whole head does. A server that sends nothing else kept a worker
busy for as long as a request may take. So all bytes count, before the parser sees them. Rules:

- Until the head of the answer is there: at most `HEAD_BYTES_MAX`, be they interim answers (1xx, of
  which there may be `INTERIM_MAX`), blank lines or headers.
- From then on, what is no body (sizes of chunks, their extensions and ends, trailers) may be
  `FRAMING_BYTES_MAX`, and an eighth of the body besides.
- Bytes that belong to no request are surplus. They end the connection, unread, and put the answer
  that was last taken on it in doubt (`adapters/web/pool.py`).
- The parser gets slices, so that no limit is found out about long after it; and a head by itself
  (`http_framing`), so that what comes behind an answer ends the connection and not the answer.
- A connection that is reset, or ends without TLS's word for it (`close_notify`), may have been cut:
  it is `ragged`, and a body that ends with it is not known to be whole (RFC 9112 section 8).
- What was beside the body counts as received where it is more than heads usually are.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.helpers import _EXC_SENTINEL as _NO_CAUSE
from aiohttp.http import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from orbweaver.adapters.web.framing import HeadFraming

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import StreamReader
    from aiohttp.http import RawResponseMessage

HEAD_BYTES_MAX = 256 * 1024
# Of one header, or the first line: policies and cookies of large sites have up to 20 KB.
LINE_BYTES_MAX = 32 * 1024
INTERIM_MAX = 1_000
FRAMING_BYTES_MAX = 128 * 1024
FRAMING_SHARE = 8
HEAD_SLICE, BODY_SLICE = 16 * 1024, 64 * 1024
# Of what is beside a body so much is a head's, which is no part of what was received.
USUAL_BYTES = 64 * 1024
FINAL_MIN = 200


class HeadFloodError(HttpProcessingError):
    """An answer whose head does not come to an end."""


class FramingFloodError(HttpProcessingError):
    """An answer that is hardly anything but framing."""


class CountingHandler(ResponseHandler):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.requests = 0
        self.surplus = False
        # Whether slots pace the host, so that there is time to wait for surplus bytes.
        self.paced = True
        self.on_surplus: Callable[[], None] | None = None
        self._reset()

    def begin(self) -> None:
        """Count anew: a request is about to be sent."""
        self.requests += 1
        self._reset()

    def _reset(self) -> None:
        # Whether the answer is the request's own; the pool resolves it.
        self.certain: asyncio.Future[bool] = self._loop.create_future()
        self._begun_s = self._loop.time()
        self.latency_s = 0.0
        self._wire = 0
        self._interim = 0
        self._headed = False
        self._head_bytes = 0
        self._body: StreamReader | None = None
        self._more = False
        self._framing = HeadFraming()
        self.ragged = False

    @property
    def beside(self) -> int:
        """How many bytes came in beside the body, where those are more than usual."""
        body = self._body.total_bytes if self._body is not None else 0
        return max(0, self._wire - body - USUAL_BYTES)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a head that was parsed, and what its body will come in by."""
        message, payload = data
        if self._headed:
            self._more = True
            self.doubt()
            return
        if message.code < FINAL_MIN:
            self._interim += 1
        if self._interim > INTERIM_MAX:
            return
        if message.code >= FINAL_MIN:
            self._headed = True
            self.latency_s = self._loop.time() - self._begun_s
            self._body = None if payload is EMPTY_PAYLOAD else payload
        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Have bytes parsed as far as they are within the limits."""
        if isinstance(self._exception, HttpProcessingError):
            self.doubt()
            return  # asked again, a parser that has failed says less than it did at first
        if not data or self.upgraded or self._parser is None:
            super().data_received(data)
            self._over()
            self._look_behind()
            return
        start = 0
        while start < len(data):
            if self.answered:
                self.doubt()
                return
            step = BODY_SLICE if self._headed else HEAD_SLICE
            piece = data[start : start + step] if start or len(data) > step else data
            start += len(piece)
            if not self._take(piece):
                return

    def _take(self, piece: bytes) -> bool:
        """Have a slice parsed, a head by itself; whether more may follow."""
        while piece:
            if self.answered:
                self.doubt()
                return False
            if self._headed:
                parsed, piece, size = piece, b"", len(piece)
            else:
                size = len(piece)
                parsed, piece = self._framing.feed(piece)
                size -= len(piece)
                self._head_bytes += size
            self._wire += size
            if parsed:
                super().data_received(parsed)
            if self._headed and self._framing.doubtful:
                self._should_close = True
            self._look_behind()
            if self._exception is not None or self.transport is None or self._over():
                return False
        return True

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _NO_CAUSE) -> None:
        """Keep the cause, which tells the reason, though nothing waits for a head at the moment."""
        if isinstance(exc, HttpProcessingError) and exc_cause is not _NO_CAUSE:
            exc.__cause__ = exc_cause
        super().set_exception(exc, exc_cause)

    def eof_received(self) -> None:
        """Note whether the end of a connection over TLS was announced."""
        secured = self.transport.get_extra_info("ssl_object") if self.transport else None
        if secured is not None:
            try:
                # Everything that came in was read: there is only the end left, if it was announced.
                self.ragged = bool(secured.read(1))
            except ssl.SSLZeroReturnError:
                pass
            except ssl.SSLError:
                self.ragged = True
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Have the parser see what was held back of a head that has not come to its end."""
        self.ragged = self.ragged or exc is not None
        rest = b"" if self._headed else self._framing.rest()
        if rest and self._parser is not None and self._exception is None:
            super().data_received(rest)
        super().connection_lost(exc)
        if not self.certain.done():
            # A server that resets a connection has left something unread: perhaps the request.
            self.certain.set_result(exc is None or self.requests == 1)

    def doubt(self) -> None:
        """Note that the connection has bytes that nothing asked for, and end it."""
        self.surplus = True
        if not self.certain.done():
            self.certain.set_result(False)
        self._end()
        if self.on_surplus is not None:
            self.on_surplus()

    def _look_behind(self) -> None:
        """Doubt an answer behind which the parser holds the beginning of another one."""
        if not self.answered or self.surplus or self._parser is None:
            return
        failed = isinstance(self._exception, HttpProcessingError)
        if failed or self._parser.feed_eof() is not None:
            self.doubt()

    @property
    def answered(self) -> bool:
        """Whether all of the answer is there."""
        return self._headed and (self._body is None or self._body.is_eof())

    def _over(self) -> bool:
        """End the connection where a limit is passed; whether it is ended."""
        error: HttpProcessingError | None = None
        if not self._headed:
            if self._interim > INTERIM_MAX:
                error = HeadFloodError(message=f"more than {INTERIM_MAX} interim answers")
            elif self._head_bytes > HEAD_BYTES_MAX:
                error = HeadFloodError(message=f"no end of the head in {self._head_bytes:,} bytes")
        elif self._body is not None and not (self._body.is_eof() or self._reading_paused):
            # While there is no reader, what is not parsed yet is not known to be framing.
            body = self._body.total_bytes
            framing = self._wire - self._head_bytes - body
            if framing > FRAMING_BYTES_MAX + body // FRAMING_SHARE:
                error = FramingFloodError(
                    message=f"{framing:,} bytes of framing for {body:,} of the body"
                )
        if error is not None:
            self._end()
            self.set_exception(error)
            if self._body is not None:
                self._body.set_exception(aiohttp.ClientPayloadError(error.message), error)
        elif self._more:
            self._end()
        return error is not None or self._more

    def _end(self) -> None:
        self._should_close = True
        if self.transport is not None:
            self.transport.close()
