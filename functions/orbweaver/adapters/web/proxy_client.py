"""Send requests through proxies.

A request meant for a proxy is never sent directly. Without a usable proxy it is sent later, and no
attempt is counted. Targets are checked before a proxy receives their names (`TargetCheck`). An http
or https proxy chooses the address itself, a `socks5` proxy gets the checked address. https uses a
tunnel (CONNECT or SOCKS), and the target's certificate is verified here.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from dataclasses import replace
from enum import Enum
from typing import TypeAlias

import aiohttp
from yarl import URL

from orbweaver.adapters.web.address_guard import DIALLED_MAX
from orbweaver.adapters.web.client import FetchResult, HttpFetcher, Limits, TargetCheck
from orbweaver.adapters.web.errors import REJECTED, REJECTING
from orbweaver.adapters.web.large_bodies import LargeBodies
from orbweaver.adapters.web.proxy_sources import ProxySource, SourceOf, source_of
from orbweaver.adapters.web.socks import SocksRejectedError
from orbweaver.fetching.proxy_config import ProxyConfig
from orbweaver.fetching.proxy_pool import Pool, PoolError, Proxy, Wait
from orbweaver.model.address_policy import PUBLIC_ONLY, Allowed, parse_allowed
from orbweaver.model.errors import PortError, Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.outcome import Reason
from orbweaver.model.ports import Clock, Secrets
from orbweaver.model.settings import USER_AGENT
from orbweaver.model.url import hostname_of

# Longest time until the list is read again, if it could not be read or a proxy failed.
DOUBTFUL_MS = 30_000
# Longest use of a list that cannot be read again. A deleted or invalid list is dropped at once.
HELD_MS = 900_000
TRIES_MAX = 3
TRIAL_S = 3.0
ANYWHERE = "0.0.0.0/0,::/0"
LATER_S_MIN = 1.0
JUDGED_MS = 60_000
JUDGED_MAX = 2_000
# Origin, origins of the crawl's seeds, and the check.
_Target: TypeAlias = tuple[URL, frozenset[str], TargetCheck]

_AUTHENTICATE = 407
# Statuses of a proxy, or of a target's gateway.
_GATEWAY = frozenset({502, 504})

_log = logging.getLogger(__name__)


class Trouble(Enum):
    """The party that might have caused a missing response."""

    BROKEN = "broken"  # the proxy
    REJECTED = "rejected"  # the proxy, which does not accept the user and password
    UNREACHED = "unreached"  # the proxy or the target


# The proxy is the cause, so the target has received nothing.
_OWN_TROUBLES = frozenset({Trouble.BROKEN, Trouble.REJECTED})


class Proxies:
    """A list of proxies, and the health of each proxy. The list is read at first use."""

    def __init__(self, source: ProxySource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        # The last failure of a proxy or of the source, without credentials.
        self.trouble = ""
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
            return Wait(until_ms=now_ms + self._doubtful_ms)
        return self._pool.pick(host, now_ms)

    @property
    def _doubtful_ms(self) -> int:
        return min(DOUBTFUL_MS, self._source.fresh_ms)

    def note(
        self, proxy: Proxy, host: str, trouble: Trouble | None, began_ms: int, detail: str = ""
    ) -> None:
        """Record the result of a request to `host` through `proxy` that started at `began_ms`."""
        if self._pool is None:
            return
        if trouble in _OWN_TROUBLES:
            self.trouble = f"{proxy.name}: {detail}"
        now_ms, before = self._clock.now_ms(), self._pool.build(proxy)
        match trouble:
            case None:
                self._pool = self._pool.note_success(proxy, host, began_ms)
            case Trouble.BROKEN | Trouble.REJECTED:
                rejected = trouble is Trouble.REJECTED
                self._pool = self._pool.broken(proxy, began_ms, now_ms, rejected=rejected)
            case Trouble.UNREACHED:
                self._pool = self._pool.note_unreached(proxy, host, began_ms, now_ms)
        after = self._pool.build(proxy)
        if after.strikes > before.strikes:
            # The proxy's credentials may have been changed, so the list is read again soon.
            self._fresh_ms = min(self._fresh_ms, self._doubtful_ms)
            rest_s = (after.until_ms - now_ms) / 1000
            fields = {"proxy": proxy.name, "strikes": after.strikes, "rest_s": rest_s}
            fields["error"] = detail
            _log.warning("proxy.quarantined", extra=fields)

    async def _read(self, now_ms: int) -> None:
        self._tried_ms, self._fresh_ms = now_ms, self._doubtful_ms
        try:
            proxies = await self._source.read()
        except (PortError, PoolError) as error:
            held = isinstance(error, Transient) and now_ms - self._read_ms < HELD_MS
            if not held:
                self._pool = None
            self.trouble = f"the list {self._source.name}: {error}"
            fields = {"source": self._source.name, "error": str(error), "held": held}
            _log.warning("proxies.unreadable", extra=fields)
            return
        self._read_ms, self._fresh_ms = now_ms, self._source.fresh_ms
        self._pool = Pool(proxies=proxies) if self._pool is None else self._pool.replaced(proxies)


class ProxyingFetcher:
    """Implements `Fetcher` through proxies. Requests marked `direct` go directly."""

    def __init__(
        self,
        *,
        direct: HttpFetcher,
        dialler: HttpFetcher,
        source_of: SourceOf,
        clock: Clock,
        resolves: bool = True,
    ) -> None:
        """`direct` connects to targets, `dialler` to proxies only.

        `resolves` is False in networks whose names may be known to the proxies only.
        """
        self._direct = direct
        self._dialler = dialler
        self._source_of = source_of
        self._clock = clock
        self._resolves = resolves
        self._proxies: dict[ProxySource, Proxies] = {}
        # Addresses of checked targets, and the end of their validity.
        self._judged: dict[_Target, tuple[tuple[str, ...], int]] = {}

    async def fetch(self, request: Request) -> Response | Failure:
        url = URL(request.url, encoded=True)
        source = None if request.direct else self._source_of(url)
        if source is None:
            return await self._direct.fetch(request)
        if source not in self._proxies:
            self._proxies[source] = Proxies(source, self._clock)
        proxies, host = self._proxies[source], hostname_of(request.url)
        deadline_ms = self._clock.now_ms() + round(request.total_s * 1000)
        for _ in range(TRIES_MAX):
            proxy = await proxies.pick(host)
            if isinstance(proxy, Wait):
                if proxy.rejected:
                    return _rejected(proxies.trouble)
                return _later((proxy.until_ms - self._clock.now_ms()) / 1000, proxies.trouble)
            check = TargetCheck.of(proxy, resolves=self._resolves)
            addresses = await self._judge((url.origin(), request.named, check))
            if isinstance(addresses, Failure):
                return addresses
            began_ms = self._clock.now_ms()
            left_s = round((deadline_ms - began_ms) / 1000, 1)  # appears in error messages
            if left_s <= 0:
                break
            given = addresses[:DIALLED_MAX] if check is TargetCheck.ADDRESS else ()
            asked = await self._dialler.ask(replace(request, total_s=left_s), proxy, given)
            trouble = trouble_of(asked, proxy)
            proxies.note(proxy, host, trouble, began_ms, _detail_of(asked))
            # A broken proxy never reached the host, so another one is tried at once.
            if trouble not in _OWN_TROUBLES:
                return replace(asked.answer, proxy=proxy.name)
        return _later(LATER_S_MIN, proxies.trouble)

    async def aclose(self) -> None:
        await self._direct.aclose()
        await self._dialler.aclose()

    async def _judge(self, target: _Target) -> tuple[str, ...] | Failure:
        """Return the checked addresses of a target. Empty if the proxy resolves it."""
        now_ms = self._clock.now_ms()
        addresses, until_ms = self._judged.get(target, ((), 0))
        if 0 < until_ms - now_ms <= JUDGED_MS:
            return addresses
        found = await self._direct.check(*target)
        if not isinstance(found, Failure):
            if len(self._judged) >= JUDGED_MAX:
                self._judged.clear()
            self._judged[target] = (found, now_ms + JUDGED_MS)
        return found


def with_proxies(
    direct: HttpFetcher,
    config: ProxyConfig,
    clock: Clock,
    secrets: Secrets | None = None,
    *,
    allowed: Allowed = PUBLIC_ONLY,
    limits: Limits | None = None,
    large: LargeBodies | None = None,
) -> ProxyingFetcher:
    """Return a fetcher that uses the proxies of `config`.

    Proxies that the user of this machine chose can be anywhere, others at `allowed` addresses.
    """
    allowed = parse_allowed(ANYWHERE) if config.is_local else allowed
    return ProxyingFetcher(
        direct=direct,
        dialler=HttpFetcher(allowed=allowed, limits=limits, dials_proxies=True, large=large),
        source_of=source_of(config, secrets),
        clock=clock,
        resolves=not config.is_local,
    )


async def trouble_with(proxy: Proxy) -> Failure | None:
    """Return why a proxy that the user chose cannot be used, or None.

    The request for a tunnel to a name that never exists (RFC 6761) reaches no site.
    """
    request = Request(
        url="https://orbweaver.invalid/",
        user_agent=USER_AGENT,
        accept=frozenset(),
        body_bytes_max=1,
        total_s=TRIAL_S,
    )
    dialler = HttpFetcher(allowed=parse_allowed(ANYWHERE), dials_proxies=True)
    async with aclosing(dialler):
        asked = await dialler.ask(request, proxy)
    if trouble_of(asked, proxy) not in _OWN_TROUBLES:
        return None
    return Failure(reason=Reason.PROXY, detail=_detail_of(asked))


def trouble_of(asked: FetchResult, proxy: Proxy) -> Trouble | None:
    """Return the party that might have prevented a response, or None if it was not the proxy."""
    if isinstance(asked.answer, Response):
        # An answer in a tunnel is the target's own.
        status = None if asked.tunnelled else asked.answer.status
        if status == _AUTHENTICATE:
            return Trouble.REJECTED  # only a proxy uses this status
        return Trouble.UNREACHED if status in _GATEWAY else None
    error = asked.error
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Trouble.REJECTED if error.status in REJECTING else Trouble.UNREACHED
    if isinstance(error, aiohttp.ClientConnectorError):
        # Inside the tunnel, the target's TLS failed.
        url = URL(proxy.url)
        own = Trouble.BROKEN
        if isinstance(error.os_error, SocksRejectedError):
            own = Trouble.REJECTED
        return own if (error.host, error.port) == (url.raw_host, url.port) else None
    if not asked.sent:
        return None if error is None else Trouble.UNREACHED
    plain = asked.answer.reason in (Reason.TIMEOUT, Reason.DISCONNECTED)
    return Trouble.UNREACHED if plain and not asked.tunnelled else None


def _detail_of(asked: FetchResult) -> str:
    if isinstance(asked.answer, Failure):
        return asked.answer.detail
    rejected = f": {REJECTED}" if asked.answer.status == _AUTHENTICATE else ""
    return f"the proxy answered {asked.answer.status}{rejected}"


def _rejected(trouble: str) -> Failure:
    return Failure(
        reason=Reason.PROXY_REJECTED, detail=f"no proxy accepts its user and password: {trouble}"
    )


def _later(wait_s: float, trouble: str) -> Failure:
    why = f": {trouble}" if trouble else ""
    return Failure(
        reason=Reason.PROXY,
        detail=f"no proxy can be used at the moment{why}",
        later_s=max(LATER_S_MIN, wait_s),
    )
