"""Answer the paused requests of one page, each in its own task.

Rules decide which requests are loaded, answered empty or refused. If a request gets no answer, it
is paused until the page is closed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from orbweaver.model.http_exchange import Headers
from orbweaver.model.url import hostname_of, site_of
from orbweaver.model.value import value_class
from orbweaver.rendering.asset_cache import Asset, AssetCache
from orbweaver.rendering.process import BrowserGone, CommandFailed, Connection
from orbweaver.rendering.task import (
    RenderCounts,
    RenderLimits,
    RenderRules,
    RenderTask,
    RequestRefusal,
    ResourceAnswer,
    ResourceLoader,
    ResourceRefused,
    ResourceRequest,
)

_STAYS = 204
# Request headers that the loader takes from the browser. The loader sets all others itself.
_SENT = frozenset({"accept", "authorization", "cookie", "origin", "referer", "service-worker"})
_SENT |= {"x-api-key", "x-requested-with"}
_PREFLIGHT = "access-control-request-"
METHODS = frozenset({"GET", "HEAD"})
# Resource types that are answered empty: beacons, reports, prefetches and the like.
_NOTHING = frozenset({"ping", "cspviolationreport", "prefetch", "manifest", "signedexchange"})
_NOTHING |= {"eventsource", "fedcm", "texttrack"}
_LOADABLE = frozenset({"image", "font", "media"})
_ANYWHERE = frozenset({"script", "stylesheet"})
CACHED = _ANYWHERE
# Sites for advertising and analytics, which add nothing to a page's text.
TRACKERS = frozenset(
    (
        *("2mdn.net", "adnxs.com", "adsrvr.org", "amazon-adsystem.com", "amplitude.com"),
        *("bing.com", "bluekai.com", "branch.io", "chartbeat.com", "chartbeat.net"),
        *("clarity.ms", "cloudflareinsights.com", "criteo.com", "criteo.net", "crwdcntrl.net"),
        *("demdex.net", "doubleclick.net", "everesttech.net", "facebook.net", "fullstory.com"),
        *("google-analytics.com", "googleadservices.com", "googlesyndication.com"),
        *("googletagmanager.com", "googletagservices.com", "heapanalytics.com", "hotjar.com"),
        *("hotjar.io", "krxd.net", "licdn.com", "matomo.cloud", "mixpanel.com", "moatads.com"),
        *("mouseflow.com", "newrelic.com", "nr-data.net", "omtrdc.net", "openx.net"),
        *("outbrain.com", "parsely.com", "pubmatic.com", "quantserve.com"),
        *("rubiconproject.com", "scorecardresearch.com", "segment.com", "segment.io"),
        *("sentry-cdn.com", "sentry.io", "taboola.com", "yandex-team.ru", "zemanta.com"),
    )
)
# The smallest transparent GIF. It answers requests for images that are not loaded, so that scripts
# that wait for images continue.
_PIXEL = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c000000000100010000020144003b"
)


class SharedAssets:
    """The asset cache of all pages, and locks for files that are being requested."""

    def __init__(self) -> None:
        self.cache = AssetCache()
        self._asking: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    def lock(self, url: str, origin: str) -> asyncio.Lock:
        """Return the lock for requesting a file.

        Pages that need the same file wait for its response.
        """
        return self._asking.setdefault((url, origin), asyncio.Lock())


class PausedRequests:
    """Answers and counts the requests of one page. `changed` is called when a request is done."""

    def __init__(
        self,
        connection: Connection,
        task: RenderTask,
        loader: ResourceLoader,
        assets: SharedAssets,
        limits: RenderLimits,
        changed: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._task = task
        self._loader = loader
        self._assets = assets
        self._limits = limits
        self._changed = changed
        self._tasks: set[asyncio.Task[None]] = set()
        self._document_given = False
        self._taken = 0  # requests at the loader, which count towards `requests_max`
        self._closed = False
        self.trouble: BaseException | None = None
        self.paused = 0
        self.asked = 0
        self.cached = 0
        self.emptied = 0
        self.bytes = 0
        self.refused: Counter[str] = Counter()
        self.navigations: list[str] = []
        self.popups: list[str] = []

    @property
    def open(self) -> int:
        """Number of requests that are paused now."""
        return len(self._tasks)

    @property
    def only_waits(self) -> bool:
        """True if all open requests wait until requests to their hosts are allowed."""
        return 0 < self._taken == self._loader.waiting

    def counts(self) -> RenderCounts:
        return RenderCounts(
            asked=self.asked,
            cached=self.cached,
            emptied=self.emptied,
            bytes=self.bytes,
            refused=dict(self.refused),
        )

    def take(self, session: str, event: dict[str, Any], *, main: bool, popup: bool) -> None:
        """Start answering a request. `main`: it is for a document of the page's main frame.

        `popup`: it is from a new window.
        """
        if self._closed:
            return
        self.paused += 1
        given = main and not self._document_given
        self._document_given = self._document_given or main
        origin = RequestOrigin(page_url=self._task.url, leaves=main, popup=popup)
        answering = asyncio.create_task(self._answer(session, event, origin, given=given))
        self._tasks.add(answering)
        answering.add_done_callback(self._on_done)

    async def close(self) -> None:
        """Stop answering. Open and later requests are paused until the page is closed."""
        self._closed = True
        for one in self._tasks:
            one.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_done(self, answering: asyncio.Task[None]) -> None:
        self._tasks.discard(answering)
        if not answering.cancelled() and (trouble := answering.exception()) is not None:
            self.trouble = self.trouble or trouble
        self._changed()

    async def _answer(
        self, session: str, event: dict[str, Any], origin: RequestOrigin, *, given: bool
    ) -> None:
        number = event["requestId"]
        # The requests of a closed page need no answer.
        with contextlib.suppress(CommandFailed, BrowserGone):
            if given:
                await self._answer_with(session, number, self._task.document)
                return
            request = _request_of(event)
            match rule(request, origin, self._task.rules):
                case Handling.ASK:
                    await self._ask(session, number, request)
                case Handling.EMPTY:
                    self.emptied += 1
                    status, headers, body = empty_answer(kind_of(request))
                    empty = ResourceAnswer(status=status, headers=headers, body=body)
                    await self._answer_with(session, number, empty)
                case Handling.STAY:
                    self.navigations.append(request.url)
                    await self._answer_with(session, number, ResourceAnswer(status=_STAYS))
                case Handling.ALLOW:
                    allowed = preflight_answer(request)
                    answer = ResourceAnswer(status=_STAYS, headers=allowed)
                    await self._answer_with(session, number, answer)
                case refusal:
                    if refusal is RequestRefusal.POPUP:
                        self.popups.append(request.url)
                    await self._refuse(session, number, refusal)

    async def _ask(self, session: str, number: str, request: ResourceRequest) -> None:
        if request.kind not in CACHED:
            await self._load(session, number, request)
            return
        origin = dict(request.headers).get("Origin", "")
        async with self._assets.lock(request.url, origin):
            now_ms = time.monotonic_ns() // 1_000_000
            asset = self._assets.cache.find(request.url, origin, now_ms)
            if asset is None:
                answer = await self._load(session, number, request)
                if answer is not None:
                    body = base64.b64encode(answer.body).decode()
                    kept = Asset(
                        status=answer.status,
                        headers=answer.headers,
                        body=body,
                        bytes=len(answer.body),
                        at_ms=now_ms,
                    )
                    self._assets.cache.keep(request.url, origin, kept)
                return
        self.cached += 1
        await self._fulfil(session, number, asset.status, passed_on(asset.headers), asset.body)

    async def _load(
        self, session: str, number: str, request: ResourceRequest
    ) -> ResourceAnswer | None:
        """Answer a request by the loader. Return the answer, or None if the request was refused."""
        if self.asked + self._taken >= self._limits.requests_max:
            await self._refuse(session, number, RequestRefusal.REQUESTS)
            return None
        self._taken += 1
        try:
            answer = await self._loader.load(request)
        finally:
            self._taken -= 1
        if isinstance(answer, ResourceRefused):
            await self._refuse(session, number, answer.reason)
            return None
        self.asked += 1
        self.bytes += len(answer.body)
        if self.bytes > self._limits.bytes_max:
            await self._refuse(session, number, RequestRefusal.BYTES)
            return None
        await self._answer_with(session, number, answer)
        return answer

    async def _answer_with(self, session: str, number: str, answer: ResourceAnswer) -> None:
        body = base64.b64encode(answer.body).decode()
        await self._fulfil(session, number, answer.status, passed_on(answer.headers), body)

    async def _fulfil(
        self, session: str, number: str, status: int, headers: list[dict[str, str]], body: str
    ) -> None:
        await self._connection.call(
            "Fetch.fulfillRequest",
            session,
            requestId=number,
            responseCode=status,
            responseHeaders=headers,
            body=body,
        )

    async def _refuse(self, session: str, number: str, reason: str) -> None:
        self.refused[str(reason)] += 1
        await self._connection.call(
            "Fetch.failRequest", session, requestId=number, errorReason="BlockedByClient"
        )


def _request_of(event: dict[str, Any]) -> ResourceRequest:
    said = event["request"]
    sent = {
        name: value
        for name, value in said["headers"].items()
        if name.lower() in _SENT or name.lower().startswith(_PREFLIGHT)
    }
    return ResourceRequest(
        url=said["url"],
        kind=event["resourceType"].lower(),
        method=said["method"],
        headers=tuple(sent.items()),
    )


class Handling(StrEnum):
    """How to answer a request that is not refused.

    `ASK`: load it. `EMPTY`: answer with an empty body. `STAY`: record the navigation, and remain on
    the page. `ALLOW`: answer a CORS preflight.
    """

    ASK = "ask"
    EMPTY = "empty"
    STAY = "stay"
    ALLOW = "allow"


Ruling: TypeAlias = Handling | RequestRefusal


@value_class
class RequestOrigin:
    """Where a request comes from. `page_url` is the rendered page.

    `popup`: it is from a new window.
    """

    page_url: str
    # True for a document of the main frame that is not the page itself.
    leaves: bool = False
    popup: bool = False


def rule(request: ResourceRequest, origin: RequestOrigin, rules: RenderRules) -> Ruling:  # noqa: PLR0911 - a rule each
    """Decide how a request of a page is answered, or why it is refused.

    From the page's own site, documents, scripts, styles and XHR are loaded. From other sites,
    scripts and styles are loaded, except from trackers. `rules` add images, fonts, media, and
    further sites.
    """
    kind, url = kind_of(request), request.url
    if not url.startswith(("http://", "https://")):
        return RequestRefusal.SCHEME
    headers = {name.lower() for name, _ in request.headers}
    if "service-worker" in headers:
        return RequestRefusal.SERVICE_WORKER
    if origin.popup:
        return RequestRefusal.POPUP
    if origin.leaves:  # the navigation is recorded, not loaded
        return Handling.STAY
    if kind in _NOTHING or (kind in _LOADABLE and kind not in rules.load):
        return Handling.EMPTY
    # A CORS preflight is answered here if the request that it announces would be loaded. Scripts
    # cannot set this header.
    wanted = dict(request.headers).get("Access-Control-Request-Method")
    if request.method == "OPTIONS" and wanted is not None:
        ruling = rule(ResourceRequest(url=url, kind="xhr", method=wanted), origin, rules)
        return Handling.ALLOW if ruling is Handling.ASK else ruling
    # A crawler must not change data.
    if request.method not in METHODS:
        return RequestRefusal.METHOD
    return _by_site(kind, url, origin.page_url, rules)


def kind_of(request: ResourceRequest) -> str:
    """Return the resource type of a request.

    The type of icons and event streams follows from the `Accept` header.
    """
    accepted = dict(request.headers).get("Accept", "")
    if accepted == "text/event-stream":
        return "eventsource"
    return "image" if request.kind == "other" and accepted.startswith("image/") else request.kind


def _by_site(kind: str, url: str, page_url: str, rules: RenderRules) -> Ruling:
    host, page_host = hostname_of(url), hostname_of(page_url)
    site = site_of(host)
    if host == page_host or site == site_of(page_host):
        return Handling.ASK
    if site in TRACKERS:
        return RequestRefusal.TRACKER
    if kind in _ANYWHERE or kind in rules.load or {host, site} & rules.third_party:
        return Handling.ASK
    return RequestRefusal.THIRD_PARTY


def empty_answer(kind: str) -> tuple[int, Headers, bytes]:
    """Return status, headers and body for a request that is answered empty."""
    if kind == "image":
        return 200, (("Content-Type", "image/gif"), ("Access-Control-Allow-Origin", "*")), _PIXEL
    # This status ends an event stream, so that the browser does not reconnect.
    return 204, (("Access-Control-Allow-Origin", "*"),), b""


def preflight_answer(request: ResourceRequest) -> Headers:
    """Return the headers that allow a page's cross-origin request."""
    wanted = dict(request.headers)
    return (
        ("Access-Control-Allow-Origin", wanted.get("Origin", "*")),
        ("Access-Control-Allow-Credentials", "true"),
        ("Access-Control-Allow-Methods", wanted.get("Access-Control-Request-Method", "GET")),
        ("Access-Control-Allow-Headers", wanted.get("Access-Control-Request-Headers", "")),
    )


# Response headers that a browser must not obey here, or that do not apply to a decoded body.
_DROPPED = frozenset(
    {"alt-svc", "clear-site-data", "connection", "content-disposition", "content-encoding"}
    | {"content-length", "link", "nel", "refresh", "report-to", "reporting-endpoints"}
    | {"speculation-rules", "strict-transport-security", "transfer-encoding"}
)


def passed_on(headers: Headers) -> list[dict[str, str]]:
    """Convert a response's headers to the form of the browser's protocol. Leaves out `_DROPPED`."""
    return [
        {"name": name, "value": value.encode("utf-8", "replace").decode("utf-8")}
        for name, value in headers
        if name.lower() not in _DROPPED and not {"\r", "\n", "\0"} & {*value}
    ]
