"""HTTP client on aiohttp: sends one GET, HEAD or POST and returns a response or a failure.

It follows no redirects, stores no cookies, ignores proxy variables and `.netrc`, and always
verifies certificates. One container has one client, whose session is reused by later invocations.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import field, replace
from enum import Enum
from typing import TYPE_CHECKING, cast

import aiohttp
from aiohttp.helpers import is_ip_address
from yarl import URL

from orbweaver.adapters.web import body as bodies
from orbweaver.adapters.web import headers as heads
from orbweaver.adapters.web.address_guard import (
    AddressRefusedError,
    GuardedResolver,
    Permits,
    guarded_socket,
    names_here,
)
from orbweaver.adapters.web.deadline import Deadline, Deadlines
from orbweaver.adapters.web.errors import (
    FAILURES,
    SurplusError,
    detail_of,
    reason_of,
    unresolved_reason,
)
from orbweaver.adapters.web.large_bodies import LATER_S, LargeBodies, LargeBody
from orbweaver.adapters.web.pool import ConnectionPool, Origins
from orbweaver.adapters.web.pooled_request import Attempt, AwareRequest
from orbweaver.adapters.web.reach import speaks_tls
from orbweaver.adapters.web.tls import TrustError, context_for
from orbweaver.adapters.web.wire import LINE_BYTES_MAX
from orbweaver.fetching.response_verdict import SPEAKS_TLS
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed, name_verdict
from orbweaver.model.http_exchange import (
    IDLE_S,
    SYSTEM_TRUST,
    Failure,
    Request,
    Response,
    one_line,
)
from orbweaver.model.named_origins import addresses_of
from orbweaver.model.outcome import Reason
from orbweaver.model.user_agent import stored_headers
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver

    from orbweaver.fetching.proxy_pool import Proxy

DNS_CACHE_S = 60
_BODILESS = frozenset({204, 304})
_UNREADABLE = frozenset({Reason.PROTOCOL, Reason.HEADERS_TOO_LARGE})
TESTED_MAX = 1_000  # servers whose test is kept
LEFT_S_MIN = 0.5  # minimum time for a request that is sent again


@value_class
class Limits:
    """Limits on connections, and on the time of each part of a request."""

    connections: int = 64
    connections_per_host: int = 1
    connect_s: float = 8.0  # TCP and TLS together
    idle_s: float = IDLE_S
    keepalive_s: float = 15.0
    resolve_s: float = 5.0
    drain_s: float = 1.0  # to read a small remaining body, so that the connection can be reused
    rate: bodies.Rate = field(default_factory=bodies.Rate)


@value_class
class FetchResult:
    """A response or failure, with the error.

    `sent`: the request was sent. `tunnelled`: it used a proxy's tunnel to the target.
    """

    answer: Response | Failure
    error: Exception | None = None
    sent: bool = False
    tunnelled: bool = False


class TargetCheck(Enum):
    """How a target is checked before a proxy connects to it."""

    RESOLVED = "resolved"  # its name must be known here
    IF_RESOLVED = "if resolved"  # the proxy decides about names that are unknown here
    ADDRESS = "address"  # as RESOLVED, and the proxy gets the address
    NAME = "name"  # no DNS lookup here

    @classmethod
    def of(cls, proxy: Proxy, *, resolves: bool) -> TargetCheck:
        if proxy.is_socks:
            return cls.NAME if proxy.scheme.endswith("h") else cls.ADDRESS
        return cls.RESOLVED if resolves else cls.IF_RESOLVED


class HttpFetcher:
    """Implements `Fetcher` on aiohttp. Tasks of one event loop can share it."""

    def __init__(
        self,
        *,
        allowed: Allowed = PUBLIC_ONLY,
        limits: Limits | None = None,
        resolver: Callable[[], AbstractResolver] = aiohttp.DefaultResolver,
        tls: ssl.SSLContext | None = None,
        dials_proxies: bool = False,
        large: LargeBodies | None = None,
    ) -> None:
        """`allowed` are addresses that crawls can reach in addition to the public web.

        `tls` must verify certificates. By default, the first https URL creates a shared context.
        `large` limits concurrent large bodies, and can be shared with another fetcher.
        """
        if tls is not None and not (tls.verify_mode == ssl.CERT_REQUIRED and tls.check_hostname):
            raise ValueError("a TLS context that does not verify certificates and host names")
        self._permits = Permits(allowed, any_port=dials_proxies)
        self._limits = limits or Limits()
        self._resolver = resolver
        self._tls = tls
        self._dials_proxies = dials_proxies
        self._deadlines = Deadlines(self._limits.idle_s)
        self._large = large or LargeBodies(self._limits.connections)
        self._origins = Origins()
        # Whether servers that closed a plain connection without a byte speak TLS.
        self._speaking_tls: dict[tuple[str, int], bool] = {}
        self._guard: GuardedResolver | None = None
        self._lifetime: AsyncGenerator[aiohttp.ClientSession, None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def fetch(self, request: Request) -> Response | Failure:
        return (await self.ask(request)).answer

    async def ask(
        self, request: Request, proxy: Proxy | None = None, addresses: tuple[str, ...] = ()
    ) -> FetchResult:
        """Send a request.

        `proxy` is required if this fetcher connects to proxies only, else None. `addresses` of the
        target are for a SOCKS proxy that must not resolve its name.
        """
        if self._dials_proxies is (proxy is None):
            raise ValueError("a fetcher dials proxies, or it dials targets")
        try:
            # Takes up to 50 ms, which must not count as the server's latency.
            tls = self._context(request, proxy)
        except TrustError as error:
            return FetchResult(answer=Failure(reason=Reason.TLS, detail=one_line(str(error))))
        until_s = time.monotonic() + request.total_s
        asked, attempt = await self._try(request, proxy, addresses, tls)
        if proxy is None and asked.sent and attempt.silent_peer is not None:
            asked = await self._explained(asked, request, attempt.silent_peer)
        if request.answered is not None:
            request.answered()
        if await _is_certain(asked, attempt, request):
            return asked
        # Send the request again on a new connection, within the same time.
        assert self._session is not None and attempt.key is not None  # noqa: S101, PT018 - set by _try
        cast("ConnectionPool", self._session.connector).distrust(attempt.key)
        left_s = max(LEFT_S_MIN, until_s - time.monotonic())
        again, attempt = await self._try(replace(request, total_s=left_s), proxy, addresses, tls)
        return again

    def _context(self, request: Request, proxy: Proxy | None) -> ssl.SSLContext | None:
        if proxy is None and not request.url.startswith("https:"):
            return None
        if request.trust == SYSTEM_TRUST and self._tls is not None:
            return self._tls
        return context_for(request.trust)

    async def _try(
        self,
        request: Request,
        proxy: Proxy | None,
        addresses: tuple[str, ...],
        tls: ssl.SSLContext | None,
    ) -> tuple[FetchResult, Attempt]:
        url = URL(request.url, encoded=True)  # already canonical: quoting again would change paths
        started_s = time.monotonic()
        deadline = self._deadlines.within(request.total_s, request.idle_s)
        permit = self._permits.grant(request.named)
        paced, sent = request.paced, request.sent
        attempt = Attempt(deadline, permit, paced=paced, sent=sent, addresses=addresses)
        large = self._large.place_for(url.raw_host or "")
        tunnelled = proxy is not None and (url.scheme == "https" or proxy.is_socks)
        try:
            async with large:
                with deadline:
                    answer = await self._ask(url, request, attempt, deadline, proxy, large, tls)
            return FetchResult(answer=answer, tunnelled=tunnelled), attempt
        except FAILURES as error:
            latency_ms = _ms_since(attempt.sent_s or started_s)
            reason, detail = reason_of(error), detail_of(error)
            if deadline.expired:
                reason, detail = Reason.TIMEOUT, self._out_of_time(attempt, deadline, request)
            asked = FetchResult(
                answer=Failure(
                    reason=reason,
                    detail=detail,
                    latency_ms=latency_ms,
                    received=attempt.received,
                    later_s=LATER_S if deadline.expired and large.waits else None,
                ),
                error=error,
                sent=attempt.sent_s is not None,
                tunnelled=tunnelled,
            )
            return asked, attempt

    async def _explained(
        self, asked: FetchResult, request: Request, peer: tuple[str, int]
    ) -> FetchResult:
        """Return a result that names TLS as the cause, if the server closed because of it.

        Each server is tested once, because servers also close connections if they are busy.
        """
        answer = asked.answer
        if not isinstance(answer, Failure) or answer.reason is not Reason.DISCONNECTED:
            return asked
        if peer not in self._speaking_tls:
            if len(self._speaking_tls) >= TESTED_MAX:
                self._speaking_tls.clear()
            self._speaking_tls[peer] = await speaks_tls(URL(request.url, encoded=True), peer)
        if not self._speaking_tls[peer]:
            return asked
        return replace(asked, answer=replace(answer, reason=Reason.TLS, detail=SPEAKS_TLS))

    def _out_of_time(self, attempt: Attempt, deadline: Deadline, request: Request) -> str:
        if deadline.loop.time() < deadline.until_s:
            return f"nothing came for {deadline.idle_s:g} s"
        what = "not connected" if attempt.sent_s is None else "not answered in full"
        return f"{what} within {request.total_s:g} s"

    async def check(
        self, origin: URL, named: frozenset[str], check: TargetCheck
    ) -> tuple[str, ...] | Failure:
        """Return the addresses of `origin`, which a proxy will reach, or why it must not.

        `named` are the origins of the seeds of the request's crawl. Addresses are missing if only
        the proxy can resolve the name.
        """
        await self._session_here()
        guard, host, port = self._guard, origin.raw_host or "", origin.port or 0
        assert guard is not None  # noqa: S101 - made with the session
        permit = self._permits.permit_for(named)
        try:
            if is_ip_address(host):
                found = [host]
            elif check is TargetCheck.NAME:
                found = [str(one) for one in addresses_of(str(origin), names_here())]
            else:
                found = [one["host"] for one in await guard.resolve(host, port)]
        except AddressRefusedError as error:
            return Failure(reason=Reason.ADDRESS, detail=one_line(error.why))
        except OSError as error:
            if check is not TargetCheck.IF_RESOLVED:
                detail = one_line(error.strerror or str(error) or "no address")
                return Failure(reason=unresolved_reason(error), detail=detail)
            found = []
        whys = [permit.refusal(address, port) for address in found]
        if not found:
            seeds = named if permit.allowed.networks else frozenset[str]()
            whys = [name_verdict(host, port, is_named=str(origin) in seeds)]
        why = next((why for why in whys if why is not None), None)
        if why is not None:
            return Failure(reason=Reason.ADDRESS, detail=one_line(why))
        return tuple(found)

    async def aclose(self) -> None:
        lifetime, self._lifetime, self._session, self._loop = self._lifetime, None, None, None
        if lifetime is not None:
            await lifetime.aclose()

    async def _ask(
        self,
        url: URL,
        request: Request,
        attempt: Attempt,
        deadline: Deadline,
        proxy: Proxy | None,
        large: LargeBody,
        tls: ssl.SSLContext | None,
    ) -> Response:
        session = await self._session_here()
        async with session.request(
            "HEAD" if request.head else "GET" if request.body is None else "POST",
            url,
            data=request.body,
            headers=heads.request_headers(request, url, proxy),
            proxy=None if proxy is None else proxy.url,
            proxy_headers=heads.connecting(request, proxy),
            allow_redirects=False,
            middlewares=(attempt,),
            ssl=tls or True,
        ) as answer:
            # From sending the request to the head of the response, so that it measures the server.
            latency_ms = _ms_since(attempt.sent_s or time.monotonic())
            headers, headers_cut = heads.response_headers(answer.raw_headers)
            bodiless = request.head or answer.status in _BODILESS
            if attempt.reused and not bodies.framed(headers) and not bodiless:
                answer.close()
                raise SurplusError("an answer without an end on a used connection")
            attempt.watch(answer.content)
            body = bodies.Body()
            if heads.is_body_wanted(answer.status, headers, request.accept):
                rate = self._limits.rate
                body = await bodies.read(answer, headers, request, deadline, rate, large)
            else:
                keep = heads.is_error_body_wanted(answer.status, headers, request.accept)
                most = min(bodies.DRAIN_BYTES_MAX, bodies.room_of(request))
                drain_s = self._limits.drain_s
                body = await bodies.drain(answer, headers, deadline, drain_s, most, keep=keep)
        cut_off = attempt.ragged and body.data is not None and not bodies.framed(headers)
        return Response(
            status=answer.status,
            headers=headers,
            body=body.data,
            truncated=body.truncated or cut_off,
            latency_ms=latency_ms,
            received=attempt.received,
            octets=heads.octets(answer.raw_headers),
            cookies=heads.cookies(answer.raw_headers),
            asked=stored_headers(answer.request_info.headers.items()),
            headers_cut=headers_cut,
        )

    async def _session_here(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is not None and self._loop is loop:
            return self._session
        past, past_loop = self._lifetime, self._loop
        self._loop, self._lifetime = loop, self._live()
        self._session = session = await anext(self._lifetime)  # does not suspend
        if past is not None and past_loop is not None and past_loop.is_closed():
            # Usually closed already, when its loop ended. A loop that is still open closes `past`
            # when it runs again.
            await past.aclose()
        return session

    async def _live(self) -> AsyncGenerator[aiohttp.ClientSession, None]:
        # An event loop closes its async generators when it ends, and so the session.
        limits = self._limits
        resolver = GuardedResolver(self._resolver(), self._permits.widest, limits.resolve_s)
        self._guard = resolver
        session = aiohttp.ClientSession(
            connector=ConnectionPool(
                self._origins,
                resolver=resolver,
                socket_factory=guarded_socket,
                ttl_dns_cache=DNS_CACHE_S,
                limit=limits.connections,
                limit_per_host=limits.connections_per_host,
                keepalive_s=limits.keepalive_s,
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=AwareRequest,
            # No limit on "connect", which includes waiting for a free connection. `deadline`
            # enforces the other limits.
            timeout=aiohttp.ClientTimeout(sock_connect=limits.connect_s),
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            trust_env=False,
        )
        try:
            yield session
        finally:
            await session.close()
            await resolver.close()


async def _is_certain(asked: FetchResult, attempt: Attempt, request: Request) -> bool:
    """Whether the response certainly belongs to this request."""
    # A POST is never sent twice.
    if request.body is not None or not attempt.reused:
        return True
    if isinstance(asked.answer, Failure):
        return asked.answer.reason not in _UNREADABLE
    return await attempt.is_certain()


def _ms_since(moment_s: float) -> int:
    return round((time.monotonic() - moment_s) * 1000)
