"""The web over aiohttp: one GET, its ending a value whatever a server does.

Rules:

- One client for a container: the session is made at the first fetch, in the loop that runs then,
  and used by all later invocations. A loop that ends takes its session along; another loop gets
  another session.
- Redirects are not followed, cookies not kept, proxies and `.netrc` of the environment not asked.
- Every address goes through `http_guard`; certificates are always verified.
- Only a 2xx answer of an accepted type, or of none, has its body read. What is left of any other
  is read away if it is small, to keep the connection, and dropped with it if it is not.
- A body is cut at its limit in decoded bytes; the connection is closed then.
- A coded body that ends early is kept and marked as truncated where the server meant that to be
  all, and is a dropped connection where the connection's end was the body's.
- `latency_ms` is the time from the sending of the request to the head of the answer: it says how
  busy the server is, not how busy we are.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from orbweaver.adapters.http_coding import ACCEPT_ENCODING, CodingError, Decoding, codings_of
from orbweaver.adapters.http_connection import Attempt, AwareRequest
from orbweaver.adapters.http_failure import (
    FAILURES,
    DroppedError,
    detail_of,
    one_line,
    reason_of,
)
from orbweaver.adapters.http_guard import GuardedResolver, GuardedSockets
from orbweaver.core.answer import REDIRECT_MIN, SUCCESS_MIN, media_type
from orbweaver.core.exchange import Failure, Response
from orbweaver.core.outcome import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from aiohttp.abc import AbstractResolver

    from orbweaver.core.address import Network
    from orbweaver.core.exchange import Request

ANY_TYPE = "*/*"
DNS_CACHE_S = 60
DRAIN_BYTES_MAX = 65_536
HEADERS_CHARS_MAX = 65_536
# Lists, of which more than one line means the same as one line with commas (RFC 9110 section 5.3).
LISTS = frozenset(
    {
        "cache-control",
        "content-encoding",
        "content-language",
        "link",
        "transfer-encoding",
        "vary",
        "x-robots-tag",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many connections, and how long each part of a request may take."""

    connections: int = 64
    connections_per_host: int = 1
    connect_s: float = 8.0  # TCP and TLS together
    idle_s: float = 10.0  # nothing at all from the server
    keepalive_s: float = 15.0
    resolve_s: float = 5.0
    drain_s: float = 1.0  # to save a connection, after the head of an answer nobody reads


