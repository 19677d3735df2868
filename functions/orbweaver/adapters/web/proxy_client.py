"""Send requests through the proxies of a stack.

A request meant for a proxy is never sent directly. Without a usable proxy it is sent later, and no
attempt is counted. Targets are checked before a proxy receives their names, but the proxy chooses
the address. https uses a tunnel (CONNECT), and the target's certificate is verified here.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from enum import Enum

import aiohttp
from yarl import URL

from orbweaver.adapters.web.client import FetchResult, HttpFetcher
from orbweaver.fetching.proxy_pool import Pool, PoolError, Proxy, Wait, parse_pool
from orbweaver.model.errors import PortError, Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.ports import Clock, Secrets
from orbweaver.model.url import hostname_of

FRESH_MS = 120_000  # between two reads of the list
DOUBTFUL_MS = 30_000  # instead of FRESH_MS, if the list could not be read or a proxy failed
# Longest use of a list that cannot be read again. A deleted or invalid list is dropped at once.
HELD_MS = 900_000
TRIES_MAX = 3
LATER_S_MIN = 1.0
JUDGED_MS = 60_000
JUDGED_MAX = 2_000

_AUTHENTICATE = 407
# Statuses of a proxy, or of a target's gateway.
_GATEWAY = frozenset({502, 504})

_log = logging.getLogger(__name__)


class Trouble(Enum):
    """The party that might have caused a missing response."""

    BROKEN = "broken"  # the proxy
    UNREACHED = "unreached"  # the proxy or the target


class Proxies:
    """The proxies of a container: a list from a secret, and the health of each proxy."""

    def __init__(self, *, secrets: Secrets, name: str, clock: Clock) -> None:
        """`name` is the secret's name. The list is read at first use."""
        self._secrets = secrets
        self._name = name
        self._clock = clock
        self._lock = asyncio.Lock()
        self._pool: Pool | None = None
        self._tried_ms: int | None = None
        self._read_ms = 0
        self._fresh_ms = 0

    async def pick(self, host: str) -> Proxy | Wait:
        """Return the proxy of a host, or Wait if no proxy is usable."""
        async with self._lock:
            now_ms = self._clock.now_ms()
            if self._tried_ms is None or not 0 <= now_ms - self._tried_ms < self._fresh_ms:
                await self._read(now_ms)
        if self._pool is None:
            return Wait(until_ms=now_ms + DOUBTFUL_MS)
        return self._pool.pick(host, now_ms)

    def note(self, proxy: Proxy, host: str, trouble: Trouble | None, began_ms: int) -> None:
        """Record the result of a request to `host` through `proxy` that started at `began_ms`."""
        if self._pool is None:
            return
        now_ms, before = self._clock.now_ms(), self._pool.build(proxy)
        match trouble:
            case None:
                self._pool = self._pool.note_success(proxy, host, began_ms)
            case Trouble.BROKEN:
                self._pool = self._pool.broken(proxy, began_ms, now_ms)
            case Trouble.UNREACHED:
                self._pool = self._pool.note_unreached(proxy, host, began_ms, now_ms)
        after = self._pool.build(proxy)
        if after.strikes > before.strikes:
            # The proxy's credentials may have been changed, so the list is read again soon.
            self._fresh_ms = min(self._fresh_ms, DOUBTFUL_MS)
            rest_s = (after.until_ms - now_ms) / 1000
            fields = {"proxy": proxy.name, "strikes": after.strikes, "rest_s": rest_s}
            _log.warning("proxy.quarantined", extra=fields)

    async def _read(self, now_ms: int) -> None:
        self._tried_ms, self._fresh_ms = now_ms, DOUBTFUL_MS
        try:
            proxies = parse_pool(await self._secrets.read(self._name))
        except (PortError, PoolError) as error:
            held = isinstance(error, Transient) and now_ms - self._read_ms < HELD_MS
            if not held:
                self._pool = None
            fields = {"secret": self._name, "error": str(error), "held": held}
            _log.warning("proxies.unreadable", extra=fields)
            return
        self._read_ms, self._fresh_ms = now_ms, FRESH_MS
        self._pool = Pool(proxies=proxies) if self._pool is None else self._pool.replaced(proxies)


class ProxyingFetcher:
    """Implements `Fetcher` through proxies. Requests marked `direct` go directly."""

    def __init__(
        self, *, direct: HttpFetcher, dialler: HttpFetcher, proxies: Proxies, clock: Clock
    ) -> None:
        """`direct` connects to targets, `dialler` to proxies only."""
        self._direct = direct
        self._dialler = dialler
        self._proxies = proxies
        self._clock = clock
        # Checked pairs of target origin and seeds' origins, and the end of their validity.
        self._judged: dict[tuple[URL, frozenset[str]], int] = {}

    async def fetch(self, request: Request) -> Response | Failure:
        if request.direct:
            return await self._direct.fetch(request)
        refusal = await self._judge(URL(request.url, encoded=True).origin(), request.named)
        if refusal is not None:
            return refusal
        host = hostname_of(request.url)
        deadline_ms = self._clock.now_ms() + round(request.total_s * 1000)
        for _ in range(TRIES_MAX):
            proxy = await self._proxies.pick(host)
            began_ms = self._clock.now_ms()
            if isinstance(proxy, Wait):
                return _later((proxy.until_ms - began_ms) / 1000)
            left_s = round((deadline_ms - began_ms) / 1000, 1)  # appears in error messages
            if left_s <= 0:
                break
            asked = await self._dialler.ask(replace(request, total_s=left_s), proxy)
            trouble = trouble_of(asked, proxy)
            self._proxies.note(proxy, host, trouble, began_ms)
            # A broken proxy never reached the host, so another one is tried at once.
            if trouble is not Trouble.BROKEN:
                return asked.answer
        return _later(LATER_S_MIN)

    async def aclose(self) -> None:
        await self._direct.aclose()
        await self._dialler.aclose()

    async def _judge(self, origin: URL, named: frozenset[str]) -> Failure | None:
        now_ms = self._clock.now_ms()
        if 0 < self._judged.get((origin, named), 0) - now_ms <= JUDGED_MS:
            return None
        refusal = await self._direct.refusal(origin, named)
        if refusal is None:
            if len(self._judged) >= JUDGED_MAX:
                self._judged.clear()
            self._judged[origin, named] = now_ms + JUDGED_MS
        return refusal


def trouble_of(asked: FetchResult, proxy: Proxy) -> Trouble | None:
    """Return the party that might have prevented a response, or None if it was not the proxy."""
    if isinstance(asked.answer, Response):
        if asked.answer.status == _AUTHENTICATE:
            return Trouble.BROKEN  # only a proxy uses this status
        return Trouble.UNREACHED if asked.answer.status in _GATEWAY else None
    error = asked.error
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Trouble.BROKEN if error.status == _AUTHENTICATE else Trouble.UNREACHED
    if isinstance(error, aiohttp.ClientConnectorError):
        # Inside the tunnel, the target's TLS failed.
        url = URL(proxy.url)
        return Trouble.BROKEN if (error.host, error.port) == (url.raw_host, url.port) else None
    if not asked.sent:
        return Trouble.UNREACHED
    plain = asked.answer.reason in (Reason.TIMEOUT, Reason.DISCONNECTED)
    return Trouble.UNREACHED if plain and not asked.tunnelled else None


def _later(wait_s: float) -> Failure:
    return Failure(
        reason=Reason.PROXY,
        detail="no proxy can be used at the moment",
        later_s=max(LATER_S_MIN, wait_s),
    )
