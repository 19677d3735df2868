"""Requests that check a pooled connection before they use it.

aiohttp 3.14 repeats a GET when a connection breaks, whether new or reused. It also reuses a
connection without checking whether data arrived meanwhile. Here a request is repeated once, and
only if a *reused* connection breaks before the response, because a repeat is an extra request to
the host.
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
from orbweaver.fetching.proxy_pool import SOCKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection


class _Use:
    """The current use of a connection: the body being read, if any, and the request's permit."""

    content: aiohttp.StreamReader | None = None
    permit: Permit | None = None


# Connections on which a request was sent.
_uses: WeakKeyDictionary[ResponseHandler, _Use] = WeakKeyDictionary()


class AwareRequest(aiohttp.ClientRequest):
    """A request that records when it was sent, and whether its connection was reused."""

    reused = False
    repeated = False
    sent_s: float | None = None
    protocol: ResponseHandler | None = None
    use: _Use | None = None
    deadline: Deadline | None = None
    permit = Permit()
    certain: asyncio.Future[bool] | None = None
    paced = True
    sent: Callable[[], None] | None = None
    addresses: tuple[str, ...] = ()  # of the target, for a proxy that must not resolve its name

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request. Raises if its pooled connection is closed or has unread data."""
        protocol = conn.protocol
        assert protocol is not None  # noqa: S101 - set until the connection is released
        self.protocol, use = protocol, _uses.get(protocol)
        self.reused = use is not None
        if use is None:
            use = _uses[protocol] = _Use()
            if protocol.closed is not None:
                protocol.closed.add_done_callback(partial(_pass_error_on, protocol, use))
        # Unread data would be taken for another URL's response. A repeat needs a new connection.
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
        self.repeated = self.reused  # from here on the server may have received it
        self.sent_s = time.monotonic()
        if self.deadline is not None:
            self.deadline.note_activity()
        proxy = self.proxy
        if proxy is not None and proxy.scheme.startswith(SOCKS):
            self.proxy = None  # the request line is the target's own
        try:
            answer = await super().send(conn)
        finally:
            self.proxy = proxy
        if self.sent is not None:
            self.sent()  # after the write, so that the next request is not early
        return answer


class Attempt:
    """aiohttp middleware that repeats a request if its reused connection was closed.

    It also records the connection that the request used.
    """

    def __init__(
        self,
        deadline: Deadline,
        permit: Permit,
        *,
        paced: bool = True,
        sent: Callable[[], None] | None = None,
        addresses: tuple[str, ...] = (),
    ) -> None:
        """`addresses` of the target are for a SOCKS proxy that must not resolve its name."""
        self._deadline = deadline
        self._permit = permit
        self._paced = paced
        self._sent = sent
        self._addresses = addresses
        self._request: AwareRequest | None = None
        self._content: aiohttp.StreamReader | None = None

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        assert isinstance(request, AwareRequest)  # noqa: S101 - the session makes no others
        self._request = request
        request.deadline, request.permit = self._deadline, self._permit
        request.paced, request.sent = self._paced, self._sent
        request.addresses = self._addresses
        while True:
            try:
                return await handler(request)
            except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError):
                raise
            except aiohttp.ClientConnectionError as error:
                if isinstance(error.__cause__, AddressRefusedError):
                    raise
                # After a freeze of the container all pooled connections may be dead.
                if not request.reused or _answer_began(error):
                    raise DroppedError(_disconnect_detail(error)) from error

    @property
    def reused(self) -> bool:
        return self._request is not None and self._request.reused

    @property
    def key(self) -> ConnectionKey | None:
        return self._request.connection_key if self._request else None

    async def is_certain(self) -> bool:
        """Wait for surplus data. Return True if the response certainly belongs to the request."""
        certain = self._request.certain if self._request else None
        return certain is None or not self.reused or await asyncio.shield(certain)

    @property
    def sent_s(self) -> float | None:
        """Time of the last send by `time.monotonic`. None before the first."""
        return self._request.sent_s if self._request else None

    @property
    def received(self) -> int:
        """Bytes received on the wire: the body, and all other bytes beyond a usual head."""
        protocol = self._request.protocol if self._request else None
        beside = protocol.surplus_head_bytes if isinstance(protocol, CountingHandler) else 0
        return beside + (self._content.total_bytes if self._content else 0)

    @property
    def silent_peer(self) -> tuple[str, int] | None:
        """The server's address and port, if it sent no byte on a new connection without TLS."""
        protocol = self._request.protocol if self._request else None
        return protocol.silent_peer if isinstance(protocol, CountingHandler) else None

    @property
    def ragged(self) -> bool:
        """Whether the connection ended in a way that can leave the response incomplete."""
        protocol = self._request.protocol if self._request else None
        return isinstance(protocol, CountingHandler) and protocol.ragged

    def watch(self, content: aiohttp.StreamReader) -> None:
        """Count the bytes of the body, and raise parser errors to its reader."""
        self._deadline.note_activity()
        self._content, request = content, self._request
        if request is None or request.protocol is None or request.use is None:
            return
        request.use.content = content
        closed = request.protocol.closed
        if closed is not None and closed.done():
            _pass_error_on(request.protocol, request.use, closed)


def _pass_error_on(protocol: ResponseHandler, use: _Use, closed: asyncio.Future[None]) -> None:
    """Raise a parser's error to the body's reader. aiohttp would let the reader time out."""
    if not closed.cancelled():
        closed.exception()  # retrieved, because asyncio reports unretrieved exceptions
    content, error = use.content, protocol.exception()
    if content is not None and isinstance(error, HttpProcessingError) and not content.is_eof():
        content.set_exception(aiohttp.ClientPayloadError(error.message), error)


def _readable(transport: asyncio.Transport | None) -> bool:
    """Whether an idle connection has received data or was closed by the server."""
    sock = transport.get_extra_info("socket") if transport else None
    if sock is None or sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _has_surplus(transport: asyncio.Transport | None) -> bool:
    """Whether an idle connection without TLS has received data, and was not only closed."""
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
    # If part of the head arrived, aiohttp stores it in place of the message.
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _disconnect_detail(error: aiohttp.ClientConnectionError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    part = "within" if _answer_began(error) else "before"
    return f"the connection was closed {part} the head of the answer"