class HttpFetcher:
    """The `Fetcher` port; safe to share between tasks of one loop, and between loops in turn."""

    def __init__(
        self,
        *,
        allowed: Iterable[Network] = (),
        limits: Limits | None = None,
        resolver: Callable[[], AbstractResolver] = aiohttp.DefaultResolver,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take what may be dialled besides the public web, and limits.

        aiohttp's default resolver is aiodns where that is installed. `tls` must verify; if it is
        not given, one is made for the first https URL, and used for all of them.
        """
        if tls is not None and not (tls.verify_mode == ssl.CERT_REQUIRED and tls.check_hostname):
            raise ValueError("a TLS context that does not verify certificates and host names")
        self._allowed = tuple(allowed)
        self._limits = limits or Limits()
        self._resolver = resolver
        self._tls = tls
        self._lifetime: AsyncGenerator[aiohttp.ClientSession, None] | None = None
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def fetch(self, request: Request) -> Response | Failure:
        """Ask once; redirects are not followed."""
        url = URL(request.url, encoded=True)  # canonical already: quoting again changes paths
        if url.scheme == "https" and self._tls is None:
            self._tls = _tls_context()  # takes 50 ms, which are not the server's
        attempt = Attempt()
        started_s = time.monotonic()
        total = asyncio.timeout(request.total_s)
        try:
            async with total:
                return await self._ask(url, request, attempt, total)
        except FAILURES as error:
            latency_ms = _ms_since(attempt.sent_s or started_s)
            if total.expired():
                what = "not connected" if attempt.sent_s is None else "not answered in full"
                detail = f"{what} within {request.total_s:g} s"
                return Failure(reason=Reason.TIMEOUT, detail=detail, latency_ms=latency_ms)
            return Failure(reason=reason_of(error), detail=detail_of(error), latency_ms=latency_ms)

    async def aclose(self) -> None:
        """Close all connections; a later fetch opens new ones."""
        lifetime, self._lifetime, self._session, self._loop = self._lifetime, None, None, None
        if lifetime is not None:
            await lifetime.aclose()

    async def _ask(
        self, url: URL, request: Request, attempt: Attempt, total: asyncio.Timeout
    ) -> Response:
        session = await self._session_here()
        async with session.get(
            url,
            headers={
                "User-Agent": request.user_agent,
                "Accept": _accept(request.accept),
                "Accept-Encoding": ACCEPT_ENCODING,
            },
            allow_redirects=False,
            middlewares=(attempt,),
            ssl=self._tls or True,
        ) as answer:
            latency_ms = _ms_since(attempt.sent_s or time.monotonic())
            headers = _headers(answer.raw_headers)
            body, truncated = None, False
            attempt.watch(answer.content)
            if _wanted(answer.status, headers, request.accept):
                body, truncated = await _read(answer, headers, request.body_bytes_max)
            else:
                await _drain(answer, headers, total, self._limits.drain_s)
        return Response(
            status=answer.status,
            headers=headers,
            body=body,
            truncated=truncated,
            latency_ms=latency_ms,
        )

    async def _session_here(self) -> aiohttp.ClientSession:
        """Return the session of the running loop, made if there is none."""
        loop = asyncio.get_running_loop()
        if self._session is not None and self._loop is loop:
            return self._session
        past, past_loop = self._lifetime, self._loop
        self._loop, self._lifetime = loop, self._live()
        self._session = session = await anext(self._lifetime)  # suspends nowhere
        if past is not None and past_loop is not None and past_loop.is_closed():
            # Mostly done already, at the end of that loop. One that is still open does it when it
            # runs again, for `past` is now without an owner.
            await past.aclose()
        return session

    async def _live(self) -> AsyncGenerator[aiohttp.ClientSession, None]:
        """Hold a session open; an async generator, for a loop closes those it has at its end."""
        limits = self._limits
        resolver = GuardedResolver(self._resolver(), self._allowed, limits.resolve_s)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=resolver,
                socket_factory=GuardedSockets(self._allowed),
                ttl_dns_cache=DNS_CACHE_S,
                limit=limits.connections,
                limit_per_host=limits.connections_per_host,
                keepalive_timeout=limits.keepalive_s,
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=AwareRequest,
            # No limit on "connect": it counts the wait for a free connection too, which is ours.
            timeout=aiohttp.ClientTimeout(sock_connect=limits.connect_s, sock_read=limits.idle_s),
            trust_env=False,
        )
        try:
            yield session
        finally:
            await session.close()
            await resolver.close()


def _tls_context() -> ssl.SSLContext:
    """Make the usual context, stricter by one: a name must be among the alternative names."""
    context = ssl.create_default_context()
    context.hostname_checks_common_name = False  # no browser looks there since 2017
    context.set_alpn_protocols(["http/1.1"])
    return context


async def _read(
    answer: aiohttp.ClientResponse, headers: dict[str, str], bytes_max: int
) -> tuple[bytes, bool]:
    """Read a body up to its limit: the decoded bytes, and whether there was more."""
    coded = codings_of(headers.get("content-encoding"), headers.get("transfer-encoding"))
    decoding = Decoding(coded, bytes_max)
    async for chunk in answer.content.iter_any():
        if not decoding.feed(chunk):
            answer.close()
            return decoding.body, True
    body = decoding.body
    if not decoding.complete:
        if not _framed(headers):
            raise DroppedError("the connection was closed within the body")
        if not body:
            raise CodingError("the body ends before anything of it could be decoded")
    return body, not decoding.complete


async def _drain(
    answer: aiohttp.ClientResponse,
    headers: dict[str, str],
    total: asyncio.Timeout,
    drain_s: float,
) -> None:
    """Read away what is left of an answer if it is little, else close the connection."""
    until = asyncio.get_running_loop().time() + drain_s
    until = min(until, total.when() or until)
    total.reschedule(None)  # the head is here: the answer stands, whatever becomes of the rest
    little = _framed(headers) and (answer.content_length or 0) <= DRAIN_BYTES_MAX
    left = DRAIN_BYTES_MAX if little else 0
    try:
        async with asyncio.timeout_at(until):
            while left > 0 and (chunk := await answer.content.readany()):
                left -= len(chunk)
    except FAILURES:
        answer.close()
    if not answer.content.at_eof():
        answer.close()


def _framed(headers: dict[str, str]) -> bool:
    """Whether a body has an end of its own; otherwise it is the end of the connection."""
    return "content-length" in headers or "transfer-encoding" in headers


def _wanted(status: int, headers: dict[str, str], accept: frozenset[str]) -> bool:
    """Whether the body of an answer is to be read."""
    if not SUCCESS_MIN <= status < REDIRECT_MIN:
        return False
    kind = media_type(headers.get("content-type"))
    return "/" not in kind or ANY_TYPE in accept or kind in accept


def _accept(accept: frozenset[str]) -> str:
    """Write an Accept header; others come last, for some servers answer 406 without."""
    named = sorted(accept - {ANY_TYPE})
    return ", ".join((*named, f"{ANY_TYPE};q=0.1" if named else ANY_TYPE))


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Take headers over: one printable line each, the first of a name, all of a list."""
    headers: dict[str, str] = {}
    left = HEADERS_CHARS_MAX
    for raw_name, raw_value in raw:
        name, value = one_line(raw_name.decode("latin-1").lower()), one_line(_text(raw_value))
        left -= len(name) + len(value)
        if left < 0:
            break
        if name not in headers:
            headers[name] = value
        elif name in LISTS:
            headers[name] += f", {value}"
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _ms_since(moment_s: float) -> int:
    return round((time.monotonic() - moment_s) * 1000)
