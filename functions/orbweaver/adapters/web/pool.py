"""Connection pool that detects responses to other requests.

HTTP/1.1 does not number responses. If a server sends an extra response, the client takes it for the
response to its next request. So a connection is reused only after `quiet_s` seconds without data. A
response on a reused connection needs the same silence before it certainly belongs to its request.
More data or a reset of the connection in that time makes the response doubtful. A crawl without a
delay skips both waits.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import aiohttp
from aiohappyeyeballs import start_connection
from aiohttp import hdrs

from orbweaver.adapters.web.address_guard import dialled_of
from orbweaver.adapters.web.pooled_request import AwareRequest
from orbweaver.adapters.web.socks import SocksReplyError, connect_through
from orbweaver.adapters.web.tls import verifying
from orbweaver.adapters.web.wire import CountingHandler
from orbweaver.fetching.proxy_pool import SOCKS

if TYPE_CHECKING:
    from aiohttp.abc import ResolveResult
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import AddrInfoType
    from aiohttp.tracing import Trace

QUIET_S_MIN, QUIET_S_MAX = 0.2, 0.4
SLOWEST_KEPT = 0.9  # decay of an origin's slowest latency, per response
ORIGINS_MAX = 10_000

_log = logging.getLogger(__name__)


class Origins:
    """Latencies and faults of at most `ORIGINS_MAX` origins, kept across event loops."""

    def __init__(self) -> None:
        self._slowest_s: dict[ConnectionKey, float] = {}
        self._distrusted: dict[ConnectionKey, None] = {}

    def quiet_s(self, key: ConnectionKey, latency_s: float) -> float:
        """Return the seconds of silence required after a response with this latency."""
        slowest_s = max(latency_s, self._slowest_s.pop(key, 0.0) * SLOWEST_KEPT)
        self._slowest_s[key] = slowest_s
        _bound(self._slowest_s)
        return min(max(slowest_s, QUIET_S_MIN), QUIET_S_MAX)

    def is_distrusted(self, key: ConnectionKey) -> bool:
        """Whether an origin sent surplus bytes, and so gets a new connection per request."""
        return key in self._distrusted

    def distrust(self, key: ConnectionKey) -> None:
        if key not in self._distrusted:
            scheme = "https" if key.is_ssl else "http"
            fields = {"origin": f"{scheme}://{key.host}:{key.port}"}
            _log.warning("origin.surplus_bytes", extra=fields)
        self._distrusted[key] = None
        _bound(self._distrusted)


class ConnectionPool(aiohttp.TCPConnector):
    """Connector that counts bytes and connects to allowed addresses only."""

    def __init__(self, origins: Origins, *, keepalive_s: float, **options: Any) -> None:
        super().__init__(keepalive_timeout=keepalive_s, **options)
        self._origins = origins
        self._keepalive_s = keepalive_s
        self._tls_errors: WeakKeyDictionary[aiohttp.ClientRequest, aiohttp.ClientSSLError] = (
            WeakKeyDictionary()
        )
        self._factory = cast("partial[ResponseHandler]", partial(CountingHandler, loop=self._loop))

    def distrust(self, key: ConnectionKey) -> None:
        """Close an origin's idle connections, and use each further connection for one request."""
        self._origins.distrust(key)
        for protocol, _ in self._conns.pop(key, ()):
            protocol.close()

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        """Return a connection to the pool after enough silence. Until then it counts as used."""
        assert isinstance(protocol, CountingHandler)  # noqa: S101 - the factory makes no others
        certain = protocol.certain
        protocol.on_surplus = partial(self.distrust, key)
        silent_s = self._origins.quiet_s(key, protocol.latency_s)
        stays = not (should_close or protocol.should_close) and silent_s < self._keepalive_s
        waits = protocol.requests > 1 or (stays and not self._origins.is_distrusted(key))
        whole = protocol.is_complete and not protocol.surplus and protocol.is_connected()
        if self._closed or certain.done() or not (waits and whole and protocol.paced):
            self._settle(key, protocol, certain)
            quick = waits and whole and stays and not self._origins.is_distrusted(key)
            super()._release(key, protocol, should_close=not quick)
            return
        timer = self._loop.call_later(silent_s, _set, certain)
        certain.add_done_callback(partial(self._end_wait, key, protocol, timer, stays))

    def _end_wait(
        self,
        key: ConnectionKey,
        protocol: CountingHandler,
        timer: asyncio.TimerHandle,
        stays: bool,
        certain: asyncio.Future[bool],
    ) -> None:
        timer.cancel()
        self._settle(key, protocol, certain)
        stays = stays and not self._origins.is_distrusted(key)
        super()._release(key, protocol, should_close=not stays)

    def _settle(
        self, key: ConnectionKey, protocol: CountingHandler, certain: asyncio.Future[bool]
    ) -> None:
        _set(certain, not protocol.surplus)
        if certain.cancelled() or not certain.result():
            self.distrust(key)

    async def _resolve_host(
        self, host: str, port: int, traces: Sequence[aiohttp.tracing.Trace] | None = None
    ) -> list[ResolveResult]:
        return dialled_of(await super()._resolve_host(host, port, traces))

    def _get_ssl_context(self, req: aiohttp.ClientRequest) -> ssl.SSLContext | None:
        tls = super()._get_ssl_context(req)
        # aiohttp makes the request to a proxy itself, with the context of the target.
        return tls if tls is None or isinstance(req, AwareRequest) else verifying(tls)

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        proxy = req.proxy
        if proxy is None or not proxy.scheme.startswith(SOCKS):
            return await super()._create_connection(req, traces, timeout)
        assert isinstance(req, AwareRequest) and proxy.raw_host and proxy.port  # noqa: S101, PT018 - made by the session and by `parse_proxy`
        at_proxy = req.connection_key._replace(host=proxy.raw_host, port=proxy.port)
        try:
            found = await self._resolve_host(proxy.raw_host, proxy.port, traces=traces)
        except OSError as error:
            raise aiohttp.ClientConnectorDNSError(at_proxy, error) from error
        infos = self._convert_hosts_to_addr_infos(found)
        async with asyncio.timeout(timeout.sock_connect):
            sock = await self._tunnel(infos, req, at_proxy)
        tls = self._get_ssl_context(req)
        _, protocol = await self._wrap_existing_connection(
            self._factory,
            sock=sock,
            ssl=tls,
            server_hostname=(req.url.raw_host or "").rstrip(".") if tls else None,
            req=req,
            timeout=timeout,
        )
        return protocol

    async def _tunnel(
        self, infos: list[AddrInfoType], req: AwareRequest, at_proxy: ConnectionKey
    ) -> socket.socket:
        """Connect to a SOCKS proxy, and let it connect to one of the target's addresses."""
        *others, last = req.addresses or (req.url.raw_host or "",)
        for host in others:
            with suppress(SocksReplyError):
                return await self._tunnel_to(host, infos, req, at_proxy)
        return await self._tunnel_to(last, infos, req, at_proxy)

    async def _tunnel_to(
        self, host: str, infos: list[AddrInfoType], req: AwareRequest, at_proxy: ConnectionKey
    ) -> socket.socket:
        headers, port = req.proxy_headers, req.url.port or 0
        credentials = headers.get(hdrs.PROXY_AUTHORIZATION) if headers else None
        try:
            sock = await start_connection(
                infos, loop=self._loop, socket_factory=self._socket_factory
            )
            try:
                await connect_through(sock, host, port, credentials)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            raise aiohttp.ClientProxyConnectionError(at_proxy, error) from error
        return sock

    async def _wrap_create_connection(
        self, *args: Any, addr_infos: list[AddrInfoType], **kwargs: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        # Try each address once: aiohttp would try the remaining ones again. Report the TLS error of
        # an earlier address, not the connection error of a later one.
        req: aiohttp.ClientRequest = kwargs["req"]
        try:
            return await super()._wrap_create_connection(*args, addr_infos=addr_infos, **kwargs)
        except aiohttp.ClientSSLError as error:
            self._tls_errors[req] = error
            raise  # TLS may succeed at another address of the host
        except (aiohttp.ClientConnectorError, TimeoutError):
            addr_infos.clear()
            if (tls_error := self._tls_errors.get(req)) is not None:
                raise tls_error from tls_error.__cause__
            raise


def _set(certain: asyncio.Future[bool], value: bool = True) -> None:
    if not certain.done():
        certain.set_result(value)


def _bound(kept: dict[ConnectionKey, Any]) -> None:
    if len(kept) > ORIGINS_MAX:
        del kept[next(iter(kept))]
