"""Answer the paused requests of one page, each in its own task.

If a request gets no answer, it is paused until the page is closed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from orbweaver.rendering.asset_cache import Asset, AssetCache
from orbweaver.rendering.protocol import BrowserGone, CommandFailed, Connection
from orbweaver.rendering.request_rules import (
    CACHED,
    Handling,
    RequestOrigin,
    empty_answer,
    kind_of,
    passed_on,
    preflight_answer,
    rule,
)
from orbweaver.rendering.task import (
    RenderCounts,
    RenderLimits,
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
