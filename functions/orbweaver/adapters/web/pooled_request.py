"""Requests that know their connection: what aiohttp's pool does not look at.

aiohttp 3.14 repeats a GET by itself when a connection breaks, on a new connection as well as on a
reused one, and it hands a pooled connection out without a look at what came in on it meanwhile.
Both are put right here. Rules:

- A pooled connection that is closed, or on which anything came in since its last answer, is passed
  over before a byte is sent: what came in would be taken for the answer to another URL.
- A *reused* connection that breaks before any byte of an answer is no failure: after a freeze all
  pooled ones may be dead. The request goes out again once, and then on a new connection: a server
  that ends connections for what it is asked is asked twice, not on every connection there is.
- An answer on a reused connection that is not certain (`adapters/web/pool.py`), or that no parser
  understands, is requested again, on a new connection.
- A pooled connection to where the request must not go is not used, whatever it was made for.
- A *new* connection that breaks is a failure: a repeat would ask the host outside its slot.
- A parser error within a body is raised at once; aiohttp leaves the reader waiting for its
  time-out (only the head's reader is told).
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp.http import HttpProcessingError

from orbweaver.adapters.web.address_guard import AddressRefusedError, Permit, check_peer
from orbweaver.adapters.web.deadline import Deadline
from orbweaver.adapters.web.errors import DroppedError
from orbweaver.adapters.web.wire import CountingHandler

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection


class _Use:
    """What a connection is used for: the body that is being read on it, if one is."""

    content: aiohttp.StreamReader | None = None
    permit: Permit | None = None


# The connections on which a request was sent.
_uses: WeakKeyDictionary[ResponseHandler, _Use] = WeakKeyDictionary()


class AwareRequest(aiohttp.ClientRequest):
    """A request that notes when it was sent and whether its connection was used before."""

    reused = False
    repeated = False
    sent_s: float | None = None
    protocol: ResponseHandler | None = None
    use: _Use | None = None
    deadline: Deadline | None = None
    permit = Permit()
    certain: asyncio.Future[bool] | None = None
    paced = True

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request, unless the connection is a pooled one that cannot be trusted."""
        protocol = conn.protocol
        assert protocol is not None  # noqa: S101 - set until the connection is released
        self.protocol, use = protocol, _uses.get(protocol)
        self.reused = use is not None
        if use is None:
            use = _uses[protocol] = _Use()
            if protocol.closed is not None:
                protocol.closed.add_done_callback(partial(_tell, protocol, use))
        elif self.repeated or protocol.should_close or _readable(protocol.transport):
            if isinstance(protocol, CountingHandler) and _has_surplus(protocol.transport):
                protocol.surplus = True
            raise aiohttp.ServerDisconnectedError
        if use.permit is not self.permit and self.proxy is None:
            check_peer(protocol.transport, self.permit)
        use.permit = self.permit
        if isinstance(protocol, CountingHandler):
            protocol.begin()
            protocol.paced = self.paced
            self.certain = protocol.certain
        self.use, use.content = use, None
        self.repeated = self.reused  # from here on the server may have seen it
        self.sent_s = time.monotonic()
        if self.deadline is not None:
            self.deadline.heard()
        return await super().send(conn)


class Attempt:
    """One request with its repeats; a middleware, so that it is told of every connection."""

    def __init__(self, deadline: Deadline, permit: Permit, *, paced: bool = True) -> None:
        self._deadline = deadline
        self._permit = permit
        self._paced = paced
        self._request: AwareRequest | None = None
        self._content: aiohttp.StreamReader | None = None

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send a request, again where a reused connection turns out to be dead."""
        assert isinstance(request, AwareRequest)  # noqa: S101 - the session makes no others
        self._request = request
        request.deadline, request.permit = self._deadline, self._permit
        request.paced = self._paced
        while True:
            try:
                return await handler(request)
            except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError):
                raise
            except aiohttp.ClientConnectionError as error:
                if isinstance(error.__cause__, AddressRefusedError):
                    raise
                if not request.reused or _answer_began(error):
                    raise DroppedError(_why(error)) from error

    @property
    def reused(self) -> bool:
        """Whether the connection had carried a request before."""
        return self._request is not None and self._request.reused

    @property
    def key(self) -> ConnectionKey | None:
        """The pool's key of the origin; None before the first request."""
        return self._request.connection_key if self._request else None

    async def is_certain(self) -> bool:
        """Wait until it is known whether the answer is the request's own."""
        certain = self._request.certain if self._request else None
        return certain is None or not self.reused or await asyncio.shield(certain)

    @property
    def sent_s(self) -> float | None:
        """When the request was last sent, by `time.monotonic`; None if it was not."""
        return self._request.sent_s if self._request else None

    @property
    def received(self) -> int:
        """How much of the body came in, as it came over the wire; and what was beside it."""
        protocol = self._request.protocol if self._request else None
        beside = protocol.beside if isinstance(protocol, CountingHandler) else 0
        return beside + (self._content.total_bytes if self._content else 0)

    @property
    def ragged(self) -> bool:
        """Whether the connection ended in a way that leaves open whether all came in."""
        protocol = self._request.protocol if self._request else None
        return isinstance(protocol, CountingHandler) and protocol.ragged

    def watch(self, content: aiohttp.StreamReader) -> None:
        """Have a parser error within a body raised to its reader; and count the body."""
        self._deadline.heard()
        self._content, request = content, self._request
        if request is None or request.protocol is None or request.use is None:
            return
        request.use.content = content
        closed = request.protocol.closed
        if closed is not None and closed.done():
            _tell(request.protocol, request.use, closed)


def _tell(protocol: ResponseHandler, use: _Use, closed: asyncio.Future[None]) -> None:
    """Pass a parser's error on to the reader of the body, once a connection is closed."""
    if not closed.cancelled():
        closed.exception()  # looked at, or asyncio reports it as unretrieved
    content, error = use.content, protocol.exception()
    if content is not None and isinstance(error, HttpProcessingError) and not content.is_eof():
        content.set_exception(aiohttp.ClientPayloadError(error.message), error)


def _readable(transport: asyncio.Transport | None) -> bool:
    """Whether an idle connection has something to read, its end included."""
    sock = transport.get_extra_info("socket") if transport else None
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _has_surplus(transport: asyncio.Transport | None) -> bool:
    """Whether an idle connection without TLS has bytes to read, and not only its end."""
    sock = transport.get_extra_info("socket") if transport else None
    if transport is None or sock is None or sock.fileno() < 0:
        return False
    if transport.get_extra_info("ssl_object"):
        return False
    with socket.socket(fileno=os.dup(sock.fileno())) as copy:
        try:
            return bool(copy.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except OSError:
            return False


def _answer_began(error: aiohttp.ClientConnectionError) -> bool:
    """Whether some of the head came in: aiohttp then puts it in the place of the message."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _why(error: aiohttp.ClientConnectionError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    part = "within" if _answer_began(error) else "before"
    return f"the connection was closed {part} the head of the answer"
