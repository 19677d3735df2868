"""Connection pool that detects responses to other requests.

HTTP/1.1 does not number responses. If a server sends an extra response, the client takes it for the
response to its next request. So a connection is reused only after `quiet_s` seconds without data. A
response on a reused connection needs the same silence before it certainly belongs to its request.
More data or a reset of the connection in that time makes the response doubtful. A crawl without a
delay skips both waits.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import aiohttp

from orbweaver.adapters.web.address_guard import dialled_of
from orbweaver.adapters.web.wire import CountingHandler

if TYPE_CHECKING:
    import asyncio

    from aiohttp.abc import ResolveResult
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import AddrInfoType

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
