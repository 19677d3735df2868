"""Connections that limit the bytes of a response other than its body, before they are parsed.

Parsing is expensive: an interim response of 16 bytes or a chunk of one byte costs as much as the
head of a page. A server that sends only these would keep a worker busy for a request's total time.
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
from orbweaver.fetching.response_verdict import SPEAKS_TLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import StreamReader
    from aiohttp.http import RawResponseMessage

HEAD_BYTES_MAX = 256 * 1024  # headers, blank lines and interim responses (1xx)
# Longest header or first line. Policies and cookies of large sites have up to 20 KB.
LINE_BYTES_MAX = 32 * 1024
INTERIM_MAX = 1_000
# Framing after the head (chunk sizes, trailers): at most this size plus an eighth of the body.
FRAMING_BYTES_MAX = 128 * 1024
FRAMING_SHARE = 8
HEAD_SLICE, BODY_SLICE = 16 * 1024, 64 * 1024
# Size of a usual head. Only bytes beyond this size count as received, in addition to the body.
USUAL_BYTES = 64 * 1024
FINAL_MIN = 200
# First byte of a TLS alert record (RFC 8446 section 5.1), which no HTTP response begins with.
TLS_ALERT = b"\x15"


class HeadFloodError(HttpProcessingError):
    """The head of the response exceeds its limits."""


class FramingFloodError(HttpProcessingError):
    """The response consists almost only of chunk sizes and other framing."""


class TlsAlertError(HttpProcessingError):
    """A server answered a plain request with a TLS alert."""

    def __init__(self) -> None:
        super().__init__(message=SPEAKS_TLS)


class CountingHandler(ResponseHandler):
    """One connection to a server. It counts received bytes, and closes if they exceed a limit."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.requests = 0
        self.surplus = False
        # Whether requests to the host have a delay, in which surplus bytes can arrive.
        self.paced = True
        self.on_surplus: Callable[[], None] | None = None
        # Address and port of the server, if the connection has no TLS.
        self._plain_peer: tuple[str, int] | None = None
        self._reset()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        if peer is not None and transport.get_extra_info("ssl_object") is None:
            self._plain_peer = peer[:2]

    def begin(self) -> None:
        """Reset the counts, because a request is about to be sent."""
        self.requests += 1
        self._reset()

    def _reset(self) -> None:
        # Its result is True if the response belongs to the request (`pool`).
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
        # The connection was reset, or ended without TLS's `close_notify`. A body that ends with it
        # may be incomplete (RFC 9112 section 8).
        self.ragged = False

    @property
    def surplus_head_bytes(self) -> int:
        """Received bytes other than the body that exceed a usual head (`USUAL_BYTES`)."""
        body = self._body.total_bytes if self._body is not None else 0
        return max(0, self._wire - body - USUAL_BYTES)

    @property
    def silent_peer(self) -> tuple[str, int] | None:
        """Address and port of the server, if a new connection without TLS received no byte."""
        return self._plain_peer if self.requests == 1 and not self._wire else None

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        message, payload = data
        if self._headed:
            self._more = True
            self.mark_surplus()
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
        if isinstance(self._exception, HttpProcessingError):
            self.mark_surplus()
            return  # a failed parser would report a less exact error
        if not data or self.upgraded or self._parser is None:
            super().data_received(data)
            self._end_if_over_limit()
            self._doubt_if_more()
            return
        start = 0
        while start < len(data):
            if self.is_complete:
                self.mark_surplus()
                return
            step = BODY_SLICE if self._headed else HEAD_SLICE
            piece = data[start : start + step] if start or len(data) > step else data
            start += len(piece)
            if not self._take(piece):
                return

    def _take(self, piece: bytes) -> bool:
        """Parse a slice of data, each head separately.

        Return True if the connection can receive more.
        """
        while piece:
            if self.is_complete:
                self.mark_surplus()
                return False
            if not self._wire and piece.startswith(TLS_ALERT) and self._plain_peer:
                self._end()
                self.set_exception(TlsAlertError())
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
            self._doubt_if_more()
            if self._exception is not None or self.transport is None or self._end_if_over_limit():
                return False
        return True

    def set_exception(self, exc: BaseException, exc_cause: BaseException = _NO_CAUSE) -> None:
        # The cause determines the reason of the failure.
        if isinstance(exc, HttpProcessingError) and exc_cause is not _NO_CAUSE:
            exc.__cause__ = exc_cause
        super().set_exception(exc, exc_cause)

    def eof_received(self) -> None:
        secured = self.transport.get_extra_info("ssl_object") if self.transport else None
        if secured is not None:
            try:
                # All data was read. Only `close_notify` can follow.
                self.ragged = bool(secured.read(1))
            except ssl.SSLZeroReturnError:
                pass
            except ssl.SSLError:
                self.ragged = True
        super().eof_received()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.ragged = self.ragged or exc is not None
        rest = b"" if self._headed else self._framing.rest()
        if rest and self._parser is not None and self._exception is None:
            super().data_received(rest)
        super().connection_lost(exc)
        if not self.certain.done():
            # A server that resets the connection may not have read the request.
            self.certain.set_result(exc is None or self.requests == 1)

    def mark_surplus(self) -> None:
        """Record that the connection has bytes that belong to no request, and close it."""
        self.surplus = True
        if not self.certain.done():
            self.certain.set_result(False)
        self._end()
        if self.on_surplus is not None:
            self.on_surplus()

    def _doubt_if_more(self) -> None:
        if not self.is_complete or self.surplus or self._parser is None:
            return
        # The parser may hold the start of another response.
        failed = isinstance(self._exception, HttpProcessingError)
        if failed or self._parser.feed_eof() is not None:
            self.mark_surplus()

    @property
    def is_complete(self) -> bool:
        return self._headed and (self._body is None or self._body.is_eof())

    def _end_if_over_limit(self) -> bool:
        """Close the connection if a limit is exceeded or a second response arrived.

        Return whether it was.
        """
        error: HttpProcessingError | None = None
        if not self._headed:
            if self._interim > INTERIM_MAX:
                error = HeadFloodError(message=f"more than {INTERIM_MAX} interim answers")
            elif self._head_bytes > HEAD_BYTES_MAX:
                error = HeadFloodError(message=f"no end of the head in {self._head_bytes:,} bytes")
        elif self._body is not None and not (self._body.is_eof() or self._reading_paused):
            # While reading is paused, unparsed bytes may be body and are not counted as framing.
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
